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

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    Undrain,
    Wait,
    Wake,
    When,
)
from rebat.core.attempts import Attempt, Cause, Priority, Running
from rebat.core.decisions import CallMeLater, ExecuteJob, KillJobs, RejectJob
from rebat.core.formatting import counted
from rebat.core.nodes import NodeSet
from rebat.core.options import HUNG, Recovery
from rebat.core.units import FOREVER_US
from rebat.models.checkpoint import Failure
from rebat.models.remaining import Remaining, written_us
from rebat.session import checks
from rebat.session.ledger import AttemptRecord, Hold, Why
from rebat.session.registry import Registry
from rebat.session.state import Scheduled, State, Stopping, Waiting

UNKNOWN_LAG_US = 1_000
"""Minimum time (us) between the request of a call and the call, before the first kill.

The first kill shows the delay of replies. On a platform without network latency, replies have no
delay, so calls are exact from then on.
"""


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
    victim : Scheduled, optional
        The stop that was scheduled for the attempt before the failure.
    """

    cause: str
    at_us: int
    stages: dict[str, int]
    victim: Scheduled | None = None

    @property
    def due_us(self) -> int:
        """The time at which the failure is reported to the policy."""
        return self.at_us + sum(self.stages.get(name, 0) for name in HUNG)


class Transactions:
    """The part of the session that carries out or refuses the proposals of a policy."""

    def __init__(self, state: State, registry: Registry) -> None:
        self.state, self.registry = state, registry
        self.jobs, self.nodes = state.jobs, state.nodes
        self.wakes: list[Wake] = []
        self.hanging: dict[str, Hang] = {}
        """Failed attempts by id. They stay here after their hang until they are stopped."""
        self._called: set[int] = set()
        self._lag_us: int | None = None
        self._held: dict[int, Running] = {}
        self._hold_records: dict[int, Hold] = {}
        self._recovery = state.options.recovery or Recovery()
        self._stages = self._recovery.stages
        self._completed: list[Stopping] = []
        self._carry_out: dict[type[Any], Callable[..., Refusal | None]] = {
            Start: self._start,
            Reject: self._reject,
            Stop: self._stop,
            Release: self._release,
            Wake: self._wake,
            Drain: self._drain,
            Undrain: self._drain,
            Note: self._note,
        }

    def propose(self, proposal: Proposal) -> Refusal | None:
        """Carry out a proposal, or return a refusal."""
        refusal = self._carry_out[type(proposal)](proposal)
        if refusal:
            self.state.refuse(refusal)
        return refusal

    # ---- starts

    def _start(self, start: Start) -> Refusal | None:
        """Start a queued attempt, on the requested or another number of nodes."""
        attempt = self.jobs.queue.get(start.attempt_id)
        refusal = checks.why_not_start(attempt, start, self.nodes)
        if attempt and not refusal:
            refusal = self._why_not_mold(attempt, start.size(attempt.n_nodes))
        if refusal or attempt is None:
            return refusal
        size, changes = start.size(attempt.n_nodes), self.state.changes
        nodes = start.nodes or self.nodes.lowest(size)
        started = attempt if size == attempt.n_nodes else self._mold(attempt, size)
        running = self._execute(started, nodes)
        if self.state.planning:
            changes.started.append(running)
        else:
            changes.withdraw(attempt)
            changes.moved.append(running)
        self.state.news.started.append(running)
        return None

    def _why_not_mold(self, attempt: Attempt, size: int) -> Refusal | None:
        if size == attempt.n_nodes:
            return None
        refusal = self.registry.why_not_size(attempt.id, size)
        if not refusal and (never := self.registry.why_not_again(attempt.id)):
            refusal = Refusal(
                attempt.id, f"cannot start on {counted(size, 'node')}: {never.reason}"
            )
        return refusal

    def _mold(self, attempt: Attempt, size: int) -> Attempt:
        """Replace a queued attempt by an attempt of another size, which is registered in Batsim."""
        state = self.state
        state.out.append(RejectJob(at_us=state.now_us, job_id=attempt.id))
        self._never_ran(attempt, Cause.MOLDED)
        molded = self.registry.molded(attempt, size)
        self.jobs.replace(attempt, molded)
        return molded

    def _execute(self, attempt: Attempt, nodes: NodeSet) -> Running:
        """Execute an attempt on these free nodes."""
        state, running = self.state, Running(attempt, self.state.now_us, nodes)
        self.nodes.take(nodes, attempt.serial)
        state.by_tag[attempt.serial] = attempt.id
        self.jobs.start(running)
        state.out.append(ExecuteJob(at_us=state.now_us, job_id=attempt.id, nodes=nodes))
        return running

    def _reject(self, proposal: Reject) -> Refusal | None:
        """Reject a queued job permanently."""
        attempt = self.jobs.queue.get(proposal.attempt_id)
        if attempt is None:
            return Refusal(proposal.attempt_id, "cannot be rejected: it is not in the queue")
        if not self.state.planning:
            self.state.changes.withdraw(attempt)
        self.reject_job(attempt, proposal.reason)
        return None

    def reject_job(self, attempt: Attempt, reason: str) -> None:
        """Reject a blocked or queued job permanently."""
        state = self.state
        self.jobs.reject(attempt)
        state.out.append(RejectJob(at_us=state.now_us, job_id=attempt.id))
        state.ledger.rejections.append((attempt.id, reason))
        self._never_ran(attempt, Cause.REJECTED)

    def _never_ran(self, attempt: Attempt, cause: Cause) -> None:
        profile = self.registry.work[attempt.id].profile
        self.state.ledger.add(
            AttemptRecord(attempt, profile, None, -1, -1, cause, "REJECTED", 0, None)
        )

    # ---- stops

    def _stop(self, stop: Stop, forced: bool = False) -> Refusal | None:
        state, jobs = self.state, self.jobs
        refusal = checks.why_not_stop(stop, jobs) or self._why_not_then(stop, forced)
        if refusal:
            return refusal
        if stop.cause == Cause.STOLEN:
            state.ledger.steals.append(state.now_us)
        ran_us = state.now_us - jobs.running[stop.attempt_id].start_us
        remaining = self.registry.after_stop(stop.attempt_id, ran_us, stop.when)
        if isinstance(stop.then, Move) and self.registry.starts_over(
            stop.attempt_id, stop.then.nodes.size
        ):
            remaining = msgspec.structs.replace(remaining, useful_us=0)
        targets = self._hold_targets(stop)
        if remaining.wait_us > 0:
            due_us = state.now_us + remaining.wait_us
            at_us = state.now_us + self._written_us(remaining.wait_us)
            if_hit = self.registry.after_stop(stop.attempt_id, ran_us, When.NOW)
            jobs.schedule(Scheduled(stop, remaining, due_us, at_us, if_hit, targets))
        else:
            self._kill(stop, remaining, targets)
        return None

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

    def _kill(self, stop: Stop, remaining: Remaining, targets: Sequence[Running] = ()) -> None:
        running = self.jobs.running[stop.attempt_id]
        if stop.cause == Cause.NODE_FAILURE:
            remaining = self._after_init(stop.attempt_id, remaining)
        self.jobs.stop(Stopping(stop, remaining, running, self.state.now_us, list(targets)))
        self.state.kills.append(stop.attempt_id)

    def _hold_targets(self, stop: Stop) -> list[Running]:
        """Hold the free target nodes of a move, so that no plan uses them."""
        if not isinstance(stop.then, Move):
            return []
        free = self.nodes.usable_and_free(stop.then.nodes)
        attempt = self.registry.work[stop.attempt_id].attempt
        return [self._hold(attempt, free, attempt.walltime_us)] if free.size else []

    def vacated(self, attempt_id: str) -> None:
        """If other attempts will move to the nodes that an attempt released, hold these nodes.

        If the attempt itself was scheduled to move, its move is cancelled.
        """
        jobs = self.jobs
        if not (jobs.scheduled or jobs.stopping or jobs.moving):
            return
        own = jobs.scheduled.get(attempt_id)
        if own and isinstance(own.stop.then, Move):
            self.call_off(attempt_id, "ended")
        stops: list[Scheduled | Stopping] = [*jobs.scheduled.values()]
        stops += [*jobs.stopping.values(), *jobs.moving.values()]
        for stop in stops:
            stop.targets.extend(self._hold_targets(stop.stop))

    def stop_hit(self, running: Running, victim: Scheduled | None = None) -> None:
        """Stop an attempt that has a failed node, and requeue it at the head of the queue.

        If the attempt is already being stopped, do nothing. If the attempt was the victim of a
        steal, ``victim`` is the cancelled stop of this steal.
        """
        attempt_id = running.attempt.id
        if attempt_id in self.jobs.running and attempt_id not in self.jobs.stopping:
            self.call_off(attempt_id, "hit")
            if victim and self.state.options.dialect.hit == "victim":
                then = Requeue(Priority.VICTIM)
                stop = Stop(attempt_id, Cause.NODE_FAILURE, When.NOW, then)
                self._kill(stop, victim.if_hit)
            else:
                self._stop(Stop(attempt_id, Cause.NODE_FAILURE), forced=True)

    def spoil(self, stopping: Stopping) -> None:
        """After a failure during a resize, requeue the job from its last checkpoint."""
        stop = stopping.stop
        if stop.when == When.RESIZE:
            ran_us = stopping.sent_us - stopping.running.start_us
            stopping.remaining = self.registry.after_stop(stop.attempt_id, ran_us, When.NOW)
            stopping.stop = Stop(stop.attempt_id, Cause.NODE_FAILURE)
            self._let_go(*stopping.targets)
            stopping.targets = []

    def send_kills(self) -> None:
        """Send all pending kills in one decision."""
        state = self.state
        if not state.kills:
            return
        for attempt_id in state.kills:
            if not isinstance(self.jobs.stopping[attempt_id].stop.then, End):
                self.registry.need_registration(attempt_id)
        state.out.append(KillJobs(at_us=state.now_us, job_ids=tuple(state.kills)))
        state.kills.clear()

    # ---- scheduled stops

    def call_off(self, attempt_id: str, why: Why, later: bool = False) -> Scheduled | None:
        """Cancel the scheduled stop of an attempt, and requeue the jobs that waited for this stop.

        If ``later`` is set, these jobs are requeued in the second pass: after the kills of the
        first pass are acknowledged (see *Waits* above).
        """
        scheduled = self.jobs.scheduled.pop(attempt_id, None)
        if scheduled is not None:
            if scheduled.stop.cause == Cause.STOLEN:
                self.state.ledger.steals_off.append((self.state.now_us, why))
            self._let_go(*scheduled.targets)
            self._end_waits_on(scheduled, later)
        return scheduled

    def carry_out_due(self) -> bool:
        """Carry out due stops, and end due waits. Return whether any attempt is killed."""
        state, jobs = self.state, self.jobs
        if not (jobs.scheduled or jobs.waiting):
            return False
        for attempt_id, scheduled in list(jobs.scheduled.items()):
            running = jobs.running.get(attempt_id)
            if running is None or attempt_id in jobs.stopping:
                self.call_off(attempt_id, "ended", state.options.dialect.ended == "others-first")
            elif scheduled.due(state.now_us):
                del jobs.scheduled[attempt_id]
                self._kill(scheduled.stop, scheduled.remaining, scheduled.targets)
                self._end_waits_on(scheduled)
        self._end_due_waits()
        killed = bool(state.kills)
        self.send_kills()
        return killed

    def _release(self, proposal: Release) -> Refusal | None:
        waiting = self.jobs.waiting.get(proposal.job_id)
        if waiting is None:
            return Refusal(proposal.job_id, "cannot be released: it does not wait for nodes")
        on, later = waiting.on, self.state.options.dialect.two_passes
        if not (on and not self._hangs(on) and self.call_off(on, "given up", later)):
            self._end_wait(proposal.job_id, later)
        return None

    # ---- acknowledged kills

    def acknowledge(self, attempt_id: str, killed: bool) -> None:
        """Complete a stop whose kill is acknowledged.

        If ``killed`` is False, the attempt completed before it was killed. Its job is over, unless
        the attempt had failed.
        """
        stopping = self.jobs.stopping.pop(attempt_id, None)
        if stopping is None:
            return
        self._note_lag(stopping.sent_us)
        if not (killed or stopping.failed):
            self._let_go(*stopping.targets)
        elif isinstance(stopping.stop.then, Move):
            self.jobs.move(stopping)
        elif isinstance(stopping.stop.then, Wait):
            self._begin_wait(stopping, stopping.stop.then)
        elif isinstance(stopping.stop.then, End):
            self.jobs.over(stopping.running.attempt.job_id)
        else:
            self._requeue(stopping)

    def _requeue(self, stopping: Stopping) -> None:
        job_id, ledger = stopping.running.attempt.job_id, self.state.ledger
        if ledger.interrupted.get(job_id, 0) >= self.state.options.max_attempts:
            ledger.given_up.append(job_id)
            self.jobs.give_up(job_id)
            return
        attempt = self.registry.again(
            stopping.stop.attempt_id, stopping.remaining, stopping.stop.then.priority
        )
        self.jobs.enqueue(attempt)
        self.state.changes.resubmitted.append(attempt)

    def complete_moves(self) -> None:
        """Execute each move whose target nodes all other attempts have released."""
        if self.jobs.stopping or not self.jobs.moving:
            return
        for stopping in list(self.jobs.moving.values()):
            move = stopping.stop.then
            assert isinstance(move, Move)
            self._let_go(*stopping.targets)
            attempt_id = stopping.stop.attempt_id
            refusal = checks.not_free(attempt_id, "complete its move", move.nodes, self.nodes)
            if refusal:
                self.state.note(refusal)
                self._requeue(stopping)
                continue
            attempt = self.registry.again(
                stopping.stop.attempt_id, stopping.remaining, move.priority, move.nodes.size
            )
            self.state.changes.moved.append(self._execute(attempt, move.nodes))

    # ---- nodes

    def lose_holds(self, tags: list[int]) -> None:
        """Release the held nodes that failed, and cancel the scheduled moves to them."""
        self.note_nodes(tags)
        self._lose_held(tags)
        for attempt_id, scheduled in list(self.jobs.scheduled.items()):
            if any(target.attempt.serial in tags for target in scheduled.targets):
                self.call_off(attempt_id, "hit")
                reason = "cannot move: one of its target nodes failed"
                self.state.note(Refusal(attempt_id, reason))

    def _drain(self, proposal: Drain | Undrain) -> Refusal | None:
        refusal = checks.why_not_drain(proposal, self.nodes)
        if refusal:
            return refusal
        state, nodes, why = self.state, proposal.nodes, proposal.why
        drains = isinstance(proposal, Drain)
        state.ledger.drain_events.append((state.now_us, not drains, nodes, why))
        if drains:
            self.nodes.drain(nodes, why)
            state.changes.failures += nodes.size
            state.changes.failing.append(nodes)
            self._call_off_moves_to(nodes)
        else:
            self.nodes.undrain(nodes, why)
            state.changes.repairs += nodes.size
            state.changes.returning.append(nodes)
        return None

    def _call_off_moves_to(self, nodes: NodeSet) -> None:
        """Cancel scheduled moves to drained nodes."""
        for attempt_id, scheduled in list(self.jobs.scheduled.items()):
            then = scheduled.stop.then
            if isinstance(then, Move) and then.nodes.meets(nodes):
                self.call_off(attempt_id, "given up")
                reason = "cannot move: one of its target nodes was drained"
                self.state.note(Refusal(attempt_id, reason))

    def _note(self, note: Note) -> None:
        ledger, now_us = self.state.ledger, self.state.now_us
        ledger.refusals.append((now_us, note.operation, note.reason))
        ledger.not_done.append(now_us)

    # ---- holds

    def _hold(self, attempt: Attempt, nodes: NodeSet, span_us: int) -> Running:
        """Hold free nodes for a job. ``span_us`` is the expected duration in microseconds."""
        serial = self.state.next_serial()
        held = msgspec.structs.replace(
            attempt,
            id=f"{attempt.job_id}~{serial}",
            serial=serial,
            n_nodes=nodes.size,
            walltime_us=span_us,
        )
        return self._begin_hold(Running(held, self.state.now_us, nodes))

    def _begin_hold(self, held: Running) -> Running:
        self.nodes.take(held.nodes, held.attempt.serial)
        self.state.by_hold[held.attempt.serial] = held.attempt.id
        self.state.changes.held.append(held)
        self._held[held.attempt.serial] = held
        self._record_hold(held.attempt.serial, held, held.nodes)
        return held

    def _record_hold(self, tag: int, held: Running, up: NodeSet) -> None:
        """Start a record of held nodes in the ledger."""
        if up.size:
            self._hold_records[tag] = Hold(held.attempt.job_id, up, self.state.now_us)
            self.state.ledger.holds.append(self._hold_records[tag])

    def _end_record(self, tag: int) -> None:
        record = self._hold_records.pop(tag, None)
        if record is not None:
            record.until_us = self.state.now_us

    def note_nodes(self, tags: Iterable[int]) -> None:
        """For each hold with one of these tags, start a new record without nodes that are down."""
        for tag in sorted(self._held.keys() & tags):
            held = self._held[tag]
            self._end_record(tag)
            self._record_hold(tag, held, self.nodes.up(held.nodes))

    def _without_the_dead(self, held: Running) -> Running | None:
        """Release the unusable nodes of a hold. Return the rest, or None if no node is left."""
        self._let_go(held)
        alive = self.nodes.usable(held.nodes)
        attempt = msgspec.structs.replace(
            held.attempt, id=f"{held.attempt.id}~", n_nodes=alive.size
        )
        return self._begin_hold(Running(attempt, held.start_us, alive)) if alive.size else None

    def _let_go(self, *holds: Running | None) -> None:
        """Release holds. If no plan has received a hold, remove it from the reported changes."""
        for held in filter(None, holds):
            self.nodes.release(held.nodes)
            del self.state.by_hold[held.attempt.serial]
            del self._held[held.attempt.serial]
            self._end_record(held.attempt.serial)
            self.state.changes.leave(held, self.state.changes.ended)

    # ---- waits

    def _written_us(self, span_us: int) -> int:
        """Return a duration (us), rounded to the number of digits of the dialect."""
        return written_us(span_us) if self.state.options.dialect.digits == "six" else span_us

    def _begin_wait(self, stopping: Stopping, wait: Wait) -> None:
        """Hold the usable nodes of a stopped job. If its wait is already over, requeue it."""
        until_us = due_us = wait.until_us
        if wait.on:
            scheduled = self.jobs.scheduled.get(wait.on)
            until_us = min(until_us, scheduled.at_us if scheduled else 0)
            due_us = min(due_us, scheduled.due_us if scheduled else 0)
        if until_us <= self.state.now_us:
            self._requeue(stopping)
            return
        alive = self.nodes.usable_and_free(stopping.running.nodes)
        if self.state.options.dialect.held == "lowest" and alive.size:
            alive = self.nodes.lowest(alive.size)
        attempt, span_us = stopping.running.attempt, self._held_for_us(due_us)
        held = self._hold(attempt, alive, span_us) if alive.size else None
        self.jobs.wait(Waiting(stopping, held, alive.size, wait.on, until_us))
        if until_us < FOREVER_US:
            self._call_at(until_us)

    def _held_for_us(self, due_us: int) -> int:
        """Return the duration (us) for which plans assume that the nodes are held."""
        if due_us >= FOREVER_US:
            return FOREVER_US
        margin_us = round(self.state.options.dialect.hold_margin_s * 1e6)
        return self._written_us(due_us - self.state.now_us + margin_us)

    def _lose_held(self, tags: list[int]) -> None:
        """Update the waits whose held nodes failed. ``tags`` are the tags of these holds."""
        for job_id, waiting in self.jobs.waiting.items():
            held = waiting.held
            if held is None or held.attempt.serial not in tags:
                continue
            waiting.n_held = self.nodes.usable(held.nodes).size
            if self.state.options.dialect.held == "lowest" and waiting.n_held:
                waiting.shrinks = True
            else:
                waiting.held = self._without_the_dead(held)
            self.state.news.held_hit.append(job_id)

    def _shrink(self, waiting: Waiting) -> None:
        """Replace the held nodes by equally many of the lowest free nodes. The wait continues."""
        held, scheduled = waiting.held, self.jobs.scheduled.get(waiting.on)
        waiting.shrinks = False
        if held is None or scheduled is None:
            return
        self._let_go(held)
        now_us = self.state.now_us
        span_us = self._written_us(held.planned_end_us - now_us)
        lowest = self.nodes.lowest(waiting.n_held)
        waiting.held = self._hold(waiting.stopping.running.attempt, lowest, span_us)
        scheduled.at_us = waiting.until_us = now_us + self._written_us(scheduled.due_us - now_us)

    def _end_waits_on(self, scheduled: Scheduled, later: bool = False) -> None:
        """End all waits that wait for a stop, because the stop is carried out or cancelled."""
        for job_id, waiting in list(self.jobs.waiting.items()):
            if waiting.on == scheduled.stop.attempt_id:
                self._end_wait(job_id, later)

    def _end_wait(self, job_id: str, later: bool = False) -> None:
        """Requeue a job and release its nodes, immediately or in the second pass (``later``)."""
        if later:
            self.jobs.waiting[job_id].over = True
            return
        waiting = self.jobs.waiting.pop(job_id)
        self._let_go(waiting.held)
        self._requeue(waiting.stopping)

    def _end_due_waits(self) -> None:
        """End the waits that are due."""
        for job_id, waiting in list(self.jobs.waiting.items()):
            if waiting.due(self.state.now_us):
                self._end_wait(job_id)

    def second_pass(self) -> bool:
        """If no kill is pending, carry out the second pass. Return whether it changed anything."""
        if self.jobs.stopping or not self.jobs.waiting:
            return False
        postponed = [(name, w) for name, w in self.jobs.waiting.items() if w.over or w.shrinks]
        for job_id, waiting in postponed:
            if waiting.over:
                self._end_wait(job_id)
            else:
                self._shrink(waiting)
        return bool(postponed)

    # ---- hangs

    def failed_attempts(
        self, hit: Mapping[str, Failure]
    ) -> tuple[list[Running], dict[str, Scheduled | None]]:
        """Return the failed attempts that the policy must know now, and their cancelled stops.

        ``hit`` contains new failures by attempt. If recoveries have stages, these attempts first
        hang. They are reported later.
        """
        if not (hit or self.hanging):
            return [], {}
        jobs, later = self.jobs, self.state.options.dialect.two_passes
        stages = self._stages or self.registry.has_light
        if not stages and not any(failure.cause for failure in hit.values()):
            running = [jobs.running[name] for name in hit]
            scheduled = [name for name in jobs.scheduled if name in hit]
            return running, {name: self.call_off(name, "hit", later) for name in scheduled}
        for name, failure in hit.items():
            if name not in self.hanging:
                self._begin_hang(jobs.running[name], failure, self.call_off(name, "hit", later))
        due = self._due_hangs()
        victims = {name: self.hanging[name].victim for name in due}
        return [jobs.running[name] for name in due], {n: v for n, v in victims.items() if v}

    def _begin_hang(self, running: Running, failure: Failure, victim: Scheduled | None) -> None:
        attempt, now_us = running.attempt, self.state.now_us
        stages = self._recovery.drawn_us(self._stages, failure.cause, attempt.job_id, now_us)
        hang = Hang(failure.cause, now_us, stages, victim)
        self.hanging[attempt.id] = hang
        ran_us = now_us - running.start_us
        self.registry.failures[attempt.id] = msgspec.structs.replace(failure, ran_us=ran_us)
        remaining = self.registry.after_stop(attempt.id, ran_us, When.NOW)
        stop = Stop(attempt.id, Cause.NODE_FAILURE)
        self.jobs.schedule(Scheduled(stop, remaining, hang.due_us, hang.due_us, remaining))

    def _due_hangs(self) -> list[str]:
        """End the hangs that are due. Return their attempts in the order of the failures."""
        due = []
        for name, scheduled in list(self.jobs.scheduled.items()):
            if name in self.hanging and scheduled.due(self.state.now_us):
                del self.jobs.scheduled[name]
                self._end_waits_on(scheduled)
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

    def hung_completion(self, running: Running) -> Stopping | None:
        """Return the stop of an attempt that completed in the simulator while it hangs.

        The nodes of the attempt are held until the end of the hang. If the attempt does not hang,
        the result is None.
        """
        attempt_id = running.attempt.id
        if not self._hangs(attempt_id):
            return None
        hang, scheduled = self.hanging[attempt_id], self.jobs.scheduled.pop(attempt_id)
        stop = Stop(attempt_id, Cause.NODE_FAILURE, When.NOW, Wait(until_us=hang.due_us))
        remaining = self._after_init(attempt_id, scheduled.remaining)
        return Stopping(stop, remaining, running, self.state.now_us)

    def hold_until_detected(self, stopping: Stopping) -> None:
        """Hold the nodes of an attempt that completed while it hung, then requeue its job.

        The hold begins in `begin_waits`.
        """
        self.registry.need_registration(stopping.stop.attempt_id)
        self.jobs.stop(stopping)
        del self.jobs.stopping[stopping.stop.attempt_id]
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
        jobs, now_us = self.jobs, self.state.now_us
        return (
            bool(self._due_wakes())
            or any(scheduled.due(now_us) for scheduled in jobs.scheduled.values())
            or any(waiting.due(now_us) for waiting in jobs.waiting.values())
        )

    def ask_to_be_called(self) -> None:
        """Request calls for scheduled stops and wakes. If kills are pending, postpone this."""
        if not self.jobs.stopping and (self.jobs.scheduled or self.wakes):
            self._call_at_all(s.at_us for s in self.jobs.scheduled.values())

    def _wake(self, wake: Wake) -> Refusal | None:
        """Add a wake. If its time is not in the future, return a refusal.

        At the present time, a plan can request another plan.
        """
        if self.state.planning and wake.at_us == self.state.now_us:
            self.state.changes.woken.append(wake.tag)
            return None
        if not self.state.now_us < wake.at_us < FOREVER_US:
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
        return [wake for wake in self.wakes if wake.at_us <= self.state.now_us]

    def _note_lag(self, sent_us: int) -> None:
        """Update the maximum delay of replies. ``sent_us`` is when the decision was sent."""
        lag_us = self.state.now_us - sent_us
        self._lag_us = lag_us if self._lag_us is None else max(self._lag_us, lag_us)

    def _call_at(self, at_us: int) -> None:
        """Request a call at a time, or as soon as possible after it.

        Batsim aborts if it receives the request after the requested time.
        """
        margin_us = UNKNOWN_LAG_US if self._lag_us is None else 2 * self._lag_us
        when_us = max(at_us, self.state.now_us + margin_us)
        self._called.add(at_us)
        self.state.out.append(CallMeLater(at_us=self.state.now_us, when_us=when_us))

    def _call_at_all(self, others_us: Iterable[int]) -> None:
        """Request a call at the time of each wake and at each time in ``others_us``."""
        times = {*others_us, *(wake.at_us for wake in self.wakes)}
        for at_us in sorted(times - self._called):
            if at_us > self.state.now_us:
                self._call_at(at_us)
