# SPDX-License-Identifier: Apache-2.0
"""The behaviour of Batsim 4.2.1 for delay profiles on a platform without latency.

Observed behaviour of Batsim that the engine reproduces:

- All events at the same time are in one message. They are in the order in which their sources began
  to wait for them. The wait for a completion begins when the job starts. The wait for a submission
  or a machine event begins at the previous submission or machine event. Sources that began to wait
  at the same time keep their order.
- The immediate effects of a reply (kills, acknowledged registrations) are in another message with
  the same time. If no more jobs will be submitted, or if no more events will occur, this message
  also contains the corresponding notice.
- The simulation ends when all jobs have ended, no call is pending, every event of a file has
  occurred and, with dynamic jobs, the registration is finished. Failures that are drawn during the
  simulation do not prolong the simulation.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from rebat.core.decisions import Reply
from rebat.core.errors import InputError
from rebat.core.events import (
    Event,
    Message,
    NodesFailed,
    NodesRejuvenated,
    NoMoreExternalEvents,
    NoMoreStaticJobs,
    Notified,
    SimulationBegan,
    SimulationEnded,
)
from rebat.core.job_table import Jobs
from rebat.core.jobs import Workload, with_parts
from rebat.core.units import to_s
from rebat.engine.aborts import AbortRule
from rebat.engine.decisions import Decisions
from rebat.engine.options import EngineOptions
from rebat.engine.static_jobs import Placed
from rebat.models.failures.events import ExternalEvent, MachineEvent, in_order

Scheduler = Callable[[Message], Reply]
OnProgress = Callable[[int, int, int], None]


class External:
    """A source of external events."""

    def __init__(self, events: Iterator[list[Any]], ends: bool) -> None:
        """Create the source from events that are grouped by time.

        If ``ends`` is True, the simulation does not end before the last event. The attribute
        ``left`` states whether the source has more events.
        """
        self.events, self.ends, self.left = events, ends, False


class Engine(Decisions):
    """A simulation.

    Parameters
    ----------
    workload : Workload
    n_nodes : int, optional
        Number of nodes of the machine (default: that of the workload).
    events : iterable of ExternalEvent
        Failures, repairs and generic events. If this is a sequence (an event file), all its events
        occur, as in Batsim. Other iterables must be in order of time, and their events after the
        end of the last job do not occur.
    operations : sequence of ExternalEvent
        A second event file, in order of time, for example operations of an administrator.
    options : EngineOptions

    Attributes
    ----------
    ended : sequence of EndedJob
        All jobs that ended or were rejected, in the order of Batsim's jobs.csv.
    lines_left : list of ExternalEvent
        Lines of an event file at the present time that the next message does not contain (see
        `EngineOptions.split_failures`).

    Raises
    ------
    InputError
        If the workload needs a network model, or if a machine event is for nodes outside the
        machine.
    """

    def __init__(
        self,
        workload: Workload,
        *,
        n_nodes: int | None = None,
        events: Iterable[ExternalEvent] = (),
        operations: Sequence[ExternalEvent] = (),
        options: EngineOptions | None = None,
    ) -> None:
        super().__init__(n_nodes or workload.n_nodes, options or EngineOptions())
        self._notices: list[type[Event]] = []
        self.lines_left: list[ExternalEvent] = []
        self._add_workloads(workload)
        self._submissions = self._static.groups()
        self._statics_left = bool(self._static.n)
        self._await_submissions()
        ordered = in_order(events) if isinstance(events, Sequence) else events
        self._files = [
            External(self._by_time(ordered, "at_us"), isinstance(events, Sequence)),
            External(self._by_time(operations, "at_us"), True),
        ]
        for file in self._files:
            self._await_events(file)

    # ---- set-up

    def _add_workloads(self, workload: Workload) -> None:
        self.profiles["w0"] = used_profiles(workload)
        self._add_static_jobs("w0", Jobs.of(workload.jobs))

    def _add_static_jobs(self, workload: str, jobs: Jobs) -> None:
        """Add the jobs of a workload. If a job needs a network model, raise InputError."""
        for name, uses in jobs.profile_uses().items():
            profile = self._full_name(workload, name)
            try:
                self._runnable(workload, profile)
            except InputError as error:
                raise error.at(f"job {jobs.first_of(name).id}") from None
            self._use(workload, profile, uses)
        self._static.add(workload, jobs)
        self._unfinished += len(jobs)

    @staticmethod
    def _by_time(items: Iterable[Any], time: str) -> Iterator[list[Any]]:
        """Yield the items in groups of equal time."""
        return (list(same) for _, same in groupby(items, key=attrgetter(time)))

    def _await_submissions(self) -> bool:
        jobs = next(self._submissions, None)
        if jobs:
            self._push(jobs[0][1].submit_us, self._on_submissions, jobs)
        return bool(jobs)

    def _await_events(self, file: External) -> None:
        events = next(file.events, None)
        file.left = bool(events)
        if events:
            self._push(events[0].at_us, self._on_events, (file, events))

    # ---- the loop

    def run(self, scheduler: Scheduler, on_progress: OnProgress | None = None) -> None:
        """Simulate to the end.

        The function ``on_progress`` is called regularly with the time, the number of ended jobs and
        the number of all jobs.

        Raises
        ------
        Abort
            If a real Batsim would abort or deadlock.
        """
        self._exchange(scheduler, (self._began(),))
        rounds = 0
        while True:
            if self._notices:
                self._outbox[:0] = self._take_notices()
            if not self._outbox:
                if self._over():
                    break
                if self._stuck():
                    raise self._abort(AbortRule.DEADLOCK, self._left())
                self._advance(self._heap[0][0], self.options.split_instants)
                if not self._outbox:
                    continue
            events, self._outbox = tuple(self._outbox), []
            self._exchange(scheduler, events)
            rounds += 1
            if on_progress and rounds % 256 == 0:
                n_jobs = self._static.n + self._n_registered
                on_progress(self.now_us, len(self.ended), n_jobs)
        self._exchange(scheduler, (SimulationEnded(at_us=self.now_us),))

    def _exchange(self, scheduler: Scheduler, events: tuple[Event, ...]) -> None:
        for job_id in self._gone:
            del self._jobs[job_id]
        self._gone.clear()
        reply = scheduler(Message(self.now_us, events))
        self._check_times(reply)
        if self.lines_left:
            self._advance(self.now_us)
        later_us = self.options.latency_us if reply.decisions else 0
        for decision in reply.decisions:
            if decision.at_us + later_us <= self.now_us:
                self._decide[type(decision)](self, decision)
            else:
                self._push(decision.at_us + later_us, self._on_decision, decision)
        # if the time of the reply is in the future, events until then are sent after the reply
        until_us = reply.now_us + later_us
        while until_us > self.now_us:
            self._pass(min(until_us, self._heap[0][0] if self._heap else until_us))

    def _pass(self, until_us: int) -> None:
        """Advance to this time, which is not later than the time of the scheduler's reply."""
        self._advance(until_us)

    def _check_times(self, reply: Reply) -> None:
        if reply.now_us < self.now_us:
            raise self._abort(AbortRule.DATE_ORDER, f"reply at {to_s(reply.now_us)} s")
        for decision in reply.decisions:
            if decision.at_us > reply.now_us:
                raise self._abort(AbortRule.DATE_ORDER, f"decision at {to_s(decision.at_us)} s")

    def _advance(self, until_us: int, single: bool = False) -> None:
        """Set the time, and process all events until then. If ``single`` is set, process only one.

        When a source has no more events, the next message normally contains its notice. If an event
        of another source follows at the same time, the current message contains the notice.
        """
        self.now_us, join = until_us, False
        while self._heap and self._heap[0][0] <= until_us:
            _, _, happening, argument = heapq.heappop(self._heap)
            noticed, n_events = bool(self._notices), len(self._outbox)
            happening(argument)
            join = noticed and len(self._outbox) > n_events
            if single or (self.lines_left and happening == self._on_events):
                return
        if join:
            self._outbox += self._take_notices()

    def _stuck(self) -> bool:
        """Return whether only failures can still occur, and the simulation can end without them."""
        if len(self._heap) > len(self._files):  # each event file has at most one entry in the heap
            return False
        if not self._heap:
            return True
        endless = sum(file.left and not file.ends for file in self._files)
        only_failures = len(self._heap) == endless
        return only_failures and not self._running and not self._pool.n_down

    def _take_notices(self) -> list[Event]:
        notices = [notice(at_us=self.now_us) for notice in self._notices]
        self._notices.clear()
        return notices

    def _over(self) -> bool:
        return not (
            self._unfinished
            or self._calls
            or self._statics_left
            or any(file.left and file.ends for file in self._files)
            or self._registration_open
        )

    def _began(self) -> SimulationBegan:
        options = self.options
        config = {
            "redis-enabled": False,
            "redis-hostname": "127.0.0.1",
            "redis-port": 6379,
            "redis-prefix": "default",
            "profiles-forwarded-on-submission": options.forward_profiles,
            "dynamic-jobs-enabled": options.dynamic_jobs,
            "dynamic-jobs-acknowledged": options.acknowledge_dynamic_jobs,
            "profile-reuse-enabled": options.profile_reuse,
            "sched-config": options.sched_config,
            "forward-unknown-events": options.forward_unknown_events,
        }
        return SimulationBegan(
            at_us=0,
            n_nodes=self.n_nodes,
            config=config,
            profiles={name: dict(profiles) for name, profiles in self.profiles.items()},
            workloads={"w0": options.workload_path},
            resources=_hosts(self.n_nodes) if options.list_resources else [],
        )

    # ---- events

    def _on_submissions(self, jobs: list[Placed]) -> None:
        for placed in jobs:
            self._send_submission(self._make_static(*placed))
        self._statics_left = self._await_submissions()
        if not self._statics_left:
            self._notices.append(NoMoreStaticJobs)

    def _on_events(self, group: tuple[External, list[ExternalEvent]]) -> None:
        file, events = group
        n_now = 1 if self.options.split_failures else len(events)
        for event in events[:n_now]:
            self._on_line(event)
        self.lines_left = events[n_now:]
        if self.lines_left:
            self._push(self.now_us, self._on_events, (file, self.lines_left))
            return
        self._await_events(file)
        self._note_events_end()

    def _on_line(self, event: ExternalEvent) -> None:
        if isinstance(event, MachineEvent):
            self._on_machine_event(event)
        elif self.options.forward_unknown_events:
            kind = str(event.data.get("type"))
            self._outbox.append(Notified(at_us=self.now_us, kind=kind, data=event.data))

    def _note_events_end(self) -> None:
        if not any(source.left for source in self._files):
            self._notices.append(NoMoreExternalEvents)

    def _on_machine_event(self, event: MachineEvent) -> None:
        last = int(event.nodes.intervals[-1, 1]) if event.nodes.size else -1
        if last >= self.n_nodes:
            raise InputError(
                f"the machine has no node {last} (event at {to_s(event.at_us)} s)",
                expected=f"nodes 0 to {self.n_nodes - 1}",
            )
        for node in event.nodes:
            if bool(self._pool.down[node]) != event.available:
                raise self._abort(AbortRule.MACHINE_EVENTS, f"node {node}")
        if event.available:
            self._repair(event.nodes)
            self._outbox.append(NodesRejuvenated(at_us=self.now_us, nodes=event.nodes))
        else:
            self._fail(event.nodes)
            self._outbox.append(
                NodesFailed(at_us=self.now_us, nodes=event.nodes, cause=event.cause)
            )


def _hosts(n_nodes: int) -> list[dict[str, Any]]:
    """Return the compute resources in the form that Batsim uses."""
    return [
        {
            "id": node,
            "name": f"host{node}",
            "state": "idle",
            "properties": {"role": ""},
            "zone_properties": {},
        }
        for node in range(n_nodes)
    ]


def used_profiles(workload: Workload) -> dict[str, dict[str, Any]]:
    """Return the profiles that static jobs use. Batsim loads no other profiles."""
    used: dict[str, dict[str, Any]] = {}
    for name in Jobs.of(workload.jobs).profile_uses():
        if name not in used:
            used |= with_parts(workload.profiles, name)
    return used
