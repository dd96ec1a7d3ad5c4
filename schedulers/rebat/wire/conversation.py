# SPDX-License-Identifier: Apache-2.0
"""A conversation: a session whose messages and replies are bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rebat.core.errors import InputError
from rebat.core.events import Message, SimulationBegan
from rebat.core.units import to_s
from rebat.policies.options import configure
from rebat.session.session import Session
from rebat.wire.instants import WholeInstants
from rebat.wire.protocols import Wire, wire_for
from rebat.wire.workload_ids import check_workloads


class Conversation:
    """The scheduler's side of a conversation with Batsim 4 or 5.

    The session is created when the simulation begins, because options of Batsim's command line may
    configure it. If the peer sends an invalid message, an InputError contains the number of the
    message.

    Parameters
    ----------
    configure : callable
        Function that creates the session from Batsim's scheduler configuration (a text, usually
        empty).
    probes : bool
        Whether to delay decisions on failures, repairs and operations until all messages with the
        same time have arrived (see `wire.instants`). A real Batsim requires this.
    protocol : int, optional
        Batsim's major version, 4 or 5 (default: determined by the first frame).
    """

    def __init__(
        self,
        configure: Callable[[str], Session],
        probes: bool = False,
        protocol: int | None = None,
    ) -> None:
        self._configure, self._probes = configure, probes
        self._protocol = protocol
        self._handle: WholeInstants | None = None
        self.wire: Wire | None = None
        self.session: Session | None = None
        self.messages = 0

    def answer(self, data: bytes) -> bytes:
        """Return the reply to a message. Both are bytes."""
        self.messages += 1
        try:
            if self.wire is None:
                self.wire = wire_for(data, self._protocol)
            return self.wire.opening(data) or self._answer(self.wire, data)
        except InputError as error:
            raise error.at(f"message {self.messages} of the peer") from None

    def _answer(self, wire: Wire, data: bytes) -> bytes:
        message = wire.decode(data)
        if self._handle is None:
            self.session = self._begin(message, wire.config)
            self._handle = WholeInstants(self.session.handle, wire.version, self._probes)
        return wire.encode(self._handle(message))

    def _begin(self, message: Message, config: str) -> Session:
        first = message.events[0] if message.events else None
        if not isinstance(first, SimulationBegan):
            raise InputError("the simulation has not begun", expected="SIMULATION_BEGINS")
        check_workloads(first)
        return self._configure(config)

    @property
    def n_probes(self) -> int:
        """Number of probes so far."""
        return self._handle.n_probes if self._handle else 0

    def finished(self) -> bool:
        """Return whether the message about the end of the simulation has been answered."""
        return self.session is not None and self.session.ended

    def standing(self) -> str:
        """Describe the state of the simulation, for the error message if the peer disconnects."""
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
    """Return a session for a policy with this name and these options (JSON)."""
    configured = configure(policy, options)
    settings = msgspec.structs.replace(configured.session, strict=strict)
    return Session(configured.make(), settings)
