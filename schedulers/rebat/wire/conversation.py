# SPDX-License-Identifier: Apache-2.0
"""A session with messages and replies as bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rebat.core.decisions import Reply
from rebat.core.errors import InputError
from rebat.core.events import Message, SimulationBegan
from rebat.core.units import to_s
from rebat.policies.options import configure
from rebat.session.session import Session
from rebat.wire import batsim4
from rebat.wire.instants import WholeInstants
from rebat.wire.workload_ids import check_workloads


class Conversation:
    """The scheduler's side of a Batsim 4 conversation.

    The session is created when the simulation begins, because Batsim's ``--sched-cfg`` may
    configure it. Every failure of the peer is an InputError with the number of the message.

    Parameters
    ----------
    configure : callable
        Creates the session from Batsim's scheduler configuration (text, usually empty).
    whole_instants : bool
        Delay decisions on repairs until the entire instant is known (see `wire.instants`). A real
        Batsim requires this.
    """

    def __init__(self, configure: Callable[[str], Session], whole_instants: bool = False) -> None:
        self._configure, self._whole_instants = configure, whole_instants
        self._handle: Callable[[Message], Reply] | None = None
        self.session: Session | None = None
        self.messages = 0

    def answer(self, data: bytes) -> bytes:
        """Return the reply to a message, both as bytes."""
        self.messages += 1
        try:
            message = batsim4.decode_message(data)
            if self._handle is None:
                self.session = self._begin(message)
                handle = self.session.handle
                self._handle = WholeInstants(handle) if self._whole_instants else handle
            return batsim4.encode_reply(self._handle(message))
        except InputError as error:
            raise error.at(f"message {self.messages} of the peer") from None

    def _begin(self, message: Message) -> Session:
        first = message.events[0] if message.events else None
        if not isinstance(first, SimulationBegan):
            raise InputError("the simulation has not begun", expected="SIMULATION_BEGINS")
        check_workloads(first)
        config = first.config.get("sched-config")
        return self._configure(config if isinstance(config, str) else "")

    def finished(self) -> bool:
        """Return whether SIMULATION_ENDS was answered."""
        return self.session is not None and self.session.ended

    def standing(self) -> str:
        """Return the state of the simulation, for the error when the peer disconnects."""
        session = self.session
        if session is None:
            return "the simulation had not begun"
        waiting, running = len(session.queue), len(session.running)
        text = (
            f"the simulation had not ended: at {to_s(session.now_us):.6f} s, {running} jobs run "
            f"and {waiting} wait"
        )
        if session.ledger.refusals:
            text += f", {len(session.ledger.refusals)} proposals were refused"
        stuck = not running and not (session.statics_over and not waiting)
        return text + (
            " (Batsim deadlocked, or was killed)" if stuck else " (perhaps it was killed)"
        )


def session_for(policy: str, options: Mapping[str, Any], strict: bool = False) -> Session:
    """Return a session for a named scheduler with JSON options."""
    configured = configure(policy, options)
    settings = msgspec.structs.replace(configured.session, strict=strict)
    return Session(configured.make(), settings)
