# SPDX-License-Identifier: Apache-2.0
"""Both sides of a conversation, whose messages and replies are bytes.

`Conversation` is the side of the scheduler: a session that answers a simulator. `run_remote` is the
side of the simulator: an engine that asks a scheduler. The session is independent of the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from rebat.core.attempts import check_ids
from rebat.core.decisions import Reply
from rebat.core.errors import InputError
from rebat.core.events import Message, SimulationBegan
from rebat.core.numbers import exactly
from rebat.core.units import to_s
from rebat.drive.drivers import driver_for
from rebat.drive.messages import Messages
from rebat.engine.engine import Engine, OnProgress
from rebat.policies.options import Adapt, configure
from rebat.wire import batsim4, batsim5
from rebat.wire.batsim5 import (
    OURS,
    Features,
    decode_hello,
    decode_init,
    encode_hello,
    encode_init,
    is_init,
)
from rebat.wire.instants import WholeInstants
from rebat.wire.profiles5 import with_sequences

T = TypeVar("T", bound=msgspec.Struct)
Ask = Callable[[bytes], bytes]


class Conversation:
    """The scheduler's side of a conversation with Batsim 4 or 5.

    The first frame shows the protocol. It begins with a JSON object in Batsim 4, and with the
    length of a text in Batsim 5. The session is created when the simulation begins, because options
    of Batsim's command line may configure it. If the peer sends an invalid message, an InputError
    contains the number of the message.

    Parameters
    ----------
    configure : callable
        Function that creates the driver from Batsim's scheduler configuration (a text, usually
        empty) and the first event.
    probes : bool
        Whether to delay decisions on failures, repairs and operations until all messages with the
        same time have arrived (see `wire.instants`). A real Batsim requires this.
    protocol : int, optional
        Batsim's major version, 4 or 5 (default: determined by the first frame).
    """

    def __init__(
        self,
        configure: Callable[[str, SimulationBegan], Messages],
        probes: bool = False,
        protocol: int | None = None,
    ) -> None:
        self._configure, self._probes = configure, probes
        self._handle: WholeInstants | None = None
        self._text = ""
        self.protocol = protocol
        self.session: Messages | None = None
        self.began: SimulationBegan | None = None
        self.messages = 0

    def answer(self, data: bytes) -> bytes:
        """Return the reply to a message. Both are bytes."""
        self.messages += 1
        try:
            if self.messages == 1:
                self._identify(data)
                if self.protocol == 5:
                    self._text = decode_init(data)
                    return encode_hello()
            if self.protocol == 4:
                return batsim4.encode_reply(self._reply(batsim4.decode_message(data)))
            message, now_s = batsim5.decode_timed(data)
            reply = self._reply(message)
            return batsim5.encode_reply(Reply(reply.now_us, with_sequences(reply.decisions)), now_s)
        except InputError as error:
            raise error.at(f"message {self.messages} of the peer") from None

    def _identify(self, data: bytes) -> None:
        """Set the protocol. If the simulator uses another one than expected, raise InputError."""
        spoken = 5 if is_init(data) else 4
        if self.protocol not in (None, spoken):
            raise InputError(
                f"the simulator does not speak the protocol of Batsim {self.protocol}",
                expected="the version of the simulator: --protocol 4 or --protocol 5",
            )
        self.protocol = spoken

    def _reply(self, message: Message) -> Reply:
        if self._handle is None:
            message = self._begin(message)
            assert self.session is not None and self.protocol is not None
            self._handle = WholeInstants(self.session.handle, self.protocol, self._probes)
        return self._handle(message)

    def _begin(self, message: Message) -> Message:
        """Create the session. Return the first message with the configuration of the simulation."""
        first = message.events[0] if message.events else None
        if not isinstance(first, SimulationBegan):
            raise InputError("the simulation has not begun", expected="SIMULATION_BEGINS")
        if self.protocol == 5:
            config = {
                **first.config,
                "sched-config": self._text,
                "dynamic-jobs-enabled": OURS.dynamic_registration,
                "dynamic-jobs-acknowledged": OURS.acknowledge_dynamic_jobs,
                "profile-reuse-enabled": OURS.profile_reuse,
            }
            first = msgspec.structs.replace(first, config=config)
        check_workloads(first)
        self.began = first
        text = first.config.get("sched-config")
        self.session = self._configure(text if isinstance(text, str) else "", first)
        return Message(message.now_us, (first, *message.events[1:]))

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
        waiting, running = session.n_waiting, session.n_running
        text = (
            f"the simulation had not ended: at {to_s(session.now_us):.6f} s, {running} jobs run "
            f"and {waiting} wait"
        )
        if session.refusals:
            text += f", {len(session.refusals)} proposals were refused"
        stuck = not running and not (session.statics_over and not waiting)
        return text + (
            " (Batsim deadlocked, or was killed)" if stuck else " (perhaps it was killed)"
        )


def session_for(
    policy: str,
    options: Mapping[str, Any],
    began: SimulationBegan,
    strict: bool = False,
    adapt: Adapt | None = None,
) -> Messages:
    """Return the driver for a policy with this name and these options (JSON)."""
    configured = configure(policy, options, adapt)
    settings = msgspec.structs.replace(configured.session, strict=strict)
    return driver_for(configured, settings, began)


# ---- the simulator's side


def greet(ask: Ask, text: str = "") -> Features:
    """Send Batsim 5's text to a scheduler. Return the features that the scheduler requests."""
    try:
        return decode_hello(ask(encode_init(text)))
    except InputError as error:
        raise error.at("the scheduler's hello") from None


def run_remote(engine: Engine, ask: Ask, on_progress: OnProgress | None = None) -> None:
    """Run an engine with the scheduler at the other end of ``ask``.

    If Batsim could not read a reply, raise InputError. If it would abort on a decision, raise
    BatsimAbort.
    """
    codec: Any = batsim5 if engine.protocol == 5 else batsim4

    def scheduler(message: Message) -> Reply:
        data = ask(codec.encode_message(message))
        try:
            reply: Reply = codec.decode_reply(data)
            return reply
        except InputError as error:
            raise error.at("the scheduler's reply") from None

    engine.run(scheduler, on_progress)


# ---- early checks of workload files: Batsim's messages contain only their names


class _Id(msgspec.Struct, gc=False):
    id: int | str


class _Ids(msgspec.Struct, gc=False):
    jobs: list[_Id]


class _Machine(msgspec.Struct, gc=False):
    nb_res: int


def check_workloads(event: SimulationBegan) -> None:
    """Check that no job of a workload has the id of a resubmission of another job.

    Otherwise, an error would occur only when the job is submitted. Batsim may run in a container;
    therefore, files that cannot be read here are ignored. If dynamic jobs are disabled, nothing is
    checked.
    """
    if not event.config.get("dynamic-jobs-enabled"):
        return
    for file, content in _contents(event, _Ids):
        try:
            check_ids([str(job.id) for job in content.jobs])
        except InputError as error:
            raise error.at(file) from None


def other_machines(event: SimulationBegan) -> Iterator[str]:
    """Yield a warning for each workload file with another number of hosts than the platform."""
    for file, content in _contents(event, _Machine):
        if content.nb_res != event.n_nodes:
            yield other_machine(event.n_nodes, file, content.nb_res)


def other_machine(n_hosts: int, workload: str, n_nodes: int, machine: str = "platform") -> str:
    """Return the warning that a platform has another number of hosts than a workload."""
    return (
        f"the {machine} has {exactly(n_hosts, 'host')}, but the workload {workload} is for "
        f"{n_nodes} (nb_res); the schedule will differ from that of 'rebat run'"
    )


def _contents(event: SimulationBegan, kind: type[T]) -> Iterator[tuple[str, T]]:
    """Yield name and content of each workload file that can be read here."""
    for file in map(str, event.workloads.values()):
        try:
            path = Path(file)
            content = msgspec.json.decode(path.read_bytes(), type=kind) if path.is_file() else None
        except (OSError, ValueError, RecursionError, msgspec.DecodeError):
            continue
        if content is not None:
            yield file, content
