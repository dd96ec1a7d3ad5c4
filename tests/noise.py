# SPDX-License-Identifier: Apache-2.0
"""Messages that bring no news, and instants that fall apart: no decision may depend on them."""

from __future__ import annotations

import random
from collections.abc import Iterator

from rebat.core.decisions import Reply
from rebat.core.events import CallRequested, Message, NodesFailed, NodesRejuvenated
from rebat.core.units import to_us
from rebat.session.session import Session


class Noise:
    """A session that gets more messages than the engine sends: some bring nothing.

    With ``apart`` a node's repair and its failure at the same time come in two messages.
    """

    def __init__(self, session: Session, rng: random.Random, apart: bool = True) -> None:
        self._session, self._rng, self._apart = session, rng, apart

    def __call__(self, message: Message) -> Reply:
        """All that the session answers to the parts of a message, in one reply."""
        decisions = [
            d for part in self._parts(message) for d in self._session.handle(part).decisions
        ]
        assert not [d for d in decisions if d.at_us != message.now_us]
        return Reply(message.now_us, tuple(decisions))

    def _parts(self, message: Message) -> Iterator[Message]:
        now_us, last_us = message.now_us, self._session.now_us
        if now_us - last_us > to_us(1) and self._rng.random() < 0.5:
            self._session.handle(Message(now_us - to_us(0.5), ()))
        yield from _repairs_apart(message) if self._apart else (message,)
        while self._rng.random() < 0.5:
            call = (CallRequested(at_us=now_us),)
            yield Message(now_us, self._rng.choice([(), call]))


def _repairs_apart(message: Message) -> Iterator[Message]:
    """Failures of nodes that were repaired in the same message come in a second one."""
    repaired: set[int] = set()
    first, second = [], []
    for event in message.events:
        if isinstance(event, NodesRejuvenated):
            repaired.update(event.nodes)
        if isinstance(event, NodesFailed) and repaired.intersection(event.nodes):
            second.append(event)
        else:
            first.append(event)
    yield Message(message.now_us, tuple(first))
    if second:
        yield Message(message.now_us, tuple(second))
