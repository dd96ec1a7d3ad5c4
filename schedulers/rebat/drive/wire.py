# SPDX-License-Identifier: Apache-2.0
"""The driver for Batsim: a message becomes rows, the rules of an instant run, decisions a reply.

There are three differences from the embedded driver:

- Jobs, profiles and ids of attempts are not known in advance, so the tables grow.
- Later messages acknowledge kills, in any order. Until then, kills stay in their table.
- Batsim must be told about resubmissions, calls, and the end of registrations.
"""

from __future__ import annotations

from bisect import bisect
from typing import Any, ClassVar

import numpy as np

from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.attempts import attempt_profile, job_name, resubmission_id, workload_name
from rebat.core.dependencies import (
    KINDS,
    Condition,
    array_limit,
    check_dependencies,
    conditions_of,
)
from rebat.core.errors import InputError
from rebat.core.jobs import batsim_number, delay_us
from rebat.core.nodes import NodeSet
from rebat.core.options import SessionOptions
from rebat.core.traits import Traits, traits_of
from rebat.core.units import FOREVER_US, to_s
from rebat.drive.simulate import (
    PATTERN,
    Submissions,
    extended,
    parameters_of,
    with_periods_as_forwarded,
)
from rebat.models.checkpoint import checkpointing_of, derived_checkpointing
from rebat.policies.point import Point
from rebat.rules.by_value import arrays_of
from rebat.rules.instant import (
    acknowledged,
    change_nodes,
    decide,
    end,
    end_killed,
    is_due,
    submit,
)
from rebat.rules.waits import remove_row, second_pass
from rebat.session.registry import LEAST_DELAY_S, first_attempt
from rebat.state import codes, tables
from rebat.state.rows import zeros

UNKNOWN_LAG_US = 1_000
"""Minimum time (us) between the request of a call and the call, before the first kill.

The first kill shows the delay of replies. On a platform without network latency, replies have no
delay, so calls are exact from then on.
"""

CAUSES = {
    "COMPLETED_SUCCESSFULLY": codes.COMPLETED,
    "COMPLETED_FAILED": codes.JOB_FAILED,
    "COMPLETED_WALLTIME_REACHED": codes.WALLTIME,
}


class Wire:
    """The state of a simulation, computed from Batsim's messages. ``handle`` answers a message."""

    capacity = 64

    def __init__(self, point: Point, options: SessionOptions) -> None:
        self._point, self._options = point, options
        self.now_us = 0
        self.began: e.SimulationBegan | None = None
        self.ended = self.statics_over = False
        self.state: Any = None

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
        self._make_room(len(events))
        n = self.state.n
        n.n_out = 0
        relevant = begins
        for event in events:
            if not self._acknowledges(event):
                self._take[type(event)](self, event)
                relevant = True
        if relevant or self._is_due(now):
            self._check_dependencies()
            outcome = self._decide(now)
            assert outcome == codes.DONE, f"outcome {outcome} of the rules"
        return d.Reply(now, tuple(self._decisions(now)))

    def _decide(self, now: int) -> int:
        return decide(self.state, self.room, self.table, self.extended, now)

    def _is_due(self, now: int) -> bool:
        return is_due(self.state, now)

    # ---- the beginning, and room for more

    def _begin(self, event: e.SimulationBegan) -> None:
        self.began, point = event, self._point
        self.n_nodes = event.n_nodes
        self.registering = bool(event.config.get("dynamic-jobs-enabled"))
        self.parameters = parameters_of(point, event.n_nodes, self._options.max_attempts)
        self.extended = extended(self.parameters)
        self.formula = arrays_of(point.common.formula, event.n_nodes)
        self.parts = tables.parts_for([event.n_nodes])
        p = self.parameters
        self.by_text = p.order == codes.BY_ID or p.tie == codes.BY_TEXT
        self.profiles = {name: dict(of) for name, of in event.profiles.items()}
        self.names: list[str] = []  # ids of attempts, by row ("" for held nodes)
        self.jobs: list[tuple[str, str, str]] = []  # id, workload, name of the profile
        self.rows: dict[str, int] = {}  # attempts by id
        self.registered: set[str] = set()
        self.block_rows: dict[str, int] = {}  # blocks by id of the job
        self.arrays: dict[str, int] = {}
        self._are_dependencies_checked = False
        self.profile_rows: dict[Any, int] = {}
        self.users, self.causes = {"": 0}, {"": 0}
        self.sorted_names: tuple[list[str], list[str]] = [], []
        self.called: set[int] = set()
        self.lag_us: int | None = None
        self.sent: dict[int, int] = {}  # when the kill of an attempt was sent
        self.factor, self.table = 1, tables.table_for(self.parameters, 1)
        self.room = self._new_room()
        self.state = self.room.state
        self.state.n.unfinished = 0

    def _new_room(self) -> tables.Room:
        k = self.capacity
        return tables.room_for(
            zeros(tables.Job, k), zeros(tables.Profile, k), self.parameters, k, self.factor,
            self.parts, tables.no_links(), self.formula, compiled=False,
        )  # fmt: skip

    def _make_room(self, n_events: int) -> None:
        """Grow the tables if an instant might not fit (as the embedded driver does)."""
        n, state, room = self.state.n, self.state, self.room
        part, more = state.parts[0], n.n_running + n.n_waits
        queued, new = part.n_queued + n.n_entered, n_events + n.n_kills
        points = max(part.base_n, part.plan_n) + 4 * (more + queued + new) + 64
        used = n.n_nodes_used + 2 * self.n_nodes + queued + new + n.n_running
        is_full = points > len(room.base_t[0])
        if (
            is_full
            or n.n_attempts + 2 * (new + more) + 8 > len(state.attempts)
            or len(self.jobs) + n_events > self.capacity
            or len(self.profile_rows) + n_events > self.capacity
            or part.n_planned_ends + 2 * more + 2 * n.n_waits + 8 > len(room.holds[0])
            or used > state.nodes.shape[0]
        ):
            self.capacity *= 2
            self.factor *= 1 + is_full
            self.room = tables.grown(room, self._new_room())
            self.state = self.room.state
            self._make_room(n_events)

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
        if event.profile is not None:
            self.profiles.setdefault(workload, {})[name] = event.profile
        job, traits = first_attempt(event, j), traits_of(event.job)
        row = state.jobs[j]
        row.submit, row.size, row.wall = event.at_us, job.n_nodes, job.walltime_us
        row.profile = self._profile_row(workload, name, job)
        row.job_class = traits.priority_class
        row.user = self.users.setdefault(traits.user, len(self.users))
        self.jobs.append((event.job_id, workload, name))
        if self.by_text:
            self._rank(j, job_name(event.job_id))
        if traits.dependency or traits.array:
            self._link(event.job_id, traits)
        row.block = self.block_rows.get(event.job_id, -1) + 1
        self._name(submit(state, j, event.at_us), event.job_id)

    def _link(self, job_id: str, traits: Traits) -> None:
        """Add the conditions and the array of a job."""
        state, workload = self.state, workload_name(job_id)
        row = state.blocks[self._block(job_id)]
        conditions = conditions_of(traits.dependency)
        row.condition, row.n_conditions = len(state.conditions), len(conditions)
        for kind, job in conditions:
            block = self._block(f"{workload}!{job}")
            state.conditions.append(
                tables.Condition([*KINDS].index(kind), block, self.block_rows[job_id])
            )
        if traits.array:
            name = f"{workload}!{traits.array}"
            if name not in self.arrays:
                state.arrays.append(tables.JobArray(array_limit(traits.array)))
            row.array = 1 + self.arrays.setdefault(name, len(self.arrays))

    def _block(self, job_id: str) -> int:
        """Return the block of a job, which may not be submitted yet."""
        if job_id not in self.block_rows:
            block = tables.Block()
            b = self.block_rows[job_id] = len(self.state.blocks)
            self.state.blocks.append(block)
            a = self.rows.get(job_id, -1)
            if a >= 0 and self.state.attempts[a].number == 0:
                block.job, block.attempt = self.state.attempts[a].job + 1, a + 1
                self.state.jobs[block.job - 1].block = b + 1
        return self.block_rows[job_id]

    def _check_dependencies(self) -> None:
        """Check that the jobs on which blocked jobs depend exist, and that there is no cycle."""
        if self._are_dependencies_checked or not self.statics_over:
            return
        self._are_dependencies_checked = True
        blocks, kinds, names = self.state.blocks, [*KINDS], [*self.block_rows]
        conditions: dict[str, list[Condition]] = {}
        for block in sorted(filter(lambda block: block.is_open, blocks), key=lambda b: b.job):
            first, last = block.condition, block.condition + block.n_conditions
            conditions[self.jobs[block.job - 1][0]] = [
                Condition(kinds[row.kind], names[row.block])
                for row in self.state.conditions[first:last]
            ]
        check_dependencies(conditions, {n for n, b in self.block_rows.items() if blocks[b].job})

    def _profile_row(self, workload: str, name: str, job: Any) -> int:
        """Return the row of a profile. If numbers have six digits, it depends on the size."""
        six, young_daly = bool(self.parameters.six_digits), self._options.young_daly
        key = workload, name, job.n_nodes if six or young_daly else 0
        if key not in self.profile_rows:
            content = self.profiles.get(workload, {}).get(name, {})
            checkpoints = checkpointing_of(content)
            if checkpoints is None and young_daly:
                checkpoints = derived_checkpointing(job.n_nodes, self.n_nodes, young_daly)
            profile = zeros(tables.Profile, 1)
            profile["delay"], profile["ret"] = delay_us(content), int(content.get("ret", 0))
            for field, value in zip(PATTERN, Submissions.pattern(checkpoints), strict=True):
                profile[field] = value
            if six:
                sizes = zeros(tables.Job, 1)
                sizes["size"] = job.n_nodes
                profile = with_periods_as_forwarded(sizes, profile)[1]
            row = self.profile_rows[key] = len(self.profile_rows)
            self.state.profiles[row] = tables.Profile(*profile[0].item())
        return self.profile_rows[key]

    def _rank(self, j: int, name: str) -> None:
        """Renew the ranks of all jobs among the ids as text (O(n); labels with gaps would do)."""
        for field, names, text in zip(
            ("by_name", "by_prefix"), self.sorted_names, (name, name + "-"), strict=True
        ):
            at = bisect(names, text)
            for job in self.state.jobs[:j]:
                if getattr(job, field) >= at:
                    setattr(job, field, getattr(job, field) + 1)
            setattr(self.state.jobs[j], field, at)
            names.insert(at, text)

    def _name(self, a: int, name: str) -> None:
        self.names += [""] * (a + 1 - len(self.names))
        self.names[a], self.rows[name] = name, a

    def _on_complete(self, event: e.JobCompleted) -> None:
        a, state = self.rows.get(event.job_id, -1), self.state
        if a < 0 or state.attempts[a].start < 0 or state.attempts[a].end >= 0:
            raise InputError("completed, but was not started", f"job {event.job_id}")
        i = self._kill_of(a)
        if i >= 0 and event.state == "COMPLETED_KILLED":
            end_killed(state, i, event.at_us)
        else:
            end(state, a, event.at_us, CAUSES.get(event.state, codes.JOB_FAILED))

    def _kill_of(self, a: int) -> int:
        """Return the row of the kill of an attempt that is not acknowledged, or -1."""
        kills = self.state.kills
        return next((i for i in range(self.state.n.n_kills) if kills[i].attempt == a), -1)

    def _on_killed(self, event: e.JobsKilled) -> None:
        state, n = self.state, self.state.n
        for job_id in event.job_ids:
            a = self.rows[job_id]
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
        for node in nodes:
            if bool(self.state.down[node]) != up:
                raise InputError(f"node {node} is already {'up' if up else 'down'}")
        code = self.causes.setdefault(cause, len(self.causes))
        change_nodes(self.state, self.room, self.extended, nodes, up, code, self.now_us)

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
            what, subject = row.what, row.subject
            if what == codes.START:
                out.append(
                    d.ExecuteJob(
                        at_us=now, job_id=self.names[subject], nodes=self._nodes_of(subject)
                    )
                )
            elif what == codes.KILLS:
                killed = [state.kills[k].attempt for k in range(subject, row.up_to)]
                self.sent |= dict.fromkeys(killed, now)
                out.append(d.KillJobs(at_us=now, job_ids=tuple(self.names[a] for a in killed)))
            elif what == codes.REGISTER:
                out += self._register(subject, now)
            elif what == codes.REJECT:
                out.append(d.RejectJob(at_us=now, job_id=self.names[subject]))
            else:
                out.append(self._call(subject, now))
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
        return NodeSet(nodes.astype(np.int64))

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

    def _register(self, b: int, now: int) -> list[d.Decision]:
        """Return the decisions that register the row of a resubmission."""
        row = self.state.attempts[b]
        job_id, workload, original = self.jobs[row.job]
        job = self.state.jobs[row.job]
        attempt_id = resubmission_id(job_id, row.number)
        name = attempt_profile(job_name(attempt_id), original)
        profile = content = self.profiles[workload][original]
        if self.state.profiles[job.profile].checkpoints:
            profile = {
                **content,
                "delay": max(LEAST_DELAY_S, to_s(row.delay)),
                "Tfirst": to_s(row.first),
                "Rfirst": to_s(row.recovery),
            }
            if self.parameters.six_digits and row.own_period + row.own_cost > 1:
                profile |= {
                    "checkpoint_period": to_s(row.own_period),
                    "checkpoint_cost": to_s(row.own_cost),
                    "recovery_cost": to_s(row.own_restart),
                }
        fields = {
            "id": attempt_id, "subtime": batsim_number(now), "res": job.size, "profile": name,
        }  # fmt: skip
        if row.wall < FOREVER_US:
            fields["walltime"] = batsim_number(row.wall)
        self._name(b, attempt_id)
        self.registered.add(attempt_id)
        return [
            d.RegisterProfile(at_us=now, workload=workload, name=name, profile=profile),
            d.RegisterJob(at_us=now, job_id=attempt_id, job=fields),
        ]
