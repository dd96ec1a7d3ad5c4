# SPDX-License-Identifier: Apache-2.0
"""Sets of job ids that need about one bit per id, because millions of jobs may have ended."""

from __future__ import annotations

from collections.abc import Iterable

_BITS = 256
"""Number of ids per mask (an integer with a bit per id)."""

_MOST_DIGITS = 15

_RECENT = 2**16
"""Number of ids up to which they are stored as a set of texts, which is faster."""


class IdSet:
    """A growing set of texts. A text that ends in a number, like ``w0!12``, needs about one bit.

    Texts without a number, or with numbers that are far apart, need as much memory as in a Python
    set.

    >>> ids = IdSet(["w0!7", "w0!07", "a"])
    >>> ["w0!7" in ids, "w0!07" in ids, "7" in ids, "a" in ids]
    [True, True, False, True]
    """

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._recent: set[str] = set()
        self._texts: set[str] = set()
        self._masks: dict[tuple[str, int], int] = {}
        for text in ids:
            self.add(text)

    def add(self, text: str) -> None:
        """Add a text."""
        self._recent.add(text)
        if len(self._recent) == _RECENT:
            self._pack()

    def _pack(self) -> None:
        for text in self._recent:
            place = _place(text)
            if place is None:
                self._texts.add(text)
            else:
                key, bit = place
                self._masks[key] = self._masks.get(key, 0) | bit
        self._recent = set()

    def __contains__(self, text: str) -> bool:
        if text in self._recent or text in self._texts:
            return True
        place = _place(text) if self._masks else None
        if place is None:
            return False
        key, bit = place
        return bool(self._masks.get(key, 0) & bit)


def _place(text: str) -> tuple[tuple[str, int], int] | None:
    """Return the key of the mask and the bit for a text that ends in a number, else None."""
    prefix, mark, digits = text.rpartition("!")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS):
        return None
    if digits[0] == "0" and digits != "0":
        return None
    mask, bit = divmod(int(digits), _BITS)
    return (prefix + mark, mask), 1 << bit
