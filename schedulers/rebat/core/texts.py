# SPDX-License-Identifier: Apache-2.0
"""An array of texts, such as the ids of millions of jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, overload

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_BLOCK = 2**16
"""Number of texts that are converted at a time, to save memory."""

SHORT = 12
"""Maximum length of a text, in bytes, in an array of fixed width."""

_FACTOR, _BITS = 0x9E3779B97F4A7C15, 2**64
_POWERS = [1]
"""Powers of the factor of the hash, modulo 2**64, as many as the longest text needed so far."""


class Texts(Sequence[str]):
    """Texts as UTF-8, which need 8 bytes per text in addition to their characters.

    Attributes
    ----------
    data : bytes
        All texts, one after the other.
    bounds : int64 array, shape (n + 1,)
        Text ``i`` is ``data[bounds[i] : bounds[i + 1]]``.
    """

    def __init__(self, data: bytes, bounds: Ints) -> None:
        self.data, self.bounds = data, bounds

    @classmethod
    def of(cls, texts: Iterable[str]) -> Texts:
        """Return texts as an array."""
        texts = [*texts]
        joined = "".join(texts)
        data = joined.encode()
        sized = texts if len(data) == len(joined) else map(str.encode, texts)
        return cls(data, _bounds([np.fromiter(map(len, sized), np.int64, len(texts))]))

    @classmethod
    def joined(cls, parts: Sequence[Texts]) -> Texts:
        """Return the texts of all parts."""
        lengths = [np.diff(part.bounds) for part in parts]
        return cls(b"".join([part.data for part in parts]), _bounds(lengths))

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(map(self._decoded, range(0, len(self), _BLOCK)))

    def _decoded(self, first: int) -> list[str]:
        """Return a block of texts."""
        bounds = self.bounds[first : first + _BLOCK + 1]
        block = self.data[bounds[0] : bounds[-1]]
        places = pairwise((bounds - bounds[0]).tolist())
        if not block.isascii():
            return [block[low:high].decode() for low, high in places]
        text = block.decode()
        return [text[low:high] for low, high in places]

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        """Return a text, or the texts of a slice."""
        if isinstance(place, slice):
            return [self[row] for row in range(*place.indices(len(self)))]
        if place < 0:
            place += len(self)
        return self.data[self.bounds[place] : self.bounds[place + 1]].decode()

    def take(self, rows: Ints) -> Texts:
        """Return the texts of an array of rows."""
        bounds = _bounds([np.diff(self.bounds)[rows]])
        places = np.repeat(self.bounds[rows] - bounds[:-1], np.diff(bounds))
        places += np.arange(len(places))
        return Texts(np.frombuffer(self.data, np.uint8)[places].tobytes(), bounds)

    def array(self) -> npt.NDArray[Any]:
        """Return an array of texts. Short texts have a fixed width, which takes less memory."""
        lengths = np.diff(self.bounds)
        width = int(lengths.max(initial=1))
        if width > SHORT or not self.data.isascii():
            return np.array([*self, ""], dtype=object)[:-1]
        codes = np.zeros((len(self), max(width, 1)), dtype=np.uint32)
        codes[np.arange(codes.shape[1]) < lengths[:, None]] = np.frombuffer(self.data, np.uint8)
        return codes.view(f"U{codes.shape[1]}")[:, 0]

    def first_repeat(self) -> int | None:
        """Return the position of the first text that equals an earlier text, or None."""
        hashes = np.sort(self._hashes())
        seen: set[str] = set()
        for row, text in enumerate(self if (hashes[1:] == hashes[:-1]).any() else ()):
            if text in seen:
                return row
            seen.add(text)
        return None

    def position(self, text: str) -> int | None:
        """Return the position of the first text that equals ``text``, or None.

        The first call takes time proportional to the number of texts.
        """
        hashes, rows = self._index
        wanted = np.uint64(_hash(text.encode()))
        for at in range(int(np.searchsorted(hashes, wanted)), len(hashes)):
            if hashes[at] != wanted:
                break
            if self[rows[at]] == text:
                return int(rows[at])
        return None

    @cached_property
    def _index(self) -> tuple[npt.NDArray[np.uint64], Ints]:
        """The hashes in ascending order, and the positions of their texts."""
        hashes = self._hashes()
        rows = np.argsort(hashes, kind="stable")
        return hashes[rows], rows

    def _hashes(self) -> npt.NDArray[np.uint64]:
        """Return the sum of character times power of the factor of each text, modulo 2**64."""
        lengths, data = np.diff(self.bounds), np.frombuffer(self.data, np.uint8)
        powers = np.array(_powers(int(lengths.max(initial=0))), np.uint64)
        hashes = np.empty(len(self), np.uint64)
        for first in range(0, len(self), _BLOCK):
            bounds = self.bounds[first : first + _BLOCK + 1]
            low, high = bounds[0], bounds[-1]
            places = np.arange(low, high) - np.repeat(bounds[:-1], lengths[first : first + _BLOCK])
            sums = np.zeros(high - low + 1, np.uint64)
            np.cumsum(
                (data[low:high].astype(np.uint64) + np.uint64(1)) * powers[places], out=sums[1:]
            )
            hashes[first : first + _BLOCK] = np.diff(sums[bounds - low])
        return hashes


def _bounds(lengths: Sequence[Ints]) -> Ints:
    return np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths]))


def _powers(count: int) -> list[int]:
    while len(_POWERS) < count:
        _POWERS.append(_POWERS[-1] * _FACTOR % _BITS)
    return _POWERS


def _hash(data: bytes) -> int:
    return (
        sum((byte + 1) * power for byte, power in zip(data, _powers(len(data)), strict=False))
        % _BITS
    )
