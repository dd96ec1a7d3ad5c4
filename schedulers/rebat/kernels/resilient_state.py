# SPDX-License-Identifier: Apache-2.0
"""What the R-LIST and R-SHELF kernels share: the queue, the running attempts, the profile.

Jobs are named by their place in the queue order (0 = highest priority) all through the kernels.
Each structure is a few flat arrays made once per batch and reset for each scenario.

- The *queue* holds, per place, the size of the job that waits there, or `ABSENT`; each block of
  `BLOCK` places has its smallest size beside it, so that looking for the next job that fits skips
  whole blocks.
- An *agenda* holds jobs by decreasing date, the next one last: *running attempts* by their ends.
- The *profile* is the number of free processors over time as steps ``(times[i], free[i])``, each
  valid until the next one and the last one until `NEVER`. Every start is the date of a step,
  because processors only become free when an attempt ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rebat.kernels.jit import inlined

Ints = NDArray[np.int64]

ABSENT = 1 << 62
"""Size of a place whose job does not wait: larger than any machine."""

NEVER = 1 << 62
"""A date after all others."""

NONE = 1 << 60
"""The place of no job."""

BLOCK = 8
"""Places per block."""


class ScenarioBatch(NamedTuple):
    """What a kernel plays, jobs in queue order, and what it fills in.

    Attributes
    ----------
    times, sizes : int64[n]
        Time of one attempt and processors of each job.
    failures : int64[n_scenarios, n]
        Failed attempts before the one that succeeds.
    n_procs : int
        Processors P, at least ``max(sizes)``.
    makespans : int64[n_scenarios]
        Output, equation (1).
    starts : int64[number of attempts] or int64[0]
        Output for a single scenario, start dates, those of a job side by side; empty: not wanted.
    cursor : int64[n]
        Where the next start of each job goes.
    """

    times: Ints
    sizes: Ints
    failures: Ints
    n_procs: int
    makespans: Ints
    starts: Ints
    cursor: Ints


class Queue(NamedTuple):
    """Sizes of the waiting jobs by place, and the smallest size per block of places."""

    sizes: Ints
    block_min: Ints


class JobAgenda(NamedTuple):
    """Jobs by decreasing date; `n` has one element, their number."""

    dates: Ints
    jobs: Ints
    n: Ints


class NodeProfile(NamedTuple):
    """Free processors over time; `n` has one element, the number of steps."""

    times: Ints
    free: Ints
    n: Ints


@inlined
def new_queue(n: int) -> Queue:
    """An empty queue with n places, rounded up to whole blocks."""
    n_blocks = (n + BLOCK - 1) // BLOCK
    return Queue(np.full(n_blocks * BLOCK, ABSENT, np.int64), np.full(n_blocks, ABSENT, np.int64))


@inlined
def fill_queue(queue: Queue, sizes: Ints) -> None:
    """Put all jobs into the queue: they are all released at time 0."""
    for job in range(sizes.size):
        queue.sizes[job] = sizes[job]
    for block in range(queue.block_min.size):
        refresh(queue, block)


@inlined
def refresh(queue: Queue, block: int) -> None:
    """Find the smallest size of a block again."""
    smallest = ABSENT
    for job in range(block * BLOCK, (block + 1) * BLOCK):
        smallest = min(smallest, queue.sizes[job])
    queue.block_min[block] = smallest


@inlined
def insert(queue: Queue, job: int, size: int) -> None:
    """A job (back) into the queue, at its priority."""
    queue.sizes[job] = size
    block = job // BLOCK
    queue.block_min[block] = min(queue.block_min[block], size)


@inlined
def remove(queue: Queue, job: int) -> None:
    """A job out of the queue."""
    queue.sizes[job] = ABSENT
    refresh(queue, job // BLOCK)


@inlined
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


@inlined
def next_waiting(queue: Queue, start: int) -> int:
    """First waiting job at place `start` or after; else `NONE`."""
    job = start
    while job < queue.sizes.size:
        if queue.sizes[job] != ABSENT:
            return job
        job += 1
    return NONE


@inlined
def note(batch: ScenarioBatch, job: int, start: int) -> None:
    """Write down that an attempt of a job starts, if starts are wanted."""
    if batch.starts.size:
        batch.starts[batch.cursor[job]] = start
        batch.cursor[job] += 1


@inlined
def new_agenda(n: int) -> JobAgenda:
    """An empty agenda with room for n jobs."""
    return JobAgenda(np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(1, np.int64))


@inlined
def push(agenda: JobAgenda, job: int, date: int) -> None:
    """A job into an agenda."""
    place = agenda.n[0]
    agenda.n[0] = place + 1
    while place > 0 and agenda.dates[place - 1] < date:
        agenda.dates[place] = agenda.dates[place - 1]
        agenda.jobs[place] = agenda.jobs[place - 1]
        place -= 1
    agenda.dates[place] = date
    agenda.jobs[place] = job


@inlined
def new_profile(n: int) -> NodeProfile:
    """Room for n jobs, each with a start and an end, the step of the present, and `NEVER`."""
    room = 2 * n + 3
    return NodeProfile(np.empty(room, np.int64), np.empty(room, np.int64), np.ones(1, np.int64))


@inlined
def rebuild(profile: NodeProfile, running: JobAgenda, sizes: Ints, now: int, n_procs: int) -> None:
    """The profile from `now` on with the running attempts only; none of them ends by `now`."""
    count = running.n[0]
    free = n_procs
    for i in range(count):
        free -= sizes[running.jobs[i]]
    step = 0
    profile.times[0] = now
    profile.free[0] = free
    for i in range(count - 1, -1, -1):
        if running.dates[i] > profile.times[step]:
            step += 1
            profile.times[step] = running.dates[i]
        free += sizes[running.jobs[i]]
        profile.free[step] = free
    profile.times[step + 1] = NEVER
    profile.n[0] = step + 1


@inlined
def forget_past(profile: NodeProfile, now: int) -> None:
    """Drop the steps before the one that starts at `now` (a completion, hence a step)."""
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
    """Whether an attempt fits from the first step on."""
    end = profile.times[0] + length
    step = 0
    while profile.times[step] < end:
        if profile.free[step] < size:
            return False
        step += 1
    return True


@inlined
def carve(profile: NodeProfile, start: int, size: int, length: int) -> None:
    """Take `size` processors from the step at `start` on for `length`."""
    end = start + length
    last = 0
    while profile.times[last] < end:
        last += 1
    carve_until(profile, last, start, end, size)


@inlined
def carve_until(profile: NodeProfile, last: int, start: int, end: int, size: int) -> None:
    """The same when `last` is known, the first step at or after `end`."""
    if profile.times[last] != end:
        count = profile.n[0]
        profile.n[0] = count + 1
        for i in range(count + 1, last, -1):  # with the end mark
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
    """Take the earliest window for an attempt; returns its start.

    One pass without unpredictable branches: `start` is where the current run of wide enough steps
    begins, or the end of the current step if that one is too narrow. There always is a window,
    since all processors are free in the last step, which ends `NEVER`.
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
