# SPDX-License-Identifier: Apache-2.0
"""Waits of failed jobs during a steal with timing T2 or T3.

A failed job holds its other nodes while it waits for the nodes of the victim.

In the node-stealing paper there is one planning pass after a failure. In the authors' program there
are two (``passes=two``). The second pass begins when the kills of the first pass are acknowledged.
If the first pass ends a wait, the nodes of the waiting job become free in the second pass.
"""

from __future__ import annotations

from collections.abc import Callable

from rebat.contract import Wait
from rebat.core.units import FOREVER_US
from rebat.models.six_digits import written_us
from rebat.session.agenda import Agenda
from rebat.session.board import Board
from rebat.session.claims import Claims
from rebat.session.holds import Holds
from rebat.session.lifecycle import Lifecycle, Scheduled, Stopping, Waiting


class Waits:
    """The waits of jobs. The function ``requeue`` requeues the remaining work of a stopped job."""

    def __init__(
        self,
        board: Board,
        jobs: Lifecycle,
        claims: Claims,
        holds: Holds,
        agenda: Agenda,
        requeue: Callable[[Stopping], None],
    ) -> None:
        self._board, self._jobs, self._claims = board, jobs, claims
        self._holds, self._agenda, self._requeue = holds, agenda, requeue

    def written_us(self, span_us: int) -> int:
        """Return a duration (us), rounded to the number of digits of the dialect."""
        return written_us(span_us) if self._board.options.dialect.digits == "six" else span_us

    # ---- begin

    def begin(self, stopping: Stopping, wait: Wait) -> None:
        """Hold the usable nodes of a stopped job. If its wait is already over, requeue it."""
        until_us = due_us = wait.until_us
        if wait.on:
            scheduled = self._jobs.scheduled.get(wait.on)
            until_us = min(until_us, scheduled.at_us if scheduled else 0)
            due_us = min(due_us, scheduled.due_us if scheduled else 0)
        if until_us <= self._board.now_us:
            self._requeue(stopping)
            return
        alive = self._claims.usable_and_free(stopping.running.nodes)
        if self._board.options.dialect.held == "lowest" and alive.size:
            alive = self._claims.lowest(alive.size)
        attempt, span_us = stopping.running.attempt, self._held_for_us(due_us)
        held = self._holds.hold(attempt, alive, span_us) if alive.size else None
        self._jobs.wait(Waiting(stopping, held, alive.size, wait.on, until_us))
        if until_us < FOREVER_US:
            self._agenda.call_at(until_us)

    def _held_for_us(self, due_us: int) -> int:
        """Return the duration (us) for which plans assume that the nodes are held."""
        if due_us >= FOREVER_US:
            return FOREVER_US
        margin_us = round(self._board.options.dialect.hold_margin_s * 1e6)
        return self.written_us(due_us - self._board.now_us + margin_us)

    # ---- failures of held nodes

    def lose(self, tags: list[int]) -> None:
        """Update the waits whose held nodes failed. ``tags`` are the tags of these holds."""
        for job_id, waiting in self._jobs.waiting.items():
            held = waiting.held
            if held is None or held.attempt.serial not in tags:
                continue
            waiting.n_held = self._claims.usable(held.nodes).size
            if self._board.options.dialect.held == "lowest" and waiting.n_held:
                waiting.shrinks = True
            else:
                waiting.held = self._holds.without_the_dead(held)
            self._board.news.held_hit.append(job_id)

    def _shrink(self, waiting: Waiting) -> None:
        """Replace the held nodes by equally many of the lowest free nodes. The wait continues."""
        held, scheduled = waiting.held, self._jobs.scheduled.get(waiting.on)
        waiting.shrinks = False
        if held is None or scheduled is None:
            return
        self._holds.let_go(held)
        now_us = self._board.now_us
        span_us = self.written_us(held.planned_end_us - now_us)
        lowest = self._claims.lowest(waiting.n_held)
        waiting.held = self._holds.hold(waiting.stopping.running.attempt, lowest, span_us)
        scheduled.at_us = waiting.until_us = now_us + self.written_us(scheduled.due_us - now_us)

    # ---- end

    def end_all(self, scheduled: Scheduled, later: bool = False) -> None:
        """End all waits that wait for a stop, because the stop is carried out or cancelled."""
        for job_id, waiting in list(self._jobs.waiting.items()):
            if waiting.on == scheduled.stop.attempt_id:
                self.end(job_id, later)

    def end(self, job_id: str, later: bool = False) -> None:
        """Requeue a job and release its nodes, immediately or in the second pass (``later``)."""
        if later:
            self._jobs.waiting[job_id].over = True
            return
        waiting = self._jobs.waiting.pop(job_id)
        self._holds.let_go(waiting.held)
        self._requeue(waiting.stopping)

    def end_due(self) -> None:
        """End the waits that are due."""
        for job_id, waiting in list(self._jobs.waiting.items()):
            if waiting.due(self._board.now_us):
                self.end(job_id)

    def second_pass(self) -> bool:
        """If no kill is pending, carry out the second pass. Return whether it changed anything."""
        if self._jobs.stopping or not self._jobs.waiting:
            return False
        postponed = [(name, w) for name, w in self._jobs.waiting.items() if w.over or w.shrinks]
        for job_id, waiting in postponed:
            if waiting.over:
                self.end(job_id)
            else:
                self._shrink(waiting)
        return bool(postponed)
