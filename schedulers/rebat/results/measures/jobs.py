# SPDX-License-Identifier: Apache-2.0
"""The outcome of each original job over all its attempts, one row per job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from typing import Any, overload

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.attempts import INTERRUPTED, Cause, job_name
from rebat.core.packed import Packed
from rebat.core.traits import OWNERS
from rebat.core.units import FOREVER_US, US_PER_S, to_s
from rebat.results.measures.sharing import widths
from rebat.session.ledger import AttemptRecord, Ledger


class JobRow(msgspec.Struct, gc=False):
    """The outcome of a job; times are in seconds from the start of the run.

    Attributes
    ----------
    size
        Requested number of nodes.
    waiting_time
        Total time, between submission and end, during which the job held no nodes.
    flow
        Finish minus submission; None for a rejected job.
    stolen
        Number of times that the job was a victim.
    wasted_node_seconds
        Work lost to interruptions and silent errors, times nodes.
    node_seconds
        Node-seconds held by all attempts.
    resizes
        Number of times that the job changed its number of nodes.
    user, queue
        Owner of the job; empty if unknown.
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
"""User and queue for each Batsim id of a job; empty if unknown."""


_DTYPES = {"int": "i8", "float": "f8", "float | None": "f8", "str": "O"}
_TABLE = np.dtype([(name, _DTYPES[kind]) for name, kind in JobRow.__annotations__.items()])


class JobRows(Sequence[JobRow]):
    """The rows of a run, stored as a table because there can be millions.

    Rows are created on access. Missing numbers are NaN in columns.
    """

    def __init__(
        self, table: npt.NDArray[Any], places: npt.NDArray[np.int64] | None = None
    ) -> None:
        """Create rows from a table, or from its rows at the positions ``places``."""
        self._table, self._places = table, places

    @property
    def table(self) -> npt.NDArray[Any]:
        """The rows as a structured array."""
        return self._table if self._places is None else self._table[self._places]

    def __len__(self) -> int:
        return len(self._table if self._places is None else self._places)

    def __iter__(self) -> Iterator[JobRow]:
        return (_from_table(values) for values in self.table)

    @overload
    def __getitem__(self, which: int) -> JobRow: ...
    @overload
    def __getitem__(self, which: slice | npt.NDArray[Any]) -> JobRows: ...
    def __getitem__(self, which: int | slice | npt.NDArray[Any]) -> JobRow | JobRows:
        """Return a row, or the rows of a slice, a mask or an array of positions."""
        places = np.arange(len(self._table)) if self._places is None else self._places
        selected = places[which]
        if isinstance(selected, np.ndarray):
            return JobRows(self._table, selected)
        return _from_table(self._table[selected])

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return a column."""
        column: npt.NDArray[Any] = self._table[name]
        return column if self._places is None else column[self._places]

    @property
    def has_finished(self) -> npt.NDArray[np.bool_]:
        """A mask of the finished jobs."""
        mask: npt.NDArray[np.bool_] = ~np.isnan(self.column("flow"))
        return mask


def _from_table(values: np.void) -> JobRow:
    fields: Any = [None if isinstance(v, float) and isnan(v) else v for v in values.item()]
    return JobRow(*fields)


def job_rows(ledger: Ledger, owners: Owners | None = None) -> JobRows:
    """Return the rows in the order of submission."""
    attempts = ledger.attempts
    serials = attempts.column("attempt.job_serial")
    _, first, job = np.unique(serials, return_index=True, return_inverse=True)
    molded, rejected = attempts.having("cause", Cause.MOLDED), _rejected(attempts)
    table = np.zeros(len(first), dtype=_TABLE)
    table["size"] = attempts.column("attempt.n_nodes")[first]
    table["submission_time"] = attempts.column("attempt.submit_us")[first] / US_PER_S
    states = np.array(["", *attempts.values("state")], dtype=object)
    last = np.zeros(len(table), dtype=np.int64)
    last[job[~molded]] = 1 + attempts.column("state")[~molded]  # the last value wins
    table["final_state"] = states[last]
    _set_times(table, attempts, job, ~molded & ~rejected)
    for name in ("finish_time", "waiting_time", "flow"):
        table[name][job[rejected]] = np.nan  # also if earlier attempts ran
    table["resizes"] = _resizes(attempts, job, len(table))
    _set_names(table, attempts, first, owners or {})
    _set_wasted(table, ledger, job)
    return JobRows(table)


def _rejected(attempts: Packed[AttemptRecord]) -> npt.NDArray[np.bool_]:
    return attempts.having("cause", Cause.REJECTED)


def _set_times(
    table: npt.NDArray[Any],
    attempts: Packed[AttemptRecord],
    job: npt.NDArray[np.int64],
    ran: npt.NDArray[np.bool_],
) -> None:
    """Set the columns that are counts or sums over attempts that ran, marked by ``ran``."""
    names = ("start_us", "end_us", "attempt.queued_us", "attempt.submit_us", "attempt.n_nodes")
    start_us, end_us, queued_us, submit_us, sizes = (attempts.column(n)[ran] for n in names)
    of, n_jobs = job[ran], len(table)
    table["attempts"] = np.bincount(of, minlength=n_jobs)
    for name, cause in (("failures", Cause.NODE_FAILURE), ("stolen", Cause.STOLEN)):
        table[name] = np.bincount(job[attempts.having("cause", cause)], minlength=n_jobs)
    for name in ("first_start", "finish_time", "flow"):
        table[name] = np.nan
    table["first_start"][of[::-1]] = start_us[::-1] / US_PER_S
    table["finish_time"][of] = end_us / US_PER_S
    table["flow"][of] = (end_us - submit_us) / US_PER_S
    table["waiting_time"] = np.bincount(of, (start_us - queued_us) / US_PER_S, n_jobs)
    table["node_seconds"] = np.bincount(of, _products_s(end_us - start_us, sizes), n_jobs)


def _products_s(length_us: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> Any:
    """Return length x size in seconds, rounded only once, even if products exceed 64 bits."""
    seconds = length_us * sizes / US_PER_S
    for at in np.flatnonzero(length_us.astype(float) * sizes >= EXACT).tolist():
        seconds[at] = to_s(int(length_us[at]) * int(sizes[at]))
    return seconds


EXACT = 2.0**53
"""Integers below this number are exact as floats."""


def _resizes(
    attempts: Packed[AttemptRecord], job: npt.NDArray[np.int64], n_jobs: int
) -> npt.NDArray[np.int64]:
    """Return the number of changes of each job's number of nodes."""
    ran = attempts.column("start_us") >= 0
    order = np.argsort(job[ran], kind="stable")
    of, sizes = job[ran][order], attempts.column("attempt.n_nodes")[ran][order]
    changed = (of[1:] == of[:-1]) & (sizes[1:] != sizes[:-1])
    return np.bincount(of[1:][changed], minlength=n_jobs)


def _set_names(
    table: npt.NDArray[Any],
    attempts: Packed[AttemptRecord],
    first: npt.NDArray[np.int64],
    owners: Owners,
) -> None:
    """Set job ids and owners, from the first attempt of each job."""
    table["user"] = table["queue"] = ""
    order = np.argsort(first)
    places = np.zeros(len(attempts), dtype=np.bool_)
    places[first] = True
    for row, record in zip(order.tolist(), attempts.where(places), strict=True):
        job_id = record.attempt.job_id
        table["job_id"][row] = job_name(job_id)
        if job_id in owners:
            table["user"][row], table["queue"][row] = owners[job_id]


def _set_wasted(table: npt.NDArray[Any], ledger: Ledger, job: npt.NDArray[np.int64]) -> None:
    """Set the node-seconds that each job lost.

    If attempts share nodes, the node time is divided among them.
    """
    attempts = ledger.attempts
    if not ledger.shared:
        lost = attempts.having("cause", *_LOSSES)
        wasted = np.zeros(len(table))
        for row, record in zip(job[lost].tolist(), attempts.where(lost), strict=True):
            wasted[row] += to_s(lost_us(record) * record.attempt.n_nodes)
        table["wasted_node_seconds"] = wasted
        return
    width = widths(ledger, (0, FOREVER_US))
    for name, length_us in (("node_seconds", _held_us), ("wasted_node_seconds", lost_us)):
        values = [to_s(length_us(r)) * nodes for r, nodes in zip(attempts, width, strict=True)]
        table[name] = np.bincount(job, values, len(table))


def _held_us(record: AttemptRecord) -> int:
    return record.end_us - record.start_us if record.start_us >= 0 else 0


_LOSSES = INTERRUPTED | {Cause.SILENT_ERROR}


def lost_us(record: AttemptRecord) -> int:
    """Return the run time of an unsuccessful attempt minus its recovery and kept progress."""
    if record.cause not in _LOSSES:
        return 0
    recovery = record.checkpointing.first_recovery_us if record.checkpointing else 0
    progress = record.useful_us - record.lost_us
    return max(0, record.end_us - record.start_us - recovery - progress)
