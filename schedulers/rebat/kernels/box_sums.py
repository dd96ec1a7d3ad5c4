# SPDX-License-Identifier: Apache-2.0
"""Sums over all boxes of a torus, computed by a list of additions (the *program*)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rebat.kernels.jit import kernel

COPY = -1
"""Value of the second operand of an addition that copies the first operand."""


@kernel
def run_sums(program: Any, work: Any) -> None:
    """Run the additions of ``program`` on the arrays in ``work``.

    A row of ``program`` is (first, second, shift, outer, size, inner, length, target). The operands
    are the arrays of shape (outer, size, inner) at the positions ``first`` and ``second`` of
    ``work``. The result at ``target`` has shape (outer, length, inner). Its entry ``o`` along the
    second dimension is ``first[o] + second[(o + shift) % size]``.
    """
    for row in range(program.shape[0]):
        first, second, shift = program[row, 0], program[row, 1], program[row, 2]
        outer, size, inner = program[row, 3], program[row, 4], program[row, 5]
        wide, target = program[row, 6] * inner, program[row, 7]
        whole = size * inner
        turn = min((size - shift) * inner, wide)
        for block in range(outer):
            a, to = first + block * whole, target + block * wide
            if second == COPY:
                for j in range(wide):
                    work[to + j] = work[a + j]
                continue
            b = second + block * whole + shift * inner
            for j in range(turn):
                work[to + j] = work[a + j] + work[b + j]
            b -= whole
            for j in range(turn, wide):
                work[to + j] = work[a + j] + work[b + j]


@kernel
def least_box(sums: Any, chosen: Any, slack: float) -> int:
    """Return the first box among ``chosen`` whose sum equals the smallest sum within a tolerance.

    ``slack`` is the relative tolerance. The result is -1 if every sum is infinite.
    """
    least = sums[chosen[0]]
    for i in range(1, chosen.shape[0]):
        least = min(least, sums[chosen[i]])
    if least == float("inf"):
        return -1
    least += abs(least) * slack
    for i in range(chosen.shape[0]):
        if sums[chosen[i]] <= least:
            return i
    return -1


@kernel
def mix(seed: int, serial: int, index: int) -> int:
    """Return a 32-bit pseudo-random number (splitmix64) determined by the three arguments."""
    z = (
        np.uint64(seed)
        + np.uint64(serial) * np.uint64(0x9E3779B97F4A7C15)
        + np.uint64(index) * np.uint64(0xD1342543DE82EF95)
    )
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return int(np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(32)))


@kernel
def random_box(sums: Any, chosen: Any, seed: int, serial: int) -> int:
    """Return a random box among ``chosen`` with sum 0, or -1 if there is none.

    All these boxes have the same probability.
    """
    best, least = -1, 1 << 40
    for i in range(chosen.shape[0]):
        if sums[chosen[i]] == 0:
            number = mix(seed, serial, i)
            if number < least:
                best, least = i, number
    return best


@kernel
def first_box(sums: Any, chosen: Any) -> int:
    """Return the first box among ``chosen`` with sum 0, or -1 if there is none."""
    for i in range(chosen.shape[0]):
        if sums[chosen[i]] == 0:
            return i
    return -1
