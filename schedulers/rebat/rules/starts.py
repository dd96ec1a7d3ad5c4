# SPDX-License-Identifier: Apache-2.0
"""Starts of attempts."""

from __future__ import annotations

from typing import Any

from rebat.kernels import pool
from rebat.kernels.jit import inlined_rule, rule
from rebat.rules.images import note_start
from rebat.rules.waits import emit, note_progress
from rebat.state import codes


@rule
def lowest_free_of(state: Any, p: int, count: int, out: Any) -> int:
    """Write the lowest free nodes of a partition as intervals, and count the intervals."""
    first, end = state.parts[p].first_node, state.parts[p].end_node
    block, last = first // pool.BLOCK, (end + pool.BLOCK - 1) // pool.BLOCK
    k = pool.lowest_free(
        state.owner[first:end], state.down[first:end], state.free[block:last], count, out
    )
    for i in range(k if first else 0):
        out[i, 0] += first
        out[i, 1] += first
    return k


@inlined_rule
def start_on(state: Any, a: int, p: int, first: int, k: int, size: int, now: int) -> None:
    """Start an attempt on free nodes, whose ``k`` intervals begin at ``first``."""
    n, attempts = state.n, state.attempts
    pool.assign(state.owner, state.free, state.nodes[first : first + k], a + 1)
    n.n_free -= size
    state.parts[p].n_free -= size
    attempts[a].nodes_at, attempts[a].n_nodes_at = first, k
    attempts[a].start = now
    attempts[a].size_of_hold = size
    n.n_hit_waiting -= attempts[a].priority >= codes.FAILED
    if state.jobs[attempts[a].job].progress == 0:
        note_progress(state, attempts[a].job, codes.STARTED)
    n.n_nodes_used += k
    attempts[a].place = n.n_running
    state.lists[n.n_running].running = a
    n.n_running += 1
    n.news = 1
    note_start(state.operations, a)
    emit(state, codes.START, a, 0)
