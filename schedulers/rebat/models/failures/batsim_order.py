# SPDX-License-Identifier: Apache-2.0
"""The order in which Batsim simulates the events of a file: by time, repairs before failures.

Batsim sorts by time and type with C++'s ``std::sort``, which does not keep the order of equal
elements. Two failures at the same time may therefore be in another order than in the file, as
recorded messages show. This module reproduces the sort of GNU's standard library step by step:
median-of-three quicksort down to 16 elements, then an insertion sort (introsort, Musser 1997).
Introsort falls back to a heap sort after ``2 log2 n`` bad partitions. This module does not
reproduce the fallback: equal elements then keep the order that they have after the last partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")
Key = tuple[int, int]

SMALL = 16
"""Maximum length of ranges that only the insertion sort sorts."""


def batsim_order(items: Sequence[T], keys: Sequence[Key]) -> list[T]:
    """Return the items sorted by their keys.

    Items with equal keys have the order that Batsim uses.
    """
    if len(set(keys)) == len(keys):  # without equal keys every sort has the same result
        order = sorted(range(len(keys)), key=keys.__getitem__)
        return [items[i] for i in order]
    pairs = [(key, i) for i, key in enumerate(keys)]
    _quicksort(pairs, 0, len(pairs), 2 * max(len(pairs).bit_length() - 1, 0))
    pairs.sort(key=lambda pair: pair[0])  # stable, like the final insertion sort
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
    """Partition by the median of three. Return the start of the upper part."""
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
        median = b if middle < high else c if low < high else a
    else:
        median = a if low < high else c if middle < high else b
    _swap(pairs, to, median)


def _swap(pairs: list[Any], i: int, j: int) -> None:
    pairs[i], pairs[j] = pairs[j], pairs[i]
