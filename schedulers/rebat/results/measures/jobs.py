# SPDX-License-Identifier: Apache-2.0
"""One row per original job, over all its attempts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import isnan
from operator import attrgetter
from typing import Any, overload

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.attempts import INTERRUPTED, Cause, job_name
from rebat.core.traits import OWNERS
from rebat.core.units import FOREVER_US, to_s
from rebat.results.measures.sharing import widths
from rebat.session.ledger import AttemptRecord, Ledger


class JobRow(msgspec.Struct, gc=False):
    """The outcome of a job; times in seconds from the start of the run.

    Attributes
    ----------
    size
        Requested number of nodes.
    waiting_time
        Time from submission to end during which the job held no nodes.
    flow
        Finish minus submission; None for a rejected job.
    stolen
        How often the job was a victim.
    wasted_node_seconds
        Work lost to interruptions and silent errors, times nodes.
    node_seconds
        Node-seconds held by all attempts.
    resizes
        How often the number of nodes changed.
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
"""Batsim id of a job -> its user and queue; empty if unknown."""


_DTYPES = {"int": "i8", "float": "f8", "float | None": "f8", "str": "O"}
_TABLE = np.dtype([(name, _DTYPES[kind]) for name, kind in JobRow.__annotations__.items()])


class JobRows(Sequence[JobRow]):
    """The rows of a run as a table, because there can be millions.

    Rows are created on access. Missing numbers are NaN in columns.
    """

    def __init__(self, table: npt.NDArray[Any]) -> None:
        self.table = table

    def __len__(self) -> int:
        return len(self.table)

    def __iter__(self) -> Iterator[JobRow]:
        return (_from_table(values) for values in self.table)

    @overload
    def __getitem__(self, which: int) -> JobRow: ...
    @overload
    def __getitem__(self, which: slice | npt.NDArray[Any]) -> JobRows: ...
    def __getitem__(self, which: int | slice | npt.NDArray[Any]) -> JobRow | JobRows:
        """Return a row, or the rows of a slice, a mask or an array of positions."""
        selected = self.table[which]
        return _from_table(selected) if isinstance(selected, np.void) else JobRows(selected)

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return a column."""
        column: npt.NDArray[Any] = self.table[name]
        return column

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
    by_id = owners or {}
    serial = attrgetter("attempt.job_serial")  # the attempts of a job are in their order
    by_job = sorted(ledger.attempts, key=serial)
    count = sum(1 for _ in groupby(by_job, serial))
    rows = (msgspec.structs.astuple(_row(jobs, by_id)) for _, jobs in groupby(by_job, serial))
    table = np.fromiter(rows, dtype=_TABLE, count=count)
    if ledger.shared:
        _share(table, by_job, ledger)
    return JobRows(table)


def _share(table: npt.NDArray[Any], by_job: Sequence[AttemptRecord], ledger: Ledger) -> None:
    """Set node-seconds to the shares of node time of attempts that run on the same nodes."""
    width = widths(ledger, (0, FOREVER_US))
    nodes = {r.attempt.serial: n for r, n in zip(ledger.attempts, width, strict=True)}
    for name, length_us in (("node_seconds", _held_us), ("wasted_node_seconds", lost_us)):
        table[name] = [
            sum(to_s(length_us(record)) * nodes[record.attempt.serial] for record in records)
            for _, records in groupby(by_job, attrgetter("attempt.job_serial"))
        ]


def _held_us(record: AttemptRecord) -> int:
    return record.end_us - record.start_us if record.start_us >= 0 else 0


def _row(records: Iterable[AttemptRecord], owners: Owners) -> JobRow:
    row, size = None, 0
    for record in records:
        attempt = record.attempt
        if row is None:
            name = job_name(attempt.job_id)
            user, queue = owners.get(attempt.job_id, ("", ""))
            submitted = to_s(attempt.submit_us)
            row = JobRow(name, attempt.n_nodes, submitted, waiting_time=0.0, user=user, queue=queue)
        _add(row, record)
        if record.start_us >= 0:
            row.resizes += size not in (0, attempt.n_nodes)
            size = attempt.n_nodes
    assert row is not None
    return row


def _add(row: JobRow, record: AttemptRecord) -> None:
    if record.cause == Cause.MOLDED:
        return  # the job continues as the next attempt
    row.final_state = record.state
    if record.cause == Cause.REJECTED:
        row.waiting_time = row.finish_time = row.flow = None  # also if it had run before
        return
    assert row.waiting_time is not None
    row.attempts += 1
    if row.first_start is None:
        row.first_start = to_s(record.start_us)
    row.waiting_time += to_s(record.start_us - record.attempt.queued_us)
    row.finish_time = to_s(record.end_us)
    row.flow = to_s(record.end_us - record.attempt.submit_us)
    row.failures += record.cause == Cause.NODE_FAILURE
    row.stolen += record.cause == Cause.STOLEN
    row.node_seconds += to_s((record.end_us - record.start_us) * record.attempt.n_nodes)
    wasted = lost_us(record)
    if wasted:
        row.wasted_node_seconds += to_s(wasted * record.attempt.n_nodes)


_LOSSES = INTERRUPTED | {Cause.SILENT_ERROR}


def lost_us(record: AttemptRecord) -> int:
    """Return the lost run time of an unsuccessful attempt, without recovery and kept progress."""
    if record.cause not in _LOSSES:
        return 0
    recovery = record.checkpointing.first_recovery_us if record.checkpointing else 0
    progress = record.useful_us - record.lost_us
    return max(0, record.end_us - record.start_us - recovery - progress)
