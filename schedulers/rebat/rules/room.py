# SPDX-License-Identifier: Apache-2.0
"""How many rows an instant and a plan need at most. Rules never find a table too small.

A driver asks before the inputs of an instant, and `rebat.rules.instant.go_on` before each plan.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels import blocks
from rebat.kernels.jit import rule
from rebat.state import codes
from rebat.state.tables import N_STOPPED


@rule
def n_stopped(rounds: Any) -> int:
    """Return the length of the list of stopped jobs, which has space for each attempt too."""
    if rounds is not None:
        return int(rounds.own[N_STOPPED])
    return 0


@rule
def rows_needed(state: Any, arriving: int, n_lines: int, n_changed: int) -> Any:
    """Return how many rows an instant needs in the tables of a state.

    ``arriving`` is the number of submissions, ``n_lines`` that of the events of nodes, and
    ``n_changed`` that of their nodes. The tables are those of `TABLES`.

    A failure hits a running attempt once in an instant. It causes at most two kills: of this
    attempt and of a victim. Each kill, and the end of each wait, causes a resubmission or a hold.
    A failure in held nodes replaces their record, and possibly the nodes. A move causes three holds
    at most, and more if target nodes return. Nodes leave the pool at most three times in an
    instant, and each time that it is filled adds a node.
    """
    n, n_alive = state.n, arriving + state.n.n_entered + state.n.n_blocked
    for p in range(len(state.parts)):
        n_alive += state.parts[p].n_queued
    hits = n.n_hit + min(n.n_running, n_changed) + (n.n_stops if n.staged else 0)  # hangs end
    kills = n.n_kills + min(n.n_running, 2 * hits + n.n_stops)
    if n.operating:  # operations can stop any attempts
        kills += n.n_running
    if n.preempting:  # a round can stop any attempts, also those that this instant starts
        kills += n.n_running + n_alive
    again = (4 if n.replacing or n.operating else 2) * (
        kills + n.n_waits + n.n_moves
    ) + n.n_moves * n_lines
    changed_holds = 2 * (n.n_waits + n.n_targets) * n_lines
    if n.retries:
        again += n.n_running + n.n_retried
    attempts = n.n_attempts + arriving + again + 1
    attempts = max(attempts, n_stopped(state.rounds) + n.n_running + 1)
    lists = max(
        attempts,
        n_alive + again,
        n.n_left + n.n_running + again,
        2 * hits + n.n_stops + kills,
        n.n_held_hit + changed_holds,
        len(state.jobs) + 1,  # users
    )
    intervals = n.n_nodes_used + 6 * n.n_nodes + n_alive + again
    for i in range(n.n_waits if n_lines else 0):
        if state.waits[i].hold >= 0:
            k = state.attempts[state.waits[i].hold].n_nodes_at
            intervals += 3 * n_lines * (k + n_changed + 1)
    n_drains = 0
    if n.replacing:
        n_spares = min(n.n_spares, n.n_nodes)
        n_drains = 2 * n_spares + 8
        intervals += 8 * (n.n_nodes + n_spares)
        intervals += 2 * n_lines * n.n_nodes if n.n_targets else 0
    if n.excluding:
        n_drains = n_lines + n.most_excluded + 3
        intervals += n_changed + 2 * n.n_nodes
    if n.operating:
        n_drains += 2 * n.n_operations_due
        intervals += n.n_operations_due * (n.n_nodes // 2 + 1)
        intervals += (8 + 2 * n_lines) * n.n_nodes if n.n_targets else 0
    return (
        attempts,
        lists + 1,
        hits + 1,
        kills + 1,
        n.n_stops + hits + 1,
        n.n_waits + kills + 1,
        n.n_holds + again + changed_holds + 1,
        n.n_moves + kills + 1,
        n.n_targets + again + 1,
        n.n_drains + n_drains + 1,
        n.n_calls + again + 4,
        3 * (n_alive + again + hits + n.n_operations_due) + n.n_running + 8,
        intervals,
    )


TABLES = (
    "attempts", "lists", "hits", "kills", "stops", "waits", "hold_records", "moves", "targets",
    "drains", "calls", "out", "nodes",
)  # fmt: skip
"""The tables of a state, in the order of `rows_needed`."""


@rule
def plan_needed(state: Any, p: int, n_more: int) -> Any:
    """Return the length of the queue, the heap, the profiles and the intervals in a plan.

    ``n_more`` is the number of attempts that could enter the queue, in addition to those that have.
    Unless all attempts get reservations, at most one attempt per node is in the plan, and
    ``depth`` others.
    """
    n, part, entered = state.n, state.parts[p], n_more
    for i in range(n.n_entered):
        entered += state.jobs[state.attempts[state.lists[i].entered].job].part == p
    queue = part.n_queued + entered + 1
    held = n.n_running + n.n_waits + n.n_targets + n.n_left
    ends = part.n_planned_ends + n.n_new_holds + held + queue
    reserved = queue if n.depth == codes.ALL else min(queue, n.depth + part.n_nodes)
    points = max(part.base_n, part.plan_n) + 4 * (2 * held + n.n_new_holds + reserved) + 16
    return queue, ends, held + 1, points, n.n_nodes_used + 2 * n.n_nodes + queue + 2


@rule
def table_needed(state: Any, table: Any, n_more: int) -> Any:
    """Return the numbers of slices, blocks and reservations that a plan of named nodes needs.

    Each change of nodes begins a slice at its start and its end, and can divide a block at both
    ends of each interval.
    """
    n, attempts = state.n, state.attempts
    queue = state.parts[0].n_queued + n.n_entered + n_more
    intervals = n.n_changed
    for i in range(n.n_running):
        intervals += 2 * attempts[state.lists[i].running].n_nodes_at
    for i in range(n.n_waits):
        if state.waits[i].hold >= 0:
            intervals += 2 * attempts[state.waits[i].hold].n_nodes_at
    for i in range(n.n_targets):
        intervals += 2 * attempts[state.targets[i].hold].n_nodes_at
    for i in range(n.n_left):
        a = state.lists[i].left
        intervals += attempts[a].n_nodes_at + attempts[a].n_planned_at
    for i in range(n.n_new_holds):
        intervals += 2 * attempts[state.lists[i].new_hold].n_nodes_at
    if n.max_wakes:  # plans in cells choose any free nodes
        intervals += n.n_free
    held = n.n_running + n.n_waits + n.n_targets + n.n_left + n.n_new_holds
    changes = n.n_changed + 2 * held + 2 * queue
    return (
        table.n[blocks.SLICES] + 2 * changes + 4,
        min(table.n[blocks.BLOCKS] + queue + 2 * intervals, n.n_nodes),
        max(queue, table.n[blocks.RESERVED]) + 1,
    )


@rule
def instant_fits(state: Any, arriving: int, n_lines: int, n_changed: int) -> bool:
    """Return whether the tables have the rows that an instant needs."""
    (
        attempts, lists, hits, kills, stops, waits, records, moves, targets, drains, calls, out,
        nodes,
    ) = rows_needed(state, arriving, n_lines, n_changed)  # fmt: skip
    return bool(
        attempts <= len(state.attempts)
        and lists <= len(state.lists)
        and hits <= len(state.hits)
        and kills <= len(state.kills)
        and stops <= len(state.stops)
        and waits <= len(state.waits)
        and records <= len(state.hold_records)
        and moves <= len(state.moves)
        and targets <= len(state.targets)
        and drains <= len(state.drains)
        and calls <= len(state.calls)
        and out <= len(state.out)
        and nodes <= state.nodes.shape[0]
    )


@rule
def plan_fits(state: Any, room: Any, table: Any, n_more: int) -> bool:
    """Return whether the arrays of all plans are large enough for the next plan."""
    for p in range(len(state.parts)):
        queue, ends, overdue, points, nodes = plan_needed(state, p, n_more)
        if (
            queue > len(room.queue[p])
            or ends > len(room.holds[p])
            or overdue > len(room.overdue[p])
            or points > len(room.base_t[p])
            or nodes > state.nodes.shape[0]
        ):
            return False
    if table is not None:
        slices, n_blocks, reserved = table_needed(state, table, n_more)
        if (
            slices > table.t.shape[0]
            or n_blocks > table.first.shape[0] - 1
            or reserved > table.start.shape[0]
        ):
            return False
    return True
