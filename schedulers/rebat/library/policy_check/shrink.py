# SPDX-License-Identifier: Apache-2.0
"""Find a smaller case with the same failure (delta debugging)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def smallest(parts: Sequence[T], fails: Callable[[list[T]], bool], most: int) -> list[T]:
    """Return a sublist that fails, but that would pass if any one element were removed.

    The algorithm is ddmin of Zeller and Hildebrandt (2002), without its tests of subsets: it
    removes chunks, at first halves, then smaller ones. It ends after ``most`` calls of ``fails``.

    >>> smallest(range(20), lambda some: {3, 7} <= {*some}, most=99)
    [3, 7]
    """
    present, chunk, calls = list(parts), max(1, len(parts) // 2), 0
    while calls < most:
        removed, place = False, 0
        while place < len(present) and calls < most:
            rest = present[:place] + present[place + chunk :]
            calls += 1
            if fails(rest):
                present, removed = rest, True
            else:
                place += chunk
        if chunk == 1 and not removed:
            break
        chunk = max(1, chunk // 2)
    return present
