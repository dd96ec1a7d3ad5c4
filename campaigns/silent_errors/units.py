# SPDX-License-Identifier: Apache-2.0
"""Silent-error units of a campaign: the evaluation of RR-9296.

A unit is a job set with a failure probability, a number of processors and a kind of reservations. A
unit simulates all combinations of heuristics, rules and failure scenarios. Job sets are synthetic,
as in RR-9296, or the days of a trace.

References
----------
.. [1] A. Benoit, V. Le Fèvre, P. Raghavan, Y. Robert, H. Sun, "Design and comparison of resilient
   scheduling heuristics for parallel jobs", Inria RR-9296, 2020 (hal-02317464), Section 5.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from rebat.core.arrays import Ints
from rebat.core.durations import LARGEST_SEED
from rebat.core.errors import InputError, unknown_name
from rebat.models import resilient
from rebat.models.silent_errors import (
    PAPER_SCENARIOS,
    SYNTHETIC_JOBS,
    SYNTHETIC_PROCS,
    SYNTHETIC_SETS,
    draw_failures,
    error_rate,
    lower_bounds,
    normalised,
    synthetic_jobs,
)
from rebat.policies.makespans import PAPER_RULES
from rebat.policies.queue_order import priority_rule, ranks
from rebat.report.kind import Document, Expansion, Kind
from rebat.runs.reading import Positive, convert, nonempty
from rebat.runs.scenario import Probability
from rebat.runs.unit import Unit, key_of
from rebat.workloads.cluster_day import read_day_sets

NAME = "silent-errors"

RESULTS_FORMAT = 1
"""Version of results. Increase it with every change of their format or values."""

RULES = (*PAPER_RULES, "RANDOM")
"""The seven priority rules of Section 5.1."""

_LISTS = ("sets", "failure_probability", "heuristics", "rules", "reservations")

COLUMNS: dict[str, type] = {
    "source": str,
    "set": str,
    "n_procs": int,
    "q": float,
    "reservations": str,
    "scenarios": int,
    "seed": int,
}
DETAILS: dict[str, type] = {"heuristic": str, "rule": str}


class JobSetGrid(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[[grid]]`` with job sets.

    `procs` defaults to 10,000 for synthetic sets, and to the size of the machine for a trace.
    `most_failures` is the maximum number of failed attempts of a job, `largest_probability` the
    maximum error probability of an attempt. The paper states no maxima.
    """

    name: Name
    sets: tuple[str, ...]
    failure_probability: tuple[Probability, ...]
    procs: tuple[Positive, ...] = ()
    heuristics: tuple[str, ...] = resilient.HEURISTICS
    rules: tuple[str, ...] = RULES
    scenarios: Positive = PAPER_SCENARIOS
    reservations: tuple[str, ...] = ("paper",)
    most_failures: Positive | None = None
    largest_probability: Probability | None = None

    @property
    def bounds(self) -> dict[str, float]:
        """The maxima that the grid sets, by name."""
        names = ("most_failures", "largest_probability")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def label(self, source: str) -> str:
        """Return the name of a source in reports, with the maxima that the grid sets."""
        words = {"most_failures": "at most {} failures", "largest_probability": "q at most {}"}
        bounds = ", ".join(words[name].format(value) for name, value in self.bounds.items())
        return f"{source} ({bounds})" if bounds else source


class SetSpec(msgspec.Struct, frozen=True):
    """The job set of a unit, and the name of its source. All other data are in `identity`."""

    source: str
    drawn: bool
    jobs: JobSet


# ---- reading


def _expand(document: Document) -> Expansion:
    seed = _seed(document.tables.get("seed", 0))
    grids = [_grid(table, where) for where, table in document.grids]
    sources, untraced = job_sets(document, seed)
    units: list[Unit] = []
    for (where, _), grid in zip(document.grids, grids, strict=True):
        for name in grid.sets:
            if name not in sources:
                raise unknown_name("set", name, sources).at(f"{where}.sets")
        units += _units(grid, where, sources, document, seed)
    notes = [f"[days.{name}] is skipped: no trace (use --trace FILE)" for name in untraced]
    return Expansion(units, notes)


def _seed(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST_SEED:
        raise InputError(f"is {value!r}", "seed", f"a whole number from 0 to {LARGEST_SEED}")
    return value


def _grid(table: dict[str, Any], where: str) -> JobSetGrid:
    """Return the grid in a table; raise InputError if a list is empty or a name is unknown."""
    grid = convert(table, JobSetGrid, where)
    for key in _LISTS:
        nonempty(getattr(grid, key), f"{where}.{key}")
    try:
        for name in grid.heuristics:
            resilient.heuristic(name)
        for name in grid.rules:
            priority_rule(name)
        for name in grid.reservations:
            resilient.check_reservations(name)
    except InputError as error:
        raise error.at(where) from None
    return grid


def _units(
    grid: JobSetGrid, where: str, sources: dict[str, list[JobSet]], document: Document, seed: int
) -> Iterator[Unit]:
    for source in grid.sets:
        drawn = source in document.tables.get("synthetic", {})
        for jobs in sources[source]:
            procs = grid.procs or (jobs.n_procs,)
            largest = int(jobs.sizes.max())
            if min(procs) < largest:
                problem = f"job set {jobs.name} of {source} has a job of {largest} processors"
                raise InputError(problem, where, f"procs of at least {largest}")
            content = hashlib.sha256(jobs.times.tobytes() + jobs.sizes.tobytes()).hexdigest()
            for q, n_procs, reservations in itertools.product(
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
                    "reservations": reservations,
                } | grid.bounds
                yield _unit(grid.name, SetSpec(grid.label(source), drawn, jobs), identity)


def _unit(grid: str, spec: SetSpec, identity: dict[str, Any]) -> Unit:
    same = ("n_procs", "q", "reservations", "scenarios", "seed")
    labels = {"source": spec.source, "set": spec.jobs.name} | {key: identity[key] for key in same}
    about = (
        f"{spec.source} {spec.jobs.name}, q-bar = {identity['q']:g}, P = {identity['n_procs']}, "
        f"{identity['reservations']} reservations"
    )
    return Unit(
        kind=NAME,
        grid=grid,
        about=about,
        spec=spec,
        labels=labels,
        identity=identity,
        key=key_of(identity),
    )


# ---- working


def play(unit: Unit) -> dict[str, Any]:
    """Run a unit. Return the mean and the maximum of the normalised makespan by heuristic and rule.

    Every scenario has its own random stream, which depends on seed, job set and scenario. All
    heuristics therefore have the same failures. If the error probability is higher, a scenario has
    the same failures and possibly more.
    """
    values, (name, times, sizes, _) = unit.identity, unit.spec.jobs
    seed, n_procs, rate = values["seed"], values["n_procs"], error_rate(times, sizes, values["q"])
    scenarios = range(values["scenarios"])
    failures = draw_failures(
        times,
        sizes,
        rate,
        scenarios,
        seed=seed,
        job_set=name,
        most_failures=values.get("most_failures"),
        largest_probability=values.get("largest_probability"),
    )
    bounds = lower_bounds(times, sizes, failures, n_procs)
    makespans = []
    for rule in values["rules"]:
        rank = ranks(rule, times, sizes, n_procs=n_procs, seed=seed)
        for heuristic in values["heuristics"]:
            ratios = normalised(
                resilient.makespans(
                    heuristic,
                    times,
                    sizes,
                    rank,
                    failures,
                    n_procs=n_procs,
                    reservations=values["reservations"],
                ),
                bounds,
            )
            makespans.append(
                {"heuristic": heuristic, "rule": rule}
                | {"mean": float(ratios.mean()), "max": float(ratios.max())}
            )
    return {
        "jobs": len(times),
        "failures": float(failures.sum(axis=1).mean()),
        "makespans": makespans,
    }


# ---- the kind


def _perform(unit: Unit, folder: Path | None) -> dict[str, Any]:
    return play(unit)


def _rows(unit: Unit, metrics: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row per metric: jobs, failed attempts, and normalised makespans."""
    for name in ("jobs", "failures"):
        yield {"metric": name, "value": float(metrics[name])}
    for cell in metrics["makespans"]:
        for name in ("mean", "max"):
            details = {"heuristic": cell["heuristic"], "rule": cell["rule"]}
            yield {"metric": f"makespan_ratio_{name}", "value": cell[name]} | details


class JobSetExtras(msgspec.Struct, frozen=True):
    """Data that the report needs in addition to the results.

    Attributes
    ----------
    synthetic
        Names of synthetic sources.
    days
        Names of sources from traces.
    provenance
        Lines of provenance.
    """

    synthetic: list[str]
    days: list[str]
    provenance: list[str]


def _gather(units: Sequence[Unit]) -> JobSetExtras:
    by_drawn: dict[bool, dict[str, None]] = {True: {}, False: {}}
    for unit in units:
        by_drawn[unit.spec.drawn][unit.spec.source] = None
    return JobSetExtras([*by_drawn[True]], [*by_drawn[False]], [*_provenance(units)])


def _report(table: Path, extras: JobSetExtras, provenance: Sequence[str]) -> Any:
    from .report import report

    return report(table, extras.synthetic, extras.days, [*provenance, *extras.provenance])


def _provenance(units: Sequence[Unit]) -> Iterator[str]:
    for source in dict.fromkeys(unit.spec.source for unit in units if not unit.spec.drawn):
        days = sorted({unit.spec.jobs.name for unit in units if unit.spec.source == source})
        yield f"{source}: {len(days)} days of a trace, {days[0]} to {days[-1]}"
    for grid in dict.fromkeys(unit.grid for unit in units):
        labels = [unit.labels for unit in units if unit.grid == grid]
        reservations = ", ".join(dict.fromkeys(label["reservations"] for label in labels))
        yield (
            f"{grid}: {len(labels)} runs of {labels[0]['scenarios']} scenarios, "
            f"seed {labels[0]['seed']}, reservations {reservations}"
        )


KIND = Kind(
    name=NAME,
    mark="sets",
    tables=("seed", "synthetic", "days"),
    columns=COLUMNS,
    details=DETAILS,
    expand=_expand,
    takes_trace=lambda document: bool(document.tables.get("days")),
    perform=_perform,
    rows=_rows,
    extras=JobSetExtras,
    gather=_gather,
    report=_report,
)


Name = Annotated[str, msgspec.Meta(min_length=1, pattern="^[^/]*$")]


class SyntheticIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table ``[synthetic.NAME]``: job sets as in Section 5.1, which states the defaults."""

    sets: Positive = SYNTHETIC_SETS
    jobs: Positive = SYNTHETIC_JOBS


class DaysIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table ``[days.NAME]``: a job set per day of a trace.

    If `file` is not set, the option ``--trace`` names the trace. `size` states which number of
    nodes is the size of a job: "requested" or "allocated" (default).
    """

    file: str | None = None
    months: list[str] | None = None
    tz: str = "UTC"
    size: str | None = None
    n_nodes: Positive | None = None
    least_jobs: Positive = 1


class JobSet(NamedTuple):
    """A job set: its name (in reports and random streams), and its jobs.

    Times are in microseconds.
    """

    name: str
    times: Ints
    sizes: Ints
    n_procs: int


def job_sets(document: Document, seed: int) -> tuple[dict[str, list[JobSet]], list[str]]:
    """Return the job sets of each source, and the names of sources without a trace."""
    synthetic, days = (_tables(document, key) for key in ("synthetic", "days"))
    twice = sorted(synthetic.keys() & days.keys())
    if twice:
        raise InputError(
            f"{twice[0]!r} is a duplicate", "synthetic, days", "a different name for each table"
        )
    if not synthetic and not days:
        expected = "at least one table [synthetic.NAME] or [days.NAME]"
        raise InputError("is missing", "synthetic or days", expected)
    sources: dict[str, list[JobSet]] = {}
    for name, table in synthetic.items():
        counts = convert(table, SyntheticIn, f"synthetic.{name}")
        sources[name] = list(_drawn(counts, seed))
    for name, table in days.items():
        where = f"days.{name}"
        sources[name] = _days(convert(table, DaysIn, where), where, document)
    return sources, [name for name, sets in sources.items() if not sets]


def _tables(document: Document, key: str) -> dict[str, Any]:
    tables = document.tables.get(key, {})
    if not isinstance(tables, dict):
        raise InputError("is not a table", key, f"a table [{key}.NAME] per source")
    return tables


def _drawn(counts: SyntheticIn, seed: int) -> Iterator[JobSet]:
    for number in range(counts.sets):
        times, sizes = synthetic_jobs(seed, number, counts.jobs)
        yield JobSet(str(number), times, sizes, SYNTHETIC_PROCS)


def _days(days: DaysIn, where: str, document: Document) -> list[JobSet]:
    """Return the job sets of a trace's days. Return an empty list if there is no trace."""
    own: Path | None = document.path.parent / days.file if days.file else None
    path = document.trace or own
    if path is None:
        return []
    options: dict[str, Any] = {"size": days.size, "n_nodes": days.n_nodes}
    if not path.name.removesuffix(".gz").endswith(".json"):  # a Batsim workload accepts no options
        options |= {"size": days.size or "allocated", "overrun": "keep"}
    try:
        day_sets = read_day_sets(path, days.months, tz=days.tz, **options)
    except InputError as error:
        raise error.at(where) from None
    sets = [JobSet(*day) for day in day_sets if len(day.sizes) >= days.least_jobs]
    if not sets:
        problem = f"no day has {days.least_jobs} jobs or more"
        raise InputError(problem, f"{where}.least_jobs", "a smaller number")
    return sets
