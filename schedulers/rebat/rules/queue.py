# SPDX-License-Identifier: Apache-2.0
"""Rules: the queue orders, and the heaps."""

from __future__ import annotations

from typing import Any

from rebat.kernels.jit import inlined_rule, rule
from rebat.state import codes


@inlined_rule
def planned(length: int, margin: int) -> int:
    """Return the planned duration of a walltime or a prediction."""
    return max(1, min(length + margin, codes.LONGEST_US))


@rule
def rank_of(state: Any, a: int) -> int:
    """Return the place of an attempt's partition in the queue."""
    return int(state.partitions[state.jobs[state.attempts[a].job].partition].rank)


@rule
def order_of(state: Any, a: int) -> int:
    """Return the code of the queue order of an attempt's partition."""
    if not state.n.ranked:
        return int(state.n.order)
    return int(state.partitions[state.jobs[state.attempts[a].job].partition].order)


@rule
def key_of(state: Any, a: int, order: int) -> Any:
    """Return the part of the sort key between the priority and the tie."""
    attempts, jobs, parameters, j = state.attempts, state.jobs, state.n, state.attempts[a].job
    if order == codes.FCFS:
        return 0
    if order == codes.SHORTEST:
        return attempts[a].wall
    if order == codes.BY_LABEL:
        return attempts[a].label
    if order == codes.BY_CLASS:
        return -jobs[j].job_class
    if order == codes.BY_ID:
        return jobs[j].submit if parameters.fifo else attempts[a].queued
    if order in (codes.SMALLEST, codes.FEWEST):
        return jobs[j].size
    if order in (codes.LARGEST, codes.MOST_NODES):
        return -jobs[j].size
    if order == codes.LARGE_FIRST:
        n_nodes = state.partitions[jobs[j].partition].n_nodes
        return -jobs[j].size if 2 * jobs[j].size >= n_nodes + 1 else 0
    time = planned(attempts[a].wall, parameters.margin)
    if order == codes.LONGEST_TIME:
        return -time
    if order == codes.SHORTEST_TIME:
        return time
    if order == codes.LARGEST_AREA:
        return -(time * jobs[j].size)
    return time * jobs[j].size  # the smallest area


@rule
def number_first(n: int, m: int) -> bool:
    """Return whether the number ``n`` is before ``m`` as text."""
    padded, other, more = n, m, digits(m) - digits(n)
    for _ in range(more):
        padded *= 10
    for _ in range(-more):
        other *= 10
    return padded < other if padded != other else n < m


@rule
def digits(n: int) -> int:
    """Return the number of digits of a number of at least 1."""
    count = 0
    while n > 0:
        n //= 10
        count += 1
    return count


@rule
def text_first(attempts: Any, jobs: Any, a: int, b: int) -> bool:
    """Return whether the id of attempt ``a`` in the authors' program is before that of ``b``.

    Ids are compared as text (`rebat.policies.queue_order.program_id`).
    """
    i, j = attempts[a].job, attempts[b].job
    if attempts[a].number == 0 or attempts[b].number == 0:
        if attempts[a].number != attempts[b].number:
            return attempts[a].number > 0
        if jobs[i].by_name != jobs[j].by_name:
            return jobs[i].by_name < jobs[j].by_name
        return a < b
    if jobs[i].by_prefix != jobs[j].by_prefix:
        return jobs[i].by_prefix < jobs[j].by_prefix
    if attempts[a].number != attempts[b].number:
        return number_first(attempts[a].number, attempts[b].number)
    return a < b


@inlined_rule
def is_before(state: Any, b: int, a: int, key: Any, order: int) -> bool:
    """Return whether attempt ``b`` is before ``a``, which has this key and this queue order."""
    attempts = state.attempts
    if state.n.ranked and rank_of(state, b) != rank_of(state, a):
        return rank_of(state, b) < rank_of(state, a)
    if attempts[b].priority != attempts[a].priority:
        return bool(attempts[b].priority > attempts[a].priority)
    return is_before_alike(state, b, a, key, order)


@inlined_rule
def is_before_alike(state: Any, b: int, a: int, key: Any, order: int) -> bool:
    """Return the same for attempts of equal priority, in one partition or of equal rank."""
    attempts, jobs = state.attempts, state.jobs
    other_key = key_of(state, b, order)
    if other_key != key:
        return bool(other_key < key)
    if order == codes.BY_ID:
        return text_first(attempts, jobs, b, a)
    if state.n.fifo or order > codes.BY_ID:
        return bool(attempts[b].job < attempts[a].job)
    by_time = order in (codes.FCFS, codes.BY_CLASS)
    if by_time and attempts[b].queued != attempts[a].queued:
        return bool(attempts[b].queued < attempts[a].queued)
    return b < a


@rule
def place_in_queue(state: Any, queue: Any, n: int, a: int) -> int:
    """Return the position of an attempt in the queue."""
    order, low, high = order_of(state, a), 0, n
    key = key_of(state, a, order)
    while low < high:
        middle = (low + high) // 2
        if is_before(state, queue[middle], a, key, order):
            low = middle + 1
        else:
            high = middle
    return low


@rule
def push(heap: Any, n: int, at: int, second: int, a: int) -> int:
    """Add an entry (time, second key, attempt) to a heap, and return the new number of entries."""
    i = n
    while i > 0:
        above = (i - 1) // 2
        if heap[above].at < at or (heap[above].at == at and heap[above].key < second):
            break
        heap[i].at, heap[i].key, heap[i].attempt = (
            heap[above].at,
            heap[above].key,
            heap[above].attempt,
        )
        i = above
    heap[i].at, heap[i].key, heap[i].attempt = at, second, a
    return n + 1


@rule
def pop(heap: Any, n: int) -> int:
    """Remove the first entry of a heap, and return the new number of entries."""
    n -= 1
    at, second, a = heap[n].at, heap[n].key, heap[n].attempt
    i = 0
    while True:
        below = 2 * i + 1
        if below >= n:
            break
        right = below + 1
        if right < n and (
            heap[right].at < heap[below].at
            or (heap[right].at == heap[below].at and heap[right].key < heap[below].key)
        ):
            below = right
        if heap[below].at > at or (heap[below].at == at and heap[below].key > second):
            break
        heap[i].at, heap[i].key, heap[i].attempt = (
            heap[below].at,
            heap[below].key,
            heap[below].attempt,
        )
        i = below
    heap[i].at, heap[i].key, heap[i].attempt = at, second, a
    return n
