# SPDX-License-Identifier: Apache-2.0
"""Shared structures of the R-LIST and R-SHELF kernels: queue, running attempts, profile.

In these kernels, the number of a job is its position in the queue order (0 = highest priority),
which is also called its *place*. Each structure consists of a few flat arrays. They are allocated
once per batch and reset for each scenario.

- The *queue* stores the size of the job that waits at each place, or `ABSENT` if no job waits
  there. It also stores the smallest size of each block of `BLOCK` places. Therefore, the search for
  the next job that fits can skip entire blocks.
- An *agenda* stores jobs by decreasing time, so that the next job is last. The agenda of *running
  attempts* is ordered by their ends.
- The *profile* is the number of free processors over time, as steps ``(times[i], free[i])``. Each
  step is valid until the next step; the last step is valid until `NEVER`. Every attempt starts at
  the time of a step, because processors become free only when an attempt ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rebat.kernels.jit import inlined

Ints = NDArray[np.int64]

ABSENT = 1 << 62
"""Size at a place where no job waits. It is larger than any machine."""

NEVER = 1 << 62
"""A time after all other times."""

NONE = 1 << 60
"""The result of a search that finds no job."""

BLOCK = 8
"""Number of places per block."""


class ScenarioBatch(NamedTuple):
    """Input and output of a kernel. All arrays over jobs are in queue order.

    Attributes
    ----------
    times, sizes : int64[n]
        Duration of an attempt, and number of processors, of each job.
    failures : int64[n_scenarios, n]
        Number of failed attempts before the successful attempt.
    n_procs : int
        Processors P, at least ``max(sizes)``.
    makespans : int64[n_scenarios]
        Output: the makespan of each scenario, equation (1).
    starts : int64[number of attempts] or int64[0]
        Output for a single scenario: start times, grouped by job. Empty if start times are not
        needed.
    cursor : int64[n]
        Index of the next start of each job.
    """

    times: Ints
    sizes: Ints
    failures: Ints
    n_procs: int
    makespans: Ints
    starts: Ints
    cursor: Ints


class Queue(NamedTuple):
    """Sizes of waiting jobs by queue position, and the smallest size in each block of positions."""

    sizes: Ints
    block_min: Ints


class JobAgenda(NamedTuple):
    """Jobs by decreasing time. `n` has one element, the number of jobs."""

    times: Ints
    jobs: Ints
    n: Ints


class NodeProfile(NamedTuple):
    """Free processors over time. `n` has one element, the number of steps."""

    times: Ints
    free: Ints
    n: Ints


@inlined
def new_queue(n: int) -> Queue:
    """Return an empty queue with ``n`` places, rounded up to a multiple of `BLOCK`."""
    n_blocks = (n + BLOCK - 1) // BLOCK
    return Queue(np.full(n_blocks * BLOCK, ABSENT, np.int64), np.full(n_blocks, ABSENT, np.int64))


@inlined
def fill_queue(queue: Queue, sizes: Ints) -> None:
    """Put all jobs into the queue, because all are released at time 0."""
    for job in range(sizes.size):
        queue.sizes[job] = sizes[job]
    for block in range(queue.block_min.size):
        refresh(queue, block)


@inlined
def refresh(queue: Queue, block: int) -> None:
    """Recompute the smallest size in block ``block`` of the queue."""
    smallest = ABSENT
    for job in range(block * BLOCK, (block + 1) * BLOCK):
        smallest = min(smallest, queue.sizes[job])
    queue.block_min[block] = smallest


@inlined
def insert(queue: Queue, job: int, size: int) -> None:
    """Put a job into the queue, at its place."""
    queue.sizes[job] = size
    block = job // BLOCK
    queue.block_min[block] = min(queue.block_min[block], size)


@inlined
def remove(queue: Queue, job: int) -> None:
    """Remove a job from the queue."""
    queue.sizes[job] = ABSENT
    refresh(queue, job // BLOCK)


@inlined
def next_fit(queue: Queue, start: int, limit: int) -> int:
    """Return the first job from place `start` that needs at most `limit` processors, or NONE.

    Blocks are searched backwards without an early exit, so that the compiler vectorises the loop.
    """
    match = NONE
    block = start // BLOCK
    if block < queue.block_min.size and queue.block_min[block] <= limit:
        for job in range((block + 1) * BLOCK - 1, block * BLOCK - 1, -1):
            if job >= start and queue.sizes[job] <= limit:
                match = job
        if match != NONE:
            return match
    for later in range(block + 1, queue.block_min.size):
        if queue.block_min[later] <= limit:
            for job in range((later + 1) * BLOCK - 1, later * BLOCK - 1, -1):
                if queue.sizes[job] <= limit:
                    match = job
            return match
    return match


@inlined
def next_waiting(queue: Queue, start: int) -> int:
    """Return the first job that waits at place `start` or later, or `NONE`."""
    job = start
    while job < queue.sizes.size:
        if queue.sizes[job] != ABSENT:
            return job
        job += 1
    return NONE


@inlined
def note(batch: ScenarioBatch, job: int, start: int) -> None:
    """If start times are needed, write the start of an attempt into ``batch.starts``."""
    if batch.starts.size:
        batch.starts[batch.cursor[job]] = start
        batch.cursor[job] += 1


@inlined
def new_agenda(n: int) -> JobAgenda:
    """Return an empty agenda with space for ``n`` jobs."""
    return JobAgenda(np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(1, np.int64))


@inlined
def push(agenda: JobAgenda, job: int, time: int) -> None:
    """Insert a job with its time into an agenda."""
    place = agenda.n[0]
    agenda.n[0] = place + 1
    while place > 0 and agenda.times[place - 1] < time:
        agenda.times[place] = agenda.times[place - 1]
        agenda.jobs[place] = agenda.jobs[place - 1]
        place -= 1
    agenda.times[place] = time
    agenda.jobs[place] = job


@inlined
def new_profile(n: int) -> NodeProfile:
    """Return a profile with space for ``n`` starts and ends, the current step and the end mark."""
    room = 2 * n + 3
    return NodeProfile(np.empty(room, np.int64), np.empty(room, np.int64), np.ones(1, np.int64))


@inlined
def rebuild(profile: NodeProfile, running: JobAgenda, sizes: Ints, now: int, n_procs: int) -> None:
    """Reset the profile to the running attempts, from `now` on. They must all end after `now`."""
    count = running.n[0]
    free = n_procs
    for i in range(count):
        free -= sizes[running.jobs[i]]
    step = 0
    profile.times[0] = now
    profile.free[0] = free
    for i in range(count - 1, -1, -1):
        if running.times[i] > profile.times[step]:
            step += 1
            profile.times[step] = running.times[i]
        free += sizes[running.jobs[i]]
        profile.free[step] = free
    profile.times[step + 1] = NEVER
    profile.n[0] = step + 1


@inlined
def forget_past(profile: NodeProfile, now: int) -> None:
    """Delete the steps before `now`. Since an attempt completes at `now`, a step begins there."""
    first = 0
    while profile.times[first] < now:
        first += 1
    if first:
        count = profile.n[0] - first
        for i in range(count + 1):
            profile.times[i] = profile.times[i + first]
            profile.free[i] = profile.free[i + first]
        profile.n[0] = count


@inlined
def fits_now(profile: NodeProfile, size: int, length: int) -> bool:
    """Return whether an attempt of this size and length fits from the first step on."""
    end = profile.times[0] + length
    step = 0
    while profile.times[step] < end:
        if profile.free[step] < size:
            return False
        step += 1
    return True


@inlined
def carve(profile: NodeProfile, start: int, size: int, length: int) -> None:
    """Use `size` processors over [`start`, `start + length`). A step must begin at `start`."""
    end = start + length
    last = 0
    while profile.times[last] < end:
        last += 1
    carve_until(profile, last, start, end, size)


@inlined
def carve_until(profile: NodeProfile, last: int, start: int, end: int, size: int) -> None:
    """Use `size` processors over [`start`, `end`). `last` is the first step at or after `end`."""
    if profile.times[last] != end:
        count = profile.n[0]
        profile.n[0] = count + 1
        for i in range(count + 1, last, -1):  # including the end mark
            profile.times[i] = profile.times[i - 1]
            profile.free[i] = profile.free[i - 1]
        profile.times[last] = end
        profile.free[last] = profile.free[last - 1]
    step = last - 1
    while step >= 0 and profile.times[step] >= start:
        profile.free[step] -= size
        step -= 1


@inlined
def reserve(profile: NodeProfile, size: int, length: int) -> int:
    """Reserve the first window of `length` with `size` processors, and return its start.

    For speed, this is one pass without unpredictable branches. If the current step has enough
    processors, `start` is the start of the first of the consecutive steps that have enough.
    Otherwise, it is the end of the current step. There is always a window, because all processors
    are free in the last step, which lasts until `NEVER`.
    """
    start = int(profile.times[0])
    step = 0
    while True:
        end = profile.times[step + 1]
        start = end if profile.free[step] < size else start
        step += 1
        if end - start >= length:
            break
    carve_until(profile, step, start, start + length, size)
    return start
