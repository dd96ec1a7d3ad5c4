# SPDX-License-Identifier: Apache-2.0
"""Steps of a plan in which Python decides which attempts start, and on how many nodes.

`rebat.rules.plan` updates the reservations of the queue. Then Python adds new attempts to the queue
(`enter`), and starts attempts. The next plan begins with `book`. Machine code has no such plans.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels import counts
from rebat.kernels.deep import reserve
from rebat.kernels.jit import rule
from rebat.rules.plan import end_at, enqueue, leave_queue
from rebat.rules.predict import predicted
from rebat.rules.queue import planned
from rebat.rules.usage import charge
from rebat.state import codes


@rule
def enter(state: Any, room: Any, p: int, a: int, now: int) -> None:
    """Add an attempt to the queue. If all attempts get reservations, plan those that change."""
    part, plan_t, plan_f = state.parts[p], room.plan_t[p], room.plan_f[p]
    size, duration, start = room.size[p], room.duration[p], room.start[p]
    at, part.n_queued = enqueue(state, room, p, a, part.n_queued, now)
    if state.n.depth != codes.ALL:
        return
    if at < part.n_queued - 1:  # the reservations behind it change, so all are made again
        counts.copy_profile(room.base_t[p], room.base_f[p], part.base_n, plan_t, plan_f)
        at, part.plan_n, part.opened = 0, part.base_n, now
    part.plan_n = reserve(
        plan_t, plan_f, part.plan_n, size, duration, start, at, part.n_queued, room.scratch
    )


@rule
def book(state: Any, room: Any, p: int, a: int) -> bool:
    """Record an attempt that Python started in the last plan of a group.

    An attempt that starts on another number of nodes than its job requests has a new row, so the
    queue is searched for its job. Return whether its size is the planned one.
    """
    attempts, part = state.attempts, state.parts[p]
    n_planned = leave_queue(state, room, p, attempts[a].job)
    attempts[a].predicted = predicted(state, a)
    until = attempts[a].start + planned(attempts[a].predicted, state.n.margin)
    n_nodes = attempts[a].held_size = attempts[a].size_of_hold
    part.base_n = counts.change(
        room.base_t[p], room.base_f[p], part.base_n, part.planned, until, -n_nodes
    )
    part.n_planned_ends = end_at(state, room.holds[p], part.n_planned_ends, a, until)
    if state.n.accounted:
        charge(state, a, n_nodes, attempts[a].start)
    return bool(n_planned == n_nodes)
