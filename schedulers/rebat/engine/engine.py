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
- If a decision violates a rule of Batsim, the simulation ends with the error `BatsimAbort`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

import msgspec

from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.errors import BatsimAbort, Deadlock, InputError
from rebat.core.job_table import Jobs
from rebat.core.jobs import (
    Job,
    Workload,
    delay_us,
    duration_us,
    job_fields,
    leg_durations_us,
    with_parts,
)
from rebat.core.nodes import NodeSet
from rebat.core.numbers import exactly
from rebat.core.table import Table
from rebat.core.units import to_s
from rebat.engine.jobs import (
    FAILED,
    KILLED,
    NO_LEGS,
    REJECTED,
    SUCCESS,
    WALLTIME,
    EndedJob,
    EngineJob,
    Placed,
    Profiles,
    StaticJobs,
    again,
    ended_jobs,
    progress,
    registered_job,
)
from rebat.kernels.pool import FREE
from rebat.models.failures.events import ExternalEvent, MachineEvent, in_order
from rebat.models.node_pool import NodePool

Scheduler = Callable[[e.Message], d.Reply]
OnProgress = Callable[[int, int, int], None]
Happening = Callable[[Any], None]
"""Function that handles a pending event."""

HELD = 0
"""Tag of all nodes in use. The engine does not record which job uses a node."""


class EngineOptions(msgspec.Struct, frozen=True):
    """Options of the engine. Most have the names of Batsim's command-line switches."""

    dynamic_jobs: bool = True
    acknowledge_dynamic_jobs: bool = False
    profile_reuse: bool = True
    forward_profiles: bool = False
    sched_config: str = ""
    workload_path: str = ""
    forward_unknown_events: bool = False
    list_resources: bool = False
    """Whether to list every host in the first message, as Batsim does.

    Schedulers other than rebat need this list. It is long for a large machine.
    """
    latency_us: int = 0
    """Delay (us) between a decision and its effect, as on a platform with network latency."""
    split_instants: bool = False
    """Whether to send each event in a separate message, even if several have the same time.

    This is for tests of schedulers. Batsim sends events separately if messages take time.
    """
    split_failures: bool = False
    """Whether to send simultaneous lines of an event file in separate messages.

    A line takes effect before the reply to the line before. This is for tests of schedulers. Batsim
    does so when its clock is wrong by the last binary digit.
    """
    speed_flops: float = 1e9
    """Speed of the nodes in flop/s."""


class External(msgspec.Struct):
    """A source of external events."""

    events: Iterator[list[ExternalEvent]]
    """Events in groups of equal time."""
    ends: bool
    """Whether the simulation continues until the last event."""
    left: bool = False
    """Whether the source has more events."""


class Engine:
    """A simulation.

    ``events`` are failures, repairs and generic events. If they are a sequence (an event file), all
    of them occur, as in Batsim. Other iterables must be in order of time, and their events after
    the end of the last job do not occur. ``operations`` are a second event file, in order of time.
    If the workload needs a network model, or if a machine event is for nodes outside the machine,
    an InputError is raised.
    """

    protocol = 4
    finishes = "NOTIFY with the type registration_finished"
    """The decision with which a scheduler ends the registration of jobs."""
    """The major version of Batsim that the engine replaces."""

    def __init__(
        self,
        workload: Workload,
        *,
        n_nodes: int | None = None,
        events: Iterable[ExternalEvent] = (),
        operations: Sequence[ExternalEvent] = (),
        options: EngineOptions | None = None,
    ) -> None:
        self.options = options or EngineOptions()
        self.n_nodes = n_nodes or workload.n_nodes
        self.now_us = 0
        self.ended: Table[EndedJob] = ended_jobs()
        """All jobs that ended or were rejected, in the order of Batsim's jobs.csv."""
        self.profiles: dict[str, Profiles] = {}
        self.dead_us = 0
        """Node time of jobs on nodes that are down. Batsim counts these nodes as unavailable."""
        self.lines_left: list[ExternalEvent] = []
        """Lines of an event file at the present time that the next message does not contain."""
        self._keeps_profiles = self.options.profile_reuse
        self._registration_open = self.options.dynamic_jobs
        self._uses: dict[str, dict[str, int]] = {}
        self._pool = NodePool(self.n_nodes)
        self._dead: dict[int, int] = {}
        """Nodes that failed while a job runs on them, with the time of the failure."""
        self._static = StaticJobs()
        self._jobs: dict[str, EngineJob] = {}
        """Jobs that have not ended, jobs whose end the scheduler does not know, and registered
        ones."""
        self._gone: list[str] = []
        """Static jobs that ended since the last message."""
        self._heap: list[tuple[int, int, Happening, Any]] = []
        self._outbox: list[e.Event] = []
        self._notices: list[type[e.Event]] = []
        self._composed_late: set[tuple[str, str]] = set()
        self._sequence = self._calls = self._n_registered = self._unfinished = self._running = 0
        self._add_workloads(workload)
        self._submissions = self._static.groups()
        self._statics_left = bool(self._static.n)
        self._await_submissions()
        ordered = in_order(events) if isinstance(events, Sequence) else events
        self._await_files((ordered, isinstance(events, Sequence)), (operations, True))

    def _push(self, at_us: int, happening: Happening, argument: Any) -> None:
        self._sequence += 1
        heapq.heappush(self._heap, (at_us, self._sequence, happening, argument))

    def _abort(self, rule: str, detail: str, kind: type[BatsimAbort] = BatsimAbort) -> BatsimAbort:
        """Return the error for a decision that violates a rule of Batsim."""
        return kind(f"Batsim would abort at {to_s(self.now_us):.6f} s: {rule} ({detail})")

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

    def _await_submissions(self) -> bool:
        jobs = next(self._submissions, None)
        if jobs:
            self._push(jobs[0][1].submit_us, self._on_submissions, jobs)
        return bool(jobs)

    def _await_files(self, *files: tuple[Iterable[Any], bool]) -> None:
        """Set the sources of external events: the events, and whether all of them occur."""
        self._files = [External(_grouped(events), ends) for events, ends in files]
        for file in self._files:
            self._await_events(file)

    def _await_events(self, file: External) -> None:
        events = next(file.events, None)
        file.left = bool(events)
        if events:
            self._push(events[0].at_us, self._on_events, (file, events))

    # ---- the loop

    def run(self, scheduler: Scheduler, on_progress: OnProgress | None = None) -> None:
        """Simulate to the end.

        The function ``on_progress`` is called regularly with the time, the number of ended jobs and
        the number of all jobs. If a real Batsim would abort, BatsimAbort is raised. If no event is
        left, but jobs still wait, Deadlock is raised.
        """
        self._exchange(scheduler, (self.began(),))
        rounds = 0
        while True:
            if self._notices:
                self._outbox[:0] = self._take_notices()
            if not self._outbox:
                if self._over():
                    break
                if self._stuck():
                    raise self._abort(*self._why_stuck(), Deadlock)
                self._advance(self._heap[0][0], self.options.split_instants)
                if not self._outbox:
                    continue
            events, self._outbox = tuple(self._outbox), []
            self._exchange(scheduler, events)
            rounds += 1
            if on_progress and rounds % 256 == 0:
                n_jobs = self._static.n + self._n_registered
                on_progress(self.now_us, len(self.ended), n_jobs)
        self._exchange(scheduler, (e.SimulationEnded(at_us=self.now_us),))

    def _exchange(self, scheduler: Scheduler, events: tuple[e.Event, ...]) -> None:
        for job_id in self._gone:
            del self._jobs[job_id]
        self._gone.clear()
        reply = scheduler(e.Message(self.now_us, events))
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

    def _check_times(self, reply: d.Reply) -> None:
        rule = "decision with a time outside its message"
        if reply.now_us < self.now_us:
            raise self._abort(rule, f"reply at {to_s(reply.now_us)} s")
        for decision in reply.decisions:
            if decision.at_us > reply.now_us:
                raise self._abort(rule, f"decision at {to_s(decision.at_us)} s")

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

    def _why_stuck(self) -> tuple[str, str]:
        """Return why the simulation cannot end, and a description of what is left."""
        if self._registration_open and not self._unfinished:
            rule = f"all jobs have ended, but the scheduler did not send {self.finishes}"
            return rule, "the simulator waits for further jobs"
        return "no event is left, but jobs still wait", self._left()

    def _left(self) -> str:
        """Describe the jobs that wait, for an error message."""
        waiting = [j for j in self._jobs.values() if j.submitted and j.start_us < 0 and not j.state]
        large = [job for job in waiting if job.n_nodes > self.n_nodes]
        text = f"jobs that have not ended: {self._unfinished}"
        if waiting:
            text += f"; waiting: {_sizes(waiting)}; the machine has {exactly(self.n_nodes, 'node')}"
        if large:
            text += f"; can never start, so the policy must reject: {_sizes(large)}"
        return text

    def _take_notices(self) -> list[e.Event]:
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

    def began(self) -> e.SimulationBegan:
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
        host = {"state": "idle", "properties": {"role": ""}, "zone_properties": {}}
        return e.SimulationBegan(
            at_us=0,
            n_nodes=self.n_nodes,
            config=config,
            profiles={name: dict(profiles) for name, profiles in self.profiles.items()},
            workloads={"w0": options.workload_path},
            resources=self._hosts(host) if options.list_resources else [],
        )

    def _hosts(self, fields: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the compute resources as Batsim lists them."""
        return [{"id": node, "name": f"host{node}", **fields} for node in range(self.n_nodes)]

    # ---- external events

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
        if not any(source.left for source in self._files):
            self._notices.append(e.NoMoreExternalEvents)

    def _on_line(self, event: ExternalEvent) -> None:
        if isinstance(event, MachineEvent):
            self._on_machine_event(event)
        elif self.options.forward_unknown_events:
            kind = str(event.data.get("type"))
            self._outbox.append(e.Notified(at_us=self.now_us, kind=kind, data=event.data))

    def _on_machine_event(self, event: MachineEvent) -> None:
        """Change the state of nodes. Jobs on nodes that fail continue."""
        at_us, nodes = self.now_us, event.nodes
        last = int(nodes.intervals[-1, 1]) if nodes.size else -1
        if last >= self.n_nodes:
            raise InputError(
                f"the machine has no node {last} (event at {to_s(event.at_us)} s)",
                expected=f"nodes 0 to {self.n_nodes - 1}",
            )
        for node in nodes:
            if bool(self._pool.down[node]) != event.available:
                raise self._abort("machine events that do not alternate", f"node {node}")
        if event.available:
            self._count_dead(nodes)
            self._pool.repair(nodes)
            self._outbox.append(e.NodesRejuvenated(at_us=at_us, nodes=nodes))
        else:
            owner = self._pool.owner
            self._dead |= {node: at_us for node in nodes if owner[node] != FREE}
            self._pool.fail(nodes)
            self._outbox.append(e.NodesFailed(at_us=at_us, nodes=nodes, cause=event.cause))

    def _count_dead(self, nodes: NodeSet) -> None:
        """Count the time for which a job ran on those of these nodes that are down."""
        for node in [node for node in self._dead if node in nodes]:
            self.dead_us += self.now_us - self._dead.pop(node)

    # ---- profiles

    def _full_name(self, workload: str, profile: str) -> str:
        """Return the name under which a profile of a workload is stored."""
        return profile

    def _profiles_of(self, workload: str) -> Profiles:
        """Return the profiles that jobs of a workload can use."""
        return self.profiles.setdefault(workload, {})

    def _runnable(self, workload: str, profile: str) -> Profiles:
        """Return a profile and its parts. If it needs a network model, raise InputError."""
        profiles = with_parts(self._profiles_of(workload), profile)
        duration_us(profiles, profile, self.options.speed_flops)
        return profiles

    def _use(self, workload: str, profile: str, n_jobs: int = 1) -> None:
        """Increase the count of jobs that use this profile by ``n_jobs``."""
        uses = self._uses.setdefault(workload, {})
        uses[profile] = uses.get(profile, 0) + n_jobs

    # ---- jobs

    def _job(self, job_id: str) -> EngineJob:
        """Return a job, which may have ended or be submitted later."""
        if job := self._jobs.get(job_id):
            return job
        placed = self._static.find(job_id)
        if placed is None:
            raise self._abort("unknown job", job_id)
        for place, ended in enumerate(self.ended):
            if ended.id == job_id:
                return again(ended, place)
        return self._make_static(*placed)

    def _exists(self, job_id: str) -> bool:
        return job_id in self._jobs or self._static.find(job_id) is not None

    def _make_static(self, workload: str, job: Job) -> EngineJob:
        """Create a static job at its submission, and return it."""
        job_id = f"{workload}!{job.id}"
        if job_id in self._jobs:
            return self._jobs[job_id]
        profile = self._full_name(workload, job.profile)
        times = job.submit_us, job.walltime_us
        made = EngineJob(job_id, job.n_nodes, *times, profile, workload, submission=job)
        self._hold(made, with_parts(self._profiles_of(workload), profile))
        return made

    def _hold(self, job: EngineJob, profiles: Profiles) -> None:
        job.profiles = profiles
        job.return_code = int(profiles[job.profile].get("ret", 0))
        self._jobs[job.id] = job

    def _add_registered(self, job: EngineJob) -> None:
        self._hold(job, self._runnable(job.workload, job.profile))
        self._n_registered += 1
        self._unfinished += 1
        self._use(job.workload, job.profile)
        job.submitted = True
        if self.options.acknowledge_dynamic_jobs:
            self._send_submission(job)

    def _on_submissions(self, jobs: list[Placed]) -> None:
        for placed in jobs:
            self._send_submission(self._make_static(*placed))
        self._statics_left = self._await_submissions()
        if not self._statics_left:
            self._notices.append(e.NoMoreStaticJobs)

    def _send_submission(self, job: EngineJob) -> None:
        job.submitted = True
        profile = job.profiles[job.profile] if self.options.forward_profiles else None
        submission, job.submission = job.submission, None
        assert submission is not None
        fields = job_fields(submission, job.id) if isinstance(submission, Job) else submission
        self._outbox.append(
            e.JobSubmitted(at_us=self.now_us, job_id=job.id, job=fields, profile=profile)
        )

    def _start(self, job: EngineJob, nodes: NodeSet, legs: Iterator[int]) -> None:
        """Start a job on these nodes. ``legs`` are the delays of its profile, in order."""
        job.nodes, job.start_us = nodes, self.now_us
        self._running += 1
        job.legs = legs
        if not self._begin_leg(job):  # a composed profile has no parts
            self._push(self.now_us, self._on_leg_end, job)

    def _begin_leg(self, job: EngineJob) -> bool:
        """Start the next delay of a job. Return whether there was a next delay."""
        leg_us = next(job.legs, None)
        if leg_us is None:
            return False
        end_us = self.now_us + leg_us
        if job.walltime_us is not None:
            end_us = min(end_us, job.start_us + job.walltime_us)
        self._push(end_us, self._on_leg_end, job)
        return True

    def _on_leg_end(self, job: EngineJob) -> None:
        if not job.running:
            return
        if job.walltime_us is not None and self.now_us >= job.start_us + job.walltime_us:
            self._end(job, WALLTIME, -1)
        elif self._begin_leg(job):
            return
        elif job.return_code:
            self._end(job, FAILED, job.return_code)
        else:
            self._end(job, SUCCESS, 0)

    def _end(self, job: EngineJob, state: str, code: int) -> None:
        assert job.nodes is not None
        job.state, job.end_us = state, self.now_us
        self._running -= 1
        self._vacate(job.nodes)
        self._outbox.append(
            e.JobCompleted(
                at_us=self.now_us, job_id=job.id, state=state, return_code=code, nodes=job.nodes
            )
        )
        self._finish(job)

    def _finish(self, job: EngineJob) -> None:
        """Store a job that ended or was rejected. Delete its profile if no other job uses it."""
        job.place = len(self.ended)
        self.ended.append(job.ended())
        job.legs, job.submission = NO_LEGS, None
        if not job.registered:
            self._gone.append(job.id)
        self._unfinished -= 1
        uses = self._uses[job.workload]
        uses[job.profile] -= 1
        if not uses[job.profile] and not self._keeps_profiles:
            del self._profiles_of(job.workload)[job.profile]

    def _vacate(self, nodes: NodeSet) -> None:
        """Release the nodes of a job that ended."""
        self._count_dead(nodes)
        self._pool.release(nodes)

    # ---- decisions

    def _on_decision(self, decision: d.Decision) -> None:
        self._decide[type(decision)](self, decision)

    def _waiting_job(self, job_id: str) -> EngineJob:
        job = self._job(job_id)
        if not job.submitted or job.start_us >= 0 or job.state:
            raise self._abort("job not submitted or already started", job_id)
        return job

    def _execute(self, decision: d.ExecuteJob) -> None:
        job, nodes = self._waiting_job(decision.job_id), decision.nodes
        if nodes.size != job.n_nodes:
            raise self._abort(
                "allocation of the wrong size",
                f"job {job.id} requests {job.n_nodes} nodes, but gets {nodes.size}",
            )
        obstacle = self._pool.take(nodes, HELD)
        if obstacle >= self.n_nodes:
            raise self._abort("node outside the machine", f"job {job.id}, node {obstacle}")
        if obstacle >= 0:
            state = "an unavailable" if self._pool.down[obstacle] else "a busy"
            raise self._abort(f"execution on {state} node", f"job {job.id}, node {obstacle}")
        if (job.workload, job.profile) in self._composed_late:
            rule = "execution of a composed profile that was registered, not loaded"
            raise self._abort(rule, f"profile {job.profile} of job {job.id}")
        self._start(
            job, nodes, leg_durations_us(job.profiles, job.profile, self.options.speed_flops)
        )

    def _reject(self, decision: d.RejectJob) -> None:
        job = self._waiting_job(decision.job_id)
        job.state = REJECTED
        self._finish(job)

    def _kill(self, decision: d.KillJobs) -> None:
        jobs = [self._job(job_id) for job_id in decision.job_ids]
        for job in jobs:
            if self._end_was_sent(job):
                raise self._abort("kill of a job whose completion was already sent", job.id)
            if job.start_us < 0:
                raise self._abort("kill of a job that was never started", job.id)
        killed = {}
        for job in jobs:
            if job.running:
                elapsed_us, repetitions = self.now_us - job.start_us, self.protocol == 5
                killed[job.id] = progress(job.profiles, job.profile, elapsed_us, repetitions)
                self._end(job, KILLED, self._killed_code(job))
        ids = decision.job_ids
        self._outbox.append(e.JobsKilled(at_us=self.now_us, job_ids=ids, progress=killed))

    def _killed_code(self, job: EngineJob) -> int:
        return -1

    def _end_was_sent(self, job: EngineJob) -> bool:
        """Return whether the scheduler knows the end of a job. Batsim 4 accepts repeated kills."""
        if job.end_us < 0 or (job.state == KILLED and self.protocol == 4):
            return False
        unsent = (event for event in self._outbox if isinstance(event, e.JobCompleted))
        return all(event.job_id != job.id for event in unsent)

    def _call_me_later(self, decision: d.CallMeLater) -> None:
        if decision.when_us <= self.now_us and self.protocol == 4:
            rule = "call at a time that is not later than now"
            raise self._abort(rule, f"{to_s(decision.when_us)} s")
        self._calls += 1
        self._push(max(decision.when_us, self.now_us), self._on_call, decision.name)

    def _on_call(self, name: str) -> None:
        self._calls -= 1
        self._outbox.append(e.CallRequested(at_us=self.now_us, name=name))

    def _need_registration(self) -> None:
        if not self.options.dynamic_jobs:
            raise self._abort("registration without --enable-dynamic-jobs", "a job or profile")
        if not self._registration_open:
            raise self._abort("registration after registration_finished", "a job or profile")

    def _register_profile(self, decision: d.RegisterProfile) -> None:
        self._need_registration()
        profiles = self._profiles_of(decision.workload)
        if decision.name in profiles:
            raise self._abort("duplicate name", f"profile {decision.name}")
        if decision.profile.get("type") == "delay":
            try:
                delay_us(decision.profile)
            except InputError as error:
                detail = f"profile {decision.name}: {error}"
                raise self._abort("malformed profile", detail) from None
        profiles[decision.name] = decision.profile
        if decision.profile.get("type") == "composed":
            self._composed_late.add((decision.workload, decision.name))

    def _register_job(self, decision: d.RegisterJob) -> None:
        self._need_registration()
        if self._exists(decision.job_id):
            raise self._abort("duplicate name", f"job {decision.job_id}")
        try:
            job = registered_job(decision.job_id, decision.job)
            if job.profile not in self._profiles_of(job.workload):
                raise self._abort("unknown profile", f"{job.profile} of job {job.id}")
            self._add_registered(job)
        except InputError as error:
            raise self._abort("malformed job", str(error)) from None

    def _finish_registration(self, _: d.FinishRegistration) -> None:
        self._registration_open = False

    def _continue_registration(self, _: d.ContinueRegistration) -> None:
        self._registration_open = self.options.dynamic_jobs

    def _set_metadata(self, decision: d.SetMetadata) -> None:
        job = self._job(decision.job_id)
        job.metadata = decision.metadata
        if job.place >= 0:
            self.ended.amend(job.place, metadata=job.metadata)

    _decide: ClassVar[dict[type[d.Decision], Callable[..., None]]] = {
        d.ExecuteJob: _execute,
        d.RejectJob: _reject,
        d.KillJobs: _kill,
        d.CallMeLater: _call_me_later,
        d.RegisterProfile: _register_profile,
        d.RegisterJob: _register_job,
        d.FinishRegistration: _finish_registration,
        d.ContinueRegistration: _continue_registration,
        d.SetMetadata: _set_metadata,
    }


def _grouped(events: Iterable[ExternalEvent]) -> Iterator[list[ExternalEvent]]:
    """Yield events in groups of equal time.

    If the events end with an error, such as that of a failure law, the last group comes first. A
    run that ends before the error has a result.
    """
    group: list[ExternalEvent] = []
    try:
        for event in events:
            if group and event.at_us != group[0].at_us:
                yield group
                group = []
            group.append(event)
    except Exception:
        if group:
            yield group
        raise
    if group:
        yield group


def _sizes(jobs: list[EngineJob]) -> str:
    """Return the ids and sizes of the first jobs."""
    texts = [f"{job.id} ({exactly(job.n_nodes, 'node')})" for job in jobs[:3]]
    return ", ".join(texts + ["..."] * (len(jobs) > 3))


def used_profiles(workload: Workload) -> Profiles:
    """Return the profiles that static jobs use. Batsim loads no other profiles."""
    used: Profiles = {}
    for name in Jobs.of(workload.jobs).profile_uses():
        if name not in used:
            used |= with_parts(workload.profiles, name)
    return used
