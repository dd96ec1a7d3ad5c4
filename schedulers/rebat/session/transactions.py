# SPDX-License-Identifier: Apache-2.0
"""Execution of proposals: starts, and the transaction *stop, then queue | move | wait | end*.

A stop takes up to three messages: its proposal (it may wait for a checkpoint), its kill, and the
acknowledgement of the kill. All further steps occur at the time of the acknowledgement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from rebat.core.attempts import Cause, Priority, Running
from rebat.core.decisions import KillJobs
from rebat.core.nodes import NodeSet
from rebat.models.remaining import Remaining
from rebat.session import checks
from rebat.session.agenda import Agenda
from rebat.session.board import Board
from rebat.session.claims import Claims
from rebat.session.hangs import Hangs
from rebat.session.holds import Holds
from rebat.session.ledger import Why
from rebat.session.lifecycle import Lifecycle, Scheduled, Stopping
from rebat.session.resubmission import Registry
from rebat.session.starts import Starts
from rebat.session.waits import Waits


class Transactions:
    """The part of the session that carries out or refuses the proposals of a policy."""

    def __init__(self, board: Board, jobs: Lifecycle, claims: Claims, registry: Registry) -> None:
        self._board, self._jobs, self._claims, self._registry = board, jobs, claims, registry
        self.agenda = Agenda(board)
        self._holds = Holds(board, claims)
        self._starts = Starts(board, jobs, claims, registry)
        self.waits = Waits(board, jobs, claims, self._holds, self.agenda, self._requeue)
        self.hangs = Hangs(board, jobs, registry, self.waits, self.call_off)
        self._carry_out: dict[type[Any], Callable[..., Refusal | None]] = {
            Start: self._starts.start,
            Reject: self._starts.reject,
            Stop: self._stop,
            Release: self._release,
            Wake: self.agenda.add,
            Drain: self._drain,
            Undrain: self._drain,
            Note: self._note,
        }

    def propose(self, proposal: Proposal) -> Refusal | None:
        """Carry out a proposal, or return a refusal."""
        refusal = self._carry_out[type(proposal)](proposal)
        if refusal:
            self._board.refuse(refusal)
        return refusal

    # ---- proposed stops

    def _stop(self, stop: Stop, forced: bool = False) -> Refusal | None:
        board, jobs = self._board, self._jobs
        refusal = checks.why_not_stop(stop, jobs) or self._why_not_then(stop, forced)
        if refusal:
            return refusal
        if stop.cause == Cause.STOLEN:
            board.ledger.steals.append(board.now_us)
        ran_us = board.now_us - jobs.running[stop.attempt_id].start_us
        remaining = self._registry.after_stop(stop.attempt_id, ran_us, stop.when)
        if isinstance(stop.then, Move) and self._registry.starts_over(
            stop.attempt_id, stop.then.nodes.size
        ):
            remaining = msgspec.structs.replace(remaining, useful_us=0)
        claims = self._claim(stop)
        if remaining.wait_us > 0:
            due_us = board.now_us + remaining.wait_us
            at_us = board.now_us + self.waits.written_us(remaining.wait_us)
            if_hit = self._registry.after_stop(stop.attempt_id, ran_us, When.NOW)
            jobs.schedule(Scheduled(stop, remaining, due_us, at_us, if_hit, claims))
        else:
            self._kill(stop, remaining, claims)
        return None

    def _why_not_then(self, stop: Stop, forced: bool) -> Refusal | None:
        """Return why the step after a stop is impossible, or None if it is possible.

        A ``forced`` stop (after a failure) cannot be refused.
        """
        registry, attempt_id = self._registry, stop.attempt_id
        if not (forced or isinstance(stop.then, End)) and (
            never := registry.why_not_again(attempt_id)
        ):
            reason = f"cannot be stopped, because its job could not continue: {never.reason}"
            return Refusal(attempt_id, reason)
        refusal, running = None, self._jobs.running[attempt_id]
        if isinstance(stop.then, Move):
            refusal = checks.why_not_move(
                stop.then, running, self._claims, self._jobs
            ) or registry.why_not_size(attempt_id, stop.then.nodes.size)
        if not refusal and stop.when == When.RESIZE:
            refusal = registry.why_not_seamless(attempt_id)
        if not refusal and stop.when == When.IMAGE:
            refusal = registry.why_not_image(attempt_id) or checks.why_not_alive(
                running, self._claims
            )
        return refusal

    def _kill(self, stop: Stop, remaining: Remaining, claims: Sequence[Running] = ()) -> None:
        running = self._jobs.running[stop.attempt_id]
        if stop.cause == Cause.NODE_FAILURE:
            remaining = self.hangs.after_init(stop.attempt_id, remaining)
        self._jobs.stop(Stopping(stop, remaining, running, self._board.now_us, list(claims)))
        self._board.kills.append(stop.attempt_id)

    def _claim(self, stop: Stop) -> list[Running]:
        """Hold the free target nodes of a move, so that no plan uses them."""
        if not isinstance(stop.then, Move):
            return []
        free = self._claims.usable_and_free(stop.then.nodes)
        attempt = self._registry.work[stop.attempt_id].attempt
        return [self._holds.hold(attempt, free, attempt.walltime_us)] if free.size else []

    def vacated(self, attempt_id: str) -> None:
        """If other attempts will move to the nodes that an attempt released, hold these nodes.

        If the attempt itself was scheduled to move, its move is cancelled.
        """
        jobs = self._jobs
        if not (jobs.scheduled or jobs.stopping or jobs.moving):
            return
        own = jobs.scheduled.get(attempt_id)
        if own and isinstance(own.stop.then, Move):
            self.call_off(attempt_id, "ended")
        stops: list[Scheduled | Stopping] = [*jobs.scheduled.values()]
        stops += [*jobs.stopping.values(), *jobs.moving.values()]
        for stop in stops:
            stop.claims.extend(self._claim(stop.stop))

    def stop_hit(self, running: Running, victim: Scheduled | None = None) -> None:
        """Stop an attempt that has a failed node, and requeue it at the head of the queue.

        If the attempt is already being stopped, do nothing. If the attempt was the victim of a
        steal, ``victim`` is the cancelled stop of this steal.
        """
        attempt_id = running.attempt.id
        if attempt_id in self._jobs.running and attempt_id not in self._jobs.stopping:
            self.call_off(attempt_id, "hit")
            if victim and self._board.options.dialect.hit == "victim":
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
            stopping.remaining = self._registry.after_stop(stop.attempt_id, ran_us, When.NOW)
            stopping.stop = Stop(stop.attempt_id, Cause.NODE_FAILURE)
            self._holds.let_go(*stopping.claims)
            stopping.claims = []

    def send_kills(self) -> None:
        """Send all pending kills in one decision."""
        board = self._board
        if not board.kills:
            return
        for attempt_id in board.kills:
            if not isinstance(self._jobs.stopping[attempt_id].stop.then, End):
                self._registry.need_registration(attempt_id)
        board.out.append(KillJobs(at_us=board.now_us, job_ids=tuple(board.kills)))
        board.kills.clear()

    # ---- scheduled stops

    def call_off(self, attempt_id: str, why: Why, later: bool = False) -> Scheduled | None:
        """Cancel the scheduled stop of an attempt, and requeue the jobs that waited for this stop.

        If ``later`` is set, these jobs are requeued in the second pass: after the kills of the
        first pass are acknowledged (see `rebat.session.waits`).
        """
        scheduled = self._jobs.scheduled.pop(attempt_id, None)
        if scheduled is not None:
            if scheduled.stop.cause == Cause.STOLEN:
                self._board.ledger.steals_off.append((self._board.now_us, why))
            self._holds.let_go(*scheduled.claims)
            self.waits.end_all(scheduled, later)
        return scheduled

    def carry_out_due(self) -> bool:
        """Carry out due stops, and end due waits. Return whether any attempt is killed."""
        board, jobs = self._board, self._jobs
        if not (jobs.scheduled or jobs.waiting):
            return False
        for attempt_id, scheduled in list(jobs.scheduled.items()):
            running = jobs.running.get(attempt_id)
            if running is None or attempt_id in jobs.stopping:
                self.call_off(attempt_id, "ended", board.options.dialect.ended == "others-first")
            elif scheduled.due(board.now_us):
                del jobs.scheduled[attempt_id]
                self._kill(scheduled.stop, scheduled.remaining, scheduled.claims)
                self.waits.end_all(scheduled)
        self.waits.end_due()
        killed = bool(board.kills)
        self.send_kills()
        return killed

    def _release(self, proposal: Release) -> Refusal | None:
        waiting = self._jobs.waiting.get(proposal.job_id)
        if waiting is None:
            return Refusal(proposal.job_id, "cannot be released: it does not wait for nodes")
        on, later = waiting.on, self._board.options.dialect.two_passes
        if not (on and not self.hangs.hangs(on) and self.call_off(on, "given up", later)):
            self.waits.end(proposal.job_id, later)
        return None

    # ---- acknowledged kills

    def acknowledge(self, attempt_id: str, killed: bool) -> None:
        """Complete a stop whose kill is acknowledged.

        If ``killed`` is False, the attempt completed before it was killed.
        """
        stopping = self._jobs.stopping.pop(attempt_id, None)
        if stopping is None:
            return
        self.agenda.note_lag(stopping.sent_us)
        if not killed:
            self._holds.let_go(*stopping.claims)
        elif isinstance(stopping.stop.then, Move):
            self._jobs.move(stopping)
        elif isinstance(stopping.stop.then, Wait):
            self.waits.begin(stopping, stopping.stop.then)
        elif isinstance(stopping.stop.then, End):
            self._jobs.over(stopping.running.attempt.job_id)
        else:
            self._requeue(stopping)

    def _requeue(self, stopping: Stopping) -> None:
        job_id, ledger = stopping.running.attempt.job_id, self._board.ledger
        if ledger.interrupted.get(job_id, 0) >= self._board.options.max_attempts:
            ledger.given_up.append(job_id)
            self._jobs.give_up(job_id)
            return
        attempt = self._registry.again(
            stopping.stop.attempt_id, stopping.remaining, stopping.stop.then.priority
        )
        self._jobs.enqueue(attempt)
        self._board.changes.resubmitted.append(attempt)

    def complete_moves(self) -> None:
        """Execute each move whose target nodes all other attempts have released."""
        if self._jobs.stopping or not self._jobs.moving:
            return
        for stopping in list(self._jobs.moving.values()):
            move = stopping.stop.then
            assert isinstance(move, Move)
            self._holds.let_go(*stopping.claims)
            attempt_id = stopping.stop.attempt_id
            refusal = checks.not_free(attempt_id, "complete its move", move.nodes, self._claims)
            if refusal:
                self._board.note(refusal)
                self._requeue(stopping)
                continue
            attempt = self._registry.again(
                stopping.stop.attempt_id, stopping.remaining, move.priority, move.nodes.size
            )
            self._board.changes.moved.append(self._starts.execute(attempt, move.nodes))

    # ---- nodes

    def note_nodes(self, tags: list[int]) -> None:
        """Update the records of holds with these tags after failures or repairs."""
        self._holds.note_nodes(tags)

    def lose_claims(self, tags: list[int]) -> None:
        """Release the held nodes that failed, and cancel the scheduled moves to them."""
        self.note_nodes(tags)
        self.waits.lose(tags)
        for attempt_id, scheduled in list(self._jobs.scheduled.items()):
            if any(claim.attempt.serial in tags for claim in scheduled.claims):
                self.call_off(attempt_id, "hit")
                reason = "cannot move: one of its target nodes failed"
                self._board.note(Refusal(attempt_id, reason))

    def _drain(self, proposal: Drain | Undrain) -> Refusal | None:
        refusal = checks.why_not_drain(proposal, self._claims)
        if refusal:
            return refusal
        board, nodes, why = self._board, proposal.nodes, proposal.why
        drains = isinstance(proposal, Drain)
        board.ledger.drain_events.append((board.now_us, not drains, nodes, why))
        if drains:
            self._claims.drain(nodes, why)
            board.changes.failures += nodes.size
            self._call_off_moves_to(nodes)
        else:
            self._claims.undrain(nodes, why)
            board.changes.repairs += nodes.size
        return None

    def _call_off_moves_to(self, nodes: NodeSet) -> None:
        """Cancel scheduled moves to drained nodes."""
        for attempt_id, scheduled in list(self._jobs.scheduled.items()):
            then = scheduled.stop.then
            if isinstance(then, Move) and then.nodes.meets(nodes):
                self.call_off(attempt_id, "given up")
                reason = "cannot move: one of its target nodes was drained"
                self._board.note(Refusal(attempt_id, reason))

    def _note(self, note: Note) -> None:
        ledger, now_us = self._board.ledger, self._board.now_us
        ledger.refusals.append((now_us, note.operation, note.reason))
        ledger.not_done.append(now_us)

    # ---- times

    def due(self) -> bool:
        """Return whether a wake, a stop or the end of a wait is due."""
        jobs, now_us = self._jobs, self._board.now_us
        return (
            bool(self.agenda.due())
            or any(scheduled.due(now_us) for scheduled in jobs.scheduled.values())
            or any(waiting.due(now_us) for waiting in jobs.waiting.values())
        )

    def ask_to_be_called(self) -> None:
        """Request calls for scheduled stops and wakes. If kills are pending, postpone this."""
        if not self._jobs.stopping and (self._jobs.scheduled or self.agenda.wakes):
            self.agenda.call_at_all(s.at_us for s in self._jobs.scheduled.values())
