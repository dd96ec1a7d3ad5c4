# SPDX-License-Identifier: Apache-2.0
"""Complete instants for a session.

An *instant* is the set of all messages with the same simulated time. Batsim waits for each line of
an event file and for each job of a workload separately, and its clock can be wrong by the last
binary digit after a wait. Therefore, it can report events of the same time (the failures of two
nodes, a repair and a failure of the same node, or two submissions) in several messages, together
with ends of jobs. If a job starts between two of these messages, the schedule is wrong. If the node
of the job fails at the same time, Batsim 4.2.1 aborts.

Therefore, this module holds a message with events of an event file, or with submissions, until
Batsim has sent all messages of its instant. It finds out with a *probe*: a request that Batsim
answers at the same simulated time, after everything else that happens at this time. If the answer
arrives with other events, or after them, it sends another probe.

Submissions are held only at times other than whole seconds. After a wait until a whole second,
Batsim's clock is almost always exact: the rounding error of a step is at most half a unit of the
last binary digit, and the last digit of a whole number is even. If the clock stopped at several
other times during the wait, the errors can add up to a unit, and then a submission of a whole
second arrives alone (once in 420 random runs). Probes for all these submissions would cost a
quarter more messages for a month of Mira.

On a platform with network latency, submissions arrive after their time, and are not held. The
answer arrives later, too. Then the instant is over, and only further events of an event file need a
probe.

Batsim 4
    A call has a minimum delay of 10 microseconds. However, Batsim acknowledges the registration of
    a job immediately. Therefore, the probe is a job, which is then rejected.
Batsim 5
    A call can be requested for the past, and is answered immediately. The probe is two calls,
    because Batsim also processes the probe of Batsim 4 in two steps (a profile and a job). The
    present, rounded down to a millisecond, can be later than Batsim's clock by the last binary
    digit, and Batsim then waits for 10 microseconds. Therefore, the call is one millisecond
    earlier.

Batsim 5 can report the beginning of the simulation together with the first jobs. The session
receives the beginning separately, as from Batsim 4.

The module also restores the order of the events of an instant: repairs are first, and the failures
and repairs of a node alternate. Batsim 5 sorts the lines of an event file only by time, and its
sort is not stable. Therefore, a failure can precede the repair that ends the previous outage of the
node, and failures can be in another order than their lines. Events that state their line are sorted
by file and line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.jobs import PROBES, batsim_number
from rebat.core.units import US_PER_MS, US_PER_S, to_us

_LINE = re.compile(r"ee(\d+)!(\d+)")
"""Batsim 5's id of a line: the numbers of the file and of the line."""


class WholeInstants:
    """A scheduler that forwards events of files, and submissions, when their instant is complete.

    Batsim 4 needs the options ``--enable-dynamic-jobs`` and ``--acknowledge-dynamic-jobs``. Without
    them, and after the end of the registration of jobs, messages are forwarded immediately.
    ``handle`` returns the reply to a message, like the method of a session. Without ``probes``,
    messages are forwarded immediately.
    """

    def __init__(
        self, handle: Callable[[e.Message], d.Reply], protocol: int = 4, probes: bool = True
    ) -> None:
        self._handle = handle
        self._calls, self._probes = protocol == 5, probes
        self._can_probe = False
        self._held: list[e.Event] = []
        self._name = ""
        self._n_answers = 0
        """Number of answers to the probe that have not arrived."""
        self._probed_us = -1
        """Time of the last probe."""
        self._news = False
        """Whether a probe is needed: events arrived that no probe follows."""
        self._down: set[int] = set()
        self._registered: set[str] = set()
        self.n_probes = 0

    def __call__(self, message: e.Message) -> d.Reply:
        """If the instant is complete, return the session's reply. Otherwise, wait for the rest."""
        first = message.events[0] if message.events else None
        if not isinstance(first, e.SimulationBegan):
            return self._take(message)
        flags = ("dynamic-jobs-enabled", "dynamic-jobs-acknowledged")
        self._can_probe = self._probes and (self._calls or all(map(first.config.get, flags)))
        begun = self._forward(e.Message(message.now_us, (first,)))
        if len(message.events) == 1:
            return begun
        more = self._take(e.Message(message.now_us, message.events[1:]))
        return d.Reply(more.now_us, (*begun.decisions, *more.decisions))

    def _take(self, message: e.Message) -> d.Reply:
        probing = self._n_answers > 0 and message.now_us == self._probed_us
        events = [event for event in message.events if not self._is_answer(event)]
        n_answers = len(message.events) - len(events)
        self._n_answers -= n_answers
        self._held += events
        self._news |= bool(events) if probing else self._can_be_split(events, message.now_us)
        now_us = message.now_us
        if _has(events, e.SimulationEnded):
            return self._answer(now_us)
        if self._n_answers:
            return d.Reply(now_us)
        answered: tuple[d.Decision, ...] = ()
        if n_answers and not self._calls:
            answered = (d.RejectJob(at_us=now_us, job_id=self._name),)
        if self._can_probe and self._news:
            return d.Reply(now_us, (*answered, *self._probe(now_us)))
        return self._answer(now_us, answered)

    def _can_be_split(self, events: Sequence[e.Event], now_us: int) -> bool:
        """Return whether other messages can have the same time as a message with these events."""
        if _has(events, e.FileEvent):
            return True
        if now_us % US_PER_S == 0 or _has(events, e.NoMoreStaticJobs):
            return False
        return any(
            isinstance(event, e.JobSubmitted)
            and event.job_id not in self._registered
            and to_us(event.job.get("subtime", -1)) == now_us
            for event in events
        )

    def _is_answer(self, event: e.Event) -> bool:
        if not self._n_answers:
            return False
        if self._calls:
            return isinstance(event, e.CallRequested) and event.name == self._name
        return isinstance(event, e.JobSubmitted) and event.job_id == self._name

    def _probe(self, now_us: int) -> tuple[d.Decision, ...]:
        """Return the decisions of a probe."""
        self.n_probes += 1
        self._news, self._probed_us = False, now_us
        name = f"instant-{self.n_probes}"
        self._name = f"{PROBES}!{name}"
        if self._calls:
            self._n_answers = 2
            past_us = max(0, now_us // US_PER_MS * US_PER_MS - US_PER_MS)
            call = d.CallMeLater(at_us=now_us, when_us=past_us, name=self._name)
            return call, call
        self._n_answers = 1
        profile = {"type": "delay", "delay": 1}
        fields = {"id": self._name, "subtime": batsim_number(now_us), "res": 1, "profile": name}
        return (
            d.RegisterProfile(at_us=now_us, workload=PROBES, name=name, profile=profile),
            d.RegisterJob(at_us=now_us, job_id=self._name, job=fields),
        )

    def _answer(self, now_us: int, answered: tuple[d.Decision, ...] = ()) -> d.Reply:
        """Return the reply of the session to all events since its last reply."""
        events, self._held, self._news = self._alternating(self._held), [], False
        reply = self._forward(e.Message(now_us, events))
        return d.Reply(reply.now_us, (*answered, *reply.decisions)) if answered else reply

    def _forward(self, message: e.Message) -> d.Reply:
        reply = self._handle(message)
        self._registered.update(
            decision.job_id for decision in reply.decisions if isinstance(decision, d.RegisterJob)
        )
        if not self._calls and _has(reply.decisions, d.FinishRegistration):
            self._can_probe = False
        return reply

    def _alternating(self, events: list[e.Event]) -> tuple[e.Event, ...]:
        """Return the events in an order in which the failures and repairs of a node alternate.

        As in Batsim 4, repairs come first. However, an event that is impossible in the present
        state of its nodes comes after the event that makes it possible. If there is none, it comes
        last.
        """
        lines = iter(sorted(filter(_line_of, events), key=_line_of))
        events = [next(lines) if _line_of(event) else event for event in events]
        ordered: list[e.Event] = []
        waiting: list[e.Event] = []
        for event in sorted(events, key=lambda event: not isinstance(event, e.NodesRejuvenated)):
            if not self._takes_effect(event):
                waiting.append(event)
                continue
            ordered.append(event)
            while (ready := next(filter(self._takes_effect, waiting), None)) is not None:
                waiting.remove(ready)
                ordered.append(ready)
        return (*ordered, *waiting)

    def _takes_effect(self, event: e.Event) -> bool:
        """Note the new state of the nodes of an event. Return False if they already have it."""
        if isinstance(event, e.NodesFailed) and self._down.isdisjoint(event.nodes):
            self._down.update(event.nodes)
        elif isinstance(event, e.NodesRejuvenated) and self._down.issuperset(event.nodes):
            self._down.difference_update(event.nodes)
        else:
            return not isinstance(event, e.NodesFailed | e.NodesRejuvenated)
        return True


def _line_of(event: e.Event) -> tuple[int, ...]:
    """Return the numbers of file and line of an event, or () if it does not state them."""
    line = _LINE.fullmatch(event.line) if isinstance(event, e.FileEvent) else None
    return tuple(map(int, line.groups())) if line else ()


def _has(items: Iterable[e.Event | d.Decision], kinds: type | tuple[type, ...]) -> bool:
    return any(isinstance(item, kinds) for item in items)
