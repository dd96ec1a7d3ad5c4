# SPDX-License-Identifier: Apache-2.0
"""Failures and repairs of nodes as columns, and the outages that they delimit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from rebat.core.arrays import Ints
from rebat.core.nodes import NodeSet
from rebat.core.table import Ragged

NodeEvent = tuple[int, bool, NodeSet]
"""Time in microseconds, whether the nodes are up after the event, and the nodes."""


class Outages(NamedTuple):
    """Outages of single nodes, as int64 arrays of shape (n,): node, start and end (us)."""

    node: Ints
    down_us: Ints
    up_us: Ints

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, int]]) -> Outages:
        """Return outages given as node, start and end (us)."""
        return cls(*np.array([*rows], dtype=np.int64).reshape(-1, 3).T)

    def rows(self) -> list[tuple[int, int, int]]:
        """Return the node, the start and the end (us) of each outage."""
        return list(zip(*(column.tolist() for column in self), strict=True))

    def at(self, rows: npt.NDArray[Any]) -> Outages:
        """Return the outages that a mask or an array of positions selects."""
        return Outages(*(column[rows] for column in self))

    def joined(self) -> Outages:
        """Return outages sorted by node and time. Overlapping or adjacent outages are joined."""
        if not len(self.node):
            return self
        node, down_us, up_us = self.at(np.lexsort((self.up_us, self.down_us, self.node)))
        ends_us, rank = np.unique(up_us, return_inverse=True)
        other = np.r_[True, node[1:] != node[:-1]]
        # the latest end so far of each node, as its rank
        latest = np.maximum.accumulate(np.cumsum(other) * len(ends_us) + rank) % len(ends_us)
        begins = other.copy()
        begins[1:] |= down_us[1:] > ends_us[latest[:-1]]
        starts = np.flatnonzero(begins)
        last = np.r_[starts[1:], len(node)] - 1
        return Outages(node[starts], down_us[starts], ends_us[latest[last]])


class NodeEvents(Sequence[NodeEvent]):
    """A growing sequence of events in order of time."""

    def __init__(self, events: Iterable[NodeEvent] = ()) -> None:
        self._events = list(events)
        self._columns: tuple[Ints, npt.NDArray[np.bool_], Ragged] | None = None

    @classmethod
    def of_columns(cls, at_us: Ints, up: npt.NDArray[np.bool_], nodes: Ragged) -> NodeEvents:
        """Return events from their columns."""
        made = cls()
        made._columns = at_us, up, nodes
        return made

    def append(self, event: NodeEvent) -> None:
        """Add an event."""
        self._rows().append(event)
        self._columns = None

    def columns(self) -> tuple[Ints, npt.NDArray[np.bool_], Ragged]:
        """Return times (us), whether the nodes come up, and the nodes."""
        if self._columns is None:
            events = self._events
            self._columns = (
                np.array([at for at, _, _ in events], dtype=np.int64),
                np.array([up for _, up, _ in events], dtype=np.bool_),
                Ragged.of([nodes for _, _, nodes in events]),
            )
        return self._columns

    def outages(self, horizon_us: int) -> Outages:
        """Return all outages, those that end first, then those that last until the horizon.

        A failure of a node that is down and a repair of a node that is up have no effect.
        """
        at_us, up, sets = self.columns()
        pairs = sets.pairs()
        lengths = pairs[:, 1] - pairs[:, 0] + 1
        shifts = np.repeat(pairs[:, 0] - (np.cumsum(lengths) - lengths), lengths)
        node = shifts + np.arange(len(shifts))
        event = np.repeat(np.arange(len(at_us)), sets.sizes())
        order = np.argsort(node, kind="stable")
        node, event = node[order], event[order]
        comes_up = up[event]
        first = np.ones(len(node), dtype=np.bool_)
        first[1:] = node[1:] != node[:-1]
        was_up = np.ones(len(node), dtype=np.bool_)
        was_up[1:] = first[1:] | comes_up[:-1]
        changes = np.flatnonzero(comes_up != was_up)
        node, event, comes_up = node[changes], event[changes], comes_up[changes]
        begins = np.flatnonzero(~comes_up)
        ended = np.zeros(len(begins), dtype=np.bool_)
        after = begins + 1
        inside = after < len(node)
        ended[inside] = node[after[inside]] == node[begins[inside]]
        closed, open_ = begins[ended], begins[~ended]
        closed = closed[np.argsort(event[closed + 1], kind="stable")]
        open_ = open_[np.argsort(event[open_], kind="stable")]
        begins = np.concatenate([closed, open_])
        since_us = at_us[event[begins]]
        until_us = np.maximum(since_us, horizon_us)
        until_us[: len(closed)] = at_us[event[closed + 1]]
        return Outages(node[begins], since_us, until_us)

    def _rows(self) -> list[NodeEvent]:
        if self._columns is not None and not self._events:
            at_us, up, sets = self._columns
            nodes = [each or NodeSet.of(()) for each in sets.sets()]
            self._events = list(zip(at_us.tolist(), up.tolist(), nodes, strict=True))
        return self._events

    def __len__(self) -> int:
        return len(self._events) if self._columns is None else len(self._columns[0])

    def __iter__(self) -> Iterator[NodeEvent]:
        return iter(self._rows())

    @overload
    def __getitem__(self, place: int) -> NodeEvent: ...
    @overload
    def __getitem__(self, place: slice) -> list[NodeEvent]: ...
    def __getitem__(self, place: int | slice) -> NodeEvent | list[NodeEvent]:
        """Return an event, or the list of the events in a slice."""
        return self._rows()[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._rows() == list(other)

    __hash__ = None  # type: ignore[assignment]
