# SPDX-License-Identifier: Apache-2.0
"""Complete instants for a session.

An *instant* is the set of all messages with the same simulated time. If a node is repaired and
fails again at the same time, Batsim 4.2.1 can report this in two messages, because its clock is
wrong by the last binary digit when it sends the first message. If a job starts on the node between
the two messages, Batsim aborts. Therefore, this module delays a message with repairs until Batsim
has sent all messages of its instant. A requested call cannot show that all messages were sent,
because its minimum delay is 10 microseconds. However, Batsim acknowledges the registration of a job
immediately. Therefore, this module registers a job (the *probe*) only to receive this
acknowledgement, and then rejects the job.
"""

from __future__ import annotations

from collections.abc import Callable

from rebat.core.decisions import (
    Decision,
    FinishRegistration,
    RegisterJob,
    RegisterProfile,
    RejectJob,
    Reply,
)
from rebat.core.events import (
    Event,
    JobSubmitted,
    Message,
    NodesRejuvenated,
    SimulationBegan,
    SimulationEnded,
)
from rebat.core.jobs import PROBES, batsim_number


class WholeInstants:
    """A scheduler that forwards messages with repairs only when their instant is complete.

    This requires Batsim's options ``--enable-dynamic-jobs`` and ``--acknowledge-dynamic-jobs``.
    Without them, or after the end of the registration of jobs, messages are forwarded immediately.

    Parameters
    ----------
    handle : callable
        Function that returns the reply to a message, like the method ``handle`` of a session.
    """

    def __init__(self, handle: Callable[[Message], Reply]) -> None:
        self._handle = handle
        self._acknowledged = False
        self._held: list[Event] = []
        self._probe = ""
        self.n_probes = 0

    def __call__(self, message: Message) -> Reply:
        """If the instant is complete, return the session's reply. Otherwise, wait for the rest."""
        self._note_flags(message)
        events = [event for event in message.events if not self._is_answer(event)]
        answered = len(events) < len(message.events)
        if self._probe and not answered and not _ends(events):
            self._held += events
            return Reply(message.now_us)
        if not self._probe and self._acknowledged and _repairs(events):
            self._held = events
            return Reply(message.now_us, self._register_probe(message.now_us))
        return self._answer(Message(message.now_us, (*self._held, *events)))

    def _note_flags(self, message: Message) -> None:
        for event in message.events:
            if isinstance(event, SimulationBegan):
                flags = ("dynamic-jobs-enabled", "dynamic-jobs-acknowledged")
                self._acknowledged = all(map(event.config.get, flags))

    def _is_answer(self, event: Event) -> bool:
        return isinstance(event, JobSubmitted) and event.job_id == self._probe

    def _register_probe(self, now_us: int) -> tuple[Decision, ...]:
        """Return the decisions that register the probe job."""
        self.n_probes += 1
        name = f"instant-{self.n_probes}"
        self._probe = job_id = f"{PROBES}!{name}"
        profile = {"type": "delay", "delay": 1}
        fields = {"id": job_id, "subtime": batsim_number(now_us), "res": 1, "profile": name}
        return (
            RegisterProfile(at_us=now_us, workload=PROBES, name=name, profile=profile),
            RegisterJob(at_us=now_us, job_id=job_id, job=fields),
        )

    def _answer(self, message: Message) -> Reply:
        """Return the reply of the session to a complete instant. It also rejects the probe job."""
        rejected = (RejectJob(at_us=message.now_us, job_id=self._probe),) if self._probe else ()
        self._held, self._probe = [], ""
        reply = self._handle(message)
        if any(isinstance(decision, FinishRegistration) for decision in reply.decisions):
            self._acknowledged = False
        return Reply(reply.now_us, (*rejected, *reply.decisions))


def _repairs(events: list[Event]) -> bool:
    return any(isinstance(event, NodesRejuvenated) for event in events)


def _ends(events: list[Event]) -> bool:
    return any(isinstance(event, SimulationEnded) for event in events)
