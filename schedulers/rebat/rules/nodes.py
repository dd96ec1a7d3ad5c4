# SPDX-License-Identifier: Apache-2.0
"""Rules: nodes that become usable or unusable, because they fail, are drained or return."""

from __future__ import annotations

from typing import Any

from rebat.kernels import pool
from rebat.kernels.jit import inlined_rule, rule
from rebat.state import codes


@inlined_rule
def change_use(state: Any, room: Any, node: int, up: bool) -> None:
    """Note that a node failed, was drained, or returned, and whether it is usable now."""
    n, p = state.n, state.home[node]
    if not room.marked[node]:
        room.marked[node] = True
        room.changed[n.n_changed] = node
        n.n_changed += 1
    if up:
        state.parts[p].repairs = 1
    else:
        state.parts[p].failures = 1
    unusable = state.failed[node] or state.drained[node]
    if unusable == state.down[node]:
        return
    state.down[node] = unusable
    state.down_in[node // pool.BLOCK] += 1 if unusable else -1
    if state.owner[node] == codes.FREE:
        more = -1 if unusable else 1
        n.n_free += more
        state.parts[p].n_free += more
        state.free[node // pool.BLOCK] += more


@inlined_rule
def is_ordered(operations: Any, node: int) -> bool:
    """Return whether an operation has drained a node."""
    if operations is not None:
        return bool(operations.drained[node])
    return False


@inlined_rule
def is_excluded(lemons: Any, node: int) -> bool:
    """Return whether a node is excluded."""
    if lemons is not None:
        return bool(lemons.until[node] > 0)
    return False


@rule
def change_drains(state: Any, room: Any, at: int, k: int, up: bool, why: int, now: int) -> int:
    """Drain nodes (not ``up``) for a reason, or return them. Their ``k`` intervals begin at ``at``.

    Return their number. A node returns when no reason is left.
    """
    row, count = state.drains[state.n.n_drains], 0
    row.at, row.up, row.why, row.nodes_at, row.n_nodes_at = now, up, why, at, k
    state.n.n_drains += 1
    for i in range(at, at + k):
        for node in range(state.nodes[i, 0], state.nodes[i, 1] + 1):
            drained = is_ordered(state.operations, node) or is_excluded(state.lemons, node)
            drain(state, room, node, drained or not up, up)
        count += state.nodes[i, 1] + 1 - state.nodes[i, 0]
    return int(count)


@rule
def drain(state: Any, room: Any, node: int, drained: bool, up: bool) -> None:
    """Add (not ``up``) or remove a reason for the drain of a node, which is then drained or not."""
    state.drained[node] = drained
    change_use(state, room, node, up)
