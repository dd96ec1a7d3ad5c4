# SPDX-License-Identifier: Apache-2.0
"""Values that the runs of a process share, including runs in threads."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import RLock
from typing import Generic, TypeVar

V = TypeVar("V")


class Shared(Generic[V]):
    """The values used last, by key. Each value is created once, even if several threads need it.

    Parameters
    ----------
    most : int
        Maximum total size of the values. The value used last is always kept.
    size : callable, optional
        Function that returns the size of a value (default: 1).
    """

    def __init__(self, most: int, size: Callable[[V], int] = lambda value: 1) -> None:
        self._most, self._size = most, size
        self._values: dict[Hashable, V] = {}
        self._lock = RLock()

    def get(self, key: Hashable, create: Callable[[], V]) -> V:
        """Return the value of a key. If there is none, create it."""
        with self._lock:
            if key in self._values:
                self._values[key] = value = self._values.pop(key)
                return value
            self._values[key] = value = create()
            total = sum(map(self._size, self._values.values()))
            while total > self._most and len(self._values) > 1:
                total -= self._size(self._values.pop(next(iter(self._values))))
        return value
