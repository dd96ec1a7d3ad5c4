# SPDX-License-Identifier: Apache-2.0
"""Execution of proposals: starts, and the transaction *stop, then queue | move | wait | end*.

A stop takes up to three messages: its proposal (it may wait for a checkpoint), its kill, and the
acknowledgement of the kill. All further steps occur at the time of the acknowledgement.

Holds
    Nodes held for a job that waits or moves. Plans treat them like a running attempt. The
    node-stealing paper submits a fictitious job to hold nodes (section 7.2.1). rebat does not
    inform Batsim about held nodes.

Waits
    During a steal with timing T2 or T3, a failed job holds its other nodes while it waits for the
    nodes of the victim. In the node-stealing paper there is one planning pass after a failure. In
    the authors' program there are two (``passes=two``). The second pass begins when the kills of
    the first pass are acknowledged. If the first pass ends a wait, the nodes of the waiting job
    become free in the second pass.

Hangs
    An attempt hangs while its failure is detected and diagnosed and its job is rescheduled. It
    keeps its nodes. Policies cannot stop it, because the end of the hang is already scheduled as a
    stop. At the end of the hang, the session reports the failure to the policy as if it had just
    occurred.

Wakes and calls
    A *wake* is a wake-up that a policy requested. A *call* is a message that Batsim sends at a
    requested time. A call does not state for which wake or stop it was requested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rebat.contract import (
    Drain,
    End,
    Move,
    Note,
    Proposal,
    Refusal,
    Reject,
    Release,
    Requeue,
    Start,
    Stop,
    Then,
    Undrain,
    Wait,
    Wake,
    When,
)
from rebat.contract.proposals import PlanByRules
from rebat.core.attempts import Attempt, Cause, Priority, Running
from rebat.core.decisions import ExecuteJob, KillJobs, RejectJob
from rebat.core.nodes import NodeSet
from rebat.core.numbers import exactly
from rebat.core.options import HUNG, Recovery
from rebat.core.units import FOREVER_US
from rebat.drive import checks
from rebat.drive.ask_state import AskState
from rebat.drive.job_rows import JobRows
from rebat.drive.lifecycle import Stopped
from rebat.drive.registry import Registry
from rebat.models.checkpoint import Failure
from rebat.models.remaining import Remaining, written_us
from rebat.rules.instant import is_due
from rebat.rules.moves import begin_move, drop_move, end_move, hold_targets, move_of
from rebat.rules.nodes import drain
from rebat.rules.starts import start_on
from rebat.rules.waits import (
    again,
    begin_wait,
    end_due_waits,
    end_wait,
    end_waits_for,
    kill,
    next_attempt,
    note_progress,
    remove_row,
    second_pass,
    stop_of,
)
from rebat.state import codes
from rebat.state.ledger import Why

TIMINGS = {
    When.NOW: codes.NOW,
    When.CHECKPOINT: codes.PROACTIVE,
    When.NEXT_CHECKPOINT: codes.NEXT,
    When.RESIZE: codes.NOW,
    When.IMAGE: codes.NOW,
}
CODES = {
    Cause.NODE_FAILURE: codes.NODE_FAILURE,
    Cause.STOLEN: codes.STOLEN,
    Cause.MOVED: codes.MOVED,
    Cause.PREEMPTED: codes.PREEMPTED,
    Cause.HORIZON: codes.HORIZON,
}


def then_of(then: Then) -> int:
    """Return the code of the step after a stop: a priority, or another step."""
    steps = {Wait: codes.WAITS, Move: codes.MOVES, End: codes.ENDS}
    return steps.get(type(then), then.priority)


class Hang(msgspec.Struct):
    """A failure of an attempt.

    Attributes
    ----------
    cause : str
        Cause of the failure. Empty if it is unknown.
    at_us : int
        Time of the failure.
    stages : dict
        Duration in microseconds of each stage.
    victim : Stopped, optional
        The stop that was scheduled for the attempt before the failure.
    """

    cause: str
    at_us: int
    stages: dict[str, int]
    victim: Stopped | None = None

    @property
    def due_us(self) -> int:
        """The time at which the failure is reported to the policy."""
        return self.at_us + sum(self.stages.get(name, 0) for name in HUNG)


class Transactions(JobRows):
    """The part of the session that carries out or refuses the proposals of a policy."""

    def __init__(self, session: AskState, registry: Registry) -> None:
        super().__init__(session, registry)
        self.wakes: list[Wake] = []
        self.hanging: dict[str, Hang] = {}
        """Failed attempts by id. They stay here after their hang until they are stopped."""
        self._recovery = session.options.recovery or Recovery()
        self._stages = self._recovery.stages
        self._completed: list[Stopped] = []
        self._carry_out: dict[type[Any], Callable[..., Refusal | None]] = {
            Start: self._start,
            Reject: self._reject,
            Stop: self._stop,
            Release: self._release,
            Wake: self._wake,
            Drain: self._drain,
            Undrain: self._drain,
            Note: self._note,
            PlanByRules: self._plan,
        }

    def propose(self, proposal: Proposal) -> Refusal | None:
        """Carry out a proposal, or return a refusal."""
        refusal = self._carry_out[type(proposal)](proposal)
        if refusal:
            self.session.refuse(refusal)
        return refusal

    # ---- starts

    def _plan(self, proposal: PlanByRules) -> None:
        self.session.by_rules.plan(proposal)

    def _start(self, start: Start) -> Refusal | None:
        """Start a queued attempt, on the requested or another number of nodes."""
        attempt = self.jobs.queue.get(start.attempt_id)
        refusal = checks.why_not_start(attempt, start, self.nodes)
        if attempt and not refusal:
            refusal = self._why_not_mold(attempt, start.size(attempt.n_nodes))
        if refusal or attempt is None:
            return refusal
        size, changes = start.size(attempt.n_nodes), self.session.changes
        nodes = start.nodes or self.nodes.lowest(size)
        started = attempt if size == attempt.n_nodes else self._mold(attempt, size)
        running = self._execute(started, nodes)
        if self.session.planning:
            changes.started.append(running)
        else:
            changes.withdraw(attempt)
            changes.moved.append(running)
        self.session.news.started.append(running)
        return None

    def _why_not_mold(self, attempt: Attempt, size: int) -> Refusal | None:
        if size == attempt.n_nodes:
            return None
        refusal = self.registry.why_not_size(attempt.id, size)
        if not refusal and (never := self.registry.why_not_again(attempt.id)):
            refusal = Refusal(
                attempt.id, f"cannot start on {exactly(size, 'node')}: {never.reason}"
            )
        return refusal

    def _mold(self, attempt: Attempt, size: int) -> Attempt:
        """Replace a queued attempt by an attempt of another size, which is registered in Batsim."""
        session = self.session
        session.out.append(RejectJob(at_us=session.now_us, job_id=attempt.id))
        self._never_ran(attempt, Cause.MOLDED)
        molded = self.registry.molded(attempt, size)
        self.fill(molded)
        self.jobs.replace(attempt, molded)
        return molded

    def _execute(self, attempt: Attempt, nodes: NodeSet) -> Running:
        """Execute an attempt on these free nodes."""
        rows, a = self.session.state, attempt.serial - 1
        first, k = self._write(nodes)
        start_on(rows, a, 0, first, k, nodes.size, self.session.now_us)  # plans count again
        return self.started(attempt, nodes)

    def _write(self, nodes: NodeSet) -> tuple[int, int]:
        """Write nodes as new intervals. Return where they begin, and their number."""
        rows, first, k = self.session.state, self.session.state.n.n_nodes_used, len(nodes.intervals)
        rows.nodes[first : first + k] = nodes.intervals
        return first, k

    def started(self, attempt: Attempt, nodes: NodeSet) -> Running:
        """Record that an attempt started."""
        session, running = self.session, Running(attempt, self.session.now_us, nodes)
        session.by_tag[attempt.serial] = attempt.id
        self.jobs.start(running)
        session.out.append(ExecuteJob(at_us=session.now_us, job_id=attempt.id, nodes=nodes))
        return running

    def _reject(self, proposal: Reject) -> Refusal | None:
        """Reject a queued job permanently."""
        attempt = self.jobs.queue.get(proposal.attempt_id)
        if attempt is None:
            return Refusal(proposal.attempt_id, "cannot be rejected: it is not in the queue")
        if not self.session.planning:
            self.session.changes.withdraw(attempt)
        self.reject_job(attempt, proposal.reason)
        return None

    def reject_job(self, attempt: Attempt, reason: str) -> None:
        """Reject a queued job permanently."""
        self.never_runs(attempt, reason)
        rows = self.session.state
        note_progress(rows, rows.attempts[attempt.serial - 1].job, codes.NOT_OK)

    # ---- stops

    def _stop(self, stop: Stop, forced: bool = False) -> Refusal | None:
        session, jobs = self.session, self.jobs
        refusal = checks.why_not_stop(stop, jobs) or self._why_not_then(stop, forced)
        if refusal:
            return refusal
        if stop.cause == Cause.STOLEN:
            session.records.steals.append(session.now_us)
        ran_us = session.now_us - jobs.running[stop.attempt_id].start_us
        remaining = self.registry.after_stop(stop.attempt_id, ran_us, stop.when)
        if isinstance(stop.then, Move) and self.registry.starts_over(
            stop.attempt_id, stop.then.nodes.size
        ):
            remaining = msgspec.structs.replace(remaining, useful_us=0)
        running = jobs.running[stop.attempt_id]
        stopped = Stopped(stop, remaining, running)
        if isinstance(stop.then, Move):
            self._begin_move(running, stop.then.nodes)
        if remaining.wait_us > 0:
            at_us = session.now_us + self._written_us(remaining.wait_us)
            stopped.if_hit = self.registry.after_stop(stop.attempt_id, ran_us, When.NOW)
            self._schedule(stopped, session.now_us + remaining.wait_us, at_us)
        else:
            self._kill(stopped)
        return None

    def _schedule(self, stopped: Stopped, due_us: int, at_us: int) -> None:
        """Schedule a stop. The attempt continues to run until then."""
        rows, stop = self.session.state, stopped.stop
        row = rows.stops[rows.n.n_stops]
        rows.n.n_stops += 1
        row.victim, row.decided = stopped.running.attempt.serial - 1, self.session.now_us
        row.due, row.at = due_us, at_us
        row.timing, row.cause = TIMINGS[stop.when], CODES[stop.cause]
        row.then = then_of(stop.then)
        self.jobs.stops[stop.attempt_id] = stopped

    def _why_not_then(self, stop: Stop, forced: bool) -> Refusal | None:
        """Return why the step after a stop is impossible, or None if it is possible.

        A ``forced`` stop (after a failure) cannot be refused.
        """
        registry, attempt_id = self.registry, stop.attempt_id
        if not (forced or isinstance(stop.then, End)) and (
            never := registry.why_not_again(attempt_id)
        ):
            reason = f"cannot be stopped, because its job could not continue: {never.reason}"
            return Refusal(attempt_id, reason)
        refusal, running = None, self.jobs.running[attempt_id]
        if isinstance(stop.then, Move):
            refusal = checks.why_not_move(
                stop.then, running, self.nodes, self.jobs
            ) or registry.why_not_size(attempt_id, stop.then.nodes.size)
        if not refusal and stop.when == When.RESIZE:
            refusal = registry.why_not_seamless(attempt_id)
        if not refusal and stop.when == When.IMAGE:
            refusal = registry.why_not_image(running)
        return refusal

    def _kill(self, stopped: Stopped) -> None:
        stop, session = stopped.stop, self.session
        if stop.cause == Cause.NODE_FAILURE:
            stopped.remaining = self._after_init(stop.attempt_id, stopped.remaining)
        stopped.sent_us = session.now_us
        self.jobs.stop(stopped)
        kill(
            session.state, stopped.running.attempt.serial - 1, session.now_us, TIMINGS[stop.when],
            then_of(stop.then), CODES[stop.cause], -1,
        )  # fmt: skip

    def _begin_move(self, running: Running, nodes: NodeSet) -> None:
        rows, a = self.session.state, running.attempt.serial - 1
        first, k = self._write(nodes)
        rows.n.n_nodes_used += k
        begin_move(rows, a, first, k, codes.NOW, self.session.now_us)
        self._settle_holds()

    def _drop_move(self, running: Running) -> None:
        drop_move(self.session.state, running.attempt.serial - 1, self.session.now_us)
        self._settle_holds()

    def vacated(self, attempt_id: str) -> None:
        """If other attempts will move to the nodes that an attempt released, hold these nodes.

        If the attempt itself was scheduled to move, its move is cancelled.
        """
        if not self.session.state.n.n_moves:
            return
        own = self.jobs.scheduled.get(attempt_id)
        if own and isinstance(own.stop.then, Move):
            self.call_off(attempt_id, "ended")
        hold_targets(self.session.state, self.session.now_us)
        self._settle_holds()

    def stop_hit(self, running: Running, victim: Stopped | None = None) -> None:
        """Stop an attempt that has a failed node, and requeue it at the head of the queue.

        If the attempt is already being stopped, do nothing. If the attempt was the victim of a
        steal, ``victim`` is the cancelled stop of this steal.
        """
        attempt_id = running.attempt.id
        if attempt_id in self.jobs.running and attempt_id not in self.jobs.stopping:
            self.call_off(attempt_id, "hit")
            if victim and victim.if_hit and self.session.options.dialect.hit == "victim":
                then = Requeue(Priority.VICTIM)
                stop = Stop(attempt_id, Cause.NODE_FAILURE, When.NOW, then)
                self._kill(Stopped(stop, victim.if_hit, running))
            else:
                self._stop(Stop(attempt_id, Cause.NODE_FAILURE), forced=True)

    def spoil(self, stopping: Stopped) -> None:
        """After a failure during a resize, requeue the job from its last checkpoint."""
        stop = stopping.stop
        if stop.when == When.RESIZE:
            ran_us = stopping.sent_us - stopping.running.start_us
            stopping.remaining = self.registry.after_stop(stop.attempt_id, ran_us, When.NOW)
            stopping.stop = Stop(stop.attempt_id, Cause.NODE_FAILURE)
            row = self.session.state.kills[
                self.session.kill_of(stopping.running.attempt.serial - 1)
            ]
            row.then, row.cause = then_of(stopping.stop.then), CODES[Cause.NODE_FAILURE]
            self._drop_move(stopping.running)

    def send_kills(self) -> bool:
        """Send all pending kills in one decision. Return whether there are any."""
        session, n = self.session, self.session.state.n
        killed = [row.attempt for row in session.state.kills[session.n_sent : n.n_kills]]
        names = [session.names[a] for a in killed]
        if not names:
            return False
        for attempt_id in names:
            if not isinstance(self.jobs.stops[attempt_id].stop.then, End):
                self.registry.need_registration(attempt_id)
        session.sent |= dict.fromkeys(killed, session.now_us)
        session.out.append(KillJobs(at_us=session.now_us, job_ids=tuple(names)))
        session.n_sent = n.n_kills
        return True

    # ---- scheduled stops

    def call_off(self, attempt_id: str, why: Why, later: bool = False) -> Stopped | None:
        """Cancel the scheduled stop of an attempt, and requeue the jobs that waited for this stop.

        If ``later`` is set, these jobs are requeued in the second pass: after the kills of the
        first pass are acknowledged (see *Waits* above).
        """
        rows = self.session.state
        s = stop_of(rows, self._row(attempt_id)) if rows.n.n_stops else -1
        if s < 0:
            return None
        stopped = self.jobs.stops.pop(attempt_id)
        if stopped.stop.cause == Cause.STOLEN:
            self.session.records.steals_off.append((self.session.now_us, why))
        self._drop_move(stopped.running)
        self._end_stop(s, later)
        return stopped

    def _end_stop(self, s: int, later: bool = False) -> None:
        """Remove a scheduled stop, and end the waits for it."""
        rows, victim = self.session.state, self.session.state.stops[s].victim
        rows.n.n_stops = remove_row(rows.stops, rows.n.n_stops, s)
        end_waits_for(rows, victim, later, self.session.now_us)
        self.settle()

    def _row(self, attempt_id: str) -> int:
        return self.registry.work[attempt_id].attempt.serial - 1

    def carry_out_due(self) -> bool:
        """Carry out due stops, and end due waits. Return whether any attempt is killed."""
        session, jobs, rows = self.session, self.jobs, self.session.state
        if not (rows.n.n_stops or rows.n.n_waits):
            return False
        stopping = jobs.stopping
        for attempt_id, stopped in jobs.scheduled.items():
            s = stop_of(rows, self._row(attempt_id))
            if attempt_id not in jobs.running or attempt_id in stopping:
                self.call_off(attempt_id, "ended", session.options.dialect.ended == "others-first")
            elif s >= 0 and rows.stops[s].at <= session.now_us:
                self._kill(stopped)
                self._end_stop(s)
        end_due_waits(rows, session.now_us)
        self.settle()
        return self.send_kills()

    def _release(self, proposal: Release) -> Refusal | None:
        waiting = self.jobs.waiting.get(proposal.job_id)
        if waiting is None:
            return Refusal(proposal.job_id, "cannot be released: it does not wait for nodes")
        on, later = waiting.on, self.session.options.dialect.two_passes
        if not (on and not self._hangs(on) and self.call_off(on, "given up", later)):
            self._end_wait(proposal.job_id, later)
        return None

    # ---- acknowledged kills

    def acknowledge(self, i: int, killed: bool) -> None:
        """Complete a stop whose kill is acknowledged.

        If ``killed`` is False, the attempt completed before it was killed. Its job is over, unless
        the attempt had failed.
        """
        rows = self.session.state
        attempt_id = self.session.names[rows.kills[i].attempt]
        stopping = self.jobs.stops[attempt_id]
        rows.n.n_kills = self.session.n_sent = remove_row(rows.kills, rows.n.n_kills, i)
        if not (killed or stopping.failed):
            del self.jobs.stops[attempt_id]
            self._drop_move(stopping.running)
        elif isinstance(stopping.stop.then, Move):
            self.jobs.move(stopping)
        elif isinstance(stopping.stop.then, Wait):
            self._begin_wait(stopping, stopping.stop.then)
        elif isinstance(stopping.stop.then, End):
            del self.jobs.stops[attempt_id]
            self.over(stopping.running.attempt)
        else:
            self._requeue(stopping)

    def _requeue(self, stopping: Stopped) -> None:
        self.session.reserve()
        then, rows = stopping.stop.then, self.session.state
        again(rows, stopping.running.attempt.serial - 1, then.priority, self.session.now_us)
        self.settle()

    def settle(self) -> None:
        """Bring jobs and changes up to date with the rows of requeued attempts and of holds."""
        rows, ledger = self.session.state, self.session.records
        for i in range(rows.n.n_out):
            decision = rows.out[i]
            if decision.kind == codes.REGISTER:
                self._queue_again(self.session.names[decision.up_to], decision.subject)
            elif decision.kind == codes.CALL:
                self.session.out.append(self.session.call(decision.subject))
        rows.n.n_out = rows.n.n_calls = 0
        for i in range(len(ledger.given_up), rows.n.n_given_up):
            job_id = self.session.submitted[rows.lists[i].given_up]
            ledger.given_up.append(job_id)
            self.jobs.give_up(job_id)
        self._settle_holds()

    def _queue_again(self, attempt_id: str, b: int) -> None:
        session, stopping = self.session, self.jobs.stops.pop(attempt_id)
        session.serial = b + 1
        attempt = self.registry.again(
            attempt_id, stopping.remaining, session.state.attempts[b].priority
        )
        self.enter(attempt)
        session.changes.resubmitted.append(attempt)

    def retry(self, running: Running) -> Attempt:
        """Add a row of an attempt after a silent error, and return the attempt."""
        session = self.session
        session.serial = (
            next_attempt(session.state, running.attempt.serial - 1, 0, session.now_us) + 1
        )
        attempt = self.registry.retry(running.attempt.id)
        self.enter(attempt)
        session.state.n.n_out = 0
        return attempt

    def complete_moves(self) -> None:
        """Execute each move whose target nodes all other attempts have released."""
        if self.jobs.n_stopping or not self.jobs.moving:
            return
        for stopping in list(self.jobs.moving.values()):
            move = stopping.stop.then
            assert isinstance(move, Move)
            attempt_id, a = stopping.stop.attempt_id, stopping.running.attempt.serial - 1
            m = move_of(self.session.state, a)
            obstacle = end_move(self.session.state, m, self.session.now_us)
            self._settle_holds()
            if obstacle >= 0:
                self.session.note(checks.obstructed(attempt_id, "complete its move", obstacle))
                self._requeue(stopping)
                continue
            self.session.serial = (
                next_attempt(self.session.state, a, move.priority, self.session.now_us) + 1
            )
            self.session.state.n.n_out = 0
            attempt = self.registry.again(
                attempt_id, stopping.remaining, move.priority, move.nodes.size
            )
            del self.jobs.stops[attempt_id]
            self.fill(attempt)
            self.session.changes.moved.append(self._execute(attempt, move.nodes))

    # ---- nodes

    def lose_holds(self, tags: list[int]) -> None:
        """Cancel the scheduled moves to held nodes that failed."""
        self.settle()
        n = self.session.state.n
        for row in self.session.state.lists[: n.n_held_hit]:
            self.session.news.held_hit.append(self.session.submitted[row.held_hit])
        n.n_held_hit = 0
        targets = self.session.state.targets[: self.session.state.n.n_targets]
        lost = {target.attempt for target in targets if target.hold + 1 in tags}
        for attempt_id in self.jobs.scheduled:
            if self._row(attempt_id) in lost:
                self.call_off(attempt_id, "hit")
                reason = "cannot move: one of its target nodes failed"
                self.session.note(Refusal(attempt_id, reason))

    def _drain(self, proposal: Drain | Undrain) -> Refusal | None:
        refusal = checks.why_not_drain(proposal, self.nodes)
        if refusal:
            return refusal
        session, nodes, why = self.session, proposal.nodes, proposal.why
        drains = isinstance(proposal, Drain)
        session.records.drain_events.append((session.now_us, not drains, nodes, why))
        for node, drained in zip(nodes, self.nodes.drain(nodes, why, drains).tolist(), strict=True):
            drain(session.state, session.room, node, drained, not drains)
        if drains:
            session.changes.failures += nodes.size
            session.changes.failing.append(nodes)
            self._call_off_moves_to(nodes)
        else:
            session.changes.repairs += nodes.size
            session.changes.returning.append(nodes)
        return None

    def _call_off_moves_to(self, nodes: NodeSet) -> None:
        """Cancel scheduled moves to drained nodes."""
        for attempt_id, scheduled in self.jobs.scheduled.items():
            then = scheduled.stop.then
            if isinstance(then, Move) and then.nodes.meets(nodes):
                self.call_off(attempt_id, "given up")
                reason = "cannot move: one of its target nodes was drained"
                self.session.note(Refusal(attempt_id, reason))

    def _note(self, note: Note) -> None:
        ledger, now_us = self.session.records, self.session.now_us
        ledger.refusals.append((now_us, note.operation, note.reason))
        ledger.not_done.append(now_us)

    # ---- waits

    def _written_us(self, span_us: int) -> int:
        """Return a duration (us), rounded to the number of digits of the dialect."""
        return written_us(span_us) if self.session.options.dialect.digits == "six" else span_us

    def _begin_wait(self, stopping: Stopped, wait: Wait) -> None:
        """Hold the usable nodes of a stopped job. If its wait is already over, requeue it."""
        rows, attempt, now_us = self.session.state, stopping.running.attempt, self.session.now_us
        until_us, due_us, victim = wait.until_us, wait.until_us, -1
        if wait.on:
            victim = self._row(wait.on) if wait.on in self.registry.work else -1
            s = stop_of(rows, victim)
            until_us = min(until_us, rows.stops[s].at if s >= 0 else 0)
            due_us = min(due_us, rows.stops[s].due if s >= 0 else 0)
        if until_us <= now_us:
            self._requeue(stopping)
            return
        self.session.reserve()
        self.jobs.wait(attempt.job_id)
        begin_wait(
            self.session.state, attempt.serial - 1, victim, until_us, due_us, wait.priority, now_us,
            now_us,
        )  # fmt: skip
        self.settle()

    def _end_wait(self, job_id: str, later: bool) -> None:
        """Requeue a job and release its nodes, immediately or in the second pass (``later``)."""
        rows = self.session.state
        for i in range(rows.n.n_waits):
            if self.session.submitted[rows.attempts[rows.waits[i].attempt].job] == job_id:
                end_wait(rows, i, later, self.session.now_us)
                self.settle()
                return

    def second_pass(self) -> bool:
        """If no kill is pending, carry out the second pass. Return whether it changed anything."""
        rows = self.session.state
        if rows.n.n_kills or not rows.n.n_waits:
            return False
        self.session.reserve()
        changed = second_pass(self.session.state, self.session.now_us)
        self.settle()
        return changed

    # ---- hangs

    def failed_attempts(
        self, hit: Mapping[str, Failure]
    ) -> tuple[list[Running], dict[str, Stopped | None]]:
        """Return the failed attempts that the policy must know now, and their cancelled stops.

        ``hit`` contains new failures by attempt. If recoveries have stages, these attempts first
        hang. They are reported later.
        """
        if not (hit or self.hanging):
            return [], {}
        jobs, later = self.jobs, self.session.options.dialect.two_passes
        stages = self._stages or self.registry.has_light
        if not stages:
            now_us = self.session.now_us
            if any(failure.cause for failure in hit.values()):
                self.hanging |= {name: Hang(each.cause, now_us, {}) for name, each in hit.items()}
            running = [jobs.running[name] for name in hit]
            scheduled = [name for name in jobs.scheduled if name in hit]
            return running, {name: self.call_off(name, "hit", later) for name in scheduled}
        for name, failure in hit.items():
            if name not in self.hanging:
                self._begin_hang(jobs.running[name], failure, self.call_off(name, "hit", later))
        due = self._due_hangs()
        victims = {name: self.hanging[name].victim for name in due}
        return [jobs.running[name] for name in due], {n: v for n, v in victims.items() if v}

    def _begin_hang(self, running: Running, failure: Failure, victim: Stopped | None) -> None:
        attempt, now_us = running.attempt, self.session.now_us
        stages = self._recovery.drawn_us(self._stages, failure.cause, attempt.job_id, now_us)
        hang = Hang(failure.cause, now_us, stages, victim)
        self.hanging[attempt.id] = hang
        ran_us = now_us - running.start_us
        self.registry.failures[attempt.id] = msgspec.structs.replace(failure, ran_us=ran_us)
        remaining = self.registry.after_stop(attempt.id, ran_us, When.NOW)
        stop = Stop(attempt.id, Cause.NODE_FAILURE)
        stopped = Stopped(stop, remaining, running, if_hit=remaining)
        self._schedule(stopped, hang.due_us, hang.due_us)

    def _due_hangs(self) -> list[str]:
        """End the hangs that are due. Return their attempts in the order of the failures."""
        due, rows = [], self.session.state
        for name in self.jobs.scheduled:
            s = stop_of(rows, self._row(name))
            if name in self.hanging and s >= 0 and rows.stops[s].at <= self.session.now_us:
                del self.jobs.stops[name]
                self._end_stop(s)
                due.append(name)
        return due

    def _hangs(self, attempt_id: str) -> bool:
        """Return whether an attempt has a failure that was not yet reported to the policy."""
        return attempt_id in self.hanging and attempt_id in self.jobs.scheduled

    def _after_init(self, attempt_id: str, remaining: Remaining) -> Remaining:
        """Return ``remaining``, plus the time to initialise the next attempt of the failed job."""
        hang = self.hanging.get(attempt_id)
        init_us = hang.stages.get("init", 0) if hang else 0
        if not init_us:
            return remaining
        checkpointing = self.registry.work[attempt_id].checkpointing
        perfect = checkpointing is not None and checkpointing.perfect
        load_us = 0 if perfect else remaining.first_recovery_us
        return msgspec.structs.replace(remaining, first_recovery_us=load_us + init_us, written=None)

    def hung_completion(self, running: Running) -> Stopped | None:
        """Return the stop of an attempt that completed in the simulator while it hangs.

        The nodes of the attempt are held until the end of the hang. If the attempt does not hang,
        the result is None.
        """
        attempt_id = running.attempt.id
        if not self._hangs(attempt_id):
            return None
        hang, scheduled = self.hanging[attempt_id], self.jobs.stops.pop(attempt_id)
        rows, s = self.session.state, stop_of(self.session.state, running.attempt.serial - 1)
        rows.n.n_stops = remove_row(rows.stops, rows.n.n_stops, s)
        stop = Stop(attempt_id, Cause.NODE_FAILURE, When.NOW, Wait(until_us=hang.due_us))
        remaining = self._after_init(attempt_id, scheduled.remaining)
        return Stopped(stop, remaining, running, sent_us=self.session.now_us)

    def hold_until_detected(self, stopping: Stopped) -> None:
        """Hold the nodes of an attempt that completed while it hung, then requeue its job.

        The hold begins in `begin_waits`.
        """
        self.registry.need_registration(stopping.stop.attempt_id)
        self.jobs.stop(stopping)
        self._completed.append(stopping)

    def begin_hung_waits(self) -> None:
        """Begin the holds after the last event of a message.

        The nodes are those that are up then. Their failures and repairs can come before or after
        the end of the attempt.
        """
        completed, self._completed = self._completed, []
        for stopping in sorted(completed, key=lambda stopping: stopping.running.attempt.serial):
            assert isinstance(stopping.stop.then, Wait)
            self._begin_wait(stopping, stopping.stop.then)

    # ---- wakes and calls

    def due(self) -> bool:
        """Return whether a wake, a stop or the end of a wait is due."""
        return bool(self._due_wakes()) or is_due(self.session.state, self.session.now_us)

    def _wake(self, wake: Wake) -> Refusal | None:
        """Add a wake. If its time is not in the future, return a refusal.

        At the present time, a plan can request another plan.
        """
        if self.session.planning and wake.at_us == self.session.now_us:
            self.session.changes.woken.append(wake.tag)
            return None
        if not self.session.now_us < wake.at_us < FOREVER_US:
            return Refusal(f"wake {wake.tag!r}", "must be at a finite time after the present time")
        self.wakes.append(wake)
        return None

    def woken(self) -> list[str]:
        """Return and remove the tags of the wakes that are due, sorted by time."""
        due = sorted(self._due_wakes(), key=lambda wake: wake.at_us)
        if due:
            self.wakes = [wake for wake in self.wakes if wake not in due]
        return [wake.tag for wake in due]

    def _due_wakes(self) -> list[Wake]:
        """Return the wakes that are due."""
        return [wake for wake in self.wakes if wake.at_us <= self.session.now_us]
