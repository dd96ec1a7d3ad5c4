# SPDX-License-Identifier: Apache-2.0
"""Slow, simple R-LIST and R-SHELF as in RR-9296 (Algorithms 1 and 2).

A schedule is a list of rectangles (start, end, processors). A job is tried at each date of this
list. No code is shared with the kernels.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, pairwise


def used(rectangles, date):
    """Return the number of processors in use at a date."""
    return sum(size for start, end, size in rectangles if start <= date < end)


def fits(rectangles, n_procs, start, size, length):
    """Whether ``size`` processors are free during ``[start, start + length)``."""
    dates = [start, *(s for s, _, _ in rectangles if start < s < start + length)]
    return all(used(rectangles, date) + size <= n_procs for date in dates)


def earliest(rectangles, n_procs, now, size, length):
    """Return the earliest date at which a job fits."""
    dates = sorted({now, *(end for _, end, _ in rectangles if end > now)})
    return next(date for date in dates if fits(rectangles, n_procs, date, size, length))


def r_list(times, sizes, rank, failures, n_procs, *, depth, reservations="paper"):
    """Algorithm 1: return the start dates of all attempts of each job; ``depth`` None is |Q|."""
    jobs = range(len(times))
    left = list(failures)
    starts = [[] for _ in jobs]
    queue = list(jobs)
    running = {}  # job -> (start, end, processors)
    kept = {}  # job -> the same for a reservation that is never cancelled (stale)
    now = 0
    while True:
        for job in [job for job, (start, _, _) in kept.items() if start == now]:
            running[job] = kept.pop(job)
            starts[job].append(now)
        queue.sort(key=lambda job: (rank[job], job))
        m = len(queue) if depth is None else min(depth, len(queue))
        taken = [*running.values(), *kept.values()]
        given = 0
        for job in list(queue):
            if given < m:
                start = earliest(taken, n_procs, now, sizes[job], times[job])
                if reservations != "easy_head" or start > now:
                    given += 1
            elif fits(taken, n_procs, now, sizes[job], times[job]):
                start = now
            else:
                continue
            rectangle = (start, start + times[job], sizes[job])
            taken.append(rectangle)
            if start == now:
                running[job] = rectangle
                starts[job].append(now)
                queue.remove(job)
            elif reservations == "stale":
                kept[job] = rectangle
                queue.remove(job)
        if not running:
            assert not queue
            return starts
        now = min(end for _, end, _ in running.values())
        for job in [job for job, (_, end, _) in running.items() if end == now]:
            del running[job]
            if left[job]:
                left[job] -= 1
                queue.append(job)


def r_shelf(times, sizes, rank, failures, n_procs, *, backfill):
    """Algorithm 2: return the start dates of all attempts of each job."""
    left = list(failures)
    starts = [[] for _ in times]
    queue = list(range(len(times)))
    now = 0
    while queue:
        queue.sort(key=lambda job: (rank[job], job))
        shelf = []
        for job in queue:
            if sum(sizes[other] for other in shelf) + sizes[job] <= n_procs:
                shelf.append(job)
            elif not backfill:
                break
        for job in shelf:
            starts[job].append(now)
            queue.remove(job)
        now += max(times[job] for job in shelf)
        for job in shelf:
            if left[job]:
                left[job] -= 1
                queue.append(job)
    return starts


def makespan(starts, times):
    """Equation (1)."""
    return max(attempts[-1] + time for attempts, time in zip(starts, times, strict=True))


def check_schedule(starts, times, sizes, failures, n_procs):
    """Check constraints (2) and (3), and that every job has f + 1 attempts."""
    assert [len(attempts) for attempts in starts] == [f + 1 for f in failures]
    for attempts, time in zip(starts, times, strict=True):
        assert all(later >= first + time for first, later in pairwise(attempts))
    rectangles = [
        (start, start + time, size)
        for attempts, time, size in zip(starts, times, sizes, strict=True)
        for start in attempts
    ]
    assert min(start for start, _, _ in rectangles) == 0
    assert all(used(rectangles, start) <= n_procs for start, _, _ in rectangles)


def optimum(times, sizes, failures, n_procs):
    """Return the optimal makespan of a tiny instance: try every set of starts at every completion.

    Starts at 0 and at completions are enough: any other start can move back to the one before.
    """

    @cache
    def rest(left, running):
        free = n_procs - sum(sizes[job] for job, _ in running)
        busy = {job for job, _ in running}
        ready = [job for job, attempts in enumerate(left) if attempts and job not in busy]
        if not ready and not running:
            return 0
        best = None
        for count in range(len(ready) + 1):
            for chosen in combinations(ready, count):
                if sum(sizes[job] for job in chosen) > free or not (chosen or running):
                    continue
                now_running = [*running, *((job, times[job]) for job in chosen)]
                step = min(time for _, time in now_running)
                after = tuple(
                    sorted((job, time - step) for job, time in now_running if time > step)
                )
                attempts = tuple(a - (job in chosen) for job, a in enumerate(left))
                best_here = step + rest(attempts, after)
                best = best_here if best is None else min(best, best_here)
        return best

    return rest(tuple(f + 1 for f in failures), ())
