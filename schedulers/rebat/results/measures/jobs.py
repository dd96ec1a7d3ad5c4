# SPDX-License-Identifier: Apache-2.0
"""The outcome of each job over all its attempts, and the metrics of groups of jobs.

Groups are size classes (sections 5.3.1 and 6.1.2 of Du et al.), users and queues. Their metrics are
flows, waiting times, slowdowns and fairness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import isnan
from typing import Annotated, Any, overload

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.arrays import Floats
from rebat.core.attempts import INTERRUPTED, Cause
from rebat.core.errors import InputError
from rebat.core.table import Table, Texts, first_rows
from rebat.core.traits import OWNERS
from rebat.core.units import FOREVER_US, US_PER_S, to_s
from rebat.results.measures.nodetime import widths
from rebat.results.metric import Metric
from rebat.state.ledger import AttemptRecord, Ledger


class JobRow(msgspec.Struct, gc=False):
    """The outcome of a job. Times are in seconds from the start of the run.

    Attributes
    ----------
    size
        Requested number of nodes.
    waiting_time
        Total time, between submission and end, during which the job held no nodes.
    flow
        Time from submission to end, or None for a rejected job.
    stolen
        Number of times that an attempt of the job was interrupted to steal its nodes.
    wasted_node_seconds
        Node-seconds of work lost to interruptions and silent errors.
    node_seconds
        Node-seconds held by all attempts.
    resizes
        Number of times that the job changed its number of nodes.
    user, queue
        Owner and queue of the job. An unknown name is empty.
    """

    job_id: str
    size: int
    submission_time: float
    first_start: float | None = None
    finish_time: float | None = None
    waiting_time: float | None = None
    flow: float | None = None
    attempts: int = 0
    failures: int = 0
    stolen: int = 0
    wasted_node_seconds: float = 0.0
    final_state: str = ""
    node_seconds: float = 0.0
    resizes: int = 0
    user: str = ""
    queue: str = ""


SIZE_COLUMNS = ("job_id", "size", "node_seconds", "resizes")
JOB_COLUMNS = tuple(
    name for name in JobRow.__struct_fields__ if name not in (*SIZE_COLUMNS[2:], *OWNERS)
)
Owners = Mapping[str, tuple[str, str]]
"""User and queue of each job, by its name. An unknown name is empty."""


Column = npt.NDArray[Any]
Columns = dict[str, Column]
"""The values of each field, in the order of the rows. Missing numbers are NaN."""


class JobRows(Sequence[JobRow]):
    """The rows of a run, which are stored as columns because there can be millions of them.

    Rows are created on access. Missing numbers are NaN in columns.
    """

    def __init__(
        self,
        columns: dict[str, Column | Callable[[], Column]],
        places: npt.NDArray[np.int64] | None = None,
    ) -> None:
        """Create rows from columns. ``places`` are indices of the rows to keep (default: all).

        A column can be a function, which is called when the column is read for the first time.
        """
        self._columns, self._places = columns, places

    def __len__(self) -> int:
        return len(self.column("size") if self._places is None else self._places)

    def __iter__(self) -> Iterator[JobRow]:
        for values in self.values(JobRow.__struct_fields__):
            fields: Any = [None if isinstance(v, float) and isnan(v) else v for v in values]
            yield JobRow(*fields)

    def values(self, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield the values of the named columns for each row. Missing numbers are NaN."""
        columns = [self.column(name) for name in names]
        for first in range(0, len(self), _CHUNK):  # to save memory
            parts = (column[first : first + _CHUNK].tolist() for column in columns)
            yield from zip(*parts, strict=True)

    @overload
    def __getitem__(self, which: int) -> JobRow: ...
    @overload
    def __getitem__(self, which: slice | npt.NDArray[Any]) -> JobRows: ...
    def __getitem__(self, which: int | slice | npt.NDArray[Any]) -> JobRow | JobRows:
        """Return a row, or the rows selected by a slice, a mask or an array of positions."""
        places = np.arange(len(self)) if self._places is None else self._places
        selected = places[which]
        if isinstance(selected, np.ndarray):
            return JobRows(self._columns, selected)
        return next(iter(self[np.array([which])]))

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return a column."""
        column = self._columns[name]
        if callable(column):
            column = self._columns[name] = column()
        return column if self._places is None else column[self._places]

    @property
    def has_finished(self) -> npt.NDArray[np.bool_]:
        """A mask of the finished jobs."""
        mask: npt.NDArray[np.bool_] = ~np.isnan(self.column("flow"))
        return mask


_CHUNK = 2**14
"""Number of rows that are read in one step."""

SHORT_S = 10.0
"""Minimum divisor of the bounded slowdown in seconds (Feitelson and Rudolph 1998)."""

BOUNDED_SLOWDOWN = 4
"""Row of the bounded slowdowns in `job_times`."""


def job_times(rows: JobRows) -> Floats:
    """Return an array with a column for each finished job.

    The rows are the size, size x flow, flow, waiting time, bounded slowdown, and slowdown. Times
    are in seconds.
    """
    size, flow, wait = (rows.column(name) for name in ("size", "flow", "waiting_time"))
    held = np.maximum(flow - wait, 1e-6)
    bounded = np.maximum(1.0, flow / np.maximum(held, SHORT_S))
    return np.array([size, size * flow, flow, wait, bounded, flow / held])


def job_rows(ledger: Ledger, owners: Owners | None = None) -> JobRows:
    """Return the rows in the order of submission."""
    attempts = ledger.attempts
    serials = attempts.column("job_serial")
    first = first_rows(serials, int(serials.max(initial=-1)) + 1)
    occurs = first < len(serials)
    first, job = first[occurs], (np.cumsum(occurs) - 1)[serials]
    molded = attempts.having("cause", Cause.MOLDED)
    rejected = attempts.having("cause", Cause.REJECTED)
    size = attempts.column("n_nodes")[first]
    columns: Columns = {"size": size.astype(np.int32)}
    columns["submission_time"] = attempts.column("submit_us")[first] / US_PER_S
    columns |= _times(attempts, job, np.flatnonzero(~molded & ~rejected), len(first))
    if rejected.any():  # The job can be rejected after an attempt that ran.
        for name in ("finish_time", "waiting_time", "flow"):
            columns[name][job[rejected]] = np.nan
    columns["resizes"] = _resizes(attempts, job, size)
    columns |= _wasted(ledger, job, len(first))
    states = np.array(["", *attempts.values("state")], dtype=object)
    last, ran = np.zeros(len(first), dtype=np.int64), np.flatnonzero(~molded)
    last[job[ran]] = 1 + attempts.column("state")[ran]  # the last value is assigned
    columns["final_state"] = states[last]
    names = {
        name: partial(_owned, attempts, first, owners or {}, at) for at, name in enumerate(OWNERS)
    }
    return JobRows({**columns, "job_id": partial(_owned, attempts, first), **names})


def _times(
    attempts: Table[AttemptRecord],
    job: npt.NDArray[np.int64],
    ran: npt.NDArray[np.int64],
    n_jobs: int,
) -> Columns:
    """Return the columns that are counts or sums over the attempts of each job.

    ``ran`` has the positions of the attempts that ran. To save memory, each column of the attempts
    is read when it is needed.
    """
    of = job[ran]

    def column(name: str) -> npt.NDArray[np.int64]:
        return attempts.column(name)[ran]

    columns: Columns = {"attempts": _counts(of, n_jobs)}
    for name, cause in (("failures", Cause.NODE_FAILURE), ("stolen", Cause.STOLEN)):
        columns[name] = _counts(job[attempts.having("cause", cause)], n_jobs)
    for name in ("first_start", "finish_time", "flow"):
        columns[name] = np.full(n_jobs, np.nan)
    columns["first_start"][of[::-1]] = column("start_us")[::-1] / US_PER_S
    columns["finish_time"][of] = column("end_us") / US_PER_S
    columns["flow"][of] = (column("end_us") - column("submit_us")) / US_PER_S
    # The first wait includes the time for which dependencies or an array keep the job from the queue.
    since_us, first = column("queued_us"), np.unique(of, return_index=True)[1]
    since_us[first] = column("submit_us")[first]
    columns["waiting_time"] = _sums(of, (column("start_us") - since_us) / US_PER_S, n_jobs)
    held_s = _products_s(column("end_us") - column("start_us"), column("n_nodes"))
    columns["node_seconds"] = _sums(of, held_s, n_jobs)
    return columns


def _sums(jobs: npt.NDArray[np.int64], values: Any, n_jobs: int) -> npt.NDArray[np.float64]:
    """Return the sum of the values of each job."""
    return np.bincount(jobs, values, n_jobs).astype(np.float64, copy=False)


def _products_s(length_us: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> Any:
    """Return length times size in seconds. Round only once, even if products exceed 64 bits."""
    seconds = length_us * sizes / US_PER_S
    for at in np.flatnonzero(length_us.astype(float) * sizes >= EXACT).tolist():
        seconds[at] = to_s(int(length_us[at]) * int(sizes[at]))
    return seconds


EXACT = 2.0**53
"""Whole numbers below this limit are exact as floats."""


def _resizes(
    attempts: Table[AttemptRecord], job: npt.NDArray[np.int64], size: npt.NDArray[np.int64]
) -> npt.NDArray[np.int32]:
    """Return how often the number of nodes of each job changed. ``size`` is the first number."""
    ran, sizes = attempts.column("start_us") >= 0, attempts.column("n_nodes")
    if (sizes == size[job]).all():
        return np.zeros(len(size), dtype=np.int32)
    order = np.argsort(job[ran], kind="stable")
    of, sizes = job[ran][order], sizes[ran][order]
    changed = (of[1:] == of[:-1]) & (sizes[1:] != sizes[:-1])
    return _counts(of[1:][changed], len(size))


def _counts(jobs: npt.NDArray[np.int64], n_jobs: int) -> npt.NDArray[np.int32]:
    """Return how often each job occurs in ``jobs``."""
    return np.bincount(jobs, minlength=n_jobs).astype(np.int32)


def _owned(
    attempts: Table[AttemptRecord],
    first: npt.NDArray[np.int64],
    owners: Owners | None = None,
    at: int = 0,
) -> Column:
    """Return the ids of jobs, or one of the two names of their owners."""
    if owners is not None and not owners:
        return np.broadcast_to(np.array("", dtype=object), len(first))  # takes no memory
    order = np.argsort(first)
    texts = attempts.texts("name", first[order])
    if owners:
        texts = Texts.of(owners.get(job_id, ("", ""))[at] for job_id in texts)
    return texts.array()[np.argsort(order)]


def _wasted(ledger: Ledger, job: npt.NDArray[np.int64], n_jobs: int) -> Columns:
    """Return the lost work of each job, in node-seconds.

    If attempts share nodes, the node time is divided among them.
    """
    attempts = ledger.attempts
    lost, sizes = losses_us(attempts), attempts.column("n_nodes")
    if not ledger.shared:
        return {"wasted_node_seconds": _sums(job, _products_s(lost, sizes), n_jobs)}
    width, columns = widths(ledger, (0, FOREVER_US)), Columns()
    start_us = attempts.column("start_us")
    held_us = np.where(start_us >= 0, attempts.column("end_us") - start_us, 0)
    for name, length_us in (("node_seconds", held_us), ("wasted_node_seconds", lost)):
        columns[name] = _sums(job, length_us / US_PER_S * width, n_jobs)
    return columns


_LOSSES = INTERRUPTED | {Cause.SILENT_ERROR}


def losses_us(attempts: Table[AttemptRecord]) -> npt.NDArray[np.int64]:
    """Return the run time (us) of each unsuccessful attempt, minus recovery and kept progress."""
    losses = np.zeros(len(attempts), dtype=np.int64)
    rows = np.flatnonzero(attempts.having("cause", *_LOSSES))
    if len(rows):
        names = ("start_us", "end_us", "useful_us", "lost_us", "checkpointing")
        start, end, useful, lost, codes = (attempts.column(name)[rows] for name in names)
        recoveries = [c.first_recovery_us if c else 0 for c in attempts.values("checkpointing")]
        recovery = np.array(recoveries, dtype=np.int64)[codes]
        losses[rows] = _lost_us(end - start, recovery, useful - lost)
    return losses


def lost_us(record: AttemptRecord) -> int:
    """Return `losses_us` of an attempt that is not in a table."""
    if record.cause not in _LOSSES:
        return 0
    recovery = record.checkpointing.first_recovery_us if record.checkpointing else 0
    run, progress = record.end_us - record.start_us, record.useful_us - record.lost_us
    return int(_lost_us(run, recovery, progress))


def _lost_us(run_us: Any, recovery_us: Any, kept_us: Any) -> Any:
    return np.maximum(0, run_us - recovery_us - kept_us)


SIZE_CLASSES: tuple[tuple[int, int], ...] = (
    (1, 2**7),
    (2**7, 2**9),
    (2**9, 2**11),
    (2**11, 2**13),
    (2**13, 2**15),
    (2**15, 2**16),
)
"""Half-open intervals of job sizes (Figures 1 to 8). The last one includes all larger jobs."""


SMALL_MACHINE = 512
"""On machines with at most this many nodes, bounds are powers of two (Figures 12 and 13)."""


def size_classes(n_nodes: int) -> tuple[tuple[int, int], ...]:
    """Return the size classes for a machine with ``n_nodes`` nodes."""
    if n_nodes > SMALL_MACHINE:
        return SIZE_CLASSES
    return tuple((2**i, 2 ** (i + 1)) for i in range(n_nodes.bit_length()))


class Flow(msgspec.Struct, frozen=True):
    """Flow of a group of jobs, in seconds. The weight of a job is its number of nodes."""

    # fmt: off
    jobs: Annotated[int, Metric("jobs", "count", "", "", "jobs of a size class", listed=False)]
    max_s: Annotated[float, Metric("largest flow", "time", "low", "", "the largest flow of a job: its end - its submission, over all attempts")]
    mean_s: Annotated[float, Metric("mean flow", "time", "low", "", "the mean flow of the measured jobs")]
    weighted_mean_s: Annotated[float, Metric("weighted mean flow", "time", "low", "", "sum(nodes x flow) / sum(nodes)")]
    # fmt: on


class Selection(msgspec.Struct, frozen=True):
    """A selection of jobs by submission, from the share ``first`` to the share ``last``.

    If ``by`` is 'count', the shares refer to the jobs in the order of submissions, as in the paper
    (section 5.3.3 drops the first and last 20 % of the jobs). If ``by`` is 'time', the shares refer
    to the time from the first to the last submission, as in the authors' program (0.2 and 0.8).
    """

    first: float = 0.2
    last: float = 0.8
    by: str = "count"


EVERY_JOB = Selection(0.0, 1.0)


def select(rows: JobRows, selection: Selection) -> JobRows:
    """Return the finished jobs of a selection."""
    submitted = rows.column("submission_time")
    order = np.argsort(submitted, kind="stable")
    if not len(order):
        return rows
    if selection.by == "count":
        chosen = order[round(selection.first * len(order)) : round(selection.last * len(order))]
    elif selection.by == "time":
        times = submitted[order]
        start, span = times[0], times[-1] - times[0]
        low, high = start + selection.first * span, start + selection.last * span
        chosen = order[(low <= times) & (times <= high)]
    else:
        raise InputError(f"jobs cannot be selected by {selection.by!r}", expected="count or time")
    chosen = chosen[rows.has_finished[chosen]]
    everything = len(chosen) == len(rows) and bool((np.diff(chosen) > 0).all())
    return rows if everything else rows[chosen]


def class_name(low: int, high: int) -> str:
    """Return the name of a size class: '[512, 2048)'."""
    return f"[{low}, {high})"


def flow_of(times: Floats) -> Flow | None:
    """Return the flow of finished jobs, or None if there are no jobs. See `job_times`."""
    n_jobs = times.shape[1]
    if not n_jobs:
        return None
    weighted_s, flow_s = np.cumsum(times[1:3], axis=1)[:, -1].tolist()
    return Flow(n_jobs, float(times[2].max()), flow_s / n_jobs, weighted_s / float(times[0].sum()))


def by_class(rows: JobRows, n_nodes: int) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    """Yield the name of each size class of the machine and the positions of its jobs."""
    classes = size_classes(n_nodes)
    lows = [low for low, _ in classes]
    codes = np.searchsorted([*lows, max(n_nodes + 1, lows[-1])], rows.column("size"), "right") - 1
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], range(len(classes) + 1))
    for (low, high), first, last in zip(classes, ends, ends[1:], strict=False):
        yield class_name(low, high), order[first:last]


class Service(msgspec.Struct, frozen=True):
    """Waiting times and flows in seconds, and slowdowns, of the measured jobs.

    A job waits while it holds no nodes. The slowdown is the flow divided by the time for which the
    job held nodes, over all attempts. The bounded slowdown is at least 1. ``p50`` is the median.
    ``p95`` is the 95th percentile with linear interpolation.
    """

    # fmt: off
    wait_mean_s: Annotated[float, Metric("wait, mean", "time", "low", "", "the mean waiting time", listed=False)]
    wait_p95_s: Annotated[float, Metric("wait, 95th percentile", "time", "low", "", "the waiting time that 95 % of the jobs do not exceed")]
    wait_max_s: Annotated[float, Metric("wait, largest", "time", "low", "", "the longest waiting time", listed=False)]
    slowdown_mean: Annotated[float, Metric("slowdown, mean", "factor", "low", "", "flow / time for which the job held nodes", listed=False)]
    bounded_slowdown_mean: Annotated[float, Metric("bounded slowdown, mean", "factor", "low", "", "max(1, flow / max(10 s, time for which the job held nodes))")]
    wait_p50_s: Annotated[float, Metric("wait, median", "time", "low", "", "the median time between submission and end during which a job held no nodes")]
    flow_p50_s: Annotated[float, Metric("flow, median", "time", "low", "", "the median flow", listed=False)]
    flow_p95_s: Annotated[float, Metric("flow, 95th percentile", "time", "low", "", "the flow that 95 % of the jobs do not exceed", listed=False)]
    bounded_slowdown_p50: Annotated[float, Metric("bounded slowdown, median", "factor", "low", "", "the median bounded slowdown", listed=False)]
    bounded_slowdown_p95: Annotated[float, Metric("bounded slowdown, 95th percentile", "factor", "low", "", "the bounded slowdown that 95 % of the jobs do not exceed")]
    bounded_slowdown_max: Annotated[float, Metric("bounded slowdown, largest", "factor", "low", "", "the largest bounded slowdown", listed=False)]
    # fmt: on


class Fairness(msgspec.Struct, frozen=True):
    """Fairness among users, from the mean bounded slowdown of each user's jobs.

    ``jain`` is Jain's index of these means (Jain, Chiu, Hawe 1984): (sum x)^2 / (n sum x^2). The
    index is 1 if all means are equal, and 1/n if all except one are 0. The index measures only how
    equal the slowdowns are, not how small they are.
    """

    # fmt: off
    users: Annotated[int, Metric("users", "count", "", "", "users that have measured jobs", listed=False)]
    jain: Annotated[float, Metric("fairness among users (Jain's index)", "factor", "high", "", "(sum x)^2 / (n sum x^2) of the n users' mean bounded slowdowns x: 1 if all are equal, 1/n if all but one are 0")]
    median_user: Annotated[float, Metric("bounded slowdown, median user", "factor", "low", "", "the median of the users' means", listed=False)]
    worst_user: Annotated[float, Metric("bounded slowdown, worst user", "factor", "low", "", "the largest of the users' means", listed=False)]
    # fmt: on


def service_of(times: Floats) -> Service | None:
    """Return the service of finished jobs, or None if there are no jobs. See `job_times`."""
    n_jobs = times.shape[1]
    if not n_jobs:
        return None
    wait_s, bounded, slowdown = (times[2:].sum(axis=1) / n_jobs).tolist()[1:]
    ordered = np.sort(times[2:5], axis=1)
    flow_p50, wait_p50, bounded_p50 = quantiles(ordered, 0.5)
    flow_p95, wait_p95, bounded_p95 = quantiles(ordered, 0.95)
    _, wait_max, bounded_max = ordered[:, -1].tolist()
    return Service(
        wait_s, wait_p95, wait_max, slowdown, bounded, wait_p50, flow_p50, flow_p95,
        bounded_p50, bounded_p95, bounded_max
    )  # fmt: skip


def quantiles(ordered: Floats, share: float) -> list[float]:
    """Return a quantile of each row of sorted numbers, as `numpy.quantile` does by default."""
    at = (ordered.shape[1] - 1) * share
    low, beyond = int(at), at % 1
    below, above = ordered[:, low], ordered[:, min(low + 1, ordered.shape[1] - 1)]
    apart = above - below
    values = above - apart * (1 - beyond) if beyond >= 0.5 else below + apart * beyond
    numbers: list[float] = values.tolist()
    return numbers


def groups(names: npt.NDArray[Any]) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    """Yield the name and the rows of each user or queue. Yield nothing if all names are empty."""
    if not any(names.tolist()):
        return
    distinct, which = np.unique(names.astype(str), return_inverse=True)
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which))
    yield from zip(distinct.tolist(), np.split(order, ends[:-1]), strict=True)


def fairness(rows: JobRows) -> Fairness | None:
    """Return the fairness among the users of finished jobs, or None if no user is known."""
    users = [rows[places] for name, places in groups(rows.column("user")) if name]
    if not users:
        return None
    means = np.array([job_times(jobs)[BOUNDED_SLOWDOWN].mean() for jobs in users])
    return Fairness(len(means), jain(means), float(np.median(means)), float(means.max()))


def jain(values: npt.NDArray[np.float64]) -> float:
    """Return Jain's fairness index of non-negative values.

    >>> jain(np.array([1.0, 1.0, 1.0])), jain(np.array([1.0, 0.0]))
    (1.0, 0.5)
    """
    return float(values.sum() ** 2 / (len(values) * (values**2).sum()))


COUNTED = ("attempts", "failures", "stolen", "wasted_node_seconds", "node_seconds")
"""Columns that are summed over the jobs of a group."""

GROUP_COLUMNS = ("jobs", "finished", *COUNTED, *Service.__struct_fields__)


def group_rows(rows: JobRows, column: str) -> Iterator[tuple[Any, ...]]:
    """Yield the name and `GROUP_COLUMNS` of every user or queue. Times are in seconds.

    Waiting times, flows and slowdowns include only finished jobs. They are NaN if no job finished.
    """
    for name, places in groups(rows.column(column)):
        jobs = rows[places]
        finished = jobs[jobs.has_finished]
        service = service_of(job_times(finished))
        sums = (jobs.column(field).sum().item() for field in COUNTED)
        of_service = (
            getattr(service, field) if service else float("nan")
            for field in Service.__struct_fields__
        )
        yield name, len(jobs), len(finished), *sums, *of_service
