# SPDX-License-Identifier: Apache-2.0
"""Reservations of nodes, and partitions that share nodes: plans in cells.

A window of a reservation *binds* if the plan without it would use its nodes in its window, for a
job to which the window is closed, or if a job can use it: the job requested it, or it is open to
the job and the job starts now. Other windows change nothing. While windows bind, or if partitions
share nodes, a group is planned in cells (`rebat.kernels.cell_plan`). A new plan follows when a
window ends, and when a window begins that a waiting job requested.

Source: Slurm, "Advanced Resource Reservation Guide" (flags MAINT and DAILY, options Users and
Accounts).
"""

from __future__ import annotations

from typing import Any

from rebat.kernels import cell_plan
from rebat.kernels.counts import NEVER
from rebat.kernels.jit import inlined_rule, rule
from rebat.rules.queue import planned

MOST_IDLE = 1_000
"""Number of times at which a window ends or begins without an effect, before no wake follows.

Repeated windows have no end. If failed nodes keep a job from its window, the run must still end.
"""


@rule
def take_due_wakes(state: Any, now: int) -> None:
    """Note that a plan is due because of a window."""
    n, k = state.n, 0
    for i in range(n.n_wakes):
        if state.wakes[i] <= now:
            n.woken = 1
        else:
            state.wakes[k] = state.wakes[i]
            k += 1
    n.n_wakes = k


@rule
def is_woken(state: Any, now: int) -> bool:
    """Return whether a plan is due because of a window."""
    for i in range(state.n.n_wakes):
        if state.wakes[i] <= now:
            return True
    return False


@rule
def note(state: Any, cells: Any, a: int) -> None:
    """Note what plans in cells need to know about an attempt."""
    job = state.jobs[state.attempts[a].job]
    cells.wall[a] = planned(state.attempts[a].wall, 0)
    cells.who[a], cells.partition[a], cells.places[a] = job.who, job.partition, job.places


@rule
def note_entered(state: Any, cells: Any) -> None:
    """Note what plans in cells need to know about the attempts that enter the queue."""
    for i in range(state.n.n_entered):
        note(state, cells, state.lists[i].entered)


@rule
def next_wake(state: Any, room: Any, cells: Any, now: int) -> int:
    """Return when a window may let an attempt start for which no other plan is due, or NEVER."""
    n, attempts, jobs, longest, begin = state.n, state.attempts, state.jobs, 0, NEVER
    is_idle = n.woken and n.n_running == 0 and not (n.n_entered or n.n_left or n.n_new_holds)
    for p in range(len(state.parts)):
        is_idle = is_idle and not (state.parts[p].failures or state.parts[p].repairs)
    n.n_idle = n.n_idle + 1 if is_idle and n.n_refused == 0 else 0
    cell_plan.find_windows(cells, now)
    if n.n_idle >= MOST_IDLE:
        return NEVER
    for i in range(n.n_entered):
        a = state.lists[i].entered
        longest = max(longest, cells.wall[a])
        size = jobs[attempts[a].job].size
        begin = min(begin, cell_plan.next_requested(cells, a, size, now))
    for p in range(len(state.parts)):
        queue, n_queued = room.queue[p], state.parts[p].n_queued
        longest = max(longest, cell_plan.longest_of(cells, queue, n_queued))
        begin = min(begin, cell_plan.next_begin(cells, queue, room.size[p], n_queued, now))
    if longest == 0:
        return NEVER  # no attempt waits
    return int(min(begin, cell_plan.next_end(cells, now, longest)))


@rule
def request_wake(state: Any, at: int) -> None:
    """Let a plan follow at a time, unless it is already due then."""
    n, is_known = state.n, at in (NEVER, state.n.wake)
    for i in range(n.n_wakes):
        is_known |= state.wakes[i] == at
    if not is_known:
        state.wakes[n.n_wakes] = at
        n.n_wakes += 1
    if at < NEVER:
        n.wake = at


@inlined_rule
def plan_in_cells(
    state: Any, cells: Any, p: int, size: Any, duration: Any, start: Any, before: int,
    n_queue: int, upkeep: int, late: int, now: int,
) -> None:  # fmt: skip
    """Plan a group in cells (see `rebat.kernels.cell_plan.plan`)."""
    n = state.n
    cell_plan.plan(
        cells, p, state.owner, state.down, state.down_in, size, duration, start, before, n_queue,
        upkeep, late, n.depth, n.first_only != 0, now,
    )  # fmt: skip
