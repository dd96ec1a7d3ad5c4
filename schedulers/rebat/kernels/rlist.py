"""R-LIST: list scheduling of rigid jobs with silent errors (RR-9296, Section 4.1, Algorithm 1).

One kernel per way to keep reservations; all play whole batches of failure scenarios with the same
arguments:

t, p : int64[n]
    Time of one attempt and processors per job, jobs in queue order (place 0 first).
failures : int64[n_scenarios, n]
    Failed attempts per scenario and job, before the one that succeeds.
n_procs : int
    Processors P, at least ``max(p)``.
depth : int
    Reservations m per round.
easy_head : bool
    Whether only a job that cannot start now uses up one of the m reservations.
makespans : int64[n_scenarios]
    Output, equation (1).
starts : int64[total number of attempts] or int64[0]
    Output for a single scenario: start dates of the attempts, those of a job side by side.
    Length 0: not wanted.
cursor : int64[n]
    Where the next start of each job goes in `starts`; moved on by the kernel.

Jobs are released at 0, an error is seen when its attempt ends, and the failed job then takes its
place in the queue again. *All* attempts that end at one date complete before the round of
reservations and backfilling of that date: the outcome depends on nothing but the queue order.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from rebat.kernels.resilient_state import (
    NEVER,
    Ints,
    Queue,
    Running,
    carve,
    fill_queue,
    fits_now,
    forget_past,
    insert,
    new_profile,
    new_queue,
    new_running,
    next_fit,
    next_waiting,
    push,
    rebuild,
    remove,
    reserve,
)


@njit(cache=True, nogil=True)
def begin(
    queue: Queue, running: Running, job: int, start: int, length: int, starts: Ints, cursor: Ints
) -> None:
    """A waiting job starts an attempt at `start`, now or by a reservation that will be kept."""
    remove(queue, job)
    push(running, job, start + length)
    if starts.size:
        starts[cursor[job]] = start
        cursor[job] += 1


@njit(cache=True, nogil=True)
def complete(queue: Queue, running: Running, p: Ints, left: Ints) -> tuple[int, int, int]:
    """All attempts of the next date of completion end; the failed ones go back to the queue.

    Returns the date, the number of processors freed, and the first place whose job failed (n if
    none did).
    """
    place = running.count[0] - 1
    now = running.ends[place]
    freed, first_failed = 0, p.size
    while place >= 0 and running.ends[place] == now:
        job = running.jobs[place]
        freed += p[job]
        if left[job] > 0:
            left[job] -= 1
            insert(queue, job, p[job])
            first_failed = min(first_failed, job)
        place -= 1
    running.count[0] = place + 1
    return now, freed, first_failed


@njit(cache=True, nogil=True)
def greedy(
    t: Ints, p: Ints, failures: Ints, n_procs: int, makespans: Ints, starts: Ints, cursor: Ints
) -> None:
    """R-LIST-0, GREEDY: no reservation, every job that fits starts."""
    n = t.size
    queue, running, left = new_queue(n), new_running(n), np.empty(n, np.int64)
    for scenario in range(failures.shape[0]):
        fill_queue(queue, p)
        left[:] = failures[scenario]
        now, free = 0, n_procs
        while True:
            job = next_fit(queue, 0, free)
            while job < n:
                free -= p[job]
                begin(queue, running, job, now, t[job], starts, cursor)
                job = next_fit(queue, job + 1, free)
            if running.count[0] == 0:
                break
            now, freed, _ = complete(queue, running, p, left)
            free += freed
        makespans[scenario] = now


@njit(cache=True, nogil=True)
def shadow(running: Running, p: Ints, free: int, size: int) -> tuple[int, int]:
    """When `size` processors will be free, and how many more are free then.

    Without other reservations the number of free processors only grows, so that these two numbers
    are all that a backfilled job has to respect.
    """
    place = running.count[0]
    date = -1
    while place > 0 and (free < size or running.ends[place - 1] == date):
        place -= 1
        date = running.ends[place]
        free += p[running.jobs[place]]
    return date, free - size


@njit(cache=True, nogil=True)
def easy(
    t: Ints,
    p: Ints,
    failures: Ints,
    n_procs: int,
    easy_head: bool,
    makespans: Ints,
    starts: Ints,
    cursor: Ints,
) -> None:
    """R-LIST-1: one reservation per round, made anew at every completion.

    As Algorithm 1 is written, the first job of the queue takes the reservation also when it can
    start now, and then nothing protects the second one in this round; with `easy_head` the first
    job that cannot start takes it.
    """
    n = t.size
    queue, running, left = new_queue(n), new_running(n), np.empty(n, np.int64)
    for scenario in range(failures.shape[0]):
        fill_queue(queue, p)
        left[:] = failures[scenario]
        now, free = 0, n_procs
        while True:
            head = next_waiting(queue, 0)
            while head < n and p[head] <= free:
                free -= p[head]
                begin(queue, running, head, now, t[head], starts, cursor)
                if not easy_head:
                    break
                head = next_waiting(queue, head + 1)
            date, extra = NEVER, 0
            if head < n and queue.sizes[head] <= n_procs:  # it waits: it has the reservation
                date, extra = shadow(running, p, free, p[head])
            job = next_fit(queue, head + 1, free)
            while job < n:
                before = now + t[job] <= date
                if before or p[job] <= extra:
                    free -= p[job]
                    if not before:
                        extra -= p[job]
                    begin(queue, running, job, now, t[job], starts, cursor)
                job = next_fit(queue, job + 1, free)
            if running.count[0] == 0:
                break
            now, freed, _ = complete(queue, running, p, left)
            free += freed
        makespans[scenario] = now


@njit(cache=True, nogil=True)
def reserving(
    t: Ints,
    p: Ints,
    failures: Ints,
    n_procs: int,
    depth: int,
    easy_head: bool,
    makespans: Ints,
    starts: Ints,
    cursor: Ints,
) -> None:
    """R-LIST with any m: a fresh round of m reservations, then backfilling, at every completion."""
    n = t.size
    queue, running, profile = new_queue(n), new_running(n), new_profile(n)
    left = np.empty(n, np.int64)
    for scenario in range(failures.shape[0]):
        fill_queue(queue, p)
        left[:] = failures[scenario]
        now = 0
        while True:
            rebuild(profile, running, p, now, n_procs)
            given, job = 0, next_waiting(queue, 0)
            while job < n and given < depth:
                start = reserve(profile, p[job], t[job])
                if start == now:
                    begin(queue, running, job, now, t[job], starts, cursor)
                if start > now or not easy_head:
                    given += 1
                job = next_waiting(queue, job + 1)
            job = next_fit(queue, job, profile.free[0])
            while job < n:
                if fits_now(profile, p[job], t[job]):
                    carve(profile, now, p[job], t[job])
                    begin(queue, running, job, now, t[job], starts, cursor)
                job = next_fit(queue, job + 1, profile.free[0])
            if running.count[0] == 0:
                break
            now, _, _ = complete(queue, running, p, left)
        makespans[scenario] = now


@njit(cache=True, nogil=True)
def conservative(
    t: Ints, p: Ints, failures: Ints, n_procs: int, makespans: Ints, starts: Ints, cursor: Ints
) -> None:
    """R-LIST-Q: all waiting jobs have reservations, made anew at every completion.

    Two observations save most of the work, and change no start:

    - A fresh round gives every job ahead of all failed ones the reservation that it had: times are
      exact, so the jobs ahead of it and the running ones take what they were planned to take, and
      what has started from behind it was planned around its reservation.
    - A reservation behind the last job that may still start *now* has no effect before the next
      round. So reservations are made in queue order, but no further than needed: places before
      `planned` have them, and a job behind that could not start now even if those between were
      not there will not start now.
    """
    n = t.size
    queue, running, profile = new_queue(n), new_running(n), new_profile(n)
    left, plan = np.empty(n, np.int64), np.empty(n, np.int64)
    for scenario in range(failures.shape[0]):
        fill_queue(queue, p)
        left[:] = failures[scenario]
        now, planned = 0, 0
        rebuild(profile, running, p, now, n_procs)
        while True:
            job = next_waiting(queue, 0)
            while job < planned:
                if plan[job] == now:
                    begin(queue, running, job, now, t[job], starts, cursor)
                job = next_waiting(queue, job + 1)
            candidate = next_fit(queue, planned, profile.free[0])
            while candidate < n:
                if not fits_now(profile, p[candidate], t[candidate]):
                    candidate = next_fit(queue, candidate + 1, profile.free[0])
                    continue
                job = next_waiting(queue, planned)
                plan[job] = reserve(profile, p[job], t[job])
                planned = job + 1
                if plan[job] == now:
                    begin(queue, running, job, now, t[job], starts, cursor)
                    candidate = next_fit(queue, max(candidate, planned), profile.free[0])
                elif job == candidate:
                    candidate = next_fit(queue, planned, profile.free[0])
            if running.count[0] == 0:
                break
            now, _, first_failed = complete(queue, running, p, left)
            if first_failed < planned:
                planned = first_failed
                rebuild(profile, running, p, now, n_procs)
                job = next_waiting(queue, 0)
                while job < planned:
                    carve(profile, plan[job], p[job], t[job])
                    job = next_waiting(queue, job + 1)
            else:
                forget_past(profile, now)
        makespans[scenario] = now


@njit(cache=True, nogil=True)
def stale(
    t: Ints,
    p: Ints,
    failures: Ints,
    n_procs: int,
    depth: int,
    makespans: Ints,
    starts: Ints,
    cursor: Ints,
) -> None:
    """R-LIST when a reservation once given is never cancelled; not Algorithm 1.

    The first m jobs *without* a reservation get one in each round, around all those given before.
    The published figures seem to rest on this: a failed job queues up behind every reservation.
    As times are exact, a reservation that stays is an attempt that has begun in the future.
    """
    n = t.size
    queue, running, profile = new_queue(n), new_running(n), new_profile(n)
    left = np.empty(n, np.int64)
    for scenario in range(failures.shape[0]):
        fill_queue(queue, p)
        left[:] = failures[scenario]
        now = 0
        rebuild(profile, running, p, now, n_procs)
        while True:
            given, job = 0, next_waiting(queue, 0)
            while job < n and given < depth:
                start = reserve(profile, p[job], t[job])
                begin(queue, running, job, start, t[job], starts, cursor)
                given += 1
                job = next_waiting(queue, job + 1)
            job = next_fit(queue, job, profile.free[0])
            while job < n:
                if fits_now(profile, p[job], t[job]):
                    carve(profile, now, p[job], t[job])
                    begin(queue, running, job, now, t[job], starts, cursor)
                job = next_fit(queue, job + 1, profile.free[0])
            if running.count[0] == 0:
                break
            now, _, _ = complete(queue, running, p, left)
            forget_past(profile, now)
        makespans[scenario] = now
