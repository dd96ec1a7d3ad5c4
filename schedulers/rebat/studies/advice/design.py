# SPDX-License-Identifier: Apache-2.0
"""The simulations of an advice: the site, its recorded losses, and the runs.

A CSV file describes the checkpoints that the jobs of a site write today. It has a column
``period``, at least one of the columns ``job``, ``user`` and ``queue``, and optionally the columns
``cost`` and ``recovery``. The first row that matches a job determines its checkpoints. An empty
cell matches all jobs. A job without a row writes no checkpoints.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.api.workloads import LoadedWorkload, as_file
from rebat.core.attempts import Cause
from rebat.core.cores import groups_of
from rebat.core.errors import InputError, short
from rebat.core.files import open_text
from rebat.core.job_table import Jobs
from rebat.core.jobs import Job, Workload
from rebat.core.table import distinct
from rebat.core.traits import traits_of
from rebat.core.units import MAX_SECONDS, format_duration, parse_duration
from rebat.models.checkpoint import PERIOD_FIELD, young_daly_period_s
from rebat.models.failures.events import MachineEvent, machine_mtbf_s
from rebat.models.failures.fitting import UpTimes
from rebat.models.failures.law import Law
from rebat.models.failures.outages import node_events
from rebat.models.failures.recorded import Recorded
from rebat.models.failures.renewal import MAX_SIGMA, SHAPES, Renewal
from rebat.models.failures.statistics import Fitted, fits, samples
from rebat.report.runs_index import parsed
from rebat.results.files.run_folder import RECORDED, read_source, read_timeline, run_folders
from rebat.results.measures.jobs import class_name, size_classes
from rebat.results.measures.nodetime import NodeIntervals, node_times
from rebat.results.measures.timeline import CAUSES, Timeline, outages_of
from rebat.runs.scenario import CheckpointModel, Scenario, ScenarioOptions
from rebat.runs.unit import RunSpec

RULES: dict[str, str] = {
    "easy": "EASY backfilling",
    "baseline": "conservative backfilling",
    "easy-sfsj": "EASY with node stealing",
    "sfsj": "conservative backfilling with node stealing",
    "easy:react=replacement": "EASY with node replacement",
    "easy:order=shortest": "EASY, shortest jobs first",
}
"""Policies that are compared, each with its description in answers."""

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Checkpoint periods to simulate, in multiples of the Young/Daly period."""

N_SPARES = 4
"""Maximum number of different numbers of spare nodes to simulate, besides 0."""

YEAR_S = 365 * 86_400.0

LONGEST_RECORD_S = 100 * YEAR_S

TODAY, ASSUMED, OTHER_RULES, SPARES, PERIODS, FITTED = (
    "today",
    "checkpoints of no job and of all jobs",
    "rules",
    "spares",
    "periods",
    "fitted law",
)
"""Names of the grids."""

NONE, YOUNG_DALY = "none", "young-daly"
"""Checkpoints of a site that need no table: no job writes checkpoints, or all jobs do."""


class AdvisedSite(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster that needs advice.

    Attributes
    ----------
    workload
        The jobs of the cluster.
    policy
        The policy that represents the current scheduler of the cluster.
    options
        Machine, failures, and the Young/Daly checkpoints that all jobs could write.
    n_nodes
        Number of nodes (not cores) of the machine.
    mtbf_s
        Mean time between failures of the machine.
    down_nodes
        Mean number of nodes that are down.
    fitted
        A law that is fitted to the recorded failures, or None if the options already contain a law.
    checkpoints
        The checkpoints of the jobs today: `NONE`, `YOUNG_DALY`, or the file of a table.
    today
        The jobs with the checkpoints of the table, or None if there is no table.
    n_checkpointed
        Number of jobs with checkpoints in the table.
    recorded
        What failures cost in the recorded schedule, or None if there is no recorded schedule.
    """

    workload: LoadedWorkload
    policy: str
    options: ScenarioOptions
    n_nodes: int
    mtbf_s: float
    down_nodes: float
    fitted: Renewal | None = None
    checkpoints: str = NONE
    today: LoadedWorkload | None = None
    n_checkpointed: int = 0
    recorded: RecordedLosses | None = None

    @property
    def usual(self) -> CheckpointModel:
        """The Young/Daly checkpoints that all jobs could write."""
        model = self.options.scenario().checkpoint
        assert isinstance(model, CheckpointModel)
        return model

    @property
    def rules(self) -> list[str]:
        """Today's policy, followed by the rules that are compared with it."""
        return list(dict.fromkeys([self.policy, *RULES]))

    @property
    def spares(self) -> list[int]:
        """The numbers of spare nodes: 0, and the mean number of down nodes times 1, 2, 4, ...."""
        first = max(1, round(self.down_nodes))
        tried = [first * 2**power for power in range(N_SPARES)]
        return [0, *(count for count in tried if count <= self.n_nodes // 8)]


def specs(site: AdvisedSite, seeds: Iterable[int]) -> list[RunSpec]:
    """Return all runs for these seeds, in the order of the questions that need them."""
    numbers = list(seeds)
    return [spec for grid in GRIDS for spec in grid(site, numbers)]


def today(site: AdvisedSite, seeds: Iterable[int]) -> Iterator[RunSpec]:
    """Yield today's policy under the failures of each seed, and once without failures."""
    failing = [scenario(site, seed) for seed in seeds]
    calm = msgspec.structs.replace(failing[0], failures=None)
    yield _spec(site, TODAY, site.policy, calm)
    yield from (_spec(site, TODAY, site.policy, failed) for failed in failing)


def _assumed(site: AdvisedSite, seeds: Iterable[int]) -> Iterator[RunSpec]:
    """Yield today's policy if no job writes checkpoints, and if all jobs do."""
    for seed in seeds:
        for model in (None, site.usual):
            yield _of_all(site, ASSUMED, seed, model)


def _other_rules(site: AdvisedSite, seeds: Iterable[int]) -> Iterator[RunSpec]:
    for seed in seeds:
        failing = scenario(site, seed)
        yield from (_spec(site, OTHER_RULES, policy, failing) for policy in site.rules)


def _spares(site: AdvisedSite, seeds: Iterable[int]) -> Iterator[RunSpec]:
    for seed in seeds:
        failing = scenario(site, seed)
        for count in site.spares:
            policy = with_options(site.policy, react="replacement", spares=count)
            yield _spec(site, SPARES, policy, failing)


def _periods(site: AdvisedSite, seeds: Iterable[int]) -> Iterator[RunSpec]:
    for seed in seeds:
        for factor in FACTORS:
            longer = msgspec.structs.replace(site.usual, mtbf_s=site.usual.mtbf_s * factor**2)
            yield _of_all(site, PERIODS, seed, longer)
        yield _of_all(site, PERIODS, seed, None)


def _fitted(site: AdvisedSite, seeds: Iterable[int]) -> Iterator[RunSpec]:
    if site.fitted is None:
        return
    for seed in seeds:
        failing = scenario(site, seed)
        assert failing.failures is not None
        failures = msgspec.structs.replace(failing.failures, law=site.fitted)
        drawn = msgspec.structs.replace(failing, failures=failures)
        yield from (_spec(site, FITTED, policy, drawn) for policy in site.rules)


GRIDS = (today, _assumed, _other_rules, _spares, _periods, _fitted)


def scenario(site: AdvisedSite, seed: int) -> Scenario:
    """Return the scenario of a site with this seed, and with the checkpoints of today."""
    every_job = msgspec.structs.replace(site.options, seed=seed).scenario()
    return every_job if site.checkpoints == YOUNG_DALY else _with_model(every_job, None)


def _with_model(conditions: Scenario, model: CheckpointModel | None) -> Scenario:
    return msgspec.structs.replace(conditions, checkpoint=model)


def with_options(policy: str, **options: object) -> str:
    """Return a policy with some of its options changed.

    >>> with_options("easy:order=shortest", react="replacement", spares=2)
    'easy:order=shortest,react=replacement,spares=2'
    """
    name, present = parsed(policy)
    values = present | {key: str(value) for key, value in options.items()}
    return f"{name}:" + ",".join(f"{key}={value}" for key, value in values.items())


def _spec(site: AdvisedSite, grid: str, policy: str, conditions: Scenario) -> RunSpec:
    """Return a run with the checkpoints of today."""
    return RunSpec(
        grid=grid,
        workload=site.workload.name,
        policy=policy,
        source=(site.today or site.workload).origin,
        scenario=conditions,
        folder=str(Path.cwd()),
    )


def _of_all(site: AdvisedSite, grid: str, seed: int, model: CheckpointModel | None) -> RunSpec:
    """Return a run of today's policy in which all jobs write the same kind of checkpoints."""
    conditions = _with_model(scenario(site, seed), model)
    spec = _spec(site, grid, site.policy, conditions)
    return msgspec.structs.replace(spec, source=site.workload.origin)


# ---- the site's failures


def turned(events: Path, n_nodes: int) -> Recorded:
    """Return a failure law that replays recorded events.

    The replay starts at a different time for each seed.
    """
    return Recorded(str(events.absolute()), format="events", size=n_nodes, turn=True)


def fitted_law(law: Recorded, n_nodes: int) -> Renewal | None:
    """Return the renewal law that fits a record: Weibull gaps, log-normal repairs.

    Return None if there are too few failures for a fit. Shape and spread are limited to the ranges
    that the law allows.
    """
    in_order = msgspec.structs.replace(law, turn=False)
    gaps, _, repairs = samples(list(in_order.events(n_nodes, 0, LONGEST_RECORD_S)), n_nodes)
    shapes, spreads = _family(gaps.times, "weibull"), _family(repairs.times, "lognormal")
    if shapes is None or spreads is None:
        return None
    return Renewal(
        mtbf_s=float(gaps.times.failed_s.mean()),
        repair_s=float(repairs.times.failed_s.mean()),
        shape=min(max(shapes.parameters[1], SHAPES[0]), SHAPES[1]),
        sigma=min(spreads.parameters[1], MAX_SIGMA),
    )


def _family(times: UpTimes, name: str) -> Fitted | None:
    return next((fit for fit in fits(times) if fit.family == name), None)


def site_of(
    workload: LoadedWorkload,
    policy: str,
    options: ScenarioOptions,
    *,
    checkpoints: str = NONE,
    past: Path | None = None,
    folder: Path = Path(),
) -> AdvisedSite:
    """Describe the cluster of a workload, with its failures and a law fitted to them.

    Parameters
    ----------
    checkpoints : str
        The checkpoints of the jobs today: `NONE`, `YOUNG_DALY`, or the file of a table.
    past : Path, optional
        The recorded schedule of the workload.
    folder : Path
        Folder for the workload with the checkpoints of the table.
    """
    n_nodes = groups_of(options.nodes or workload.n_nodes, options.cores_per_node)
    options = _with_law(options, n_nodes).with_law_mtbf(n_nodes)
    law = options.failure_law()
    if law is None or not law.seeded:
        expected = "--failures EVENTS, --law or --mtbf, so that failures differ between seeds"
        raise InputError("is missing", "failures", expected)
    first_year = list(law.events(n_nodes, 0, YEAR_S))
    mtbf_s = options.mtbf_s or machine_mtbf_s(first_year) or YEAR_S
    site = AdvisedSite(
        workload=workload,
        policy=policy,
        options=msgspec.structs.replace(options, mtbf=mtbf_s),
        n_nodes=n_nodes,
        mtbf_s=mtbf_s,
        down_nodes=_mean_down(first_year),
        fitted=fitted_law(law, n_nodes) if isinstance(law, Recorded) else None,
        checkpoints=checkpoints,
        recorded=None if past is None else recorded_losses(past, workload, _recorded_events(law)),
    )
    if checkpoints in (NONE, YOUNG_DALY):
        return site
    rows = read_checkpoints(Path(checkpoints), site.usual)
    today, count = with_checkpoints_of(workload, rows, n_nodes, mtbf_s)
    return msgspec.structs.replace(site, today=as_file(today, folder), n_checkpointed=count)


def _recorded_events(law: Law) -> DownEvents:
    """Return a function that returns the recorded failures of n nodes until a time in seconds."""

    def events(n_nodes: int, until_s: float) -> list[MachineEvent]:
        if not isinstance(law, Recorded):
            return []
        in_order = msgspec.structs.replace(law, turn=False)
        return list(in_order.events(n_nodes, 0, until_s))

    return events


def _with_law(options: ScenarioOptions, n_nodes: int) -> ScenarioOptions:
    """Return the options with a failure law in place of the event file."""
    if options.failures is None:
        return options
    if options.cores_per_node > 1:
        expected = "--law record:file=EVENTS,turn=true, where EVENTS contains numbers of nodes"
        raise InputError("contains numbers of cores, not of nodes", str(options.failures), expected)
    law = turned(options.failures, n_nodes)
    return msgspec.structs.replace(options, law=law, failures=None)


def _mean_down(events: Sequence[MachineEvent]) -> float:
    """Return the mean number of nodes that are down from time 0 to the last event."""
    down, since_us, node_us = 0, 0, 0
    for event in events:
        node_us += down * (event.at_us - since_us)
        since_us = event.at_us
        down += -len(event.nodes) if event.available else len(event.nodes)
    return node_us / since_us if since_us else 0.0


def period_text(site: AdvisedSite, factor: float = 1.0) -> str:
    """Return a text that states the checkpoint periods of jobs of three sizes."""
    model, texts = site.usual, []
    for size in dict.fromkeys(max(1, math.ceil(site.n_nodes * part)) for part in (0.01, 0.1, 1.0)):
        period_s = young_daly_period_s(size, site.n_nodes, model.mtbf_s, model.cost_s)
        minutes = max(1, round(factor * period_s / 60))
        texts.append(f"{format_duration(60 * minutes)} on {size} node{'s' * (size > 1)}")
    return ", ".join(texts)


HOUR_US = 3_600_000_000
MONTH_H = 720.0
"""A month in hours: 30 days."""

DAYS_PER_PERIOD = 30
"""Length of a period in days if the dates of the record are unknown."""


class LostBy(msgspec.Struct, frozen=True):
    """A month, a user, a queue or a size class.

    Attributes
    ----------
    kind
        ``month``, ``user``, ``queue`` or ``size``.
    name
        Its name.
    lost_h
        Node-hours of work that failures destroyed.
    used_h
        Node-hours of all attempts.
    attempts
        Number of attempts that failures ended.
    """

    kind: str
    name: str
    lost_h: float
    used_h: float
    attempts: int


class RecordedLosses(msgspec.Struct, frozen=True, kw_only=True):
    """What failures of nodes cost in a recorded schedule. All times are node-hours.

    Attributes
    ----------
    span_h
        Hours from time 0 to the last end of an attempt.
    total_h
        Node-hours of the machine in this time.
    lost_h
        Node-hours of work that failures destroyed: attempts that ended because a node failed.
    attempts
        Number of these attempts.
    down_h
        Node-hours in which nodes were down, or None if the record has no node events.
    wait_s
        Mean time between submission and end in which a job held no nodes.
    groups
        The losses by month, user, queue and size.
    """

    span_h: float
    total_h: float
    lost_h: float
    attempts: int
    down_h: float | None
    wait_s: float
    groups: list[LostBy]

    @property
    def per_month_h(self) -> float:
        """Node-hours destroyed in 30 days."""
        return self.lost_h / self.span_h * MONTH_H

    def worst(self, kind: str) -> LostBy | None:
        """Return the group of a kind that lost most. Return None unless there are several."""
        of_kind = [group for group in self.groups if group.kind == kind]
        return max(of_kind, key=lambda group: group.lost_h) if len(of_kind) > 1 else None


DownEvents = Callable[[int, float], Sequence[MachineEvent]]
"""Function of a number of nodes and an end (s) that returns recorded failures of nodes."""


def recorded_losses(past: Path, workload: Workload, events: DownEvents) -> RecordedLosses:
    """Read a recorded schedule of a workload, and return what failures destroyed in it.

    If the schedule has no node events, ``events`` returns the failures of the nodes.
    """
    expected = "a folder of 'rebat workload import --schedule'"
    try:
        (folder,) = run_folders(past, [RECORDED])
    except InputError:
        raise InputError("has no recorded schedule", str(past), expected) from None
    run = read_timeline(folder)
    owners = {job.id: traits_of(job.extra) for job in workload.jobs}
    if other := next((name for name in run.job_id if name not in owners), None):
        problem = f"contains job {other}, which is not in {workload.name}"
        raise InputError(problem, str(folder), "the recorded schedule of this workload")
    if not run.makespan_us:
        raise InputError("has no attempt that ended", str(folder), expected)
    used_h = _node_hours(run, bool(read_source(folder).shared_attempts))
    failed = run.cause == CAUSES.index(Cause.NODE_FAILURE)
    length_us = np.maximum(run.end_us - run.start_us, 1)
    lost_h = np.where(failed, used_h * (1 - run.kept_us / length_us), 0.0)
    span_h = run.makespan_us / HOUR_US
    outages = run.outages
    if not len(outages.begin_us):
        drawn = node_events(events(run.n_nodes, span_h * 3600))
        outages, _ = outages_of(drawn, run.makespan_us)
    downs = np.minimum(outages.end_us, run.makespan_us) - outages.begin_us
    down_h = float((np.maximum(downs, 0) * outages.sizes).sum()) / HOUR_US
    names = {
        "month": _months(run, (workload.machine or {}).get("origin_s")),
        "user": [owners[name].user for name in run.job_id],
        "queue": [owners[name].queue for name in run.job_id],
        "size": _classes(run),
    }
    return RecordedLosses(
        span_h=span_h,
        total_h=span_h * run.n_nodes,
        lost_h=math.fsum(lost_h.tolist()),
        attempts=int(failed.sum()),
        down_h=down_h if len(outages.begin_us) else None,
        wait_s=float((run.start_us - run.queued_us).sum()) / 1e6 / len(set(run.job_id)),
        groups=[
            group
            for kind, labels in names.items()
            for group in _by(kind, labels, lost_h, used_h, failed)
        ],
    )


def _node_hours(run: Timeline, shared: bool) -> npt.NDArray[np.float64]:
    """Return the node-hours of each attempt. Attempts on the same node divide its time equally."""
    if not shared:
        return (run.end_us - run.start_us) * run.sizes / HOUR_US
    ends = np.searchsorted(run.blocks.owner, np.arange(1, len(run.start_us)))
    sets = np.split(np.stack([run.blocks.first, run.blocks.last], axis=1), ends)
    holds = NodeIntervals(run.start_us.tolist(), run.end_us.tolist(), sets)
    return np.array(node_times(holds)) / HOUR_US


def _months(run: Timeline, origin_s: float | None) -> list[str]:
    """Return the month in which each attempt ended, in UTC. Without dates, count 30-day periods."""
    ends_s = (run.end_us / 1e6).tolist()
    if origin_s is not None:
        return [f"{datetime.fromtimestamp(origin_s + end_s, UTC):%Y-%m}" for end_s in ends_s]
    numbers = [int(end_s // (DAYS_PER_PERIOD * 86_400)) for end_s in ends_s]
    return [f"days {DAYS_PER_PERIOD * n} to {DAYS_PER_PERIOD * (n + 1)}" for n in numbers]


def _classes(run: Timeline) -> list[str]:
    """Return the size class of each attempt."""
    classes = size_classes(run.n_nodes)
    names = [class_name(low, high) for low, high in classes]
    places = np.searchsorted([low for low, _ in classes], run.sizes, side="right") - 1
    return [names[place] for place in places.tolist()]


def _by(
    kind: str,
    labels: Sequence[str],
    lost_h: npt.NDArray[np.float64],
    used_h: npt.NDArray[np.float64],
    failed: npt.NDArray[np.bool_],
) -> Iterator[LostBy]:
    """Yield the groups of a kind: months in order of time, others with the largest loss first."""
    rows = defaultdict[str, list[int]](list)
    for row, label in enumerate(labels):
        rows[label].append(row)
    groups = [
        LostBy(
            kind,
            name,
            math.fsum(lost_h[of].tolist()),
            math.fsum(used_h[of].tolist()),
            int(failed[of].sum()),
        )
        for name, of in rows.items()
        if name
    ]
    if kind == "month":
        return iter(groups)
    return iter(sorted(groups, key=lambda group: -group.lost_h))


OWNERS, TIMES = ("job", "user", "queue"), ("period", "cost", "recovery")

YOUNG_DALY = "young-daly"


class CheckpointRow(NamedTuple):
    """A row of the table: the jobs that it describes, and their checkpoints in seconds.

    If ``period_s`` is None, the period is the Young/Daly period of the job.
    """

    owners: dict[str, str]
    period_s: float | None
    cost_s: float
    recovery_s: float

    def describes(self, jobs: Jobs) -> npt.NDArray[np.bool_]:
        """Return whether the row matches each job."""
        owners = dict(self.owners)
        job = owners.pop("job", None)
        traits = [traits_of(extra) for extra in jobs.extra_fields]
        fits = [all(getattr(each, name) == owners[name] for name in owners) for each in traits]
        matches: npt.NDArray[np.bool_] = np.array(fits, dtype=bool)[jobs.extra_codes]
        if job is not None:
            place = jobs.ids.position(job)
            matches &= np.arange(len(jobs)) == (-1 if place is None else place)
        return matches


def read_checkpoints(path: Path, usual: CheckpointModel) -> list[CheckpointRow]:
    """Read the table. Empty costs are those of ``usual``."""
    with open_text(path, newline="") as file:
        reader = csv.DictReader(file, restval="")
        names = [name.strip().lower() for name in reader.fieldnames or ()]
        reader.fieldnames = names
        unknown = [name for name in names if name not in (*OWNERS, *TIMES)]
        if unknown or "period" not in names or not set(OWNERS) & set(names):
            problem = f"has the columns {', '.join(names) or 'of an empty file'}"
            expected = "period, and job, user or queue; optionally cost and recovery"
            raise InputError(problem, f"{path}:1", expected)
        rows = [_row(fields, usual, f"{path}:{reader.line_num}") for fields in reader]
    if not rows:
        raise InputError("has no row", str(path), "a row for each user or queue with checkpoints")
    return rows


def _row(fields: dict[str, Any], usual: CheckpointModel, where: str) -> CheckpointRow:
    if None in fields:
        raise InputError("has more fields than the header", where)
    cells = {name: text.strip() for name, text in fields.items()}
    owners = {name: cells[name] for name in OWNERS if cells.get(name)}
    period = cells["period"]
    own = period.lower() == YOUNG_DALY
    return CheckpointRow(
        owners,
        None if own else _seconds(period, "period", where, 1e-6),
        _seconds(cells.get("cost") or usual.cost_s, "cost", where, 1e-6 if own else 0),
        _seconds(cells.get("recovery") or usual.recovery_s, "recovery", where, 0),
    )


def _seconds(text: str | float, name: str, where: str, least: float) -> float:
    try:
        seconds = parse_duration(text)
    except InputError:
        seconds = -1.0
    if not least <= seconds <= MAX_SECONDS:
        expected = "a duration like 1h" + (f" or {YOUNG_DALY}" if name == "period" else "")
        raise InputError(f"{name} is {short(text)}", where, expected)
    return seconds


def with_checkpoints_of(
    workload: Workload, rows: list[CheckpointRow], n_nodes: int, mtbf_s: float
) -> tuple[Workload, int]:
    """Return the workload with the checkpoints of the table, and the number of jobs that have any.

    Run times do not change: the recorded run time of a job includes its checkpoints.
    """
    jobs = Jobs.of(workload.jobs)
    chosen = np.full(len(jobs), -1)
    for at in reversed(range(len(rows))):  # of several rows that match, the first counts
        chosen[rows[at].describes(jobs)] = at
    first, codes = distinct(jobs.profile_codes, np.where(chosen < 0, 0, jobs.n_nodes), chosen)
    names, profiles = [], dict[str, dict[str, Any]]()
    for job, at in zip(map(jobs.at, first.tolist()), chosen[first].tolist(), strict=True):
        profile, name = workload.profiles[job.profile], job.profile
        if at >= 0:
            name = f"{name}@{job.n_nodes}@{at}"
            profile = _checkpointed(job, profile, rows[at], n_nodes, mtbf_s)
        names.append(name)
        profiles[name] = profile
    changed = jobs.changed(jobs.walltime_us, codes, names)
    changed_workload = msgspec.structs.replace(workload, jobs=changed, profiles=profiles)
    return changed_workload, int(np.count_nonzero(chosen >= 0))


def _checkpointed(
    job: Job, profile: dict[str, Any], row: CheckpointRow, n_nodes: int, mtbf_s: float
) -> dict[str, Any]:
    if profile.get("type") != "delay":
        problem = f"the profile type is {profile.get('type')!r}, which allows no checkpoints"
        raise InputError(problem, f"job {job.id}", "a delay profile")
    period_s = row.period_s
    if period_s is None:
        period_s = young_daly_period_s(job.n_nodes, n_nodes, mtbf_s, row.cost_s)
    return {
        **profile,
        PERIOD_FIELD: period_s,
        "checkpoint_cost": row.cost_s,
        "recovery_cost": row.recovery_s,
        "Tfirst": period_s,
        "Rfirst": 0.0,
        "checkpoint_rounding": "floor",
    }
