# SPDX-License-Identifier: Apache-2.0
"""Conversion of a parsed trace to a workload: selection of jobs, correction of fields, time 0.

The importers fill a ``TraceColumns`` (a column per field). `placed` converts it to a workload with
``TraceOptions``, and counts dropped and changed jobs in ``Workload.notes``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.arrays import Floats
from rebat.core.cores import MAX_NODES
from rebat.core.declared import Count, Machine, Seconds, declared
from rebat.core.errors import InputError, unknown_name
from rebat.core.job_table import NO_WALLTIME
from rebat.core.jobs import Workload, rounded_us
from rebat.core.numbers import exactly, node_hours, rounded
from rebat.core.traits import OWNERS
from rebat.core.units import MAX_SECONDS, US_PER_S
from rebat.records.clock import zone_of
from rebat.records.findings import is_finding
from rebat.records.judge import record_begin_s, stragglers_note
from rebat.records.options import ZONE, Cluster, Stale
from rebat.records.table import Problems
from rebat.workloads.build import delay_workload

MAX_SIZE = 2**31 - 1

SUBMITTED = "submitted"
"""Field of a job that became eligible later: the user's submission in seconds since time 0."""


Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TraceColumns:
    """A parsed trace.

    Columns have an entry per record. Times are in seconds; unknown times are NaN.
    """

    name: str
    where: str
    n_nodes: int | None
    dated: bool
    """Whether ``submit_s`` and ``start_s`` count from the Unix epoch."""
    lines: npt.NDArray[np.int64]
    ids: npt.NDArray[np.object_]
    submit_s: Floats
    start_s: Floats
    requested: Floats
    allocated: Floats
    run_s: Floats
    walltime_s: Floats
    why_not: npt.NDArray[np.int64]
    """Reason why a record is excluded: a position in ``reasons``, from 1. A job has 0."""
    users: npt.NDArray[np.object_]
    """Names of the users, empty if unknown."""
    queues: npt.NDArray[np.object_]
    """Names of the queues, empty if unknown."""
    extras: npt.NDArray[np.object_] | None = None
    """Further fields of the JSON of each job, a dict per job."""
    states: npt.NDArray[np.object_] | None = None
    """Final states, with the names that Slurm uses. A state is empty if it is unknown."""
    submitted_s: Floats | None = None
    """Submissions by the users. ``submit_s`` is later for jobs that were not eligible at first."""
    unclear_size: str = ""
    """Problem of the number of nodes in the trace."""
    machine: dict[str, Any] | None = None
    """Description of the recorded machine, see `rebat.core.jobs.Workload`."""
    reasons: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    """The reasons of records that hold no nodes for their run time."""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.lines)

    def take(self, which: npt.NDArray[Any]) -> TraceColumns:
        """Return the records that a mask or an array of positions selects."""
        columns = {name: getattr(self, name)[which] for name in _COLUMNS}
        optional = {name: getattr(self, name) for name in ("extras", "states", "submitted_s")}
        columns |= {name: None if of is None else of[which] for name, of in optional.items()}
        return replace(self, **columns)

    def keep(self, mask: Mask, reason: str) -> TraceColumns:
        """Return the records that a mask selects.

        A note states the number of other records, and the node time that they hold.
        """
        n_dropped = int(len(mask) - mask.sum())
        if not n_dropped:
            return self
        held = "" if reason in self.idle else _held(self.node_s[~mask].sum())
        return self.take(mask).noting(f"{job_count(n_dropped)} dropped: {reason}{held}")

    @property
    def node_s(self) -> Floats:
        """Node time of each record in seconds, or 0 if it is unknown."""
        nodes = np.where(self.allocated > 0, self.allocated, self.requested)
        held_s = np.maximum(nodes, 0) * np.maximum(self.run_s, 0)
        return np.asarray(np.nan_to_num(held_s), dtype=np.float64)

    @property
    def jobs(self) -> TraceColumns:
        """The trace without the records marked for exclusion."""
        return self.take(self.is_job)

    @property
    def is_job(self) -> Mask:
        """Mask of the records that are not marked for exclusion."""
        return np.equal(self.why_not, 0)

    def marking(self, mask: Mask, reason: str, held: bool = True) -> TraceColumns:
        """Return the trace, in which the jobs that a mask selects are marked for exclusion.

        ``held`` states whether these records hold nodes for their run time. Parts of other records
        and jobs that never ran do not.
        """
        reasons = (*self.reasons, reason)
        marked = np.where(mask & self.is_job, len(reasons), self.why_not)
        idle = self.idle if held else (*self.idle, reason)
        return replace(self, why_not=marked, reasons=reasons, idle=idle)

    def without_marked(self) -> TraceColumns:
        """Remove the marked records, with a note for each reason."""
        trace = self
        for number, reason in enumerate(self.reasons, 1):
            trace = trace.keep(trace.why_not != number, reason)
        return trace

    def noting(self, note: str) -> TraceColumns:
        """Return the trace with an additional note."""
        return replace(self, notes=(*self.notes, note))


_COLUMNS = (
    "lines",
    "ids",
    "submit_s",
    "start_s",
    "requested",
    "allocated",
    "run_s",
    "walltime_s",
    "why_not",
    "users",
    "queues",
)


def job_count(count: Any) -> str:
    """Return a number of jobs in words.

    >>> job_count(1), job_count(12)
    ('1 job', '12 jobs')
    """
    return f"{int(count)} job" + ("s" if count != 1 else "")


def _held(node_s: float) -> str:
    """Return a node time as a part of a sentence, or an empty text if it is 0."""
    return f" ({node_hours(node_s)})" if node_s > 0 else ""


def _missing_run(trace: TraceColumns, missing: Mask) -> TraceColumns:
    walltime_s = np.where(missing, trace.run_s + 1, trace.walltime_s)
    note = (
        f"{job_count(missing.sum())} without walltime: the walltime was set to the run time + 1 s"
    )
    return replace(trace, walltime_s=walltime_s).noting(note)


def _missing_none(trace: TraceColumns, missing: Mask) -> TraceColumns:
    walltime_s = np.where(missing, np.nan, trace.walltime_s)
    note = f"{job_count(missing.sum())} without walltime: imported without walltime"
    return replace(trace, walltime_s=walltime_s).noting(note)


def _missing_drop(trace: TraceColumns, missing: Mask) -> TraceColumns:
    return trace.keep(~missing, "no walltime")


def _raise_walltime(trace: TraceColumns, over: Mask) -> TraceColumns:
    """Raise walltimes above the run times, as the authors of the node-stealing paper do."""
    walltime_s = np.where(over, trace.run_s + 1, trace.walltime_s)
    note = (
        f"{job_count(over.sum())} ran up to or over the walltime: the walltime was raised to the "
        "run time + 1 s"
    )
    return replace(trace, walltime_s=walltime_s).noting(note)


def _clamp(trace: TraceColumns, over: Mask) -> TraceColumns:
    # Batsim kills a job if run time and walltime are equal. Subtract 1 s, or half below 2 s.
    below_s = np.maximum(trace.walltime_s - 1, trace.walltime_s / 2)
    note = (
        f"{job_count(over.sum())} ran up to or over the walltime: the run time was shortened to "
        "1 s less"
    )
    return replace(trace, run_s=np.where(over, below_s, trace.run_s)).noting(note)


def _drop_overrun(trace: TraceColumns, over: Mask) -> TraceColumns:
    return trace.keep(~over, "ran up to or over the walltime")


def _keep_overrun(trace: TraceColumns, over: Mask) -> TraceColumns:
    return trace.noting(
        f"{job_count(over.sum())} ran over the walltime: Batsim will kill them at the walltime"
    )


Rule = Callable[[TraceColumns, Mask], TraceColumns]


OVERRUN_RULES: dict[str, Rule] = {
    "raise-walltime": _raise_walltime,
    "clamp": _clamp,
    "drop": _drop_overrun,
    "keep": _keep_overrun,
}


MISSING_WALLTIME_RULES: dict[str, Rule] = {
    "run": _missing_run,
    "none": _missing_none,
    "drop": _missing_drop,
}


class TraceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for the import of a trace."""

    months: Annotated[
        tuple[str, ...] | list[str] | str | None,
        "--month",
        "Keep the jobs of this month; may be repeated (default: all jobs).",
        msgspec.Meta(extra={"metavar": "YYYY-MM"}),
    ] = None
    """Calendar months, like ``"2018-11"``."""
    by: Annotated[
        Literal["submit", "start"],
        "With --month: whether the submission or the start of a job must be in the month.",
    ] = "submit"
    tz: Annotated[
        str | None,
        "--tz",
        "--zone",
        ZONE.format("UTC", "The months of --month are also in this zone."),
    ] = None
    n_nodes: Annotated[
        Machine | None, "--nodes", "Number of nodes of the machine (default: from the trace)."
    ] = None
    size: Annotated[
        Literal["requested", "allocated"], "Preferred field for the number of nodes of a job."
    ] = "requested"
    cap: Annotated[
        Count | None, "Reduce larger jobs to this size (the node-stealing paper: 49000 on Mira)."
    ] = None
    overrun: Annotated[
        Literal["raise-walltime", "clamp", "drop", "keep"],
        "How to import jobs that ran longer than their walltime. raise-walltime: set the walltime "
        "to run time + 1 s; clamp: shorten the run; drop: leave the job out; keep: Batsim kills "
        "the job at its walltime.",
    ] = "raise-walltime"
    """A key of ``OVERRUN_RULES``."""
    missing_walltime: Annotated[
        Literal["run", "none", "drop"],
        "How to import jobs without walltime. run: set the walltime to run time + 1 s; none: no "
        "walltime; drop: leave the job out.",
    ] = "run"
    origin: Annotated[
        Literal["first-job", "month"],
        "Time 0 of the workload: the first submission, or the start of the month.",
    ] = "first-job"
    """month: midnight at the beginning of the month of the first job."""
    first_s: Annotated[Seconds | None, "--first", "Keep jobs submitted from this time on."] = None
    """In seconds since time 0, as ``last_s``."""
    last_s: Annotated[Seconds | None, "--last", "Keep jobs submitted before this time."] = None
    all_jobs: Annotated[
        bool,
        "--all",
        "Keep jobs that were submitted long before the submissions of the record begin (default: "
        "leave them out, unless --month, --first or --last is set).",
    ] = False
    """See `rebat.records.judge.record_begin_s`."""
    submission: Annotated[
        Literal["eligible", "submitted"],
        "Submission of a job that could not start at first because of a dependency, a begin time, "
        "a hold or an array limit. eligible: the time from which the job could start; submitted: "
        "the time at which the user submitted the job.",
    ] = "eligible"
    cluster: Cluster | None = None
    runaway: Annotated[
        Literal["next", "limit", "drop", "keep"],
        "What to do with jobs without an end that ran more than twice their limit and one hour. "
        "next: end them at the next start of a job on their nodes, and at their limit at the "
        "latest; limit: end them at their limit; drop: leave them out; keep: use the recorded run "
        "time.",
    ] = "next"
    stale: Stale = "next"
    max_jobs: Annotated[Count | None, "Maximum number of jobs; later jobs are left out."] = None
    """In order of submission. The rules for walltimes may drop some of them."""


def trace_options(options: dict[str, Any]) -> TraceOptions:
    """Return the options as a struct, after checking them."""
    for key in options:
        if key not in TraceOptions.__struct_fields__:
            raise unknown_name("trace option", key, TraceOptions.__struct_fields__)
    chosen = TraceOptions(**options)
    for key, row in declared(TraceOptions).items():
        if row.choices and getattr(chosen, key) not in row.choices:
            raise unknown_name(f"value of the option {key}:", getattr(chosen, key), row.choices)
    for key in ("n_nodes", "cap", "max_jobs"):
        value = getattr(chosen, key)
        if value is not None and (not isinstance(value, int) or value < 1):
            raise InputError(f"is {value!r}", f"option {key}", "a whole number, at least 1")
    first_s, last_s = chosen.first_s, chosen.last_s
    if first_s is not None and last_s is not None and last_s <= first_s:
        problem = f"is {rounded(last_s)}, which is not after option first"
        raise InputError(problem, "option last", f"more than {rounded(first_s)}")
    zone_of(chosen.tz)
    return chosen


class PlacedTrace(NamedTuple):
    """A workload from a trace, with the rows of the trace that became its jobs.

    ``jobs`` has one row per job of the workload, in the same order. Time 0 of the workload is the
    time ``origin_s`` of the trace.
    """

    workload: Workload
    jobs: TraceColumns
    origin_s: float


def placed(trace: TraceColumns, options: TraceOptions) -> PlacedTrace:
    """Apply the options to a parsed trace."""
    sizes = _sizes(trace, options)
    ran = np.rint(trace.run_s * US_PER_S) > 0
    trace = trace.marking(~(ran & (sizes > 0)), "no run time or no nodes")
    trace = _select(trace, options).without_marked()
    trace = _walltimes(trace, options)
    _check_not_empty(trace)
    return PlacedTrace(_build(trace, options), trace, _origin_s(trace, options))


def _select(trace: TraceColumns, options: TraceOptions) -> TraceColumns:
    """Return the selected records. Later notes count only these records."""
    trace = _without_stragglers(trace, options)
    selected = _select_months(trace, options)
    selected = _select_first(_select_window(selected, options), options.max_jobs)
    if len(selected) == len(trace):
        return selected
    return selected.noting(
        f"{len(selected)} of {len(trace)} records selected; counts of dropped and changed jobs "
        "refer to these"
    )


def checked(trace: TraceColumns, problems: Problems) -> TraceColumns:
    """Return the trace without jobs that have impossible values, which are invalid rows.

    Notes state all invalid rows of the record.
    """
    span = f"0 to {MAX_SECONDS:.0e} s"
    checks = [("submission time", trace.submit_s, trace.submit_s, 0.0, MAX_SECONDS, span)]
    for field, values in (("run time", trace.run_s), ("walltime", trace.walltime_s)):
        checks.append((field, values, values, -1.0, MAX_SECONDS, f"{span}, or -1 if unknown"))
    for values in (trace.requested, trace.allocated):
        # inf is rejected as too large
        whole = np.where(values == np.floor(values), values, np.inf)
        expected = f"a whole number up to {MAX_SIZE}"
        checks.append(("number of nodes", whole, values, -1.0, MAX_SIZE, expected))
    wrong = np.zeros(len(trace), dtype=np.bool_)
    for field, values, shown, low, high, expected in checks:
        bad = trace.is_job & ((values < low) | (values > high)) & ~wrong
        for at in np.flatnonzero(bad).tolist():
            problem = f"{field} of job {trace.ids[at]} is {shown[at]:g}"
            held_s = float(trace.node_s[at])
            problems.add(int(trace.lines[at]), problem, expected, f"{field}: {expected}", held_s)
        wrong |= bad
    problems.check(int(len(trace) - wrong.sum()))
    for note in problems.notes():
        trace = trace if note in trace.notes else trace.noting(note)
    return trace.take(~wrong) if wrong.any() else trace


def _check_not_empty(trace: TraceColumns) -> None:
    if not len(trace):
        dropped = "; ".join(trace.notes)
        raise InputError(
            "no job is left" + (f" ({dropped})" if dropped else ""), trace.where, "at least one job"
        )


def _select_months(trace: TraceColumns, options: TraceOptions) -> TraceColumns:
    if options.months is None:
        return trace
    if not trace.dated:
        raise InputError(
            "cannot select months: the trace has no calendar dates",
            trace.where,
            "UnixStartTime in its header, or times since the Unix epoch",
        )
    dates = trace.submit_s if options.by == "submit" else trace.start_s
    if options.by == "start" and np.isnan(dates[trace.is_job]).any():
        raise InputError("cannot select months by start: a job has no start", trace.where)
    months = (options.months,) if isinstance(options.months, str) else tuple(options.months)
    selected = trace.take(in_months(dates, months, options.tz or "UTC"))
    if not len(selected):
        raise InputError(
            f"contains no job in {', '.join(months)} ({options.tz or 'UTC'})", trace.where
        )
    return selected


def _without_stragglers(trace: TraceColumns, options: TraceOptions) -> TraceColumns:
    """Leave out jobs that were submitted long before the submissions of the record begin."""
    if options.months is not None or options.first_s is not None or options.last_s is not None:
        return trace
    jobs = trace.jobs
    begin_s = record_begin_s(jobs.submit_s)
    early = trace.submit_s < begin_s
    if not (early & trace.is_job).any():
        return trace
    order = np.argsort(jobs.submit_s, kind="stable")
    note, stays = stragglers_note(
        jobs.submit_s[order],
        begin_s,
        jobs.ids[order].tolist(),
        jobs.node_s[order],
        all_jobs=options.all_jobs,
    )
    return (trace if stays else trace.take(~early)).noting(note)


def _sizes(trace: TraceColumns, options: TraceOptions) -> Floats:
    first, second = trace.requested, trace.allocated
    if options.size == "allocated":
        first, second = second, first
    return np.where(first > 0, first, second)


def _origin_s(trace: TraceColumns, options: TraceOptions) -> float:
    first_s = float(trace.submit_s.min())
    if options.origin == "first-job":
        return first_s
    if not trace.dated:
        raise InputError(
            "cannot set time 0 to the start of the month: the trace has no calendar dates",
            trace.where,
        )
    return month_start_s(first_s, options.tz or "UTC")


def _select_window(trace: TraceColumns, options: TraceOptions) -> TraceColumns:
    if not len(trace.jobs) or (options.first_s is None and options.last_s is None):
        return trace
    since_s = trace.submit_s - _origin_s(trace.jobs, options)
    low = -np.inf if options.first_s is None else options.first_s
    high = np.inf if options.last_s is None else options.last_s
    return trace.take((since_s >= low) & (since_s < high))


def _select_first(trace: TraceColumns, max_jobs: int | None) -> TraceColumns:
    """Return the first ``max_jobs`` jobs, in order of submission."""
    trace = trace.take(np.argsort(trace.submit_s, kind="stable"))
    if max_jobs is None:
        return trace
    jobs_until = np.cumsum(trace.is_job)
    return trace.take(np.arange(np.searchsorted(jobs_until, max_jobs) + 1)[: len(trace)])


def _walltimes(trace: TraceColumns, options: TraceOptions) -> TraceColumns:
    missing = ~(trace.walltime_s > 0)
    if missing.any():
        trace = MISSING_WALLTIME_RULES[options.missing_walltime](trace, missing)
    over = trace.run_s >= trace.walltime_s
    return OVERRUN_RULES[options.overrun](trace, over) if over.any() else trace


def _build(trace: TraceColumns, options: TraceOptions) -> Workload:
    n_nodes = trace.n_nodes if options.n_nodes is None else options.n_nodes
    if n_nodes is None:
        if trace.unclear_size:
            raise InputError(trace.unclear_size, trace.where, "n_nodes (--nodes)")
        raise InputError(
            "the trace does not contain the number of nodes of the machine",
            trace.where,
            "n_nodes (--nodes)",
        )
    if not 1 <= n_nodes <= MAX_NODES:
        raise InputError(f"the machine has {n_nodes} nodes", trace.where, f"1 to {MAX_NODES}")
    notes = list(trace.notes)
    sizes = _capped(_sizes(trace, options), options.cap, n_nodes, notes)
    walltime_us = rounded_us(np.nan_to_num(trace.walltime_s, nan=-1.0))
    origin_s = _origin_s(trace, options)
    workload = delay_workload(
        trace.name,
        n_nodes,
        ids=_unique(trace.ids.tolist(), notes),
        sizes=sizes.astype(np.int64),
        submit_us=rounded_us(trace.submit_s - origin_s),
        walltime_us=np.maximum(walltime_us, NO_WALLTIME),
        run_us=rounded_us(trace.run_s),
        extra=_owners(trace, origin_s),
        notes=sorted(notes, key=lambda note: not is_finding(note)),
    )
    if trace.machine is None:
        return workload
    machine = {**trace.machine, "origin_s": origin_s}
    return msgspec.structs.replace(workload, machine=machine)


def _owners(trace: TraceColumns, origin_s: float) -> list[dict[str, Any]]:
    """Return user, queue and ``extras`` of each job as fields. Jobs with equal values share a dict.

    Equal values of ``extras`` must be the same object. A job that was submitted before it was
    eligible has the field `SUBMITTED`.
    """
    fields = _shared_owners(trace)
    if trace.submitted_s is not None:
        differs = trace.submitted_s < trace.submit_s
        for at in np.flatnonzero(differs).tolist():
            since_s = round(float(trace.submitted_s[at] - origin_s), 6)
            fields[at] = {**fields[at], SUBMITTED: since_s}
    return fields


def _shared_owners(trace: TraceColumns) -> list[dict[str, Any]]:
    pairs = list(zip(trace.users.tolist(), trace.queues.tolist(), strict=True))
    fields = {pair: {n: v for n, v in zip(OWNERS, pair, strict=True) if v} for pair in set(pairs)}
    if trace.extras is None:
        return [fields[pair] for pair in pairs]
    shared: dict[tuple[Any, int], dict[str, Any]] = {}
    both = []
    for pair, extra in zip(pairs, trace.extras, strict=True):
        key = pair, id(extra)
        if key not in shared:
            shared[key] = {**fields[pair], **extra}
        both.append(shared[key])
    return both


def _capped(sizes: Floats, cap: int | None, n_nodes: int, notes: list[str]) -> Floats:
    if cap is not None and (sizes > cap).any():
        notes.append(f"{job_count((sizes > cap).sum())} larger than {cap} nodes: reduced to {cap}")
        sizes = np.minimum(sizes, cap)
    if (sizes > n_nodes).any():
        n_large = (sizes > n_nodes).sum()
        machine = exactly(n_nodes, "node")
        notes.append(f"{job_count(n_large)} larger than the machine of {machine}: kept")
    return sizes


def _unique(ids: list[str], notes: list[str]) -> list[str]:
    """Return unique ids. Repeats get a suffix, because a log has a record for each restart."""
    if len(set(ids)) == len(ids):
        return ids
    seen: dict[str, int] = {}
    names = []
    for job_id in ids:
        seen[job_id] = seen.get(job_id, 0) + 1
        names.append(job_id if seen[job_id] == 1 else f"{job_id}-{seen[job_id]}")
    example = next(job_id for job_id, n in seen.items() if n > 1)
    notes.append(
        f"{job_count(len(ids) - len(seen))} with a repeated id: renamed, for example to {example}-2"
    )
    return names


_MONTH = re.compile(r"(\d{4})-(0[1-9]|1[0-2])\Z")


def month_bounds_s(month: str, tz: str) -> tuple[float, float]:
    """Return the start of a month and of the next month, in seconds since the Unix epoch.

    >>> month_bounds_s("1970-01", "UTC")
    (0.0, 2678400.0)
    """
    match = _MONTH.match(month)
    if not match or match[1] in {"0000", "9999"}:
        raise InputError(f"invalid month {month!r}", expected="YYYY-MM, for example 2018-11")
    year, number = int(match[1]), int(match[2])
    first = datetime(year, number, 1, tzinfo=zone_of(tz))
    after = datetime(year + number // 12, number % 12 + 1, 1, tzinfo=zone_of(tz))
    return first.timestamp(), after.timestamp()


def month_start_s(date_s: float, tz: str) -> float:
    """Return midnight of the first day of the month that contains a date."""
    date = datetime.fromtimestamp(date_s, zone_of(tz))
    return datetime(date.year, date.month, 1, tzinfo=zone_of(tz)).timestamp()


def in_months(
    dates_s: npt.NDArray[np.float64], months: Sequence[str], tz: str
) -> npt.NDArray[np.bool_]:
    """Return a mask of the dates in any of the months."""
    inside = np.zeros(len(dates_s), dtype=np.bool_)
    for month in months:
        first_s, after_s = month_bounds_s(month, tz)
        inside |= (dates_s >= first_s) & (dates_s < after_s)
    return inside
