# SPDX-License-Identifier: Apache-2.0
"""The order in which Batsim plays the events of a file: by date, and repairs before failures.

Batsim sorts with C++'s ``std::sort`` by date and type, which does not keep the order of equals:
two failures at one date may come in another order than the file's. Recorded conversations show it,
so the sort of GNU's standard library is followed here, step for step: median-of-three quicksort
down to 16 elements, then one insertion sort (introsort, Musser 1997). Its way out for hostile
inputs, a heap sort after ``2 log2 n`` unlucky partitions, is not: there the order of equals is
whatever the partitions left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")
Key = tuple[int, int]

SMALL = 16
"""Ranges up to this length are left to the insertion sort."""


def batsim_order(items: Sequence[T], keys: Sequence[Key]) -> list[T]:
    """The items by their keys, equals in the order in which Batsim has them."""
    if len(set(keys)) == len(keys):  # no equals: every sort gives the same
        order = sorted(range(len(keys)), key=keys.__getitem__)
        return [items[i] for i in order]
    pairs = [(key, i) for i, key in enumerate(keys)]
    _quicksort(pairs, 0, len(pairs), 2 * max(len(pairs).bit_length() - 1, 0))
    pairs.sort(key=lambda pair: pair[0])  # what is left is what an insertion sort, stable, would do
    return [items[i] for _, i in pairs]


Pairs = list[tuple[Key, int]]


def _quicksort(pairs: Pairs, first: int, last: int, depth: int) -> None:
    while last - first > SMALL:
        if depth == 0:
            return
        depth -= 1
        cut = _partition(pairs, first, last)
        _quicksort(pairs, cut, last, depth)
        last = cut


def _partition(pairs: Pairs, first: int, last: int) -> int:
    """Put the median of three first and part the others by it; gives where the upper part is."""
    _median_first(pairs, first, first + 1, first + (last - first) // 2, last - 1)
    pivot, low, high = pairs[first][0], first + 1, last
    while True:
        while pairs[low][0] < pivot:
            low += 1
        high -= 1
        while pivot < pairs[high][0]:
            high -= 1
        if low >= high:
            return low
        _swap(pairs, low, high)
        low += 1


def _median_first(pairs: Pairs, to: int, a: int, b: int, c: int) -> None:
    low, middle, high = (pairs[i][0] for i in (a, b, c))
    if low < middle:
        chosen = b if middle < high else c if low < high else a
    else:
        chosen = a if low < high else c if middle < high else b
    _swap(pairs, to, chosen)


def _swap(pairs: list[Any], i: int, j: int) -> None:
    pairs[i], pairs[j] = pairs[j], pairs[i]
