# SPDX-License-Identifier: Apache-2.0
"""Which of its sizes a moldable job gets when it is submitted; it keeps that one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rebat.core.attempts import Attempt

EndOf = Callable[[Attempt], int]
"""When an attempt of some size would end, by its walltime, on the plan as it stands."""

Molding = Callable[[int, Sequence[Attempt], EndOf], Attempt]
"""Of the size that the user asked for and the attempts in each size, ascending: one of them."""


def least_turnaround(asked: int, entries: Sequence[Attempt], end_of: EndOf) -> Attempt:
    """SA: the one that ends first; among equals the smallest.

    The submit-time greedy strategy of Cirne and Berman 2002, reference [24] of Prabhakaran et al.
    """
    return min(entries, key=end_of)


def as_asked(asked: int, entries: Sequence[Attempt], end_of: EndOf) -> Attempt:
    """The size that the user asked for, or the largest that the machine has room for."""
    return max((one for one in entries if one.n_nodes <= asked), key=lambda one: one.n_nodes)


MOLDINGS: dict[str, Molding] = {"sa": least_turnaround, "asked": as_asked}
"""How a moldable job gets its size."""
