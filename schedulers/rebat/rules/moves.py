# SPDX-License-Identifier: Apache-2.0
"""Rules: moves of stopped jobs to other nodes.

A move begins when the stop of an attempt is decided. The free nodes among its target nodes are held
immediately, the others when the attempts on them end, so that no plan uses them. When all kills are
acknowledged, the job starts on its target nodes. If one of them has failed since, it is requeued.

    ============  ================  ==========================================
    move          becomes           by
    ============  ================  ==========================================
    -             begun             begin_move
    begun         acknowledged      note_acknowledged
    begun         -                 drop_move (for example, the attempt is faster than its kill)
    acknowledged  -                 complete_moves (end_move, then start or requeue)
    ============  ================  ==========================================
"""

from __future__ import annotations

from typing import Any

from rebat.kernels import pool
from rebat.kernels.jit import rule
from rebat.rules.images import note_stay
from rebat.rules.starts import start_on
from rebat.rules.waits import (
    emit,
    hold,
    let_go,
    next_attempt,
    remove_row,
    requeue,
    resume,
)
from rebat.state import codes


@rule
def begin_move(state: Any, a: int, first: int, k: int, timing: int, now: int) -> None:
    """Begin the move of an attempt to the nodes of ``k`` intervals, which begin at ``first``.

    ``timing`` is that of its stop.
    """
    n, move = state.n, state.moves[state.n.n_moves]
    move.attempt, move.nodes_at, move.n_nodes_at = a, first, k
    move.decided, move.timing, move.place = now, timing, 0
    n.n_moves += 1
    hold_targets_of(state, n.n_moves - 1, now)


@rule
def move_of(state: Any, a: int) -> int:
    """Return the row of the move of an attempt, or -1 if it does not move."""
    for m in range(state.n.n_moves):
        if state.moves[m].attempt == a:
            return m
    return -1


@rule
def hold_targets_of(state: Any, m: int, now: int) -> None:
    """Hold the usable and free target nodes of a move."""
    n, move, at = state.n, state.moves[m], state.n.n_nodes_used
    first, k = move.nodes_at, move.n_nodes_at
    k, size = pool.usable_of(
        state.owner, state.down, state.nodes[first : first + k], True, state.nodes[at:]
    )
    if size == 0:
        return
    n.n_nodes_used += k
    a, target = move.attempt, state.targets[n.n_targets]
    target.attempt = a
    target.hold = hold(state, state.attempts[a].job, at, k, size, state.attempts[a].wall, now)
    n.n_targets += 1


@rule
def hold_targets(state: Any, now: int) -> None:
    """Hold the target nodes that an attempt released."""
    for m in range(state.n.n_moves):
        hold_targets_of(state, m, now)


@rule
def let_go_targets(state: Any, a: int, now: int) -> None:
    """Release the target nodes that are held for an attempt."""
    n, k = state.n, 0
    for i in range(n.n_targets):
        h, mover = state.targets[i].hold, state.targets[i].attempt
        if mover == a:
            let_go(state, h, now)
        else:
            state.targets[k].hold, state.targets[k].attempt = h, mover
            k += 1
    n.n_targets = k


@rule
def note_acknowledged(state: Any, a: int) -> None:
    """Note that the kill of an attempt that moves is acknowledged. Moves complete in this order."""
    state.n.n_acknowledged += 1
    state.moves[move_of(state, a)].place = state.n.n_acknowledged


@rule
def end_move(state: Any, m: int, now: int) -> int:
    """Release the held target nodes of a move, and remove it.

    Return the first target node that is not free then, or -1.
    """
    first, k = state.moves[m].nodes_at, state.moves[m].n_nodes_at
    let_go_targets(state, state.moves[m].attempt, now)
    state.n.n_moves = remove_row(state.moves, state.n.n_moves, m)
    nodes = state.nodes[first : first + k]
    return int(pool.first_obstacle(state.owner, state.down, state.free, nodes))


@rule
def drop_move(state: Any, a: int, now: int) -> None:
    """Cancel the move of an attempt, if it has one."""
    m = move_of(state, a)
    if m >= 0:
        end_move(state, m, now)


@rule
def complete_moves(state: Any, now: int) -> None:
    """Start the attempts that move. All kills are acknowledged."""
    n = state.n
    for place in range(1, n.n_acknowledged + 1):
        for m in range(n.n_moves):
            if state.moves[m].place == place:
                complete_move(state, m, now)
                break
    n.n_acknowledged = 0


@rule
def complete_move(state: Any, m: int, now: int) -> None:
    """Start an attempt on its target nodes. If one of them is not free, requeue it."""
    n, attempts, nodes, move = state.n, state.attempts, state.nodes, state.moves[m]
    a, first, k, decided = move.attempt, move.nodes_at, move.n_nodes_at, move.decided
    timing, news = move.timing, n.news
    obstacle = end_move(state, m, now)
    if obstacle >= 0:
        emit(state, codes.STAY, a, obstacle)
        note_stay(state.operations, a, obstacle, now)
        n.n_refused += 1
        n.news = 1
        requeue(state, True, a, decided, timing, codes.FAILED, now)
        return
    b, at = next_attempt(state, a, codes.FAILED, now), n.n_nodes_used
    resume(state, True, a, b, decided, timing)
    emit(state, codes.REGISTER, b, a)
    for i in range(k):
        nodes[at + i, 0], nodes[at + i, 1] = nodes[first + i, 0], nodes[first + i, 1]
    job = state.jobs[attempts[a].job]
    start_on(state, b, job.part, at, k, job.size, now)
    n.news = news  # a move is no news
    state.lists[n.n_new_holds].new_hold = b
    n.n_new_holds += 1
