# SPDX-License-Identifier: Apache-2.0
"""Distinct rows of columns of integers, in the order in which they first occur."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Column = npt.NDArray[np.integer[Any]]


def distinct(*columns: Column) -> tuple[Ints, Ints]:
    """Return the distinct rows of columns of equal length.

    Returns
    -------
    rows : int64 array, shape (n_distinct,)
        For each distinct row, the number of the first row with its values, in ascending order.
    codes : int64 array, shape (n,)
        For each row, the position of its distinct row in ``rows``.

    Examples
    --------
    >>> rows, codes = distinct(np.array([7, 5, 7, 7]), np.array([1, 1, 1, 2]))
    >>> rows.tolist(), codes.tolist()
    ([0, 1, 3], [0, 1, 0, 2])
    """
    keys, count = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        values, places = _numbered(column)
        keys, count = keys * values + places, count * values
        if count > 2**31:  # the next product must fit into 64 bits
            count, keys = _numbered(keys)
    count, keys = _numbered(keys)
    return by_first_row(keys, count)


def first_rows(codes: Column, count: int) -> Ints:
    """Return the first row of each number below ``count``.

    If a number does not occur, it is the number of rows.
    """
    first = np.full(count, len(codes))
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # of several rows, the first is assigned last
    return first


def by_first_row(codes: Column, count: int) -> tuple[Ints, Ints]:
    """Return the first row of each code that occurs, in ascending order, and the new codes.

    ``codes`` contains numbers below ``count``. A new code is the position in the first rows.
    """
    first = first_rows(codes, count)
    order = np.argsort(first, kind="stable")
    new = np.empty(count, np.int64)
    new[order] = np.arange(count)
    return first[order][: np.count_nonzero(first < len(codes))], new[codes]


def _numbered(column: Column) -> tuple[int, Ints]:
    """Return a number above all numbers of the values, and the number of each value."""
    low, high = int(column.min(initial=0)), int(column.max(initial=0))
    if high - low < 2 * len(column):
        return high - low + 1, column.astype(np.int64) - low
    values, places = np.unique(column, return_inverse=True)
    return len(values), places
