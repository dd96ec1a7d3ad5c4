# SPDX-License-Identifier: Apache-2.0
"""Changes of messages that must not change the decisions of a policy.

Noise adds messages without news.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from rebat.core.decisions import Decision, Reply
from rebat.core.events import CallRequested, Message
from rebat.core.units import to_us


class Noise:
    """A wrapper of a scheduler that adds messages to those of the engine."""

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
        yield message
        while self._rng.random() < 0.5:
            call = (CallRequested(at_us=now_us),)
            yield Message(now_us, self._rng.choice([(), call]))
