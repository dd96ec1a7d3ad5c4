# SPDX-License-Identifier: Apache-2.0
"""The driver for Batsim: a message becomes rows, the rules of an instant run, decisions a reply.

There are three differences from the embedded driver:

- Jobs, profiles and ids of attempts are not known in advance, so the tables grow.
- Later messages acknowledge kills, in any order. Until then, kills stay in their table.
- The reply contains registrations of resubmissions, calls, and the end of registrations.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.attempts import (
    attempt_profile,
    job_name,
    resubmission_id,
    split_attempt,
    taken_id,
    workload_name,
)
from rebat.core.cores import groups_of
from rebat.core.errors import InputError, PolicyError
from rebat.core.jobs import batsim_number, delay_us, duration_us
from rebat.core.node_events import NodeEvents
from rebat.core.nodes import NodeSet
from rebat.core.options import SessionOptions
from rebat.core.traits import shape_of, traits_of
from rebat.core.units import FOREVER_US, to_s
from rebat.drive.growing import with_plans, with_rows, with_spaces
from rebat.drive.invariants import check_tables
from rebat.drive.labels import Labels
from rebat.drive.linking import Linking
from rebat.drive.outcome import Rows, ledger_of
from rebat.drive.parts import LoopMachine, machine_of
from rebat.drive.plans import RuleRecorder
from rebat.drive.simulate import (
    PATTERN,
    Submissions,
    extended,
    parameters_of,
    with_periods_as_forwarded,
)
from rebat.drive.told import Told
from rebat.models.checkpoint import Checkpointing, checkpointing_of, derived_checkpointing
from rebat.models.speedup import speedup_of
from rebat.policies.partitions import Partition
from rebat.policies.point import Point
from rebat.rules.by_value import arrays_of
from rebat.rules.instant import (
    acknowledged,
    change_nodes,
    decide,
    end,
    end_killed,
    go_on,
    is_due,
    submit,
)
from rebat.rules.room import instant_fits, plan_fits
from rebat.rules.waits import remove_row, second_pass
from rebat.session.ledger import Ledger
from rebat.session.plan_record import PlanRecorder
from rebat.session.registry import LEAST_DELAY_S, UNKNOWN_LAG_US, first_attempt
from rebat.state import codes, tables
from rebat.state.rows import zeros

NOT_STOPPED = "cannot be stopped, because its job could not continue"

CAUSES = {
    "COMPLETED_SUCCESSFULLY": codes.COMPLETED,
    "COMPLETED_FAILED": codes.JOB_FAILED,
    "COMPLETED_WALLTIME_REACHED": codes.WALLTIME,
}


class Wire:
    """The state of a simulation, computed from Batsim's messages. ``handle`` answers a message."""

    profiles: dict[str, dict[str, dict[str, Any]]]
    """Profiles by workload and name, including those of resubmissions."""
    state: Any
    room: tables.Room
    links: Linking
    causes: dict[str, int]

    def __init__(
        self, point: Point, options: SessionOptions, recorder: PlanRecorder | None = None
    ) -> None:
        self._point, self._options, self._record = point, options, recorder
        self.now_us = 0
        self.began: e.SimulationBegan | None = None
        self.ended = self.statics_over = self.registering = False
        self._set_up(0)

    def handle(self, message: e.Message) -> d.Reply:
        """Process a message, decide, and return the reply."""
        if message.now_us < self.now_us:
            raise InputError(
                f"the message at {to_s(message.now_us)} s follows one at {to_s(self.now_us)} s",
                expected="times in ascending order",
            )
        now = self.now_us = message.now_us
        events, begins = message.events, False
        if self.began is None and events and isinstance(events[0], e.SimulationBegan):
            self._begin(events[0])
            events, begins = events[1:], True
        self._make_room(events)
        n = self.state.n
        n.n_out = 0
        relevant = begins
        for event in events:
            if not self._acknowledges(event):
                self._take[type(event)](self, event)
                relevant = True
        if relevant or self._is_due(now):
            if self.statics_over and not self.links.is_checked:
                self.links.check(self.state, [job_id for job_id, _ in self.jobs])
            outcome = self._decide(now)
            assert outcome == codes.DONE, f"outcome {outcome} of the rules"
        reply = d.Reply(now, tuple(self._decisions(now)))
        if not n.n_kills:
            self._forgotten = n.n_records, n.n_given_up
        return reply

    @property
    def ledger(self) -> Ledger:
        """Records of the simulation."""
        room = self.machine.restore(tables.finished(self.room))
        source = Told(self)
        ledger = ledger_of(source, Rows(source, room), room)
        ledger.node_events, ledger.refusals = self.node_events, self.refusals
        ledger.interrupted = self.interrupted
        return ledger

    @property
    def queue(self) -> list[str]:
        """Ids of the queued attempts."""
        state, queues = self.state, zip(self.room.queue, self.state.parts, strict=True)
        rows = [int(a) for queue, part in queues for a in queue[: part.n_queued]]
        rows += [row.entered for row in state.lists[: state.n.n_entered]]
        return [self.names[a] for a in rows]

    def nodes_of(self, attempt_id: str) -> NodeSet | None:
        """Return the nodes of a running attempt, or None if it does not run."""
        a = self.rows.get(attempt_id, -1)
        row = self.state.attempts[a]
        return self._nodes_of(a) if a >= 0 and row.start >= 0 and row.end < 0 else None

    def validate(self) -> None:
        """Check the invariants that hold after every message."""
        check_tables(self.room, self.names)

    def _decide(self, now: int) -> int:
        outcome = decide(self.state, self.room, self.table, self.extended, self.recorder, now)
        while outcome == codes.LARGER_ROOM:
            self._make_room_to_plan()
            outcome = go_on(self.state, self.room, self.table, self.extended, self.recorder, now)
        return outcome

    def _is_due(self, now: int) -> bool:
        return is_due(self.state, now)

    # ---- the beginning, and room for more

    def _begin(self, event: e.SimulationBegan) -> None:
        groups_of(event.n_nodes, self._options.cores_per_node)
        self._set_up(event.n_nodes)
        self.began = event
        self.registering = bool(event.config.get("dynamic-jobs-enabled"))
        self.reusing = bool(event.config.get("profile-reuse-enabled"))
        self.profiles = {name: dict(of) for name, of in event.profiles.items()}

    def _set_up(self, n_nodes: int) -> None:
        """Create the tables for a machine."""
        point, self.n_nodes = self._point, n_nodes
        if n_nodes:
            self.machine = machine_of(point, n_nodes, self._options.cores_per_node)
        else:
            self.machine = LoopMachine(0, tables.parts_for([0]))
        self.parameters = parameters_of(point, self.machine.n_nodes, self._options.max_attempts)
        self.parameters.parted = bool(self.machine.partitions)
        self.extended = extended(self.parameters)
        self.formula = arrays_of(point.common.formula, n_nodes)
        self.partitions: list[Partition] = []  # of jobs, if the machine has partitions
        p = self.parameters
        self.by_text = p.order == codes.BY_ID or p.tie == codes.BY_TEXT
        self.reusing = False
        self.profiles = {}
        self.names: list[str] = []  # ids of attempts, by row ("" for held nodes)
        self.profile_of: list[str] = []  # names of the profiles of attempts, by row
        self.jobs: list[tuple[str, str]] = []  # id and workload
        self.recorder = None
        if self._record is not None:
            self.recorder = RuleRecorder(self._record, self.machine, lambda j: self.jobs[j][0])
        self._forgotten = 0, 0  # records, and jobs given up, that the session knew before
        self._like_resubmissions: dict[str, str] = {}
        self._unknown_runs: dict[int, InputError] = {}  # attempts with unknown true run times
        self.interrupted: dict[str, int] = {}
        self.refusals: list[tuple[int, str, str]] = []
        self.node_events = NodeEvents()
        self.kinds: list[Checkpointing | None] = []  # of profiles, by row
        self.states: dict[int, str] = {}  # Batsim's states of attempts
        self.hits: dict[int, tuple[int, int]] = {}  # time and cause of failures of attempts
        self.rows: dict[str, int] = {}  # attempts by id
        self.registered: set[str] = set()
        self.links = Linking()
        self.profile_rows: dict[tuple[str, str, int], tuple[int, InputError | None]] = {}
        self.users, self.causes = {"": 0}, {"": 0}
        self._by_name, self._by_prefix = Labels(), Labels()
        self.called: set[int] = set()
        self.lag_us: int | None = None
        self.sent: dict[int, int] = {}  # when the kill of an attempt was sent
        self.table = tables.table_for(self.parameters)
        self.room = tables.room_for(
            zeros(tables.Job, 0), zeros(tables.Profile, 0), self.parameters, 0,
            self.machine.table, tables.no_links(), self.formula, compiled=False,
        )  # fmt: skip
        self.state = self.room.state
        self.state.n.unfinished = 0

    def _make_room(self, events: Sequence[e.Event]) -> None:
        """Let the tables grow, so that an instant fits."""
        changes = [each for each in events if isinstance(each, e.NodesFailed | e.NodesRejuvenated)]
        n_changed = sum(each.nodes.size for each in changes)
        if not instant_fits(self.state, len(events), len(changes), n_changed):
            self.room = with_rows(self.room, len(events), len(changes), n_changed)
            self.state = self.room.state
        self._make_room_to_plan(len(events) + self.state.n.n_kills + self.state.n.n_waits)

    def _make_room_to_plan(self, n_more: int = 0) -> None:
        """Let the arrays grow, so that the next plan fits."""
        if not plan_fits(self.state, self.room, self.table, n_more):
            self.room = with_plans(self.room, n_more)
            self.state = self.room.state
            self.table = with_spaces(self.room, self.table, n_more)

    # ---- events to rows

    def _acknowledges(self, event: e.Event) -> bool:
        """Return whether an event only acknowledges a decision."""
        if isinstance(event, e.JobSubmitted):
            return event.job_id in self.registered
        return isinstance(event, (e.CallRequested, e.NoMoreExternalEvents))

    def _on_submit(self, event: e.JobSubmitted) -> None:
        if event.job_id in self.rows:
            raise InputError("was already submitted", f"job {event.job_id}")
        j, state = len(self.jobs), self.state
        workload, name = workload_name(event.job_id), str(event.job.get("profile"))
        of_workload = self.profiles.setdefault(workload, {})
        if event.profile is not None and of_workload.get(name) != event.profile:
            of_workload[name] = event.profile
            self.profile_rows = {
                k: v for k, v in self.profile_rows.items() if k[:2] != (workload, name)
            }
        if self.registering:
            self._check_id(event.job_id)
        job, content = first_attempt(event, j), of_workload.get(name, {})
        try:
            profile, error = self._profile_row(workload, name, content, job.n_nodes)
            if content.get("type", "delay") == "delay":
                shape_of(event.job)
            traits = traits_of(event.job)
            if traits.eternal:
                raise InputError("is eternal", expected="a job with an end")
            if self.machine.partitions:
                self.partitions.append(
                    self.machine.partition_for(traits, job.n_nodes, job.walltime_us)
                )
        except InputError as problem:
            raise problem.at(f"job {event.job_id}") from None
        row = tables.Job()
        state.jobs.append(row)
        row.submit, row.size, row.wall = event.at_us, job.n_nodes, job.walltime_us
        row.profile, row.job_class = profile, traits.priority_class
        row.user = self.users.setdefault(traits.user, len(self.users))
        if self.partitions:
            row.part = self.machine.part_of[self.partitions[j].name]
        row.once = not (self.registering and content) or self._is_deleted(content)
        self.jobs.append((event.job_id, workload))
        if self.by_text:
            self._rank(j, event.job_id)
        row.block = self.links.link(state, event.job_id, traits, self._first_attempt)
        a = submit(state, j, event.at_us)
        self._name(a, event.job_id, name)
        if error:
            self._unknown_runs[a] = error

    def _first_attempt(self, job_id: str) -> int:
        a = self.rows.get(job_id, -1)
        return a if a >= 0 and self.state.attempts[a].number == 0 else -1

    def _check_id(self, job_id: str) -> None:
        """Raise InputError if a resubmission of one job could have the id of another job."""
        base, number = split_attempt(job_id)
        if number:
            self._like_resubmissions[base] = job_id
            if base in self.rows and not self._is_forgotten(base):
                raise taken_id(job_id, base)
        if job_id in self._like_resubmissions:
            raise taken_id(self._like_resubmissions[job_id], job_id)

    def _is_forgotten(self, job_id: str) -> bool:
        """Return whether a job ended before this message. Its id can have resubmissions then."""
        state, (n_records, n_given_up) = self.state, self._forgotten
        j = state.attempts[self.rows[job_id]].job
        recent = {
            state.attempts[row.record].job for row in state.lists[n_records : state.n.n_records]
        }
        recent |= {row.given_up for row in state.lists[n_given_up : state.n.n_given_up]}
        return state.jobs[j].progress >= codes.NOT_OK and j not in recent

    def _is_deleted(self, content: dict[str, Any]) -> bool:
        """Return whether Batsim deletes a profile after its first job."""
        return content.get("type") == "composed" and not self.reusing

    def _content(self, a: int) -> dict[str, Any]:
        """Return the profile of an attempt."""
        workload = self.jobs[self.state.attempts[a].job][1]
        content = self.profiles.get(workload, {}).get(self.profile_of[a])
        if content is None:
            raise InputError(f"unknown profile {self.profile_of[a]!r}", f"job {self.names[a]}")
        return content

    def _why_not_again(self, a: int) -> str:
        """Return why Batsim cannot run the remaining work of an attempt, or an empty text."""
        if not self.registering:
            return "Batsim accepts no new jobs"
        if self._is_deleted(self._content(a)):
            return f"Batsim has deleted its composed profile {self.profile_of[a]}"
        return ""

    def _profile_row(
        self, workload: str, name: str, content: dict[str, Any], size: int
    ) -> tuple[int, InputError | None]:
        """Return the row of a profile, and why its run time is unknown if plans need it.

        If numbers have six digits, or if a checkpoint period is derived, the row depends on the
        size.
        """
        six, young_daly = bool(self.parameters.six_digits), self._options.young_daly
        key = workload, name, size if six or young_daly else 0
        if key in self.profile_rows:
            return self.profile_rows[key]
        checkpoints, error = checkpointing_of(content), None
        speedup_of(content)
        if checkpoints and (checkpoints.light or checkpoints.never):
            problem = "its profile has checkpoints in several tiers, or none in its period"
            raise InputError(problem, expected="profiles that are known at the beginning")
        if content.get("type", "delay") != "delay":
            checkpoints = None  # only delays can be shortened; other jobs lose all work
        elif checkpoints is None:
            checkpoints = derived_checkpointing(size, self.n_nodes, young_daly)
        profile = zeros(tables.Profile, 1)
        profile["delay"] = 1
        try:
            if self.parameters.predict == codes.ACTUAL:
                profile["delay"] = duration_us(self.profiles[workload], name, None)
            elif checkpoints:
                profile["delay"] = delay_us(content)
        except InputError as problem:
            error = problem
        for field, value in zip(PATTERN, Submissions.pattern(checkpoints), strict=True):
            profile[field] = value
        if six:
            sizes = zeros(tables.Job, 1)
            sizes["size"] = size
            profile = with_periods_as_forwarded(sizes, profile)[1]
        row = len(self.state.profiles)
        self.kinds.append(checkpoints)
        self.state.profiles.append(tables.Profile(*profile[0].item()))
        self.profile_rows[key] = row, error if self.parameters.predict == codes.ACTUAL else None
        return self.profile_rows[key]

    def _rank(self, j: int, job_id: str) -> None:
        """Label a job among the ids as text, and among the ids of resubmissions."""
        name, jobs = job_name(job_id), self.state.jobs
        for row, label in self._by_name.add(name, j):
            jobs[row].by_name = label
        for row, label in self._by_prefix.add(name + "-", j):
            jobs[row].by_prefix = label
        if self._by_prefix.nested:
            problem = "begins like a resubmission of another job"
            raise InputError(problem, f"job {job_id}", "another id, or tie and order without ids")

    def _name(self, a: int, name: str, profile: str) -> None:
        for texts in (self.names, self.profile_of):
            texts.extend([""] * (a + 1 - len(texts)))
        self.names[a], self.profile_of[a], self.rows[name] = name, profile, a

    def _on_complete(self, event: e.JobCompleted) -> None:
        a, state = self.rows.get(event.job_id, -1), self.state
        if a < 0 or state.attempts[a].start < 0 or state.attempts[a].end >= 0:
            raise InputError("completed, but was not started", f"job {event.job_id}")
        i = self._kill_of(a)
        self.states[a] = sys.intern(event.state)
        if i >= 0 and event.state == "COMPLETED_KILLED":
            end_killed(state, i, event.at_us)
            if state.attempts[a].cause == codes.NODE_FAILURE:
                job_id = self.jobs[state.attempts[a].job][0]
                self.interrupted[job_id] = self.interrupted.get(job_id, 0) + 1
        else:
            end(state, a, event.at_us, CAUSES.get(event.state, codes.JOB_FAILED))
            if a in self.hits:  # it was faster than its kill: work after the failure is lost
                row = state.attempts[a]
                row.useful = max(0, self.hits[a][0] - row.start - row.recovery)

    def _kill_of(self, a: int) -> int:
        """Return the row of the kill of an attempt that is not acknowledged, or -1."""
        kills = self.state.kills
        return next((i for i in range(self.state.n.n_kills) if kills[i].attempt == a), -1)

    def _on_killed(self, event: e.JobsKilled) -> None:
        state, n = self.state, self.state.n
        for job_id in event.job_ids:
            a = self.rows.get(job_id, -1)
            if (i := self._kill_of(a)) < 0:
                continue
            lag_us = self.now_us - self.sent.pop(a)
            self.lag_us = lag_us if self.lag_us is None else max(self.lag_us, lag_us)
            if job_id in event.progress:  # otherwise it completed before its kill
                acknowledged(state, self.extended, i, self.now_us)
            n.n_kills = remove_row(state.kills, n.n_kills, i)
        if n.n_waits and not n.n_kills and self.extended:
            second_pass(state, self.now_us)

    def _on_nodes(self, event: e.NodesFailed | e.NodesRejuvenated) -> None:
        up = isinstance(event, e.NodesRejuvenated)
        cause = "" if isinstance(event, e.NodesRejuvenated) else event.cause or ""
        nodes = list(event.nodes)
        if nodes and nodes[-1] >= self.n_nodes:
            raise InputError(
                f"an event has nodes {event.nodes}, but the machine has {self.n_nodes} nodes"
            )
        numbers = self.machine.numbered(event.nodes.ids).tolist()
        for node, number in zip(nodes, numbers, strict=True):
            if bool(self.state.down[number]) != up:
                raise InputError(f"node {node} is already {'up' if up else 'down'}")
        self.node_events.append((event.at_us, up, event.nodes))
        code = self.causes.setdefault(cause, len(self.causes))
        change_nodes(self.state, self.room, self.extended, numbers, up, code, self.now_us)

    def _on_begin(self, _: e.Event) -> None:
        raise InputError("the simulation has already begun")

    def _on_no_more_jobs(self, _: e.Event) -> None:
        self.statics_over = True

    def _on_end(self, _: e.Event) -> None:
        self.ended = True

    def _ignore(self, _: e.Event) -> None:
        pass

    _take: ClassVar[dict[type, Any]] = {
        e.SimulationBegan: _on_begin,
        e.JobSubmitted: _on_submit,
        e.JobCompleted: _on_complete,
        e.JobsKilled: _on_killed,
        e.NodesFailed: _on_nodes,
        e.NodesRejuvenated: _on_nodes,
        e.NoMoreStaticJobs: _on_no_more_jobs,
        e.SimulationEnded: _on_end,
        e.Notified: _ignore,
    }

    # ---- rows to decisions

    def _decisions(self, now: int) -> list[d.Decision]:
        state, n = self.state, self.state.n
        out: list[d.Decision] = []
        for i in range(n.n_out):
            row = state.out[i]
            subject = row.subject
            if row.kind == codes.START:
                out.append(
                    d.ExecuteJob(
                        at_us=now, job_id=self.names[subject], nodes=self._nodes_of(subject)
                    )
                )
            elif row.kind == codes.KILLS:
                self._check_again(subject, row.up_to)
                self._note_hits(subject, row.up_to)
                killed = [state.kills[k].attempt for k in range(subject, row.up_to)]
                self.sent |= dict.fromkeys(killed, now)
                out.append(d.KillJobs(at_us=now, job_ids=tuple(self.names[a] for a in killed)))
            elif row.kind == codes.REGISTER:
                out += self._register(subject, row.up_to, now)
            elif row.kind == codes.REJECT:
                out.append(d.RejectJob(at_us=now, job_id=self.names[subject]))
            elif row.kind == codes.REFUSE:
                self._refuse(subject, row.up_to - 1)
            else:
                out.append(self._call(subject, now))
        planned = [a for a in self._unknown_runs if state.attempts[a].predicted]
        if planned:
            a = min(planned, key=lambda a: (state.jobs[state.attempts[a].job].part, a))
            raise self._unknown_run(a, self._unknown_runs[a])
        n.n_calls = 0  # the heap of calls belongs to the embedded driver
        if n.n_stops and not n.n_kills:
            stops = {state.stops[s].at for s in range(n.n_stops)}
            out += [self._call(at, now) for at in sorted(stops - self.called) if at > now]
        if self.registering and self.statics_over and self._is_idle():
            self.registering = False
            out.append(d.FinishRegistration(at_us=now))
        return out

    def _nodes_of(self, a: int) -> NodeSet:
        row = self.state.attempts[a]
        nodes = self.state.nodes[row.nodes_at : row.nodes_at + row.n_nodes_at]
        return self.machine.nodes_of(nodes.astype(np.int64))

    def _is_idle(self) -> bool:
        n = self.state.n
        return not (
            n.n_running or n.n_entered or n.n_kills or n.n_waits or n.n_blocked
            or self._has_queue()
        )  # fmt: skip

    def _has_queue(self) -> bool:
        return any(part.n_queued for part in self.state.parts)

    def _call(self, at_us: int, now: int) -> d.CallMeLater:
        """Return the request of a call at a time, or as soon as possible after it.

        Batsim aborts if it receives the request after the requested time.
        """
        margin_us = UNKNOWN_LAG_US if self.lag_us is None else 2 * self.lag_us
        self.called.add(at_us)
        return d.CallMeLater(at_us=now, when_us=max(at_us, now + margin_us))

    def _check_again(self, first: int, last: int) -> None:
        """Check that Batsim can run the remaining work of attempts that are killed."""
        rows = self.state.kills[first:last]
        for row in rows:
            reason = self._why_not_again(row.attempt) if row.then == codes.WAITS else ""
            if reason and self._options.strict:
                raise self._refused(self.names[row.attempt], f"{NOT_STOPPED}: {reason}")
        for row in rows:
            if reason := self._why_not_again(row.attempt):
                raise InputError(
                    f"must run again, but {reason}",
                    f"job {self.names[row.attempt]}",
                    "Batsim started with --enable-dynamic-jobs --enable-profile-reuse",
                )

    def _note_hits(self, first: int, last: int) -> None:
        """Note the failures of the attempts that are killed, if the cause of any is known."""
        attempts = self.state.attempts
        hit = [row.attempt for row in self.state.kills[first:last] if row.cause != codes.STOLEN]
        if any(attempts[a].failure for a in hit):
            self.hits |= {a: (self.now_us, attempts[a].failure) for a in hit}

    def _refuse(self, victim: int, waiting: int) -> None:
        """Record that a victim cannot be stopped, and that another job cannot wait for it."""
        name, reason = self.names[victim], f"{NOT_STOPPED}: {self._why_not_again(victim)}"
        if self._options.strict:
            raise self._refused(name, reason)
        self.refusals.append((self.now_us, name, reason))
        if waiting >= 0:
            reason = f"cannot wait for {name}: no stop of {name} is scheduled"
            self.refusals.append((self.now_us, self.names[waiting], reason))

    def _refused(self, name: str, reason: str) -> PolicyError:
        return PolicyError(f"at {to_s(self.now_us)} s the policy's {name} {reason}")

    def _unknown_run(self, a: int, error: InputError) -> InputError:
        return InputError(
            f"its true run time is unknown: {error.problem}",
            f"job {self.names[a]}",
            "a profile that is a delay or composed of delays, or another prediction than "
            "predict=actual",
        )

    def _register(self, b: int, a: int, now: int) -> list[d.Decision]:
        """Return the decisions that register a resubmission ``b`` of an attempt ``a``."""
        row, job = self.state.attempts[b], self.state.jobs[self.state.attempts[b].job]
        job_id, workload = self.jobs[row.job]
        attempt_id = resubmission_id(job_id, row.number)
        name, profile = self.profile_of[a], self._content(a)
        out: list[d.Decision] = []
        if profile.get("type") != "composed":
            if self.state.profiles[job.profile].checkpoints:
                profile = self._remaining(profile, row)
            name = attempt_profile(job_name(attempt_id), name)
            while name in self.profiles[workload]:
                name += "'"
            self.profiles[workload][name] = profile
            out.append(d.RegisterProfile(at_us=now, workload=workload, name=name, profile=profile))
        fields = {
            "id": attempt_id, "subtime": batsim_number(now), "res": job.size, "profile": name,
        }  # fmt: skip
        if row.wall < FOREVER_US:
            fields["walltime"] = batsim_number(row.wall)
        self._name(b, attempt_id, name)
        self.registered.add(attempt_id)
        return [*out, d.RegisterJob(at_us=now, job_id=attempt_id, job=fields)]

    def _remaining(self, profile: dict[str, Any], row: tables.Attempt) -> dict[str, Any]:
        """Return the profile of the remaining work of an attempt that writes checkpoints."""
        rounded: dict[str, Any] = {}
        if self.parameters.six_digits and row.own_period + row.own_cost > 1:
            rounded = {
                "checkpoint_period": to_s(row.own_period),
                "checkpoint_cost": to_s(row.own_cost),
                "recovery_cost": to_s(row.own_restart),
            }
        return {
            **profile,
            "delay": max(LEAST_DELAY_S, to_s(row.delay)),
            **rounded,
            "Tfirst": to_s(row.first),
            "Rfirst": to_s(row.recovery),
        }
