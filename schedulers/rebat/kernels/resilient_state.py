"""What the R-LIST and R-SHELF kernels share: the queue, the running attempts, the profile.

Jobs are named by their place in the queue order (0 = highest priority) all through the kernels.
Each structure is a few flat arrays made once per batch and reset for each scenario.

- The *queue* holds, per place, the size of the job that waits there, or `ABSENT`; a block of
  ``2**shift`` places has its smallest size beside it, so that looking for the next job that fits
  skips whole blocks.
- The *running attempts* are kept by decreasing end: the next completion is the last element, and
  the ends read backwards are the profile that EASY needs.
- The *profile* is the number of free processors over time as steps ``(times[i], free[i])``, each
  valid until the next one and the last one for ever. Every start is the date of a step, because
  processors only become free when an attempt ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]

ABSENT = 1 << 62
"""Size of a place whose job does not wait: larger than any machine."""


NONE = 1 << 60
"""The place of no job."""

BLOCK = 8
"""Places per block."""


class Queue(NamedTuple):
    """Sizes of the waiting jobs by place, and the smallest size per block of places."""

    sizes: Ints
    block_min: Ints


class Running(NamedTuple):
    """Running attempts by decreasing end; `count` has one element, the number of attempts."""

    ends: Ints
    jobs: Ints
    count: Ints


class Profile(NamedTuple):
    """Free processors over time; `count` has one element, the number of steps."""

    times: Ints
    free: Ints
    count: Ints


@njit(cache=True, nogil=True, forceinline=True)
def new_queue(n: int) -> Queue:
    """An empty queue with n places, rounded up to whole blocks."""
    n_blocks = (n + BLOCK - 1) // BLOCK
    return Queue(np.full(n_blocks * BLOCK, ABSENT, np.int64), np.full(n_blocks, ABSENT, np.int64))


@njit(cache=True, nogil=True, forceinline=True)
def fill_queue(queue: Queue, sizes: Ints) -> None:
    """Put all jobs into the queue: they are all released at time 0."""
    for job in range(sizes.size):
        queue.sizes[job] = sizes[job]
    for block in range(queue.block_min.size):
        refresh(queue, block)


@njit(cache=True, nogil=True, forceinline=True)
def refresh(queue: Queue, block: int) -> None:
    """Find the smallest size of a block again."""
    smallest = ABSENT
    for job in range(block * BLOCK, (block + 1) * BLOCK):
        smallest = min(smallest, queue.sizes[job])
    queue.block_min[block] = smallest


@njit(cache=True, nogil=True, forceinline=True)
def insert(queue: Queue, job: int, size: int) -> None:
    """A job (back) into the queue, at its priority."""
    queue.sizes[job] = size
    block = job // BLOCK
    queue.block_min[block] = min(queue.block_min[block], size)


@njit(cache=True, nogil=True, forceinline=True)
def remove(queue: Queue, job: int) -> None:
    """A job out of the queue."""
    queue.sizes[job] = ABSENT
    refresh(queue, job // BLOCK)


@njit(cache=True, nogil=True, forceinline=True)
def next_fit(queue: Queue, start: int, limit: int) -> int:
    """First waiting job at place `start` or after of at most `limit` processors; else `NONE`.

    Blocks are searched backwards without an early exit: the compiler makes vector code of that.
    """
    found = NONE
    block = start // BLOCK
    if block < queue.block_min.size and queue.block_min[block] <= limit:
        for job in range((block + 1) * BLOCK - 1, block * BLOCK - 1, -1):
            if job >= start and queue.sizes[job] <= limit:
                found = job
        if found != NONE:
            return found
    for later in range(block + 1, queue.block_min.size):
        if queue.block_min[later] <= limit:
            for job in range((later + 1) * BLOCK - 1, later * BLOCK - 1, -1):
                if queue.sizes[job] <= limit:
                    found = job
            return found
    return found


@njit(cache=True, nogil=True, forceinline=True)
def next_waiting(queue: Queue, start: int) -> int:
    """First waiting job at place `start` or after; else `NONE`."""
    job = start
    while job < queue.sizes.size:
        if queue.sizes[job] != ABSENT:
            return job
        job += 1
    return NONE


@njit(cache=True, nogil=True, forceinline=True)
def new_running(n: int) -> Running:
    """Nothing runs yet."""
    return Running(np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(1, np.int64))


@njit(cache=True, nogil=True, forceinline=True)
def push(running: Running, job: int, end: int) -> None:
    """An attempt starts and will end at `end`."""
    place = running.count[0]
    running.count[0] = place + 1
    while place > 0 and running.ends[place - 1] < end:
        running.ends[place] = running.ends[place - 1]
        running.jobs[place] = running.jobs[place - 1]
        place -= 1
    running.ends[place] = end
    running.jobs[place] = job


@njit(cache=True, nogil=True, forceinline=True)
def new_profile(n: int) -> Profile:
    """Room for n jobs, each with a start and an end, besides the step of the present."""
    return Profile(np.empty(2 * n + 2, np.int64), np.empty(2 * n + 2, np.int64), np.ones(1, np.int64))


@njit(cache=True, nogil=True, forceinline=True)
def rebuild(profile: Profile, running: Running, sizes: Ints, now: int, n_procs: int) -> None:
    """The profile from `now` on with the running attempts only; none of them ends by `now`."""
    count = running.count[0]
    free = n_procs
    for i in range(count):
        free -= sizes[running.jobs[i]]
    step = 0
    profile.times[0] = now
    profile.free[0] = free
    for i in range(count - 1, -1, -1):
        if running.ends[i] > profile.times[step]:
            step += 1
            profile.times[step] = running.ends[i]
        free += sizes[running.jobs[i]]
        profile.free[step] = free
    profile.count[0] = step + 1


@njit(cache=True, nogil=True, forceinline=True)
def forget_past(profile: Profile, now: int) -> None:
    """Drop the steps before the one that starts at `now` (a completion, hence a step)."""
    first = 0
    while profile.times[first] < now:
        first += 1
    if first:
        count = profile.count[0] - first
        for i in range(count):
            profile.times[i] = profile.times[i + first]
            profile.free[i] = profile.free[i + first]
        profile.count[0] = count


@njit(cache=True, nogil=True, forceinline=True)
def window_end(profile: Profile, step: int, size: int, length: int) -> int:
    """Whether an attempt fits from a step on.

    Returns the first step at or after its end, or ``-1 - j`` where j is the first step of its
    window that has too few free processors.
    """
    if profile.free[step] < size:
        return -1 - step
    end = profile.times[step] + length
    count = profile.count[0]
    last = step + 1
    while last < count and profile.times[last] < end:
        if profile.free[last] < size:
            return -1 - last
        last += 1
    return last


@njit(cache=True, nogil=True, forceinline=True)
def carve(profile: Profile, step: int, last: int, end: int, size: int) -> None:
    """Take `size` processors from `step` until `end`; `last` is the first step at or after it."""
    count = profile.count[0]
    if last == count or profile.times[last] != end:
        for i in range(count, last, -1):
            profile.times[i] = profile.times[i - 1]
            profile.free[i] = profile.free[i - 1]
        profile.times[last] = end
        profile.free[last] = profile.free[last - 1]
        profile.count[0] = count + 1
    for i in range(step, last):
        profile.free[i] -= size


@njit(cache=True, nogil=True, forceinline=True)
def reserve(profile: Profile, size: int, length: int) -> int:
    """Take the earliest window for an attempt; returns its start.

    The last step has all processors free, so there always is one.
    """
    step = 0
    while True:
        while profile.free[step] < size:
            step += 1
        last = window_end(profile, step, size, length)
        if last >= 0:
            break
        step = -last  # past the step that is too narrow: no window may contain it
    start = profile.times[step]
    carve(profile, step, last, start + length, size)
    return start


@njit(cache=True, nogil=True, forceinline=True)
def start_now(profile: Profile, size: int, length: int) -> bool:
    """Take a window that starts at the first step, if there is one."""
    last = window_end(profile, 0, size, length)
    if last < 0:
        return False
    carve(profile, 0, last, profile.times[0] + length, size)
    return True


@njit(cache=True, nogil=True, forceinline=True)
def restore(profile: Profile, start: int, size: int, length: int) -> None:
    """Take a window known from an earlier round, whose start is a step of this profile."""
    low, high = 0, profile.count[0]
    while low < high:  # the first step not before the start
        middle = (low + high) // 2
        if profile.times[middle] < start:
            low = middle + 1
        else:
            high = middle
    carve(profile, low, window_end(profile, low, size, length), start + length, size)
