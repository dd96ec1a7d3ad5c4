# SPDX-License-Identifier: Apache-2.0
"""Changes of messages that must not change the decisions of a policy.

Noise adds messages without news. It also changes the order of the events in a message, as Batsim 5
can do. Events of the same kind keep their order.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator

from rebat.core.decisions import Decision, Reply
from rebat.core.events import (
    CallRequested,
    Event,
    JobCompleted,
    JobsKilled,
    Message,
    NodesFailed,
    NodesRejuvenated,
    SimulationBegan,
)
from rebat.core.units import to_us

_LIKE = {JobsKilled: JobCompleted, NodesRejuvenated: NodesFailed}
"""Events that are of the same kind as others."""


class Noise:
    """A wrapper of a scheduler that changes the messages of the engine."""

    def __init__(self, handle: Callable[[Message], Reply], rng: random.Random) -> None:
        self._handle, self._rng, self._now_us = handle, rng, 0

    def __call__(self, message: Message) -> Reply:
        """Handle a message and additional messages, and return all decisions in one reply."""
        decisions: list[Decision] = []
        for part in self._parts(message):
            decisions += self._handle(part).decisions
        self._now_us = message.now_us
        return Reply(message.now_us, tuple(decisions))

    def _parts(self, message: Message) -> Iterator[Message]:
        now_us = message.now_us
        if now_us - self._now_us > to_us(1) and self._rng.random() < 0.5:
            yield Message(now_us - to_us(0.5), ())
        yield Message(now_us, self._mixed(message.events))
        while self._rng.random() < 0.5:
            call = (CallRequested(at_us=now_us),)
            yield Message(now_us, self._rng.choice([(), call]))

    def _mixed(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        """Return the events in a random order in which each kind keeps its order."""
        if events and isinstance(events[0], SimulationBegan):
            return events
        kinds = [_LIKE.get(type(event), type(event)) for event in events]
        lanes = defaultdict(list)
        for kind, event in zip(kinds, events, strict=True):
            lanes[kind].append(event)
        self._rng.shuffle(kinds)
        return tuple(lanes[kind].pop(0) for kind in kinds)
