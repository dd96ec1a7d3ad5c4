# SPDX-License-Identifier: Apache-2.0
"""Failures before a run: what is known of nodes when it begins.

A run may begin at any date of a law or a record. What failed before is its history: it gives the
nodes their uptimes, and something to fit laws to.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.nodes import NodeSet
from rebat.models.failures.events import MachineEvent, down_intervals

Ints = npt.NDArray[np.int64]


class History(msgspec.Struct, frozen=True, eq=False):
    """The events of so many nodes up to a date, that date included; nodes are up at 0."""

    events: list[MachineEvent]
    n_nodes: int
    begin_us: int

    @property
    def uptime_us(self) -> Ints:
        """For how long each node has been up at the end: shape (n,); 0 for one that is down."""
        since = np.zeros(self.n_nodes, dtype=np.int64)
        for event in self.events:
            since[list(event.nodes)] = event.at_us if event.available else self.begin_us
        return self.begin_us - since


class Remembered:
    """Events that are drawn once, as they are looked at first, however often that is."""

    def __init__(self, events: Iterable[MachineEvent]) -> None:
        self._rest, self._seen = iter(events), list[MachineEvent]()

    def __iter__(self) -> Iterator[MachineEvent]:
        for place in itertools.count():
            if place == len(self._seen):
                event = next(self._rest, None)
                if event is None:
                    return
                self._seen.append(event)
            yield self._seen[place]


def before(events: Iterable[MachineEvent], n_nodes: int, begin_us: int) -> History:
    """The history of a run that begins at a date."""
    past: list[MachineEvent] = []
    for event in events:
        if event.at_us > begin_us:
            break
        past.append(event)
    return History(past, n_nodes, begin_us)


class After(msgspec.Struct, frozen=True):
    """What befalls a run that begins at a date, counted from there, as far as it is looked at.

    Nodes that are down then fail at 0. Every look begins anew and sees the same.
    """

    events: Iterable[MachineEvent]
    begin_us: int

    def __iter__(self) -> Iterator[MachineEvent]:
        past: list[MachineEvent] = []
        rest = iter(self.events)
        for event in rest:
            if event.at_us > self.begin_us:
                yield from _still_down(past)
                yield self._moved(event)
                break
            past.append(event)
        else:
            yield from _still_down(past)
        yield from map(self._moved, rest)

    def _moved(self, event: MachineEvent) -> MachineEvent:
        return MachineEvent(event.at_us - self.begin_us, event.available, event.nodes)


def _still_down(past: Sequence[MachineEvent]) -> Iterator[MachineEvent]:
    down = [node for node, _, up_us in down_intervals(past) if up_us is None]
    if down:
        yield MachineEvent(0, False, NodeSet.of(down))


def after(events: Iterable[MachineEvent], begin_us: int) -> Iterable[MachineEvent]:
    """What befalls a run that begins at a date; a list of what is recorded stays one."""
    found = After(events, begin_us)
    return list(found) if isinstance(events, Sequence) else found
