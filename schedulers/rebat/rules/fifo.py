# SPDX-License-Identifier: Apache-2.0
"""First come, first served, without backfilling and without a plan; walltimes have no effect.

Without partitions, this is Batsched's ``fcfs``, and Slurm's default (section 4.4 of
Rodríguez-Pascual et al. 2019: "a FIFO queue"). All partitions have one queue, sorted by tier. A job
that names no partition starts in the first partition of its tier that has enough free nodes. An
attempt that does not fit blocks its partitions: only attempts that may run in other partitions
start before it.

Partitions with tiers: jobs of lower tiers are checkpointed when the nodes that they leave are
enough for an attempt that does not fit (section 4.3). They return to their previous place in the
queue. The present plan starts no other attempt.

Reservations: an attempt starts on no node that it could still use in a window that is closed to it.
If its job requested a reservation, it starts only on nodes of this reservation, if it fits in the
window. Other attempts prefer nodes whose windows are open to them now.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels import cell_plan, cores, pool
from rebat.kernels.jit import inlined_rule, rule
from rebat.rules.limits import exceeds
from rebat.rules.starts import lowest_free_of, start_on
from rebat.rules.usage import charge_start
from rebat.state import codes


@rule
def nodes_in(
    state: Any, room: Any, recorder: Any, q: int, a: int, size: int, usable: Any, out: Any
) -> int:  # fmt: skip
    """Choose from nodes of a partition, at least ``size``. Return -1 if they are not suitable.

    The chosen nodes are written as intervals. The result is their number.
    """
    n = state.n
    if n.chooser == codes.LOWEST:
        return int(pool.lowest_of(usable, size, out))
    if n.chooser != codes.ASKED:
        best, backwards = n.chooser == codes.BEST_CORES, state.partitions[q].backwards != 0
        return int(cores.fit(usable, n.cores, size, best, backwards, room.on_nodes, out))
    if recorder is not None:
        return int(recorder.choose(state, usable, a, out))
    return -1


@rule
def choose(state: Any, room: Any, cells: Any, recorder: Any, a: int, now: int, out: Any) -> int:
    """Choose from the usable nodes for an attempt that starts now. Return -1 if it does not fit.

    The chosen nodes are written as intervals. The result is their number.
    """
    size, usable, inside = state.jobs[state.attempts[a].job].size, room.usable, room.inside
    if cells is None:
        return nodes_in(state, room, recorder, 0, a, size, usable, out)
    cell_plan.close(cells, a, size, now, usable)
    for preferred in (True, False):
        for q in range(len(state.partitions)):
            if not cell_plan.is_open(cells, state.blocked_by, q, a):
                continue
            if cell_plan.find_inside(cells, q, a, size, preferred, now, usable, inside) < size:
                continue
            k = nodes_in(state, room, recorder, q, a, size, inside, out)
            if k >= 0:
                return k
    return -1


@inlined_rule
def find_nodes(
    state: Any, room: Any, cells: Any, recorder: Any, p: int, a: int, size: int, now: int
) -> int:  # fmt: skip
    """Choose from the free nodes for an attempt, as `choose` does. Write them as new intervals."""
    out = state.nodes[state.n.n_nodes_used :]
    if cells is None and state.n.chooser == codes.LOWEST:
        return lowest_free_of(state, p, size, out)
    pool.find_free(state.owner, state.down, room.usable)
    return choose(state, room, cells, recorder, a, now, out)


@rule
def can_preempt(state: Any, room: Any, cells: Any, recorder: Any, a: int, now: int) -> bool:
    """Return whether jobs of lower tiers make room for an attempt. Only a session can stop them."""
    if recorder is not None:
        return bool(recorder.makes_room(state, room, cells, a, now))
    return False


@rule
def serve(
    state: Any, room: Any, cells: Any, recorder: Any, p: int, size: Any, n_queue: int, now: int
) -> int:  # fmt: skip
    """Start the attempts of a queue that fit, in order. Write and count their positions."""
    n, queue, visible, blocked_by = state.n, room.queue[p], room.visible, state.blocked_by
    at, n_due, makes_room = 0, 0, False
    blocked_by[:] = 0
    while at < n_queue:
        if cells is not None:
            at = cell_plan.next_open(cells, blocked_by, at, n_queue)
        elif blocked_by[0]:
            at = n_queue
        if at == n_queue:
            break
        a = queue[visible[3, at] if n.limited else at]
        k, first = -1, n.n_nodes_used
        if n.accounted and exceeds(state, recorder, a):
            # it blocks no partition: another plan follows without it (see `charge_due`)
            n.is_exceeded, state.parts[p].withdrawn = n.limited, 1
            return n_due
        if size[at] <= state.parts[p].n_free and not makes_room:
            k = find_nodes(state, room, cells, recorder, p, a, size[at], now)
        if k >= 0:
            if n.accounted:
                charge_start(state, recorder, a, size[at], now)
            start_on(state, a, p, first, k, size[at], now)
            room.positions[n_due] = at
            n_due += 1
        else:
            if n.tiered and not makes_room:
                makes_room = can_preempt(state, room, cells, recorder, a, now)
            if cells is not None:
                cell_plan.block(cells, blocked_by, a)
            else:
                blocked_by[0] = a + 1
        at += 1
    return n_due
