# SPDX-License-Identifier: Apache-2.0
"""Nodes that were not part of the machine during the entire record, because nodes were renewed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rebat.core.counted import counted
from rebat.core.units import format_duration
from rebat.records.attempts import Indices
from rebat.records.hosts import folded
from rebat.records.judge import finding
from rebat.records.table import Rows

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
        until, first = (format_duration(at - begin_s) for at in (self.until_s, self.from_s))
        text = (
            f"{counted(len(self.old), 'node')} ({folded(self.old)}) ran no job after {until}, and "
            f"{counted(len(self.new), 'node')} ({folded(self.new)}) ran none before {first}: they "
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
