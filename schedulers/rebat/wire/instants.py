# SPDX-License-Identifier: Apache-2.0
"""Whole instants for a session, where Batsim reports an instant in several messages.

Batsim 4.2.1 can report a node's repair and its next failure at the same time in two messages: its
clock is off by the last binary digit when it sends the first one. It aborts if a job starts on the
node in between. So a message with repairs waits here until Batsim has said all there is to say at
that time. Batsim has no call back at the same time (its shortest wait is 10 microseconds), but it
acknowledges the registration of a job at once: a job is registered for that alone, and rejected.
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
    """Hands a message with repairs to ``handle`` when all of its instant is known.

    It needs Batsim's ``--enable-dynamic-jobs`` and ``--acknowledge-dynamic-jobs``. Without them,
    and when the scheduler registers no more jobs, messages pass unchanged.

    Parameters
    ----------
    handle : callable
        Answers a message: a session's ``handle``.
    """

    def __init__(self, handle: Callable[[Message], Reply]) -> None:
        self._handle = handle
        self._acknowledged = False
        self._held: list[Event] = []
        self._asked = ""
        self.asked = 0

    def __call__(self, message: Message) -> Reply:
        """Answer a message, or ask for an acknowledgement first."""
        self._note_flags(message)
        events = [event for event in message.events if not self._is_answer(event)]
        answered = len(events) < len(message.events)
        if self._asked and not answered and not _ends(events):
            self._held += events
            return Reply(message.now_us)
        if not self._asked and self._acknowledged and _repairs(events):
            self._held = events
            return Reply(message.now_us, self._ask(message.now_us))
        return self._answer(Message(message.now_us, (*self._held, *events)))

    def _note_flags(self, message: Message) -> None:
        for event in message.events:
            if isinstance(event, SimulationBegan):
                flags = ("dynamic-jobs-enabled", "dynamic-jobs-acknowledged")
                self._acknowledged = all(map(event.config.get, flags))

    def _is_answer(self, event: Event) -> bool:
        return isinstance(event, JobSubmitted) and event.job_id == self._asked

    def _ask(self, now_us: int) -> tuple[Decision, ...]:
        """Register a job, for its acknowledgement."""
        self.asked += 1
        name = f"instant-{self.asked}"
        self._asked = job_id = f"{PROBES}!{name}"
        profile = {"type": "delay", "delay": 1}
        fields = {"id": job_id, "subtime": batsim_number(now_us), "res": 1, "profile": name}
        return (
            RegisterProfile(at_us=now_us, workload=PROBES, name=name, profile=profile),
            RegisterJob(at_us=now_us, job_id=job_id, job=fields),
        )

    def _answer(self, message: Message) -> Reply:
        """The session's answer to a whole instant; what was registered for it is rejected."""
        rejected = (RejectJob(at_us=message.now_us, job_id=self._asked),) if self._asked else ()
        self._held, self._asked = [], ""
        reply = self._handle(message)
        if any(isinstance(decision, FinishRegistration) for decision in reply.decisions):
            self._acknowledged = False
        return Reply(reply.now_us, (*rejected, *reply.decisions))


def _repairs(events: list[Event]) -> bool:
    return any(isinstance(event, NodesRejuvenated) for event in events)


def _ends(events: list[Event]) -> bool:
    return any(isinstance(event, SimulationEnded) for event in events)
