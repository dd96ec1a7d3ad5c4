# SPDX-License-Identifier: Apache-2.0
"""The driver for Batsim: a message becomes rows, the rules of an instant run, decisions a reply.

There are three differences from the embedded driver:

- Jobs, profiles and ids of attempts are not known in advance, so the tables grow.
- Later messages acknowledge kills, in any order. Until then, kills stay in their table.
- The reply contains registrations of resubmissions, calls, and the end of registrations.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.arrays import Ints
from rebat.core.attempts import (
    job_name,
    resubmission_id,
    workload_name,
)
from rebat.core.errors import InputError, PolicyError
from rebat.core.jobs import delay_us, duration_us
from rebat.core.options import Recovery, SessionOptions
from rebat.core.traits import shape_of, traits_of
from rebat.core.units import to_s
from rebat.drive.checks import obstructed
from rebat.drive.eligible import operates, why_not_tiers
from rebat.drive.growing import with_plans, with_rows, with_spaces
from rebat.drive.hangs import hangs_for
from rebat.drive.invariants import check_tables, queued_attempts
from rebat.drive.labels import Labels
from rebat.drive.machine import LoopNodes
from rebat.drive.messages import LEAST_DELAY_S, Messages, remaining_profile, unknown_run
from rebat.drive.operations import Orders, with_job, with_operations
from rebat.drive.outcome import Rows, ledger_of
from rebat.drive.parts import machine_of, whole_machine
from rebat.drive.plan_record import PlanRecorder
from rebat.drive.plans import RuleRecorder
from rebat.drive.simulate import (
    PATTERN,
    compares_ids,
    extended,
    parameters_of,
    pattern_of,
    recorder_of,
    set_partitions,
    with_periods_as_forwarded,
)
from rebat.drive.site_limits import SiteLimits
from rebat.drive.site_windows import SiteWindows
from rebat.drive.tiers import add_profile, tiers_for
from rebat.drive.told import Told
from rebat.models.checkpoint import (
    NEVER,
    Checkpointing,
    checkpointing_of,
    derived_checkpointing,
)
from rebat.models.silent_errors import retried_profile
from rebat.models.speedup import speedup_of
from rebat.policies.placement.hazards import Hazards
from rebat.policies.point import Point
from rebat.rules.by_value import arrays_of
from rebat.rules.images import is_imaged
from rebat.rules.instant import (
    acknowledged,
    decide,
    end,
    end_killed,
    go_on,
    is_due,
)
from rebat.rules.moves import drop_move, hold_targets
from rebat.rules.room import instant_fits, plan_fits
from rebat.rules.stops import failed_at
from rebat.rules.waits import remove_row, second_pass
from rebat.state import codes, rooms, tables
from rebat.state.ledger import Ledger
from rebat.state.operations import N_RECEIVED
from rebat.state.rows import zeros

NOT_STOPPED = "cannot be stopped, because its job could not continue"

CAUSES = {
    "COMPLETED_SUCCESSFULLY": codes.COMPLETED,
    "COMPLETED_FAILED": codes.JOB_FAILED,
    "COMPLETED_WALLTIME_REACHED": codes.WALLTIME,
}


class Wire(Messages):
    """The driver in which rules decide."""

    def __init__(
        self,
        point: Point,
        options: SessionOptions,
        recorder: PlanRecorder | None = None,
        hazards: Hazards | None = None,
        uptime_us: Ints | None = None,
    ) -> None:
        self._point, self._record = point, recorder
        self.recovery = point.recovery or Recovery()
        self._hazards, self._uptime_us = hazards, uptime_us
        super().__init__(options)

    @property
    def ledger(self) -> Ledger:
        """Records of the simulation."""
        room = self.machine.restore(rooms.finished(self.room))
        source = Told(self)
        ledger = ledger_of(source, Rows(source, room), room)
        ledger.node_events, ledger.refusals = self.node_events, self._refusals
        ledger.interrupted = self._interrupted
        return ledger

    @property
    def refusals(self) -> Sequence[tuple[int, str, str]]:
        return self._refusals

    @property
    def interrupted(self) -> Mapping[str, int]:
        return self._interrupted

    @property
    def queue(self) -> list[str]:
        """Ids of the queued attempts."""
        entered = self.state.lists[: self.state.n.n_entered]
        rows = [*queued_attempts(self.room), *(row.entered for row in entered)]
        return [self.names[a] for a in rows]

    def validate(self) -> None:
        """Check the invariants that hold after every message."""
        check_tables(self.room, self.names)

    def _decide(self, now: int) -> None:
        self.state.n.has_news = 1
        if self._notices:
            self._receive()
        outcome = decide(
            self.state, self.room, self.table, self.cells, self.extended, self.recorder, now
        )
        while outcome == codes.LARGER_ROOM:
            self._make_room_to_plan()
            outcome = go_on(
                self.state, self.room, self.table, self.cells, self.extended, self.recorder, now
            )
        assert outcome == codes.DONE, f"outcome {outcome} of the rules"

    def _is_due(self, now: int) -> bool:
        return is_due(self.state, now)

    # ---- the beginning, and room for more

    def _set_up(self, n_nodes: int) -> None:
        """Create the tables for a machine."""
        super()._set_up(n_nodes)
        point = self._point
        if n_nodes:
            self.machine = machine_of(point, n_nodes, self.options.cores_per_node)
        else:
            self.machine = whole_machine(0)
        cores = self.options.cores_per_node
        self.parameters = parameters_of(
            point, self.machine.n_nodes, self.options.max_attempts, cores
        )
        set_partitions(self.parameters, self.machine)
        self.windows = SiteWindows(point.common.reservations, self.machine, cores)
        self.parameters.max_wakes = self.windows.max_wakes
        self.parameters.operating = operates(point)
        self.extended = extended(self.parameters)
        self.limits, self.shares = SiteLimits(point.limits), point.shares()
        self.formulas = arrays_of(point.formulas, n_nodes)
        p = self.parameters
        self.by_text = compares_ids(p, self.machine)
        self._shown, job_id = LoopNodes(self.machine.n_nodes, cores), self.submitted.__getitem__
        own = None
        if self._record is not None:
            own = RuleRecorder(self._record, self.machine, self.limits, job_id)
        self.recorder: Any = recorder_of(
            point, self.machine, job_id, own, self._shown, self._hazards
        )
        self._forgotten = 0, 0  # records, and jobs given up, of earlier messages
        self._interrupted: dict[str, int] = {}
        self._refusals: list[tuple[int, str, str]] = []
        self.kinds: list[Checkpointing | None] = []  # of profiles, by row
        self.states: dict[int, str] = {}  # Batsim's states of attempts
        self.hits: dict[int, tuple[int, int]] = {}  # time and cause of failures of attempts
        self.profile_rows: dict[tuple[str, str, int], tuple[int, InputError | None]] = {}
        self._by_name, self._by_prefix = Labels(), Labels()
        self.table, self.cells = rooms.table_for(self.parameters), None
        self.show(
            rooms.room_for(
                zeros(tables.Job, 0), zeros(tables.Profile, 0), self.parameters, 0,
                self.machine, tables.no_links(), tables.no_limits(), self.shares.tree,
                self.formulas, compiled=False,
            )
        )  # fmt: skip
        self.cells = self.windows.table(self.room)
        self.state.n.unfinished = 0
        if self._point.recovery:
            k = len(self.state.attempts)
            hangs = hangs_for(self._point.recovery, self._number_of, k)
            self.show(self.room._replace(state=self.state._replace(hangs=hangs)))
        self.orders = Orders(point, n_nodes, cores, self._named, self.users)
        self._notices: list[tuple[int, str, dict[str, Any]]] = []
        if self.parameters.operating:
            made = self.orders.table(rooms.ints(0, 2), len(self.state.attempts))
            self.show(self.room._replace(state=with_operations(self.state, made, False)))
        if self._uptime_us is not None and n_nodes:
            rooms.set_uptimes(self.state, self._uptime_us)

    def show(self, room: tables.Room) -> None:
        """Use these tables from now on."""
        super().show(room)
        self._shown.show(room)
        self.cells = self.windows.extend(self.cells, room)

    def _wakes(self) -> Iterable[int]:
        state = self.state
        at_us = [*state.wakes[: state.n.n_wakes]]
        if state.rounds is not None:
            at_us += [*state.rounds.wakes[: state.rounds.own[tables.N_WAKES], 0]]
        if state.lemons is not None:
            at_us += [*state.lemons.until[state.lemons.until > 0]]
        return map(int, at_us)

    def _on_no_more_jobs(self, event: e.Event) -> None:
        super()._on_no_more_jobs(event)
        self.state.n.all_submitted = 1

    def _on_notice(self, event: e.Notified) -> None:
        self.state.n.news = 1
        if self.parameters.operating:
            self._notices.append((event.at_us, event.kind, event.data))

    def _receive(self) -> None:
        """Receive the operations of a message. They are carried out in the next reaction."""
        notices, self._notices = self._notices, []
        made = self.orders.add(self.state.operations, notices)
        made.own[N_RECEIVED] = len(made.rows)
        self.show(self.room._replace(state=self.state._replace(operations=made)))
        if self.parameters.reserving:
            self.cells, room = self.orders.announce(self.windows, self.cells, self.room)
            self.show(room)

    def _named(self, name: str) -> list[int]:
        """Return the rows of the jobs that an id means. It may lack the name of the workload."""
        return [j for j, own in enumerate(self.submitted) if name in (own, job_name(own))]

    def _make_room(self, events: Sequence[e.Event]) -> None:
        """Let the tables grow, so that an instant fits."""
        changes = [each for each in events if isinstance(each, e.NodesFailed | e.NodesRejuvenated)]
        n_changed = sum(each.nodes.size for each in changes)
        self.state.n.n_operations_due = sum(isinstance(each, e.Notified) for each in events)
        if not instant_fits(self.state, len(events), len(changes), n_changed):
            self.show(with_rows(self.room, len(events), len(changes), n_changed))
        self._make_room_to_plan(len(events) + self.state.n.n_kills + self.state.n.n_waits)
        self.state.n.n_out = 0

    def _make_room_to_plan(self, n_more: int = 0) -> None:
        """Let the arrays grow, so that the next plan fits."""
        if not plan_fits(self.state, self.room, self.table, n_more):
            self.show(with_plans(self.room, n_more))
            self.table = with_spaces(self.room, self.table, n_more)

    # ---- events to rows

    def _on_submit(self, event: e.JobSubmitted) -> None:
        job, content = self._new_job(event)
        name, machine = str(event.job.get("profile")), self.machine
        try:
            profile, error = self._profile_row(
                workload_name(event.job_id), name, content, job.n_nodes
            )
            if content.get("type", "delay") == "delay":
                shape_of(event.job)
            traits = traits_of(event.job)
            if traits.eternal:
                raise InputError("is eternal", expected="a job with an end")
            columns = {}
            if machine.partitions:
                columns = machine.columns_of(traits, job.n_nodes, job.walltime_us)
        except InputError as problem:
            raise problem.at(f"job {event.job_id}") from None
        row, j = self._add_job(event, job, traits), len(self.submitted) - 1
        self.cells = self.windows.extend(self.cells, self.room)  # its owner may be new
        row.profile = profile
        for column, value in columns.items():
            setattr(row, column, value)
        if self.parameters.operating:
            is_delay = content.get("type", "delay") == "delay"
            of_job = self.orders.image_of(traits, job.n_nodes, is_delay)
            made = with_job(self.state.operations, j, of_job)
            self.show(self.room._replace(state=self.state._replace(operations=made)))
        row.once = not (self.registering and content) or self.is_deleted(content)
        if self.by_text:
            self._rank(j, event.job_id)
        a = self._submit(event, traits)
        if error:
            self.unknown_runs[a] = unknown_run(event.job_id, error)

    def _is_forgotten(self, job_id: str) -> bool:
        state, (n_records, n_given_up) = self.state, self._forgotten
        j = state.attempts[self.row_of[job_id]].job
        recent = {
            state.attempts[row.record].job for row in state.lists[n_records : state.n.n_records]
        }
        recent |= {row.given_up for row in state.lists[n_given_up : state.n.n_given_up]}
        return state.jobs[j].progress >= codes.NOT_OK and j not in recent

    def _forget(self) -> None:
        if not self.state.n.n_kills:
            self._forgotten = self.state.n.n_records, self.state.n.n_given_up

    def _change_profile(self, workload: str, name: str) -> None:
        self.profile_rows = {
            key: row for key, row in self.profile_rows.items() if key[:2] != (workload, name)
        }

    def _why_not_again(self, a: int) -> str:
        """Return why Batsim cannot run the remaining work of an attempt, or an empty text."""
        return self.why_not_again(self.names[a], self.profile_of[a])

    def _profile_row(
        self, workload: str, name: str, content: dict[str, Any], size: int
    ) -> tuple[int, InputError | None]:
        """Return the row of a profile, and why its run time is unknown if plans need it.

        If numbers have six digits, or if a checkpoint period is derived, the row depends on the
        size.
        """
        six, young_daly = bool(self.parameters.six_digits), self.options.young_daly
        key = workload, name, size if six or young_daly else 0
        if key in self.profile_rows:
            return self.profile_rows[key]
        checkpoints, error = checkpointing_of(content), None
        speedup_of(content)
        is_light = checkpoints is not None and checkpoints.light is not None
        operating = bool(self.parameters.operating)
        if checkpoints and (checkpoints.never or (is_light and why_not_tiers(self._point))):
            problem = "its profile has checkpoints in several tiers, or none in its period"
            raise InputError(problem, expected="profiles that are known at the beginning")
        if content.get("type", "delay") != "delay":
            checkpoints = None  # only delays can be shortened; other jobs lose all work
        elif checkpoints is None:
            checkpoints = derived_checkpointing(size, self.n_nodes, young_daly)
            if checkpoints is None and "init" in self.recovery.stages:
                checkpoints = NEVER  # later attempts have a cost
        profile = zeros(tables.Profile, 1)
        profile["delay"] = 1
        try:
            if self.parameters.predict == codes.ACTUAL:
                profile["delay"] = duration_us(self.profiles[workload], name, None)
            elif checkpoints or (operating and content.get("type", "delay") == "delay"):
                profile["delay"] = delay_us(content)
        except InputError as problem:
            error = problem
        for field, value in zip(PATTERN, pattern_of(checkpoints), strict=True):
            profile[field] = value
        if six:
            sizes = zeros(tables.Job, 1)
            sizes["size"] = size
            profile = with_periods_as_forwarded(sizes, profile)[1]
        row = len(self.state.profiles)
        self._add_tiers(checkpoints)
        self.kinds.append(checkpoints)
        self.state.profiles.append(tables.Profile(*profile[0].item()))
        self.profile_rows[key] = row, error if self.parameters.predict == codes.ACTUAL else None
        return self.profile_rows[key]

    def _add_tiers(self, checkpoints: Checkpointing | None) -> None:
        """Add the light checkpoints of a profile. There are no tables until a profile has any."""
        if self.state.tiers is None and checkpoints and checkpoints.light:
            cores, k = self.options.cores_per_node, len(self.state.attempts)
            tiers = tiers_for(self.kinds, self._number_of, self.machine, cores, k)
            self.show(self.room._replace(state=self.state._replace(tiers=tiers)))
        if self.state.tiers is not None:
            add_profile(self.state.tiers, checkpoints, self._number_of)

    def _number_of(self, cause: str) -> int:
        return self.causes.setdefault(cause, len(self.causes))

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

    def _on_complete(self, event: e.JobCompleted) -> None:
        a, state = self.row_of.get(event.job_id, -1), self.state
        if a < 0 or state.attempts[a].start < 0 or state.attempts[a].end >= 0:
            raise InputError("completed, but was not started", f"job {event.job_id}")
        i, cause = self.kill_of(a), CAUSES.get(event.state, codes.JOB_FAILED)
        self.states[a] = sys.intern(event.state)
        hung = i >= 0 and cause != codes.WALLTIME and self._has_hung(a)
        if i >= 0 and (hung or event.state == "COMPLETED_KILLED"):
            end_killed(state, i, event.at_us)
            if state.attempts[a].cause == codes.NODE_FAILURE:
                self._note_interruption(a)
        else:
            end(state, a, event.at_us, cause)
            if state.attempts[a].cause == codes.NODE_FAILURE:  # it completed while it hung
                self._note_interruption(a)
                self.check_again(self.names[a], self.profile_of[a])
            elif a in self.hits:  # it was faster than its kill: work after the failure is lost
                row = state.attempts[a]
                row.useful = max(0, self.hits[a][0] - row.start - row.recovery)
        hold_targets(state, self.now_us)

    def _note_interruption(self, a: int) -> None:
        job_id = self.submitted[self.state.attempts[a].job]
        self._interrupted[job_id] = self._interrupted.get(job_id, 0) + 1

    def _has_hung(self, a: int) -> bool:
        """Return whether an attempt hung for some time after its failure."""
        if self.state.hangs is None:
            return False
        row = self.state.hangs.attempts[a]
        return bool(row[tables.SINCE] and row[tables.DUE] >= row[tables.SINCE])

    def _acknowledge(self, i: int, killed: bool) -> None:
        a = self.state.kills[i].attempt  # after a hang, a job that completed has failed
        failed = self._has_hung(a) and self.state.attempts[a].cause == codes.NODE_FAILURE
        if killed or failed:
            acknowledged(self.state, self.extended, i, self.now_us)
        else:
            drop_move(self.state, self.state.kills[i].attempt, self.now_us)
        self.state.n.n_kills = remove_row(self.state.kills, self.state.n.n_kills, i)

    def _second_pass(self) -> None:
        if self.state.n.n_waits and not self.state.n.n_kills and self.extended:
            second_pass(self.state, self.now_us)

    # ---- rows to decisions

    def _decisions(self, now: int) -> list[d.Decision]:
        state, n = self.state, self.state.n
        out: list[d.Decision] = []
        for i in range(n.n_out):
            row = state.out[i]
            subject = row.subject
            if row.kind == codes.START:
                nodes = self.nodes_at(state.attempts[subject])
                out.append(d.ExecuteJob(at_us=now, job_id=self.names[subject], nodes=nodes))
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
            elif row.kind == codes.STAY:
                refusal = obstructed(self.names[subject], "complete its move", row.up_to)
                self._refusals.append((now, refusal.subject, refusal.reason))
            elif row.kind == codes.NOTE:
                note = state.operations.notes[subject]
                self._refusals.append((now, *self.orders.note(note, self._job_id_of)))
            else:
                out.append(self.call(subject))
        self.check_runs()
        n.n_calls = 0  # the heap of calls belongs to the embedded driver
        return out

    def _is_idle(self) -> bool:
        n = self.state.n
        return not (
            n.n_running or n.n_entered or n.n_kills or n.n_waits or n.n_moves or n.n_blocked
            or any(part.n_queued for part in self.state.parts)
        )  # fmt: skip

    def _check_again(self, first: int, last: int) -> None:
        """Check that Batsim can run the remaining work of attempts that are killed."""
        rows = self.state.kills[first:last]
        for row in rows:
            reason = self._why_not_again(row.attempt) if row.then == codes.WAITS else ""
            if reason and self.options.strict:
                raise self._refused(self.names[row.attempt], f"{NOT_STOPPED}: {reason}")
        for row in rows:
            self.check_again(self.names[row.attempt], self.profile_of[row.attempt])

    def _note_hits(self, first: int, last: int) -> None:
        """Note the failures of the attempts that are killed.

        Without checkpoints in several tiers and stages of recovery, this is only done if the cause
        of any is known.
        """
        attempts = self.state.attempts
        hit = [
            row.attempt
            for row in self.state.kills[first:last]
            if row.cause == codes.NODE_FAILURE
            or (row.cause == codes.MOVED and attempts[row.attempt].step == codes.MIGRATION_OF_HIT)
        ]
        now, hangs = self.now_us, self.state.hangs
        always = self.state.tiers is not None or hangs is not None
        if always or any(attempts[a].failure for a in hit):
            self.hits |= {a: (failed_at(hangs, a, now), attempts[a].failure) for a in hit}

    def _refuse(self, victim: int, waiting: int) -> None:
        """Record that a victim cannot be stopped, and that another job cannot wait for it."""
        name, reason = self.names[victim], f"{NOT_STOPPED}: {self._why_not_again(victim)}"
        if self.options.strict:
            raise self._refused(name, reason)
        self._refusals.append((self.now_us, name, reason))
        if waiting >= 0:
            reason = f"cannot wait for {name}: no stop of {name} is scheduled"
            self._refusals.append((self.now_us, self.names[waiting], reason))

    def _refused(self, name: str, reason: str) -> PolicyError:
        return PolicyError(f"at {to_s(self.now_us)} s the policy's {name} {reason}")

    def _register(self, b: int, a: int, now: int) -> list[d.Decision]:
        """Return the decisions that register a resubmission ``b`` of an attempt ``a``."""
        row, job = self.state.attempts[b], self.state.jobs[self.state.attempts[b].job]
        job_id, like = self.submitted[row.job], self.profile_of[a]
        profile = self.content(self.names[a], like)
        if self.state.attempts[a].cause == codes.SILENT_ERROR:
            self.check_again(self.names[a], like)
            like = self.profile_of[self.row_of[job_id]]
            profile = retried_profile(self.content(job_id, like), profile)
        elif profile.get("type") != "composed":
            began = is_imaged(self.state.operations, a)
            if began or self.state.profiles[job.profile].checkpoints:
                profile = self._remaining(profile, row)
            elif is_imaged(self.state.operations, b) and (
                row.recovery or self.state.attempts[a].useful
            ):
                profile = {**profile, "delay": max(LEAST_DELAY_S, to_s(row.delay))}
        name, out = self.register(job_id, row.number, job.size, row.wall, like, profile)
        self.name(b, resubmission_id(job_id, row.number), name)
        return out

    def _job_id_of(self, a: int) -> str:
        job_id: str = self.submitted[self.state.attempts[a].job]
        return job_id

    def _remaining(self, profile: dict[str, Any], row: tables.Attempt) -> dict[str, Any]:
        """Return the profile of the remaining work of an attempt that writes checkpoints."""
        pattern: tuple[float, ...] = ()
        if self.parameters.six_digits and row.own_period + row.own_cost > 1:
            pattern = to_s(row.own_period), to_s(row.own_cost), to_s(row.own_restart)
        first = to_s(row.first), to_s(row.recovery)
        return remaining_profile(profile, to_s(row.delay), first, pattern)
