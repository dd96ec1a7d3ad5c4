# SPDX-License-Identifier: Apache-2.0
"""The attempts of each job in accounting records. An attempt ends at a failure of its nodes."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.records.node_events import DownRow
from rebat.records.table import Rows
from rebat.records.values import CUT, OPEN

Indices = npt.NDArray[np.int64]

REQUEUE_S = 60.0
"""Longest time (seconds) from the end of an attempt to the submission by which Slurm requeues it.

A later submission with the same id is another job: Slurm has recycled the id.
"""

REQUEUE_CUT_S = 86_400.0
"""The same for an attempt that a failure or a preemption ended: a person may requeue the job."""


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
    submit_s, eligible_s : array
        Time of the first submission of each job, and the time from which this submission could
        start, in seconds since the Unix epoch.
    started : array of bool
    n_attempts : array
        Number of attempts of each job that started.
    attempts : array
        Rows of all attempts that started, in order of job, submission and start.
    dropped : Counter
        Rows that are not attempts, by reason.
    n_recycled : int
        Number of jobs whose id an earlier job had.
    """

    last: Indices
    submit_s: npt.NDArray[np.float64]
    eligible_s: npt.NDArray[np.float64]
    started: npt.NDArray[np.bool_]
    n_attempts: Indices
    attempts: Indices
    dropped: Counter[str]
    n_recycled: int


def jobs_of(table: Rows) -> JoinedJobs:
    """Join the attempts of each job: the rows with an id of the batch system, until it is recycled.

    If an attempt (equal submission and start) has several records, the latest is used: a record
    with a final state, and then the one with the latest end. A RESIZING record belongs to the
    attempt in the next record.
    """
    import pandas as pd

    raw, cluster = table.text("raw"), table.text("cluster")
    ids = raw if len(set(cluster.tolist())) < 2 else cluster + "\0" + raw
    codes, _ = pd.factorize(ids)
    submit, start, end = (table.column(name) for name in ("submit", "start", "recorded_end"))
    waits = np.where(np.isnan(start), np.inf, start)
    latest = np.where(np.isnan(end), -np.inf, end)
    final = ~np.isin(table.text("state"), [*OPEN])
    order = np.lexsort((np.arange(len(table)), latest, final, waits, submit, codes))
    begins = _begins(table, codes, order)
    job = np.cumsum(begins)
    sub, begin = submit[order], waits[order]
    repeated = np.zeros(len(order), dtype=bool)
    repeated[:-1] = (job[:-1] == job[1:]) & (sub[:-1] == sub[1:]) & (begin[:-1] == begin[1:])
    resizing = table.text("state")[order] == "RESIZING"
    dropped = Counter(
        {
            "repeated records of an attempt": int(repeated.sum()),
            "records of a change of size": int((resizing & ~repeated).sum()),
        }
    )
    first = np.flatnonzero(begins)
    last = np.r_[first[1:], len(order)] - 1
    ran = np.isfinite(begin) & ~repeated & ~resizing
    position = np.where(ran, np.arange(len(order)), -1)
    last_run = np.maximum.reduceat(position, first)
    return JoinedJobs(
        last=order[np.where(last_run >= 0, last_run, last)],
        submit_s=sub[first],
        eligible_s=table.column("eligible")[order][first],
        started=last_run >= 0,
        n_attempts=np.add.reduceat(ran.astype(np.int64), first),
        attempts=order[ran],
        dropped=+dropped,
        n_recycled=len(first) - int(codes.max()) - 1,
    )


def _begins(table: Rows, codes: Indices, order: Indices) -> npt.NDArray[np.bool_]:
    """Return a mask of the sorted rows that begin a job.

    A row begins a job if its id, its user, or its submission is another one. A requeue also changes
    the submission, but in Slurm it follows the end of the attempt within `REQUEUE_S`.
    """
    code = codes[order]
    new_id = np.r_[True, code[1:] != code[:-1]]
    user, state = table.text("user")[order], table.text("state")[order]
    other_user = np.zeros(len(order), dtype=bool)
    other_user[1:] = (user[1:] != user[:-1]) & (user[1:] != "") & (user[:-1] != "")
    other_user &= ~new_id
    submit, end = table.column("submit")[order], table.column("recorded_end")[order]
    begin = np.fmin(table.column("start")[order], np.inf)
    clash = np.flatnonzero(other_user[1:] & (begin[1:] < end[:-1]) & (begin[:-1] < end[1:]))
    if len(clash):
        row = order[clash[0] + 1]
        raise InputError(
            f"job {table.text('raw')[row]} runs for two users at the same time: the records are of "
            "several clusters",
            f"{table.where}:{table.lines[row]}",
            "the column Cluster, or the records of one cluster",
        )
    after = np.zeros(len(order), dtype=bool)
    if table.facts.get("submitted_once"):
        after[1:] = submit[1:] != submit[:-1]
    else:
        pause = np.where(np.isin(state, [*CUT, *OPEN]), REQUEUE_CUT_S, REQUEUE_S)
        after[1:] = submit[1:] > (end + pause)[:-1]
    begins: npt.NDArray[np.bool_] = new_id | other_user | after
    return begins


class AttemptsOfNodes:
    """The attempts on some nodes, by node.

    Parameters
    ----------
    table : Rows
    attempts : array
        Rows of the attempts.
    nodes : set of str
        The nodes. Attempts on other nodes are ignored.
    """

    def __init__(self, table: Rows, attempts: Indices, nodes: set[str]) -> None:
        self._rows: dict[str, Indices] = {}
        if nodes:
            lists = table.host_lists
            chosen = np.array([name in nodes for name in lists.names] or [False])
            hit = chosen[lists.nodes] if len(lists.nodes) else np.empty(0, dtype=np.bool_)
            owners, members = lists.owners[hit], lists.nodes[hit]
            codes = lists.codes[attempts]
            order = np.argsort(codes, kind="stable")
            low, high = (np.searchsorted(codes[order], owners, side) for side in ("left", "right"))
            positions: defaultdict[str, list[Indices]] = defaultdict(list)
            for node, first, last in zip(
                members.tolist(), low.tolist(), high.tolist(), strict=True
            ):
                positions[lists.names[node]].append(order[first:last])
            self._rows = {name: np.unique(np.concatenate(p)) for name, p in positions.items()}
        self._start = table.column("start")[attempts]
        self._lived = ~np.isin(table.text("state")[attempts], ("NODE_FAIL", "BOOT_FAIL"))
        end = table.column("end")[attempts]
        self._end = np.where(np.isnan(end), np.inf, end)

    def during(self, down: DownRow) -> list[int]:
        """Return the positions of the attempts that a down interval overlaps, in order."""
        rows = self._rows.get(down.node)
        if rows is None:
            return []
        hit = (self._start[rows] < down.up_s) & (self._end[rows] > down.down_s)
        return [*map(int, rows[hit])]

    def first_start_s(self, node: str, after_s: float) -> float:
        """Return the first start of an attempt on a node after a time. It may be infinite.

        Attempts that a failed node ended do not count, because the node may not have lived.
        """
        rows = self._rows.get(node)
        starts = np.empty(0) if rows is None else self._start[rows[self._lived[rows]]]
        return float(starts[starts > after_s].min(initial=np.inf))


def corrections_of(
    table: Rows, attempts: Indices, downs: Iterable[DownRow]
) -> dict[int, Correction]:
    """Return corrections, by row, for attempts that end too late: after a failure of their nodes.

    An attempt is shortened to the first failure of one of its nodes. If a node was already down, it
    is shortened to its start.
    """
    downs = sorted(downs, key=lambda row: row.down_s)
    of_nodes = AttemptsOfNodes(table, attempts, {down.node for down in downs})
    start, end = table.column("start"), table.column("end")
    cuts: dict[int, Correction] = {}
    for down in downs:
        for position in of_nodes.during(down):
            row = int(attempts[position])
            if row not in cuts:
                end_s = math.inf if math.isnan(end[row]) else float(end[row])
                cut_s = max(down.down_s, float(start[row]))
                job, state = table.text("id")[row], table.text("state")[row]
                cuts[row] = Correction(job, float(start[row]), end_s, cut_s, down.node, state)
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


def end_of(table: Rows) -> float:
    """Return the latest time in the records, in seconds since the Unix epoch."""
    times = [table.column(name) for name in ("submit", "start", "end")]
    return max((float(np.nanmax(t)) for t in times if not np.isnan(t).all()), default=math.nan)
