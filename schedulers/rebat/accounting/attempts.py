# SPDX-License-Identifier: Apache-2.0
"""The attempts of each job in accounting records. An attempt ends at a failure of its nodes."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.accounting.hosts import names_of
from rebat.accounting.node_events import DownRow
from rebat.accounting.table import AttemptTable

Indices = npt.NDArray[np.int64]


class Correction(NamedTuple):
    """A correction: an attempt must end earlier, at a failure of a node. Times are Unix times."""

    job: str
    start_s: float
    end_s: float
    cut_s: float
    node: str
    state: str

    @property
    def length_s(self) -> float:
        """Run time of the attempt until the cut."""
        return self.cut_s - self.start_s


class JoinedJobs(NamedTuple):
    """The rows of each job.

    Attributes
    ----------
    last : array
        Row of each job's last attempt that started. If none started, this is the row of its last
        record.
    submit_s : array
        Time of the first submission of each job, in seconds since the Unix epoch.
    started : array of bool
    n_attempts : array
        Number of attempts of each job that started.
    attempts : array
        Rows of all attempts that started, in order of job, submission and start.
    dropped : Counter
        Rows that are not attempts, by reason.
    """

    last: Indices
    submit_s: npt.NDArray[np.float64]
    started: npt.NDArray[np.bool_]
    n_attempts: Indices
    attempts: Indices
    dropped: Counter[str]


def jobs_of(table: AttemptTable) -> JoinedJobs:
    """Join the attempts of each job, by the unique id of the batch system.

    If an attempt (equal submission and start) has several records, the last one is used. A RESIZING
    record belongs to the attempt in the next record.
    """
    import pandas as pd

    codes, _ = pd.factorize(np.array(table.texts["raw"], dtype=object))
    submit, start = table.column("submit_s"), table.column("start_s")
    waits = np.where(np.isnan(start), np.inf, start)
    order = np.lexsort((np.arange(len(table)), waits, submit, codes))
    job, sub, begin = codes[order], submit[order], waits[order]
    repeated = np.zeros(len(order), dtype=bool)
    repeated[:-1] = (job[:-1] == job[1:]) & (sub[:-1] == sub[1:]) & (begin[:-1] == begin[1:])
    resizing = np.array([table.texts["state"][row] == "RESIZING" for row in order], dtype=bool)
    dropped = Counter(
        {
            "repeated records of an attempt": int(repeated.sum()),
            "records of a change of size": int((resizing & ~repeated).sum()),
        }
    )
    first = np.flatnonzero(np.r_[True, job[1:] != job[:-1]])
    last = np.r_[first[1:], len(order)] - 1
    ran = np.isfinite(begin) & ~repeated & ~resizing
    position = np.where(ran, np.arange(len(order)), -1)
    last_run = np.maximum.reduceat(position, first)
    return JoinedJobs(
        last=order[np.where(last_run >= 0, last_run, last)],
        submit_s=sub[first],
        started=last_run >= 0,
        n_attempts=np.add.reduceat(ran.astype(np.int64), first),
        attempts=order[ran],
        dropped=+dropped,
    )


def corrections_of(
    table: AttemptTable, attempts: Indices, downs: Iterable[DownRow]
) -> dict[int, Correction]:
    """Return corrections, by row, for attempts that end too late: after a failure of their nodes.

    An attempt is shortened to the first failure of one of its nodes. If a node was already down, it
    is shortened to its start.
    """
    start = table.column("start_s")[attempts]
    end = table.column("end_s")[attempts]
    end = np.where(np.isnan(end), np.inf, end)
    cuts: dict[int, Correction] = {}
    for down in sorted(downs, key=lambda row: row.down_s):
        for at in np.flatnonzero((start < down.up_s) & (end > down.down_s)):
            row = int(attempts[at])
            if row not in cuts and down.node in names_of(table.texts["hosts"][row]):
                cut_s = max(down.down_s, float(start[at]))
                cuts[row] = Correction(
                    table.texts["job"][row],
                    float(start[at]),
                    float(end[at]),
                    cut_s,
                    down.node,
                    table.texts["state"][row],
                )
    return cuts


def merged_downs(rows: Iterable[DownRow]) -> Iterator[DownRow]:
    """Yield the down intervals of each node. Overlapping and adjacent intervals are joined."""
    by_node: defaultdict[str, list[DownRow]] = defaultdict(list)
    for row in rows:
        by_node[row.node].append(row)
    for node_rows in by_node.values():
        held: DownRow | None = None
        for row in sorted(node_rows, key=lambda row: row.down_s):
            if held and row.down_s <= held.up_s:
                held = held._replace(up_s=max(held.up_s, row.up_s))
                continue
            if held:
                yield held
            held = row
        if held:
            yield held


def end_of(table: AttemptTable) -> float:
    """Return the latest time in the records, in seconds since the Unix epoch."""
    times = [table.column(name) for name in ("submit_s", "start_s", "end_s")]
    return max((float(np.nanmax(t)) for t in times if not np.isnan(t).all()), default=math.nan)
