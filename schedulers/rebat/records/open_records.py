# SPDX-License-Identifier: Apache-2.0
"""Records without an end that must have ended, and nodes that were in service for a part only."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from rebat.core.numbers import exactly, rounded
from rebat.records.attempts import AttemptsOfNodes, Indices
from rebat.records.findings import finding
from rebat.records.hosts import expanded, folded
from rebat.records.node_events import DownRow
from rebat.records.table import Rows
from rebat.records.values import OPEN

RUNAWAY_LIMITS = 2.0
RUNAWAY_S = 3600.0
"""A running job is a runaway if its run time exceeds twice its limit and one hour."""


def runaways(table: Rows, attempts: Indices) -> Indices:
    """Return the rows of attempts without an end that run far longer than their limit."""
    limit, run = table.column("walltime")[attempts], table.column("run")[attempts]
    open_ = np.isnan(table.column("recorded_end")[attempts])
    open_ &= np.isin(table.text("state")[attempts], [*OPEN])
    return attempts[open_ & (run > RUNAWAY_LIMITS * limit + RUNAWAY_S)]


def end_runaways(table: Rows, attempts: Indices, rows: Indices, how: str) -> None:
    """Change the end, the run time and the state of runaway attempts.

    ``how`` is a value of the option ``runaway`` of `rebat.workloads.trace.TraceOptions`.

    Attempts that are dropped get no run time.
    """
    if how == "keep" or not len(rows):
        return
    names = {row: expanded(table.text("hosts")[row]) for row in rows.tolist()}
    nodes = {name for list_ in names.values() for name in list_} if how == "next" else set()
    of_nodes = AttemptsOfNodes(table, attempts, nodes)
    for name in ("end", "run"):
        table.numbers[name] = table.column(name).copy()
    table.texts["state"] = table.text("state").copy()
    for row, list_ in names.items():
        start = float(table.column("start")[row])
        limit_s = start + float(table.column("walltime")[row])
        next_s = min((of_nodes.first_start_s(node, start) for node in list_), default=math.inf)
        end_s = start if how == "drop" else min(limit_s, next_s)
        table.numbers["end"][row] = end_s
        table.numbers["run"][row] = end_s - start
        table.texts["state"][row] = "TIMEOUT" if end_s == limit_s else "CANCELLED"


class StaleEvent(NamedTuple):
    """A node event without an end although its node lived later. Times are Unix times."""

    node: str
    down_s: float
    alive_s: float


def stale_events(
    downs: Sequence[DownRow], of_nodes: AttemptsOfNodes | None
) -> dict[int, StaleEvent]:
    """Return the events without an end whose node shows a sign of life later, by position.

    A sign of life is the next event of the node, or the next start of an attempt on it.
    """
    starts: defaultdict[str, list[float]] = defaultdict(list)
    for down in downs:
        starts[down.node].append(down.down_s)
    stale = {}
    for position, down in enumerate(downs):
        if math.isfinite(down.up_s):
            continue
        alive_s = min((at for at in starts[down.node] if at > down.down_s), default=math.inf)
        if of_nodes is not None:
            alive_s = min(alive_s, of_nodes.first_start_s(down.node, down.down_s))
        if math.isfinite(alive_s):
            stale[position] = StaleEvent(down.node, down.down_s, alive_s)
    return stale


def open_nodes(downs: Iterable[DownRow]) -> set[str]:
    """Return the nodes that have an event without an end."""
    return {down.node for down in downs if math.isinf(down.up_s)}


def end_stale(downs: Sequence[DownRow], stale: dict[int, StaleEvent], how: str) -> list[DownRow]:
    """Return the down intervals after a change of stale events.

    ``how`` is a value of `rebat.records.options.Stale`.
    """
    if how == "keep":
        return list(downs)
    return [
        down._replace(up_s=stale[at].alive_s) if at in stale else down
        for at, down in enumerate(downs)
        if not (how == "drop" and at in stale)
    ]


LEAST_USES = 10.0
"""Number of jobs that a node would have run in its absence, from which it counts as absent."""


class Renewed(NamedTuple):
    """Old nodes, last used before the first use of new nodes. Times are Unix times."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    until_s: float
    from_s: float

    def note(self, begin_s: float) -> str:
        """Return the finding. ``begin_s`` is the first submission of the record."""
        until, first = (rounded(at - begin_s) for at in (self.until_s, self.from_s))
        text = (
            f"{exactly(len(self.old), 'node')} ({folded(self.old)}) ran no job after {until}, and "
            f"{exactly(len(self.new), 'node')} ({folded(self.new)}) ran none before {first}: they "
            "were not in service at the same time"
        )
        option = "'rebat failures import --workload' takes them out, and --nodes sets another size"
        return finding(text, option)


def renewed_nodes(table: Rows, attempts: Indices) -> Renewed | None:
    """Return the nodes that were replaced by others during the record, or None.

    A node is absent before its first use, or after its last use, if at its usual rate it would have
    run `LEAST_USES` jobs in this time. Old nodes and new nodes are renewed if all old nodes were
    used before all new nodes.
    """
    lists = table.host_lists
    if not lists.names or not len(attempts):
        return None
    codes, start = lists.codes[attempts], table.column("start")[attempts]
    end = np.fmax(table.column("end")[attempts], start)
    first, last = np.full(len(lists.sizes), np.inf), np.full(len(lists.sizes), -np.inf)
    np.minimum.at(first, codes, start)
    np.maximum.at(last, codes, end)
    count = np.bincount(codes, minlength=len(lists.sizes))
    firsts, lasts = np.full(len(lists.names), np.inf), np.full(len(lists.names), -np.inf)
    np.minimum.at(firsts, lists.nodes, first[lists.owners])
    np.maximum.at(lasts, lists.nodes, last[lists.owners])
    counts = np.bincount(lists.nodes, count[lists.owners], len(lists.names))
    used = [node for node, n in enumerate(counts.tolist()) if n]
    uses = {lists.names[at]: [*map(float, (firsts[at], lasts[at], counts[at]))] for at in used}
    if not uses:
        return None
    begin_s, end_s = min(use[0] for use in uses.values()), max(use[1] for use in uses.values())
    old = {name: u[1] for name, u in uses.items() if _expected(u, end_s - u[1]) >= LEAST_USES}
    new = {name: u[0] for name, u in uses.items() if _expected(u, u[0] - begin_s) >= LEAST_USES}
    if not old or not new or max(old.values()) > min(new.values()):
        return None
    return Renewed(tuple(sorted(old)), tuple(sorted(new)), max(old.values()), min(new.values()))


def _expected(use: list[float], absent_s: float) -> float:
    """Return the number of jobs that a node would have run in a time, at its usual rate."""
    first, last, count = use
    return count / max(last - first, 1.0) * absent_s if count >= LEAST_USES else 0.0
