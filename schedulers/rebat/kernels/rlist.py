# SPDX-License-Identifier: Apache-2.0
"""R-LIST: list scheduling of rigid jobs with silent errors (RR-9296, Section 4.1, Algorithm 1).

Each way to make reservations has a kernel. It simulates an entire batch of failure scenarios.
`depth` is the number m of reservations per round. If `easy_head` is set, only jobs that cannot
start now count towards `depth`.

All jobs are released at time 0. An error is detected at the end of the attempt. The failed job then
returns to its place in the queue. *All* attempts that end at the same time complete before the
round of reservations and backfilling at this time. Therefore, the result depends only on the queue
order.

R-LIST-Q, where all waiting jobs have reservations, is in `rebat.kernels.rlist_all`. R-SHELF
(Section 4.3, Algorithm 2) is at the end of this module.
"""

from __future__ import annotations

import numpy as np

from rebat.kernels.jit import inlined, kernel
from rebat.kernels.resilient_state import (
    NEVER,
    Ints,
    JobAgenda,
    Queue,
    ScenarioBatch,
    carve,
    fill_queue,
    fits_now,
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
    reserve,
)


@inlined
def begin(batch: ScenarioBatch, queue: Queue, running: JobAgenda, job: int, start: int) -> None:
    """Start an attempt of a waiting job at time `start`, which may be in the future."""
    remove(queue, job)
    push(running, job, start + batch.times[job])
    note(batch, job, start)


@inlined
def complete(queue: Queue, running: JobAgenda, p: Ints, left: Ints) -> tuple[int, int, int]:
    """End all attempts that end at the next completion time. Failed jobs return to the queue.

    The results are the time, the number of freed processors, and the first place in the queue whose
    job failed (n if no job failed).
    """
    place = running.n[0] - 1
    now = running.times[place]
    freed, first_failed = 0, p.size
    while place >= 0 and running.times[place] == now:
        job = running.jobs[place]
        freed += p[job]
        if left[job] > 0:
            left[job] -= 1
            insert(queue, job, p[job])
            first_failed = min(first_failed, job)
        place -= 1
    running.n[0] = place + 1
    return now, freed, first_failed


@kernel
def greedy(batch: ScenarioBatch) -> None:
    """Simulate R-LIST-0 (GREEDY): there are no reservations, and every job that fits starts."""
    p, n = batch.sizes, batch.sizes.size
    queue, running, left = new_queue(n), new_agenda(n), np.empty(n, np.int64)
    for scenario in range(len(batch.failures)):
        fill_queue(queue, p)
        left[:] = batch.failures[scenario]
        now, free = 0, batch.n_procs
        while True:
            job = next_fit(queue, 0, free)
            while job < n:
                free -= p[job]
                begin(batch, queue, running, job, now)
                job = next_fit(queue, job + 1, free)
            if running.n[0] == 0:
                break
            now, freed, _ = complete(queue, running, p, left)
            free += freed
        batch.makespans[scenario] = now


@inlined
def shadow(running: JobAgenda, p: Ints, free: int, size: int) -> tuple[int, int]:
    """Return the time at which `size` processors will be free, and how many more will be free then.

    Since there are no other reservations, the number of free processors only increases. A
    backfilled job does not delay the reservation if it ends by this time or uses only these
    additional processors.
    """
    place = running.n[0]
    time = -1
    while place > 0 and (free < size or running.times[place - 1] == time):
        place -= 1
        time = running.times[place]
        free += p[running.jobs[place]]
    return time, free - size


@kernel
def easy(batch: ScenarioBatch, easy_head: bool) -> None:
    """Simulate R-LIST-1: one reservation per round, recomputed at every completion.

    In Algorithm 1 the first job of the queue gets the reservation even if it can start now. If it
    starts, no reservation protects the second job in this round. With `easy_head`, the first job
    that cannot start gets the reservation.
    """
    t, p, n = batch.times, batch.sizes, batch.times.size
    queue, running, left = new_queue(n), new_agenda(n), np.empty(n, np.int64)
    for scenario in range(len(batch.failures)):
        fill_queue(queue, p)
        left[:] = batch.failures[scenario]
        now, free = 0, batch.n_procs
        while True:
            head = next_waiting(queue, 0)
            while head < n and p[head] <= free:
                free -= p[head]
                begin(batch, queue, running, head, now)
                if not easy_head:
                    break
                head = next_waiting(queue, head + 1)
            time, extra = NEVER, 0
            if head < n and queue.sizes[head] <= batch.n_procs:  # this job has the reservation
                time, extra = shadow(running, p, free, p[head])
            job = next_fit(queue, head + 1, free)
            while job < n:
                before = now + t[job] <= time
                if before or p[job] <= extra:
                    free -= p[job]
                    if not before:
                        extra -= p[job]
                    begin(batch, queue, running, job, now)
                job = next_fit(queue, job + 1, free)
            if running.n[0] == 0:
                break
            now, freed, _ = complete(queue, running, p, left)
            free += freed
        batch.makespans[scenario] = now


@kernel
def reserving(batch: ScenarioBatch, depth: int, easy_head: bool) -> None:
    """Simulate R-LIST with any m: at every completion, make m new reservations, then backfill."""
    t, p, n = batch.times, batch.sizes, batch.times.size
    queue, running, profile = new_queue(n), new_agenda(n), new_profile(n)
    left = np.empty(n, np.int64)
    for scenario in range(len(batch.failures)):
        fill_queue(queue, p)
        left[:] = batch.failures[scenario]
        now = 0
        while True:
            rebuild(profile, running, p, now, batch.n_procs)
            n_reserved, job = 0, next_waiting(queue, 0)
            while job < n and n_reserved < depth:
                start = reserve(profile, p[job], t[job])
                if start == now:
                    begin(batch, queue, running, job, now)
                if start > now or not easy_head:
                    n_reserved += 1
                job = next_waiting(queue, job + 1)
            job = next_fit(queue, job, profile.free[0])
            while job < n:
                if fits_now(profile, p[job], t[job]):
                    carve(profile, now, p[job], t[job])
                    begin(batch, queue, running, job, now)
                job = next_fit(queue, job + 1, profile.free[0])
            if running.n[0] == 0:
                break
            now, _, _ = complete(queue, running, p, left)
        batch.makespans[scenario] = now


@kernel
def stale(batch: ScenarioBatch, depth: int) -> None:
    """Simulate R-LIST with stale reservations, which are never cancelled (unlike Algorithm 1).

    In each round the first m jobs *without* a reservation get a reservation. It does not overlap
    earlier ones. A failed job therefore waits for all reservations to end. The published figures
    seem to use this variant. Times are exact, so a permanent reservation is equivalent to an
    attempt that starts in the future.
    """
    t, p, n = batch.times, batch.sizes, batch.times.size
    queue, running, profile = new_queue(n), new_agenda(n), new_profile(n)
    left = np.empty(n, np.int64)
    for scenario in range(len(batch.failures)):
        fill_queue(queue, p)
        left[:] = batch.failures[scenario]
        now = 0
        rebuild(profile, running, p, now, batch.n_procs)
        while True:
            n_reserved, job = 0, next_waiting(queue, 0)
            while job < n and n_reserved < depth:
                start = reserve(profile, p[job], t[job])
                begin(batch, queue, running, job, start)
                n_reserved += 1
                job = next_waiting(queue, job + 1)
            job = next_fit(queue, job, profile.free[0])
            while job < n:
                if fits_now(profile, p[job], t[job]):
                    carve(profile, now, p[job], t[job])
                    begin(batch, queue, running, job, now)
                job = next_fit(queue, job + 1, profile.free[0])
            if running.n[0] == 0:
                break
            now, _, _ = complete(queue, running, p, left)
            forget_past(profile, now)
        batch.makespans[scenario] = now


@kernel
def shelves(batch: ScenarioBatch, backfill: bool) -> None:
    """Simulate R-SHELF-B (first fit, if `backfill` is set) or R-SHELF-NB (next fit).

    A shelf is a set of jobs that start at the same time. It starts when all jobs of the previous
    shelf have ended. Failed jobs return to the queue only at this time. Without backfilling, the
    first job of the queue that does not fit closes the shelf.
    """
    p, n = batch.sizes, batch.sizes.size
    queue, left, shelf = new_queue(n), np.empty(n, np.int64), np.empty(n, np.int64)
    for scenario in range(len(batch.failures)):
        fill_queue(queue, p)
        left[:] = batch.failures[scenario]
        now = 0
        while True:
            free, count, height = batch.n_procs, 0, 0
            job = next_waiting(queue, 0)
            while job < n and p[job] <= free:
                free -= p[job]
                height = max(height, batch.times[job])
                shelf[count] = job
                count += 1
                remove(queue, job)
                note(batch, job, now)
                job = next_fit(queue, job + 1, free) if backfill else next_waiting(queue, job + 1)
            if count == 0:
                break
            now += height
            for i in range(count):
                job = shelf[i]
                if left[job] > 0:
                    left[job] -= 1
                    insert(queue, job, p[job])
        batch.makespans[scenario] = now
