# SPDX-License-Identifier: Apache-2.0
"""The history of a run: the failures before the run begins.

A run may begin at any time of a failure law or of recorded failures. The history determines the
uptimes of the nodes at the beginning of the run. Failure laws can be fitted to the history.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from threading import Lock

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.outages import outages_of

Ints = npt.NDArray[np.int64]


class History(msgspec.Struct, frozen=True, eq=False):
    """The events of a machine up to and including ``begin_us``. All nodes are up at time 0."""

    events: list[MachineEvent]
    n_nodes: int
    begin_us: int

    @property
    def uptime_us(self) -> Ints:
        """How long each node has been up at ``begin_us``, shape (n,).

        It is 0 for a node that is down.
        """
        since = np.zeros(self.n_nodes, dtype=np.int64)
        for event in self.events:
            since[list(event.nodes)] = event.at_us if event.available else self.begin_us
        return self.begin_us - since


class Remembered:
    """Events that can be iterated several times.

    Each event is drawn only once, when it is first needed. If a draw ends with an exception, for
    example after Ctrl-C, the next iteration draws again from the beginning.

    Parameters
    ----------
    events : iterable of MachineEvent
        Each iteration must yield the same events. An iterator cannot be drawn again: after an
        exception, all further iterations raise an exception at the same place.
    """

    def __init__(self, events: Iterable[MachineEvent]) -> None:
        self._events, self._drawn = events, list[MachineEvent]()
        self._source: Iterator[MachineEvent] | None = None
        self._has_begun = False
        self._error: Exception | None = None
        self._lock = Lock()  # runs in threads share the events

    def __iter__(self) -> Iterator[MachineEvent]:
        for place in itertools.count():
            with self._lock:
                if place == len(self._drawn):
                    # While an event is drawn, nothing is kept: an exception closes a generator, and
                    # a closed generator looks like the end of the events.
                    source, self._source = self._source, None
                    if source is None:
                        source = self._begin(place)
                    try:
                        event = next(source, None)
                    except Exception as error:
                        self._error = error
                        raise
                    if event is not None:
                        self._drawn.append(event)
                    self._source = source
                    if event is None:
                        return
            yield self._drawn[place]

    def _begin(self, place: int) -> Iterator[MachineEvent]:
        """Return the events from a place on, drawn again from the beginning."""
        if self._has_begun and isinstance(self._events, Iterator):  # it has no beginning any more
            problem = "an interrupt ended the iterator of events"
            raise self._error or InputError(problem, expected="a new iterator")
        self._has_begun = True
        return itertools.islice(self._events, place, None)


def before(events: Iterable[MachineEvent], n_nodes: int, begin_us: int) -> History:
    """Return the events up to ``begin_us``: the history of a run that begins at this time."""
    past: list[MachineEvent] = []
    for event in events:
        if event.at_us > begin_us:
            break
        past.append(event)
    return History(past, n_nodes, begin_us)


class After(msgspec.Struct, frozen=True):
    """The events of a run that begins at ``begin_us``, with times relative to ``begin_us``.

    A node that is down at ``begin_us`` fails at time 0 of the run. Every iteration yields the same
    events.
    """

    events: Iterable[MachineEvent]
    begin_us: int

    def __iter__(self) -> Iterator[MachineEvent]:
        past: list[MachineEvent] = []
        remaining = iter(self.events)
        for event in remaining:
            if event.at_us > self.begin_us:
                yield from _still_down(past)
                yield self._relative(event)
                break
            past.append(event)
        else:
            yield from _still_down(past)
        yield from map(self._relative, remaining)

    def _relative(self, event: MachineEvent) -> MachineEvent:
        return MachineEvent(event.at_us - self.begin_us, event.available, event.nodes, event.cause)


def _still_down(past: Sequence[MachineEvent]) -> Iterator[MachineEvent]:
    outages = outages_of(past)
    down = outages.node[outages.up_us == FOREVER_US].tolist()
    if down:
        yield MachineEvent(0, False, NodeSet.of(down))


def after(events: Iterable[MachineEvent], begin_us: int) -> Iterable[MachineEvent]:
    """Return the events of a run that begins at ``begin_us``.

    The result is a list if ``events`` is a list.
    """
    run_events = After(events, begin_us)
    return list(run_events) if isinstance(events, Sequence) else run_events
