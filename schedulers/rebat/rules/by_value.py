# SPDX-License-Identifier: Apache-2.0
"""Rules: the queue order by formula (`rebat.models.formula`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rebat.kernels import formula as kernel
from rebat.kernels.barred import BARRED
from rebat.kernels.formula import evaluate
from rebat.kernels.jit import inlined_rule, rule
from rebat.models.formula import COLUMNS, Formula
from rebat.rules.queue import is_before, key_of, order_of, planned, rank_of
from rebat.rules.usage import set_usage
from rebat.state import codes

AGE, SIZE_AT, WALLTIME_AT, EXPANSION, CLASS_AT, SUBMITTED, PARTITION = map(
    [*COLUMNS].index, ("age", "size", "walltime", "expansion", "class", "submitted", "partition")
)
"""Columns of a formula that these rules compute."""


def arrays_of(formulas: Sequence[Formula], n_nodes: int) -> tuple[Any, Any, Any]:
    """Return the operations and arguments of formulas on a machine, and where each begins.

    The number of nodes is a constant.
    """
    first = np.cumsum([0, *(len(each.operations) for each in formulas)])
    operations = np.concatenate([np.zeros(0, np.int64), *(each.operations for each in formulas)])
    arguments = np.concatenate([np.zeros(0), *(each.arguments for each in formulas)])
    uses = (operations == kernel.COLUMN) & (arguments == [*COLUMNS].index("nodes"))
    operations[uses], arguments[uses] = kernel.NUMBER, float(n_nodes)
    return operations, arguments, first.astype(np.int64)


@rule
def set_values(state: Any, room: Any, queue: Any, n: int, now: int, value: Any) -> None:
    """Compute the value of each of the first ``n`` attempts of a list."""
    attempts, jobs, table = state.attempts, state.jobs, room.table
    for at in range(n):
        a = queue[at]
        j, wall, since = attempts[a].job, planned(attempts[a].wall, 0), attempts[a].queued
        if state.n.fifo:  # attempts return to their previous place
            since = jobs[j].submit
        table[at, AGE] = (now - since) / 1_000_000
        table[at, SIZE_AT] = jobs[j].size
        table[at, WALLTIME_AT] = wall / 1_000_000
        table[at, EXPANSION] = 1 + (now - since) / wall
        table[at, CLASS_AT] = jobs[j].job_class
        table[at, PARTITION] = 1.0
        if state.n.parted:
            table[at, PARTITION] = state.partitions[jobs[j].partition].weight / state.n.most_weight
        table[at, SUBMITTED] = max(1.0, jobs[j].submit / 1_000_000)
    if state.n.uses_usage:
        set_usage(state, table, queue, n, now)
    first = room.first_of_formula
    if len(first) == 2:
        evaluate(room.operations, room.arguments, table, n, room.stack, value)
        return
    for f in range(len(first) - 1):
        evaluate(
            room.operations[first[f] : first[f + 1]], room.arguments[first[f] : first[f + 1]],
            table, n, room.stack, room.value_by_one,
        )  # fmt: skip
        for at in range(n):
            if state.partitions[jobs[attempts[queue[at]].job].partition].formula == f:
                value[at] = room.value_by_one[at]


@rule
def precedes(state: Any, a: int, value_a: float, b: int, value_b: float) -> bool:
    """Return whether attempt ``a`` is before ``b`` in the queue."""
    attempts, order = state.attempts, order_of(state, b)
    if order != codes.BY_VALUE:  # the order of another partition
        return is_before(state, a, b, key_of(state, b, order), order)
    if state.n.ranked and rank_of(state, a) != rank_of(state, b):
        return rank_of(state, a) < rank_of(state, b)
    if attempts[a].priority != attempts[b].priority:
        return attempts[a].priority > attempts[b].priority
    return precedes_alike(state, a, value_a, b, value_b)


@inlined_rule
def precedes_alike(state: Any, a: int, value_a: float, b: int, value_b: float) -> bool:
    """Return the same for attempts of equal priority."""
    attempts = state.attempts
    if value_a != value_b:
        return value_a > value_b
    if state.n.fifo:
        return attempts[a].job < attempts[b].job
    if attempts[a].queued != attempts[b].queued:
        return attempts[a].queued < attempts[b].queued
    return a < b


@rule
def place_by_value(state: Any, queue: Any, values: Any, n: int, a: int, value: float) -> int:
    """Return the position of an attempt with a value in the queue."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if precedes(state, queue[middle], values[middle], a, value):
            low = middle + 1
        else:
            high = middle
    return low


FEW_MOVES = 8
"""Number of moves per attempt for which insertion is faster than Shell's method."""


@rule
def sort_gap(
    state: Any, queue: Any, values: Any, size: Any, duration: Any, start: Any, n: int, gap: int,
    most: int,
) -> Any:  # fmt: skip
    """Sort the attempts at distances ``gap``, until this takes more moves than ``most``.

    Return whether the order of a plan changed, and the number of moves that are left.
    """
    changed = False
    for at in range(gap, n):
        a, value, k = queue[at], values[at], at
        n_nodes, length, begin = size[at], duration[at], start[at]
        while k >= gap and precedes(state, a, value, queue[k - gap], values[k - gap]):
            j = k - gap
            changed |= begin != BARRED and start[j] != BARRED
            queue[k], values[k] = queue[j], values[j]
            size[k], duration[k], start[k] = size[j], duration[j], start[j]
            k = j
            most -= 1
        if k < at:
            queue[k], values[k] = a, value
            size[k], duration[k], start[k] = n_nodes, length, begin
            if most < 0:
                break
    return changed, most


@rule
def sort_by_value(
    state: Any, queue: Any, values: Any, size: Any, duration: Any, start: Any, n: int
) -> bool:
    """Sort a queue, which is usually nearly sorted. Return whether the order of a plan changed."""
    changed, left = sort_gap(
        state, queue, values, size, duration, start, n, 1, FEW_MOVES * n + FEW_MOVES
    )
    gap = 0
    while left < 0 and 9 * gap < n:
        gap = 3 * gap + 1
    while gap > 0:
        more, _ = sort_gap(state, queue, values, size, duration, start, n, gap, codes.LONGEST_US)
        changed |= more
        gap //= 3
    return bool(changed)
