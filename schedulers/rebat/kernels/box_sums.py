"""Sums over all boxes of a torus at once: a program of additions, made once and run often."""

from __future__ import annotations

from typing import Any

from rebat.kernels.jit import kernel

COPY = -1
"""As second operand: the first is copied."""


@kernel
def run_sums(program: Any, work: Any) -> None:
    """Carry out additions of shifted arrays within ``work``.

    A row of the program is (first, second, shift, outer, size, inner, length, target): operands
    are arrays of shape (outer, size, inner) at those places of ``work``; what is written is of
    shape (outer, length, inner), its entry ``o`` being ``first[o] + second[(o + shift) % size]``.
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
    """The first of the chosen boxes, in their order, whose sum is the least but for ``slack``.

    ``slack`` is relative. -1: every sum is infinite.
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
