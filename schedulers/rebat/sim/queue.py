# SPDX-License-Identifier: Apache-2.0
"""Rules of the compiled loop: the queue orders, and the heaps."""

from __future__ import annotations

from typing import Any

from rebat.kernels.jit import inlined, loop
from rebat.sim.columns import (
    BY_CLASS,
    BY_ID,
    BY_NAME,
    BY_PREFIX,
    CLASS,
    FCFS,
    FEWEST,
    FIFO,
    JOB,
    LARGE_FIRST,
    LARGEST,
    LARGEST_AREA,
    LONGEST_TIME,
    LONGEST_US,
    MARGIN,
    MOST_NODES,
    N_NODES,
    NUMBER,
    ORDER,
    PRIORITY,
    QUEUED,
    SHORTEST,
    SHORTEST_TIME,
    SIZE,
    SMALLEST,
    SUBMIT,
    WALL,
)


@inlined
def planned(length: int, margin: int) -> int:
    """Return the planned duration of a walltime or a prediction."""
    return max(1, min(length + margin, LONGEST_US))


@loop
def key_of(attempts: Any, jobs: Any, a: int, parameters: Any) -> Any:  # noqa: PLR0911
    """Return the part of the sort key between the priority and the tie."""
    order, j = parameters[ORDER], attempts[a, JOB]
    if order == FCFS:
        return 0
    if order == SHORTEST:
        return attempts[a, WALL]
    if order == BY_CLASS:
        return -jobs[j, CLASS]
    if order == BY_ID:
        return jobs[j, SUBMIT] if parameters[FIFO] else attempts[a, QUEUED]
    if order in (SMALLEST, FEWEST):
        return jobs[j, SIZE]
    if order in (LARGEST, MOST_NODES):
        return -jobs[j, SIZE]
    if order == LARGE_FIRST:
        return -jobs[j, SIZE] if 2 * jobs[j, SIZE] >= parameters[N_NODES] + 1 else 0
    time = planned(attempts[a, WALL], parameters[MARGIN])
    if order == LONGEST_TIME:
        return -time
    if order == SHORTEST_TIME:
        return time
    if order == LARGEST_AREA:
        return -(time * jobs[j, SIZE])
    return time * jobs[j, SIZE]  # the smallest area


@loop
def number_first(n: int, m: int) -> bool:
    """Return whether the number ``n`` is before ``m`` as text."""
    padded, other, more = n, m, digits(m) - digits(n)
    for _ in range(more):
        padded *= 10
    for _ in range(-more):
        other *= 10
    return padded < other if padded != other else n < m


@loop
def digits(n: int) -> int:
    """Return the number of digits of a number of at least 1."""
    count = 0
    while n > 0:
        n //= 10
        count += 1
    return count


@loop
def text_first(attempts: Any, jobs: Any, a: int, b: int) -> bool:
    """Return whether the id of attempt ``a`` in the authors' program is before that of ``b``.

    Ids are compared as text (`rebat.policies.queue_order.program_id`).
    """
    i, j = attempts[a, JOB], attempts[b, JOB]
    if attempts[a, NUMBER] == 0 or attempts[b, NUMBER] == 0:
        if attempts[a, NUMBER] == attempts[b, NUMBER]:
            return jobs[i, BY_NAME] < jobs[j, BY_NAME]
        return attempts[a, NUMBER] > 0
    if i != j:
        return jobs[i, BY_PREFIX] < jobs[j, BY_PREFIX]
    return number_first(attempts[a, NUMBER], attempts[b, NUMBER])


@loop
def place_in_queue(attempts: Any, jobs: Any, queue: Any, n: int, a: int, parameters: Any) -> int:
    """Return the position of an attempt in the queue."""
    priority, key = attempts[a, PRIORITY], key_of(attempts, jobs, a, parameters)
    by_text = parameters[ORDER] == BY_ID
    by_job = parameters[FIFO] or parameters[ORDER] > BY_ID
    by_time = parameters[ORDER] in (FCFS, BY_CLASS)
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        b = queue[middle]
        other = attempts[b, PRIORITY]
        if other != priority:
            before = other > priority
        else:
            other_key = key_of(attempts, jobs, b, parameters)
            if other_key != key:
                before = other_key < key
            elif by_text:
                before = text_first(attempts, jobs, b, a)
            elif by_job:
                before = attempts[b, JOB] < attempts[a, JOB]
            elif by_time and attempts[b, QUEUED] != attempts[a, QUEUED]:
                before = attempts[b, QUEUED] < attempts[a, QUEUED]
            else:
                before = b < a
        if before:
            low = middle + 1
        else:
            high = middle
    return low


@loop
def push(heap: Any, n: int, at: int, second: int, a: int) -> int:
    """Add an entry (time, second key, attempt) to a heap, and return the new number of entries."""
    i = n
    while i > 0:
        above = (i - 1) // 2
        if heap[above, 0] < at or (heap[above, 0] == at and heap[above, 1] < second):
            break
        heap[i, 0], heap[i, 1], heap[i, 2] = heap[above, 0], heap[above, 1], heap[above, 2]
        i = above
    heap[i, 0], heap[i, 1], heap[i, 2] = at, second, a
    return n + 1


@loop
def pop(heap: Any, n: int) -> int:
    """Remove the first entry of a heap, and return the new number of entries."""
    n -= 1
    at, second, a = heap[n, 0], heap[n, 1], heap[n, 2]
    i = 0
    while True:
        below = 2 * i + 1
        if below >= n:
            break
        right = below + 1
        if right < n and (
            heap[right, 0] < heap[below, 0]
            or (heap[right, 0] == heap[below, 0] and heap[right, 1] < heap[below, 1])
        ):
            below = right
        if heap[below, 0] > at or (heap[below, 0] == at and heap[below, 1] > second):
            break
        heap[i, 0], heap[i, 1], heap[i, 2] = heap[below, 0], heap[below, 1], heap[below, 2]
        i = below
    heap[i, 0], heap[i, 1], heap[i, 2] = at, second, a
    return n
