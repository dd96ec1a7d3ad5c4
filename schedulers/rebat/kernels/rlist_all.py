# SPDX-License-Identifier: Apache-2.0
"""R-LIST-Q: all waiting jobs have reservations, recomputed at every completion (RR-9296).

Most reservations do not affect which jobs start now. The kernel computes only the reservations that
do affect it. Their times are the same as if all reservations were computed. This is correct for
three reasons:

- Consider the first window of a job in a profile that includes only *some* of the other jobs. It is
  a lower bound: the reservation of the job does not begin earlier. A bound stays valid when
  reservations are added, because added reservations do not move others.
- Consider the jobs ahead in the queue whose reservations are unknown. If all their bounds are at or
  after the end of this window, none of them uses processors within it. Then the window *is* the
  reservation. Therefore, reservations can be computed in any order. A job that fits now depends
  only on jobs that may overlap its window. Those jobs depend on jobs that may overlap their
  windows.
- A new round repeats the reservations of all jobs ahead of the first failed job. Times are exact,
  so the jobs ahead and the running jobs use exactly the planned processors and times. Jobs behind
  them that have already started do not overlap these reservations. The same is true for the bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rebat.kernels.jit import kernel, loop, step
from rebat.kernels.resilient_state import (
    ABSENT,
    NEVER,
    Ints,
    JobAgenda,
    NodeProfile,
    Queue,
    ScenarioBatch,
    carve,
    fill_queue,
    forget_past,
    insert,
    new_agenda,
    new_profile,
    new_queue,
    next_fit,
    next_waiting,
    note,
    push,
    rebuild,
    remove,
)
from rebat.kernels.rlist import complete


class Round(NamedTuple):
    """The state of a round of reservations.

    Attributes
    ----------
    waiting : Queue
        Jobs with unknown reservations.
    bounds : int64[n]
        Lower bounds of the starts of the unknown reservations. `NEVER` for all other jobs.
    reserved : JobAgenda
        The known reservations, by start.
    profile : NodeProfile
        Processors not used by running attempts and known reservations.
    pending : int64[n]
        Stack of jobs whose reservations are being computed. Each may overlap the job below it.
    limits : int64[n]
        A time for each pending job. If the reservation of the job begins at or after this time, the
        job below it in the stack does not depend on it.
    """

    waiting: Queue
    bounds: Ints
    reserved: JobAgenda
    profile: NodeProfile
    pending: Ints
    limits: Ints


@step
def first_window(profile: NodeProfile, size: int, length: int, limit: int) -> int:
    """Return the start of the first window of an attempt, if it is before `limit`.

    Otherwise, return a lower bound of this start that is at or after `limit`.
    """
    start = int(profile.times[0])
    place = 0
    while start < limit:
        end = profile.times[place + 1]
        start = end if profile.free[place] < size else start
        place += 1
        if end - start >= length:
            break
    return start


@step
def refine(batch: ScenarioBatch, plan: Round, job: int, limit: int) -> bool:
    """Recompute the bound of `job`. Return whether its reservation may begin before `limit`."""
    plan.bounds[job] = first_window(plan.profile, batch.sizes[job], batch.times[job], limit)
    return bool(plan.bounds[job] < limit)


@step
def first_in_the_way(batch: ScenarioBatch, plan: Round, head: int, job: int) -> int:
    """Return the first job ahead of `job` whose reservation may begin before `job`'s window ends.

    If there is none, return `job`.
    """
    end = plan.bounds[job] + batch.times[job]
    for ahead in range(head, job):
        if plan.bounds[ahead] < end and refine(batch, plan, ahead, end):
            return ahead
    return job


@step
def settle(batch: ScenarioBatch, plan: Round, job: int) -> None:
    """Reserve the first window of `job`, which begins at its bound."""
    start = plan.bounds[job]
    carve(plan.profile, start, batch.sizes[job], batch.times[job])
    push(plan.reserved, job, start)
    remove(plan.waiting, job)
    plan.bounds[job] = NEVER


@step
def ask(batch: ScenarioBatch, plan: Round, head: int, job: int, now: int) -> None:
    """Reserve the window of `job` if it starts now, after the reservations that can delay it."""
    depth = 0
    plan.pending[0], plan.limits[0] = job, now + 1
    may_begin = refine(batch, plan, job, now + 1)
    while depth >= 0:
        job = plan.pending[depth]
        ahead = first_in_the_way(batch, plan, head, job) if may_begin else job
        if ahead < job:
            depth += 1
            plan.pending[depth] = ahead
            plan.limits[depth] = plan.bounds[job] + batch.times[job]
            continue
        if may_begin:
            settle(batch, plan, job)
        depth -= 1
        if depth >= 0:  # the profile has changed
            may_begin = refine(batch, plan, plan.pending[depth], plan.limits[depth])


@step
def begin_due(batch: ScenarioBatch, reserved: JobAgenda, running: JobAgenda, now: int) -> None:
    """Start the attempts whose reservations begin now."""
    while reserved.n[0] > 0 and reserved.times[reserved.n[0] - 1] == now:
        reserved.n[0] -= 1
        job = reserved.jobs[reserved.n[0]]
        push(running, job, now + batch.times[job])
        note(batch, job, now)


@step
def cancel(batch: ScenarioBatch, plan: Round, running: JobAgenda, first: int, now: int) -> None:
    """Delete the reservations and bounds of the jobs from place `first` on.

    The remaining reservations are entered into the profile again, in order of time. Each of them
    begins at the end of an attempt.
    """
    p, reserved = batch.sizes, plan.reserved
    rebuild(plan.profile, running, p, now, batch.n_procs)
    n_reserved = 0
    for i in range(reserved.n[0]):
        job = reserved.jobs[i]
        if job < first:
            reserved.times[n_reserved], reserved.jobs[n_reserved] = reserved.times[i], job
            n_reserved += 1
        else:
            insert(plan.waiting, job, p[job])
    reserved.n[0] = n_reserved
    for i in range(n_reserved - 1, -1, -1):
        job = reserved.jobs[i]
        carve(plan.profile, reserved.times[i], p[job], batch.times[job])
    for job in range(first, p.size):
        plan.bounds[job] = now if plan.waiting.sizes[job] < ABSENT else NEVER


@step
def play(batch: ScenarioBatch, plan: Round, running: JobAgenda, left: Ints) -> int:
    """Simulate one scenario from an empty machine; return the makespan."""
    p, n, free = batch.sizes, batch.sizes.size, plan.profile.free
    fill_queue(plan.waiting, p)
    now, head = 0, 0
    cancel(batch, plan, running, 0, now)
    while True:
        head = next_waiting(plan.waiting, head)
        job = next_fit(plan.waiting, head, free[0])
        while job < n:
            if plan.bounds[job] <= now:
                ask(batch, plan, head, job, now)
            job = next_fit(plan.waiting, job + 1, free[0])
        begin_due(batch, plan.reserved, running, now)
        if running.n[0] == 0:
            return now
        now, _, first_failed = complete(plan.waiting, running, p, left)
        if first_failed < n:
            head = min(head, first_failed)
            cancel(batch, plan, running, first_failed, now)
        else:
            forget_past(plan.profile, now)


@loop
def play_all(batch: ScenarioBatch, plan: Round, running: JobAgenda, left: Ints) -> None:
    """Simulate all scenarios of a batch."""
    for scenario in range(len(batch.failures)):
        for job in range(left.size):
            left[job] = batch.failures[scenario, job]
        batch.makespans[scenario] = play(batch, plan, running, left)


@kernel
def conservative(batch: ScenarioBatch) -> None:
    """Simulate R-LIST-Q: all waiting jobs have reservations, recomputed at every completion."""
    n = batch.sizes.size
    ints = np.empty((4, n), np.int64)
    plan = Round(new_queue(n), ints[0], new_agenda(n), new_profile(n), ints[1], ints[2])
    play_all(batch, plan, new_agenda(n), ints[3])
