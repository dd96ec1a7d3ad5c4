# SPDX-License-Identifier: Apache-2.0
"""The protocols of Batsim 4 and 5, for the scheduler. The session is independent of both.

The first frame of a simulator shows its protocol. It begins with a JSON object in Batsim 4, and
with the length of a text in Batsim 5.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from rebat.core.decisions import Reply
from rebat.core.errors import InputError
from rebat.core.events import Message, SimulationBegan
from rebat.wire import batsim4, batsim5
from rebat.wire.hello5 import OURS, Features, decode_init, encode_hello, is_init
from rebat.wire.sequences5 import with_sequences

VERSIONS = (4, 5)


class Wire(Protocol):
    """The protocol of one conversation with a simulator. A frame contains one message, as bytes."""

    version: int
    config: str
    """The scheduler configuration that Batsim passes on its command line."""

    def opening(self, data: bytes) -> bytes | None:
        """Return the reply to a frame of the handshake, or None if the frame is a message."""

    def decode(self, data: bytes) -> Message:
        """Return the message in a frame."""

    def encode(self, reply: Reply) -> bytes:
        """Return the frame with ``reply``, which is the reply to the last message."""


class Batsim4Wire:
    """Batsim 4. It has no handshake, and its first message contains the configuration."""

    version = 4

    def __init__(self) -> None:
        self.config = ""

    def opening(self, data: bytes) -> bytes | None:
        """Return None, because there is no handshake."""
        return None

    def decode(self, data: bytes) -> Message:
        """Return the message in a frame."""
        message = batsim4.decode_message(data)
        for event in message.events:
            if isinstance(event, SimulationBegan):
                config = event.config.get("sched-config")
                self.config = config if isinstance(config, str) else ""
        return message

    def encode(self, reply: Reply) -> bytes:
        """Return the bytes that send ``reply`` to Batsim."""
        return batsim4.encode_reply(reply)


class Batsim5Wire:
    """Batsim 5. It begins with a handshake, in which the scheduler requests features."""

    version = 5

    def __init__(self, features: Features = OURS) -> None:
        self.config = ""
        self._features = features
        self._now_s = 0.0
        self._greeted = False

    def opening(self, data: bytes) -> bytes | None:
        """Return the hello as the reply to the first frame, or None for later frames."""
        if self._greeted:
            return None
        self.config = decode_init(data)
        self._greeted = True
        return encode_hello(self._features)

    def decode(self, data: bytes) -> Message:
        """Return the message in a frame."""
        message, self._now_s = batsim5.decode_timed(data)
        events = message.events
        first = events[0] if events else None
        if isinstance(first, SimulationBegan):
            features = self._features
            config = {
                **first.config,
                "sched-config": self.config,
                "dynamic-jobs-enabled": features.dynamic_registration,
                "dynamic-jobs-acknowledged": features.acknowledge_dynamic_jobs,
                "profile-reuse-enabled": features.profile_reuse,
            }
            events = (msgspec.structs.replace(first, config=config), *events[1:])
        return Message(message.now_us, events)

    def encode(self, reply: Reply) -> bytes:
        """Return the bytes that send ``reply`` to Batsim.

        The reply contains the time of Batsim's message with exactly the digits that Batsim printed.
        """
        decisions = with_sequences(reply.decisions)
        return batsim5.encode_reply(Reply(reply.now_us, decisions), self._now_s)


def wire_for(data: bytes, version: int | None) -> Wire:
    """Return the protocol of a conversation, from its first frame.

    Raises
    ------
    InputError
        If the simulator uses the protocol of a version other than ``version``.
    """
    spoken = 5 if is_init(data) else 4
    if version not in (None, spoken):
        options = " or ".join(f"--protocol {number}" for number in VERSIONS)
        raise InputError(
            f"the simulator does not speak the protocol of Batsim {version}",
            expected=f"the version of the simulator: {options}",
        )
    return Batsim5Wire() if spoken == 5 else Batsim4Wire()
