# SPDX-License-Identifier: Apache-2.0
"""Numbers in the order of texts or keys that become known one after the other."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator
from typing import Any


class Labels:
    """Labels of rows, whose order is that of their texts. Rows with equal texts have equal labels.

    All texts may also be tuples, or other values that can be compared.

    Labels have gaps, so that a new text usually changes no other label. If a gap is used up, all
    rows get new labels.

    Attributes
    ----------
    n_renewed : int
        How often all rows got new labels.
    nested : bool
        Whether a text begins with another, shorter one.
    """

    def __init__(self, limit: int = 2**62, step: int = 2**40) -> None:
        self._limit, self._step = limit, step
        self._texts: list[Any] = []
        self._rows: list[list[int]] = []
        self._labels: list[int] = []
        self.n_renewed = 0
        self.nested = False

    def add(self, text: Any, row: int) -> Iterator[tuple[int, int]]:
        """Add a row. Yield the rows whose labels are new, and these labels."""
        at, labels = bisect(self._texts, text), self._labels
        if at and self._texts[at - 1] == text:
            self._rows[at - 1].append(row)
            yield row, labels[at - 1]
            return
        low = labels[at - 1] if at else -self._limit
        high = labels[at] if at < len(labels) else self._limit
        label = (low + high) // 2
        if at == len(labels):  # texts are often in ascending order
            label = min(label, low + self._step)
        if isinstance(text, str):
            self.nested |= at > 0 and text.startswith(self._texts[at - 1])
            self.nested |= at < len(labels) and self._texts[at].startswith(text)
        self._texts.insert(at, text)
        self._rows.insert(at, [row])
        labels.insert(at, label)
        if low < label < high:
            yield row, label
            return
        self.n_renewed += 1
        gap = 2 * self._limit // (len(labels) + 1)
        labels[:] = range(gap - self._limit, gap * (len(labels) + 1) - self._limit, gap)
        for rows, label in zip(self._rows, labels, strict=True):
            yield from ((row, label) for row in rows)
