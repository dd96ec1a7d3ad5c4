# SPDX-License-Identifier: Apache-2.0
"""R-LIST-Q: all waiting jobs have reservations, made anew at every completion (RR-9296).

Most reservations say nothing about who starts now. Only those are worked out that do, each at the
date that a full round would give it, for these reasons:

- The first window of a job in the profile of *some* of the others is a bound: its reservation
  does not begin before. Nobody's reservation moves when others become known, as all of them fit
  beside each other, so that a bound stays true.
- When all jobs ahead whose reservations are not known have bounds from the end of that window on,
  none of them takes anything within it: it *is* the reservation. So reservations become known out
  of turn, and a job that fits now waits for those alone that may come in its way, and these for
  those in theirs.
- A fresh round gives every job ahead of all failed ones the reservation that it had: times are
  exact, so the jobs ahead of it and the running ones take what they were planned to take, and
  what has started from behind it was planned around its reservation. The same holds for bounds.
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
    """What is known of a round of reservations.

    Attributes
    ----------
    waiting : Queue
        The jobs whose reservations are not known.
    bounds : int64[n]
        Dates before which their reservations do not begin; `NEVER` at the other places.
    reserved : JobAgenda
        The known reservations, by their starts.
    profile : NodeProfile
        What running attempts and known reservations leave.
    asked : int64[n]
        The jobs whose reservations are being worked out, each in the way of the one before.
    limits : int64[n]
        The date from which on each of them is not in the way.
    """

    waiting: Queue
    bounds: Ints
    reserved: JobAgenda
    profile: NodeProfile
    asked: Ints
    limits: Ints


@step
def first_window(profile: NodeProfile, size: int, length: int, limit: int) -> int:
    """Where the first window for an attempt begins, if that is before `limit`.

    Otherwise some date from `limit` on before which none begins.
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
    """Raise the bound of a job; whether its reservation may still begin before `limit`."""
    plan.bounds[job] = first_window(plan.profile, batch.sizes[job], batch.times[job], limit)
    return bool(plan.bounds[job] < limit)


@step
def first_in_the_way(batch: ScenarioBatch, plan: Round, head: int, job: int) -> int:
    """The first job ahead whose reservation may begin before the window of `job` ends.

    It is `job` itself if there is none.
    """
    end = plan.bounds[job] + batch.times[job]
    for ahead in range(head, job):
        if plan.bounds[ahead] < end and refine(batch, plan, ahead, end):
            return ahead
    return job


@step
def settle(batch: ScenarioBatch, plan: Round, job: int) -> None:
    """The reservation of a job, whose first window begins at its bound, is there."""
    start = plan.bounds[job]
    carve(plan.profile, start, batch.sizes[job], batch.times[job])
    push(plan.reserved, job, start)
    remove(plan.waiting, job)
    plan.bounds[job] = NEVER


@step
def ask(batch: ScenarioBatch, plan: Round, head: int, job: int, now: int) -> None:
    """Settle a job if it starts now, and what must be known to decide that."""
    depth = 0
    plan.asked[0], plan.limits[0] = job, now + 1
    may_begin = refine(batch, plan, job, now + 1)
    while depth >= 0:
        job = plan.asked[depth]
        ahead = first_in_the_way(batch, plan, head, job) if may_begin else job
        if ahead < job:
            depth += 1
            plan.asked[depth] = ahead
            plan.limits[depth] = plan.bounds[job] + batch.times[job]
            continue
        if may_begin:
            settle(batch, plan, job)
        depth -= 1
        if depth >= 0:  # the profile has changed since
            may_begin = refine(batch, plan, plan.asked[depth], plan.limits[depth])


@step
def begin_due(batch: ScenarioBatch, reserved: JobAgenda, running: JobAgenda, now: int) -> None:
    """The attempts that are reserved for now start."""
    while reserved.n[0] > 0 and reserved.dates[reserved.n[0] - 1] == now:
        reserved.n[0] -= 1
        job = reserved.jobs[reserved.n[0]]
        push(running, job, now + batch.times[job])
        note(batch, job, now)


@step
def cancel(batch: ScenarioBatch, plan: Round, running: JobAgenda, first: int, now: int) -> None:
    """Nothing is known any more of the jobs from place `first` on.

    The other reservations are carved again in order of time: each begins at the end of an attempt.
    """
    p, reserved = batch.sizes, plan.reserved
    rebuild(plan.profile, running, p, now, batch.n_procs)
    kept = 0
    for i in range(reserved.n[0]):
        job = reserved.jobs[i]
        if job < first:
            reserved.dates[kept], reserved.jobs[kept] = reserved.dates[i], job
            kept += 1
        else:
            insert(plan.waiting, job, p[job])
    reserved.n[0] = kept
    for i in range(kept - 1, -1, -1):
        job = reserved.jobs[i]
        carve(plan.profile, reserved.dates[i], p[job], batch.times[job])
    for job in range(first, p.size):
        plan.bounds[job] = now if plan.waiting.sizes[job] < ABSENT else NEVER


@step
def play(batch: ScenarioBatch, plan: Round, running: JobAgenda, left: Ints) -> int:
    """One scenario, from an empty machine; returns the makespan."""
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
    """All scenarios of a batch."""
    for scenario in range(len(batch.failures)):
        for job in range(left.size):
            left[job] = batch.failures[scenario, job]
        batch.makespans[scenario] = play(batch, plan, running, left)


@kernel
def conservative(batch: ScenarioBatch) -> None:
    """R-LIST-Q."""
    n = batch.sizes.size
    ints = np.empty((4, n), np.int64)
    plan = Round(new_queue(n), ints[0], new_agenda(n), new_profile(n), ints[1], ints[2])
    play_all(batch, plan, new_agenda(n), ints[3])
