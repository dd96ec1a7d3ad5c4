# SPDX-License-Identifier: Apache-2.0
"""Node replacement of jobs that keep their sizes, and the pool of spare nodes.

A job that lost nodes continues on its surviving nodes and on idle nodes, those of the spare pool
first. If there are too few, it waits first in the queue, or like a new job. The other steps change
sizes of jobs (`rebat.policies.reactions.replacement`). The pool contains drained nodes: the last
ones at the beginning, and idle nodes later. While a job that lost nodes waits, its nodes are
available to the plan.

Source: sections I and III of Prabhakaran, Neumann and Wolf, "Efficient Fault Tolerance through
Dynamic Node Replacement", 2018.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels import pool
from rebat.kernels.jit import rule
from rebat.rules.moves import begin_move
from rebat.rules.nodes import change_drains
from rebat.rules.plan import most_of
from rebat.rules.stops import lost_nodes
from rebat.rules.waits import emit, kill, reject
from rebat.state import codes

# ---- the pool of spare nodes


@rule
def change_spares(state: Any, room: Any, at: int, k: int, up: bool, now: int) -> None:
    """Add nodes to the pool (not ``up``) or remove them. Their ``k`` intervals begin at ``at``."""
    n, count = state.n, change_drains(state, room, at, k, up, codes.FOR_SPARE, now)
    n.n_pool += -count if up else count
    if not up:
        n.lowest_spare = min(n.lowest_spare, state.nodes[at, 0])


@rule
def standby(state: Any, count: int, at: int) -> Any:
    """Write up to ``count`` spare nodes that are up. Return the numbers of intervals and nodes."""
    first = state.n.lowest_spare
    return pool.standby(state.drained, state.failed, first, count, state.nodes[at:])


@rule
def keep_spares(state: Any, room: Any, now: int) -> None:
    """Fill the pool. If a job that lost nodes waits in the queue, empty it (step 5)."""
    n, nodes, at = state.n, state.nodes, state.n.n_nodes_used
    k, releases, missing = 0, n.n_hit_waiting > 0, n.n_spares - n.n_pool
    if n.n_drains == 0:  # there is no pool
        k, releases, n.lowest_spare = 1, False, n.n_nodes
        nodes[at, 0], nodes[at, 1] = max(0, n.n_nodes - n.n_spares), n.n_nodes - 1
    elif releases:
        k, _ = standby(state, n.n_pool, at)
    elif missing > 0 and n.n_free:
        k = pool.highest_free(state.owner, state.down, state.free, missing, nodes[at:])
    if k:
        n.n_nodes_used += k
        change_spares(state, room, at, k, releases, now)


@rule
def reject_large(state: Any) -> None:
    """Reject the new jobs that could start only with spare nodes."""
    n, lists, k = state.n, state.lists, 0
    for i in range(n.n_entered):
        a = lists[i].entered
        row = state.attempts[a]
        if row.number == 0 and state.jobs[row.job].size > most_of(state, row.job):
            reject(state, a, codes.REJECTED)
        else:
            lists[k].entered = a
            k += 1
    n.n_entered = k


# ---- replacement


@rule
def choose_steps(state: Any, n_hit: int, n_idle: int) -> int:
    """Choose the step of each hit attempt. Return how many of the idle nodes replace others."""
    n, hit, attempts, n_taken = state.n, state.hits, state.attempts, 0
    for i in range(n_hit):
        lost = lost_nodes(state, hit[i].attempt)
        step = codes.QUEUED if n.hit_first else codes.QUEUED_LAST
        if lost == 0:  # its nodes failed and returned in the same instant
            step = codes.LOCAL if n.takes_own else codes.IDLE
        elif n.takes_idle and lost <= n_idle - n_taken:
            step = codes.IDLE
            n_taken += lost
        attempts[hit[i].attempt].step = step
    return n_taken


@rule
def replace(state: Any, room: Any, n_hit: int, now: int) -> None:
    """Replace the failed nodes of the hit attempts.

    The steps of all attempts are chosen before any of them is carried out.
    """
    n, nodes, at = state.n, state.nodes, state.n.n_nodes_used
    _, n_ready = standby(state, n.n_pool, at)
    n_taken = choose_steps(state, n_hit, n_ready + n.n_free)
    k, _ = standby(state, min(n_taken, n_ready), at)
    n.n_nodes_used, n_idle = at + k, n_taken - n_ready
    if n_idle > 0:  # before the spare nodes are free too
        n.n_nodes_used += pool.lowest_free(
            state.owner, state.down, state.free, n_idle, nodes[at + k :]
        )
    if k:
        change_spares(state, room, at, k, True, now)
    offset = 0
    for i in range(n_hit):
        a, lost = state.hits[i].attempt, lost_nodes(state, state.hits[i].attempt)
        row = state.attempts[a]
        if row.step == codes.QUEUED:
            continue
        first, k = n.n_nodes_used, 0
        if row.step != codes.QUEUED_LAST:
            own = nodes[row.nodes_at : row.nodes_at + row.n_nodes_at]
            k, _ = pool.usable_of(state.owner, state.down, own, False, nodes[first:])
            for _ in range(lost):
                k = pool.insert(nodes[first:], k, nodes[at, 0] + offset)
                offset += 1
                if nodes[at, 0] + offset > nodes[at, 1]:
                    at, offset = at + 1, 0
        if state.jobs[row.job].once:
            emit(state, codes.REFUSE, a, 0)
            n.n_refused += 1
            continue
        state.hits[i].is_killed = 1
        n.n_nodes_used += k
        if k:
            begin_move(state, a, first, k, codes.NOW, now)
        then = codes.MOVES if k else codes.REGULAR
        kill(state, a, now, codes.NOW, then, codes.NODE_FAILURE, -1)
