"""Campaigns of makespans under silent errors: the evaluation of RR-9296, parallel and resumable.

A TOML file names job sets, synthetic or a trace's days, and says in ``[[grid]]`` tables which
heuristics and rules play them, at which failure probabilities and numbers of processors;
``campaigns/README.md`` shows it. The unit of work is one job set at one failure probability and
one number of processors: all heuristics x rules x failure scenarios. Its result is a file under the
hash of all that determines it, as for `rebat.campaign.run`.

References
----------
.. [1] A. Benoit, V. Le Fèvre, P. Raghavan, Y. Robert, H. Sun, "Design and comparison of resilient
   scheduling heuristics for parallel jobs", Inria RR-9296, 2020 (hal-02317464), Section 5.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from rebat.campaign.execute import executor as executor_named
from rebat.campaign.keys import canonical
from rebat.campaign.makespan import PAPER_RULES
from rebat.campaign.run import OnProgress, Tally
from rebat.campaign.store import TABLE, Owner, Result, Status, Store
from rebat.core.errors import InputError
from rebat.core.files import atomic_path, read_text
from rebat.kernels import resilient
from rebat.models.silent_errors import (
    PAPER_SCENARIOS,
    SYNTHETIC_JOBS,
    SYNTHETIC_PROCS,
    SYNTHETIC_SETS,
    Ints,
    draw_failures,
    error_rate,
    lower_bounds,
    normalised,
    synthetic_jobs,
)
from rebat.policies.priority_rules import priority_rule, ranks
from rebat.workloads.day_sets import read_day_sets

RESULTS_FORMAT = 1
"""Raise it with every change that makes a unit's result another: of its form, or its numbers."""

RULES = (*PAPER_RULES, "RANDOM")
"""The seven rules of Section 5.1."""

_Positive = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]
_Probability = Annotated[float, msgspec.Meta(ge=0, lt=1)]
_Seed = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
_Name = Annotated[str, msgspec.Meta(min_length=1, pattern="^[^/]*$")]


class SyntheticIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[synthetic.NAME]``: job sets drawn as in Section 5.1, its numbers being the defaults."""

    sets: _Positive = SYNTHETIC_SETS
    jobs: _Positive = SYNTHETIC_JOBS


class DaysIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[days.NAME]``: a job set per day of a trace; without `file`, the user has to name one.

    `size` is the trace option of that name, here "allocated" unless given.
    """

    file: str | None = None
    months: list[str] | None = None
    tz: str = "UTC"
    size: str | None = None
    n_nodes: _Positive | None = None
    least_jobs: _Positive = 1


class GridIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[[grid]]``; without `procs`, 10,000 for synthetic sets and the machine for a trace."""

    name: _Name
    sets: tuple[str, ...]
    failure_probability: tuple[_Probability, ...]
    procs: tuple[_Positive, ...] = ()
    heuristics: tuple[str, ...] = resilient.HEURISTICS
    rules: tuple[str, ...] = RULES
    scenarios: _Positive = PAPER_SCENARIOS
    reservations: tuple[str, ...] = ("paper",)


class CampaignIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A campaign file; `seed` names every random stream."""

    name: _Name
    grid: list[GridIn]
    seed: _Seed = 0
    synthetic: dict[str, SyntheticIn] = {}
    days: dict[str, DaysIn] = {}


class JobSet(NamedTuple):
    """A job set: its name in reports and in random streams, and its jobs; times in us."""

    name: str
    times: Ints
    sizes: Ints
    n_procs: int


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """A unit of work with its labels, its key and what the key was made of."""

    grid: str
    source: str
    jobs: JobSet
    n_procs: int
    q: float
    reservations: str
    key: str
    identity: dict[str, Any]


class SilentCampaign(msgspec.Struct, frozen=True):
    """A campaign file's units; `untraced` sources have none, as no trace was named."""

    owner: Owner
    spec: CampaignIn
    units: list[Unit]
    untraced: list[str]

    @property
    def distinct(self) -> dict[str, Unit]:
        """The units by key, in the order of the file: grids may share some."""
        found: dict[str, Unit] = {}
        for unit in self.units:
            found.setdefault(unit.key, unit)
        return found


class Row(NamedTuple):
    """A heuristic with a rule on one unit; the fields are the columns of the table.

    `mean` and `max` are of the normalised makespan over the scenarios, `failures` is the mean
    number of failed attempts of the whole set.
    """

    grid: str
    source: str
    set: str
    jobs: int
    n_procs: int
    q: float
    reservations: str
    scenarios: int
    failures: float
    heuristic: str
    rule: str
    mean: float
    max: float
    key: str


# ---- reading


def open_silent(file: Path, trace: Path | None = None) -> SilentCampaign:
    """Read and check a campaign file, and the job sets that it names.

    Parameters
    ----------
    file : Path
        The TOML file; traces that it names are looked for from its folder on.
    trace : Path, optional
        Takes the place of the file of every ``[days.NAME]``.

    Raises
    ------
    InputError
        With the file and the key.
    """
    text = read_text(file)
    try:
        document = tomllib.loads(text)
        spec = msgspec.convert(document, CampaignIn)
        _check(spec)
        sources = {name: list(_synthetic(made, spec.seed)) for name, made in spec.synthetic.items()}
        for name, days in spec.days.items():
            sources[name] = _days(days, f"days.{name}", file.parent, trace)
        units = [unit for grid in spec.grid for unit in _units(grid, sources, spec.seed)]
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not TOML: {error}", str(file)) from None
    except msgspec.ValidationError as error:  # "what - at `$.place`"
        what, _, place = str(error).partition(" - at ")
        raise InputError(what, f"{file}: {place.strip('`')}" if place else str(file)) from None
    except InputError as error:
        raise error.at(str(file)) from None
    owner = Owner(spec.name, file.name)
    return SilentCampaign(owner, spec, units, [name for name in spec.days if not sources[name]])


def _check(spec: CampaignIn) -> None:
    """What the types do not say: names, and that nothing is empty or twice there."""
    known = [*spec.synthetic, *spec.days]
    _some([grid.name for grid in spec.grid], "grid: name")
    _some(known, "synthetic, days")
    for number, grid in enumerate(spec.grid):
        where = f"$.grid[{number}]"
        for key in ("sets", "failure_probability", "heuristics", "rules", "reservations"):
            _some(getattr(grid, key), f"{where}.{key}")
        try:
            for name in grid.heuristics:
                resilient.heuristic(name)
            for name in grid.rules:
                priority_rule(name)
            for name in grid.reservations:
                resilient.check_reservations(name)
            for name in set(grid.sets) - set(known):
                raise InputError(f"unknown sets {name!r}", expected=f"one of: {', '.join(known)}")
        except InputError as error:
            raise error.at(where) from None


def _some(values: Sequence[Any], where: str) -> None:
    if not values or len(set(values)) < len(values):
        raise InputError("is empty" if not values else "has a value twice", where, "some, once")


def _synthetic(made: SyntheticIn, seed: int) -> Iterator[JobSet]:
    for number in range(made.sets):
        times, sizes = synthetic_jobs(seed, number, made.jobs)
        yield JobSet(str(number), times, sizes, SYNTHETIC_PROCS)


def _days(days: DaysIn, where: str, folder: Path, trace: Path | None) -> list[JobSet]:
    """The sets of a trace's days; none when nobody says which trace."""
    path = trace or (folder / days.file if days.file else None)
    if path is None:
        return []
    options: dict[str, Any] = {"size": days.size, "n_nodes": days.n_nodes}
    if not path.name.removesuffix(".gz").endswith(".json"):  # a Batsim workload has no options
        options |= {"size": days.size or "allocated", "overrun": "keep"}
    try:
        found = read_day_sets(path, days.months, tz=days.tz, **options)
    except InputError as error:
        raise error.at(where) from None
    kept = [JobSet(*day) for day in found if len(day.sizes) >= days.least_jobs]
    if not kept:
        what = f"no day with {days.least_jobs} jobs or more"
        raise InputError(what, f"{where}.least_jobs", "a smaller number")
    return kept


def _units(grid: GridIn, sources: dict[str, list[JobSet]], seed: int) -> Iterator[Unit]:
    for source in grid.sets:
        for jobs in sources[source]:
            content = hashlib.sha256(jobs.times.tobytes() + jobs.sizes.tobytes()).hexdigest()
            largest = int(jobs.sizes.max())
            procs = grid.procs or (jobs.n_procs,)
            if min(procs) < largest:
                what = f"job set {jobs.name} of {source} has a job of {largest} processors"
                raise InputError(what, f"grid {grid.name}", f"procs of at least {largest}")
            for q, n_procs, kept in itertools.product(
                grid.failure_probability, procs, grid.reservations
            ):
                identity = {
                    "format": RESULTS_FORMAT,
                    "jobs": content,
                    "stream": jobs.name,
                    "seed": seed,
                    "n_procs": n_procs,
                    "q": float(q),
                    "scenarios": grid.scenarios,
                    "heuristics": [resilient.heuristic(name).name for name in grid.heuristics],
                    "rules": [rule.upper() for rule in grid.rules],
                    "reservations": kept,
                }
                yield Unit(
                    grid=grid.name, source=source, jobs=jobs, n_procs=n_procs, q=float(q),
                    reservations=kept, identity=identity,
                    key=hashlib.sha256(canonical(identity).encode()).hexdigest(),
                )  # fmt: skip


# ---- working


class Task(msgspec.Struct, frozen=True):
    """What a worker gets: a unit, and where its result goes."""

    unit: Unit
    results: Path


class Outcome(msgspec.Struct, frozen=True):
    """What a worker says of a unit."""

    key: str
    error: str | None
    seconds: float


def play(unit: Unit) -> dict[str, Any]:
    """A unit's result: mean and maximum of the normalised makespan by heuristic and rule.

    Every scenario has a stream of its own, named by seed, job set and scenario: a heuristic meets
    the same failures whatever else is played, and more of them as the probability rises.
    """
    what, (name, times, sizes, _) = unit.identity, unit.jobs
    seed, rate = what["seed"], error_rate(times, sizes, unit.q)
    failures = draw_failures(times, sizes, rate, range(what["scenarios"]), seed=seed, job_set=name)
    bounds = lower_bounds(times, sizes, failures, unit.n_procs)
    makespans = []
    for rule in what["rules"]:
        rank = ranks(rule, times, sizes, n_procs=unit.n_procs, seed=seed)
        for heuristic in what["heuristics"]:
            ratios = normalised(
                resilient.makespans(
                    heuristic, times, sizes, rank, failures,
                    n_procs=unit.n_procs, reservations=unit.reservations,
                ),
                bounds,
            )  # fmt: skip
            makespans.append(
                {"heuristic": heuristic, "rule": rule}
                | {"mean": float(ratios.mean()), "max": float(ratios.max())}
            )
    return {
        "jobs": len(times),
        "failures": float(failures.sum(axis=1).mean()),
        "makespans": makespans,
    }


def perform(task: Task) -> Outcome:
    """Play one unit and write its result, or why there is none; runs in a worker."""
    began, unit, error = time.perf_counter(), task.unit, None
    try:
        done = Result(key=unit.key, status="ok", identity=unit.identity, metrics=play(unit))
    except InputError as refused:
        error = f"{unit.source} {unit.jobs.name}: {refused}"
        done = Result(key=unit.key, status="failed", identity=unit.identity, error=error)
    Store(task.results).write(done)
    return Outcome(unit.key, error, time.perf_counter() - began)


def lost(task: Task, reason: str) -> Outcome:
    """A unit whose worker died has no result: the next start tries again."""
    return Outcome(task.unit.key, reason, 0.0)


def run_silent(
    campaign: SilentCampaign,
    results_dir: Path,
    *,
    workers: int | None = None,
    executor: str = "processes",
    on_progress: OnProgress | None = None,
    limit: int | None = None,
) -> Status:
    """Play every unit that has no result yet, then write the table.

    Parameters
    ----------
    campaign : SilentCampaign
        From `open_silent`.
    results_dir : Path
        Results folder, see `store`.
    workers : int, optional
        Worker processes; otherwise one per core. The results are the same bytes for any number.
    executor : {'processes', 'inline'}
        A key of `execute.EXECUTORS`.
    on_progress : callable, optional
        Told how far it is at the start and after every unit.
    limit : int, optional
        At most so many units now.

    Raises
    ------
    InputError
        For results that cannot be written.
    """
    chosen, store = executor_named(executor), Store(results_dir)
    crew = max(1, workers if workers is not None else len(os.sched_getaffinity(0)))
    try:
        with store.locked(campaign.owner):
            store.sweep()
            todo = [u for key, u in campaign.distinct.items() if store.read(key) is None][:limit]
            before = silent_status(campaign, store)
            tell = Tally(before.total, before, len(todo), crew, on_progress)
            tasks = [Task(unit, store.folder) for unit in todo]
            _warm_up(todo)
            for outcome in chosen(tasks, perform, lost, crew, None):
                store.log_time(outcome.key, outcome.seconds)
                tell.count(outcome)
            _write_tables(campaign, store)
            return silent_status(campaign, store)
    except OSError as error:
        raise InputError(f"cannot write the results: {error}", str(results_dir)) from None


def silent_status(campaign: SilentCampaign, store: Store) -> Status:
    """How far a campaign is, in distinct units."""
    states = [result and result.status for result in map(store.read, campaign.distinct)]
    return Status(
        total=len(states),
        ok=states.count("ok"),
        failed=states.count("failed"),
        missing=states.count(None),
        stale=0,
    )


def rows(campaign: SilentCampaign, store: Store) -> Iterator[Row]:
    """The table of the results that are there, in the order of the file."""
    for unit in campaign.units:
        result = store.read(unit.key)
        if result is None or result.metrics is None:
            continue
        found = result.metrics
        for cell in found["makespans"]:
            yield Row(
                grid=unit.grid, source=unit.source, set=unit.jobs.name, jobs=found["jobs"],
                n_procs=unit.n_procs, q=unit.q, reservations=unit.reservations,
                scenarios=unit.identity["scenarios"], failures=found["failures"],
                key=unit.key, **cell,
            )  # fmt: skip


def failures_of(campaign: SilentCampaign, store: Store) -> list[str]:
    """Why units failed, a line each."""
    found = [store.read(key) for key in campaign.distinct]
    return [result.error for result in found if result is not None and result.error is not None]


def _warm_up(units: Sequence[Unit]) -> None:
    """Compile the kernels once, here, rather than in every worker at the same time."""
    one, queue = np.ones(2, np.int64), np.arange(2)
    for names, kept in {(tuple(unit.identity["heuristics"]), unit.reservations) for unit in units}:
        for name in names:
            resilient.makespans(name, one, one, queue, one, n_procs=1, reservations=kept)


def _write_tables(campaign: SilentCampaign, store: Store) -> None:
    """Write results.parquet and campaign.json from the results that are there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = list(rows(campaign, store))
    kinds = dict.fromkeys(("jobs", "n_procs", "scenarios"), pa.int64())
    kinds |= dict.fromkeys(("q", "failures", "mean", "max"), pa.float64())
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in Row._fields])
    columns = {name: [getattr(row, name) for row in table] for name in Row._fields}
    with atomic_path(store.folder / TABLE) as temporary:
        pq.write_table(pa.table(columns, schema=schema), temporary, compression="zstd")
    status = msgspec.to_builtins(silent_status(campaign, store))
    store.write_overview(
        campaign.owner,
        {
            **{key: status[key] for key in ("total", "ok", "failed", "missing")},
            "grids": [grid.name for grid in campaign.spec.grid],
            "without_trace": campaign.untraced,
            "failures": failures_of(campaign, store),
        },
    )
