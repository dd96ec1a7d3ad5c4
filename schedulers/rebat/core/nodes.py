# SPDX-License-Identifier: Apache-2.0
"""Node sets: sorted disjoint intervals of node ids, as in Batsim's messages (``"0-3 5"``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError

if TYPE_CHECKING:
    from procset import ProcSet

Intervals = npt.NDArray[np.int64]
"""Array of shape (k, 2): first and last node of each interval, ascending and not adjacent."""

_TOKEN = re.compile(r"(\d{1,15})(?:-(\d{1,15}))?\Z")


def parse_intervals(text: str) -> list[tuple[int, int]]:
    """Return the ids and ranges of a set in Batsim's notation, in the order of the text."""
    pairs = []
    for token in text.replace(",", " ").split():
        match = _TOKEN.match(token)
        if not match:
            raise InputError(f"{text[:60]!r} is not a set of nodes", expected="like '0-3 5'")
        pairs.append((int(match[1]), int(match[2] or match[1])))
    return pairs


FEW = 64
"""Maximum number of nodes or intervals for which a loop is faster than an array."""


class NodeSet:
    """An immutable set of node ids, stored as canonical intervals.

    >>> NodeSet.parse("0-3 5 4")
    NodeSet('0-5')
    """

    __slots__ = ("intervals", "size")

    def __init__(self, intervals: Intervals, size: int | None = None) -> None:
        """Create a set from canonical intervals: ascending, disjoint and not adjacent.

        For other intervals, use ``from_intervals``. ``size`` is the number of nodes, or None if it
        is unknown.
        """
        self.intervals = intervals
        if size is None:
            size = int((intervals[:, 1] - intervals[:, 0]).sum()) + len(intervals)
        self.size = size

    @classmethod
    def from_intervals(cls, pairs: Iterable[tuple[int, int]]) -> NodeSet:
        """Create a set from inclusive (first, last) pairs in any order."""
        merged: list[list[int]] = []
        for first, last in sorted(pairs):
            if first < 0 or last < first:
                raise InputError(f"{first}-{last} is not an interval of nodes")
            if merged and first <= merged[-1][1] + 1:
                merged[-1][1] = max(merged[-1][1], last)
            else:
                merged.append([first, last])
        size = sum(last - first + 1 for first, last in merged)
        return cls(np.array(merged, dtype=np.int64).reshape(-1, 2), size)

    @classmethod
    def of(cls, nodes: Iterable[int]) -> NodeSet:
        """Create a set from node ids in any order; duplicates are allowed."""
        ids = list(nodes)
        if len(ids) == 1 and ids[0] >= 0:
            return cls(np.array([[ids[0], ids[0]]], dtype=np.int64), 1)
        if len(ids) > FEW and min(ids) >= 0:
            array = np.array(ids, dtype=np.int64)
            array.sort(kind="stable")  # fast for sorted parts, and faster than np.unique
            return cls.of_sorted(array[np.diff(array, prepend=-1) > 0])
        return cls.from_intervals((node, node) for node in ids)

    @classmethod
    def of_sorted(cls, nodes: npt.NDArray[np.int64]) -> NodeSet:
        """Create a set from node ids that are sorted and unique."""
        (breaks,) = (nodes[1:] - nodes[:-1] > 1).nonzero()
        intervals = np.empty((len(breaks) + bool(len(nodes)), 2), dtype=np.int64)
        intervals[:1, 0], intervals[1:, 0] = nodes[:1], nodes[breaks + 1]
        intervals[:-1, 1], intervals[-1:, 1] = nodes[breaks], nodes[-1:]
        return cls(intervals, len(nodes))

    def first(self, count: int) -> NodeSet:
        """Return the ``count`` lowest nodes. The set must have at least ``count`` nodes.

        >>> NodeSet.parse("0-3 5 7-9").first(6)
        NodeSet('0-3 5 7')
        """
        if count == self.size:
            return NodeSet(self.intervals, count)
        n, intervals = 0, []
        for first, last in self.intervals.tolist():
            intervals.append((first, min(last, first + count - n - 1)))
            n += last - first + 1
            if n >= count:
                break
        return NodeSet(np.array(intervals, dtype=np.int64).reshape(-1, 2), count)

    def meets(self, other: NodeSet) -> bool:
        """Return whether the two sets have a node in common."""
        if len(self.intervals) + len(other.intervals) <= FEW:
            return _meet(self.intervals.tolist(), other.intervals.tolist())
        a, b = self.intervals, other.intervals
        at = np.searchsorted(a[:, 1], b[:, 0])
        inside = at < len(a)
        return bool((a[at[inside], 0] <= b[inside, 1]).any())

    @property
    def lowest(self) -> int:
        """The lowest node. The set must not be empty."""
        return int(self.intervals[0, 0])

    @property
    def ids(self) -> npt.NDArray[np.int64]:
        """The node ids, ascending."""
        parts = [np.arange(first, last + 1) for first, last in self.intervals.tolist()]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)

    def of_each(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Select this set's entries from an array over all nodes, in ascending order of nodes."""
        parts = [values[first : last + 1] for first, last in self.intervals.tolist()]
        return np.concatenate(parts) if parts else values[:0]

    def where(self, mask: npt.NDArray[np.bool_]) -> NodeSet:
        """Return the nodes of this set that are also set in a mask over all nodes."""
        return NodeSet.of_sorted(self.ids[self.of_each(mask)])

    def put(self, mask: npt.NDArray[np.bool_], value: bool) -> None:
        """Set the entries of these nodes in a mask over all nodes."""
        for first, last in self.intervals.tolist():
            mask[first : last + 1] = value

    def mask(self, n_nodes: int) -> npt.NDArray[np.bool_]:
        """Return a new mask of ``n_nodes`` nodes in which these nodes are set.

        >>> NodeSet.parse("1-2").mask(4).tolist()
        [False, True, True, False]
        """
        mask = np.zeros(n_nodes, dtype=np.bool_)
        self.put(mask, True)
        return mask

    @classmethod
    def parse(cls, text: str) -> NodeSet:
        """Create a set from Batsim's notation: ids and ranges, separated by spaces or commas."""
        return cls.from_intervals(parse_intervals(text))

    @property
    def procset(self) -> ProcSet:
        """The set as a ``procset.ProcSet``, which has operations like union and difference."""
        from procset import ProcSet

        return ProcSet(*((int(a), int(b)) for a, b in self.intervals))

    @classmethod
    def from_procset(cls, nodes: ProcSet) -> NodeSet:
        """Create a set from a ``procset.ProcSet``."""
        return cls.from_intervals((i.inf, i.sup) for i in nodes.intervals())

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[int]:
        for first, last in self.intervals.tolist():
            yield from range(first, last + 1)

    def __contains__(self, node: int) -> bool:
        position = int(np.searchsorted(self.intervals[:, 1], node))
        return position < len(self.intervals) and bool(self.intervals[position, 0] <= node)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSet) and np.array_equal(self.intervals, other.intervals)

    def __hash__(self) -> int:
        return hash(self.intervals.tobytes())

    def __str__(self) -> str:
        return " ".join([f"{a}-{b}" if a != b else f"{a}" for a, b in self.intervals.tolist()])

    def __repr__(self) -> str:
        return f"NodeSet({str(self)!r})"


def _meet(a: list[list[int]], b: list[list[int]]) -> bool:
    """Return whether two lists of ascending intervals have a number in common."""
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i][1] < b[j][0]:
            i += 1
        elif b[j][1] < a[i][0]:
            j += 1
        else:
            return True
    return False
