# SPDX-License-Identifier: Apache-2.0
"""Dynamic node replacement: section III of Prabhakaran, Neumann and Wolf, "Efficient Fault
Tolerance through Dynamic Node Replacement", 2018.

There are five steps for an attempt that lost nodes:

1. ``local``: it shrinks.
2. ``idle``: it takes idle nodes.
3. ``remote``: other malleable jobs shrink for it.
4. ``restart``: moldable jobs start again on fewer nodes. The attempt itself may be one of them.
5. ``wait``: it waits at the head of the queue, or paused on its surviving nodes.

The first step that yields enough nodes is used. The decisions for all attempts are made before any
of them is carried out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Annotated, ClassVar

import numpy as np

from rebat.contract import Move, News, Proposal, Requeue, Stop, View, When
from rebat.core.attempts import Attempt, Cause, Priority, Running
from rebat.core.nodes import NodeSet
from rebat.core.traits import Moldable
from rebat.core.units import to_us
from rebat.policies.context import Context, ReactionOptions
from rebat.policies.malleable.managers import LENDERS
from rebat.policies.reactions.pauses import Pauses
from rebat.policies.reactions.restarts import (
    SOLVERS,
    Replacement,
    Restart,
    RestartRound,
    expected_wait_us,
)
from rebat.policies.reactions.spares import SparePool
from rebat.policies.variants import choice, number, parts, several

STEPS = ("local", "idle", "remote", "restart", "wait")
"""The five steps in order. Each of them can be switched off."""

EXPECTED = ("jobs+repairs", "jobs")
"""Events in the expected wait for nodes: ends of other jobs, with or without repairs of nodes."""

WAITS = ("requeue", "hold")
"""What a waiting job does with its surviving nodes: release (requeue) or keep them (hold)."""

RESTARTS = ("beginning", "checkpoint")
"""Where moldable jobs that restart on fewer nodes continue: from the beginning or a checkpoint."""


class NodeReplacement:
    """A reaction that replaces the failed nodes of running attempts.

    If no step yields enough nodes and the step 'wait' is switched off, the attempt is requeued like
    a new submission. Moldable jobs restart only under a planning that changes sizes.
    """

    def __init__(self, options: ReplacementOptions, context: Context) -> None:
        self._steps = frozenset(parts(options.steps))
        self._rule, self._members = context.rule, context.members
        self._take_from = LENDERS[options.lenders] or context.rule.shrink
        self._spares = SparePool(context) if context.n_spares else None
        counts_repairs = options.expected == "jobs+repairs"
        self._repair_us = max(1, to_us(options.repair)) if counts_repairs else None
        self._flexible, self._solve = context.flexible, SOLVERS[options.solver]
        self._resumes = options.restarts == "checkpoint"
        self._pauses = Pauses(self._rule) if options.holds else None
        self._promised_us: dict[str, int] = {}

    def react(self, view: View, news: News) -> Iterable[Proposal]:
        """Replace the failed nodes of each hit attempt, and refill the pool of spare nodes."""
        for running in news.started:
            self._promised_us.setdefault(running.attempt.job_id, running.planned_end_us)
        if self._spares:
            yield from self._spares.refill(view, self._hit_waits(view))
            yield from self._spares.reject(view, news.arrived)
        if self._pauses:
            yield from self._pauses.resume(view)
        hit = [failed for failed in news.hit if failed.attempt.id not in view.stopping]
        if hit:
            yield from self._help(view, hit)
        if self._pauses:
            yield from self._pauses.reserve(view)

    def _hit_waits(self, view: View) -> bool:
        """Return whether a job that lost nodes waits, in the queue or on its surviving nodes."""
        queued = any(attempt.priority >= Priority.FAILED for attempt in view.queue.values())
        return queued or bool(self._pauses and self._pauses.paused(view))

    # ---- the five steps

    def _help(self, view: View, hit: list[Running]) -> Iterator[Proposal]:
        """Decide on all hit attempts, in order. Then carry out the decisions."""
        state = self._round(view, hit)
        decisions = [(failed, self._replace(state, failed)) for failed in hit]
        if self._spares:
            taken = chain.from_iterable(step.nodes for _, step in decisions if step)
            yield from self._spares.use(taken)
        yield from self._lend(state)
        for failed, replacement in decisions:
            if replacement is not None:
                yield from self._carry_out(state, failed, replacement)
            elif "wait" not in self._steps:
                again = Requeue(Priority.REGULAR)
                yield Stop(failed.attempt.id, Cause.NODE_FAILURE, When.NOW, again, "requeue")
            elif self._pauses:
                yield from self._pauses.pause(view, failed)

    def _round(self, view: View, hit: list[Running]) -> RestartRound:
        names = {running.attempt.id for running in hit}
        ready = self._spares.ready(view) if self._spares else []
        free = ready + np.flatnonzero(view.machine.free).tolist()
        lenders = self._members.running(view) if self._rule.resizes else []
        calm = [
            running
            for name, running in view.running.items()
            if name not in view.stopping and name not in view.scheduled
        ]
        moldable = [job for job in calm if self._flexible and self._can_restart(view, job)]
        lenders = [member for member in lenders if member.attempt.id not in names]
        return RestartRound(view, names, free, lenders, moldable)

    def _can_restart(self, view: View, running: Running) -> bool:
        attempt = running.attempt
        return isinstance(view.job(attempt.job_id).shape, Moldable) and attempt.has_walltime

    def _replace(self, state: RestartRound, failed: Running) -> Replacement | None:
        """Return the replacement by the first step with enough nodes.

        Return None if the attempt waits.
        """
        view, attempt = state.view, failed.attempt
        bad = view.machine.down | view.machine.drained
        own = failed.nodes.ids[~failed.nodes.of_each(bad)].tolist()
        low = self._rule.least(view.job(attempt.job_id).shape, attempt.n_nodes)
        if len(own) >= low:
            if "local" in self._steps:
                return Replacement("local", own)
            low = attempt.n_nodes
        short, lost = low - len(own), attempt.n_nodes - len(own)
        idle = min(lost, len(state.free)) if "idle" in self._steps else 0
        if idle >= short:
            return Replacement("idle", own + state.take_free(idle))
        lent = min(short - idle, state.spare) if "remote" in self._steps else 0
        if idle + lent == short:
            return Replacement("remote", own + state.take_free(idle) + self._shrink(state, lent))
        if "restart" not in self._steps:
            return None
        return self._restart(state, failed, own, low, idle + lent)

    def _shrink(self, state: RestartRound, n: int) -> list[int]:
        """Take ``n`` nodes from malleable jobs, in the order that the option ``lenders`` sets."""
        self._take_from(state.lenders, n)
        return state.collect()

    def _restart(
        self, state: RestartRound, failed: Running, own: list[int], low: int, n_others: int
    ) -> Replacement | None:
        """Choose restarts of moldable jobs if they cause less delay than a wait of the hit attempt.

        ``low`` is the number of nodes that the hit attempt needs. ``n_others`` is the number of
        nodes that it could get without restarts: idle nodes and nodes of lenders.
        """
        attempt = failed.attempt
        short = low - len(own) - n_others
        chosen, delay_us = self._solve(list(self._rows(state, attempt)), short)
        if not chosen or delay_us >= expected_wait_us(state, short, self._repair_us):
            return None
        nodes, size = list(own), low
        for row in chosen:
            if row.running.attempt.id == attempt.id:
                size = row.n_nodes
            else:
                nodes += list(row.running.nodes)[row.n_nodes :]
            state.moldable.pop(row.running.attempt.id)
        if "idle" in self._steps:
            nodes += state.take_free(max(0, size - len(nodes)))
        nodes += self._shrink(state, max(0, size - len(nodes)))
        others = [row for row in chosen if row.running.attempt.id != attempt.id]
        return Replacement("restart", nodes[:size], others)

    def _rows(self, state: RestartRound, failed: Attempt) -> Iterator[Restart]:
        """Yield the possible restarts of the hit job and of moldable jobs with only intact nodes.

        Each restart is on fewer nodes. Its cost is the delay of the job's end, relative to its
        first planned end. The cost is at least 0.
        """
        view = state.view
        bad = view.machine.down | view.machine.drained
        for running in state.moldable.values():
            attempt = running.attempt
            if attempt.id != failed.id and bad[list(running.nodes)].any():
                continue
            job = view.job(attempt.job_id)
            assert isinstance(job.shape, Moldable)
            promised_us = self._promised_us.get(attempt.job_id, running.planned_end_us)
            for n_nodes in job.shape.with_request(job.n_nodes):
                if n_nodes < attempt.n_nodes:
                    end_us = view.now_us + self._lasts_us(view, attempt, n_nodes)
                    yield Restart(running, n_nodes, max(0, end_us - promised_us))

    def _lasts_us(self, view: View, attempt: Attempt, n_nodes: int) -> int:
        """Return the walltime of a moldable job that starts again on ``n_nodes`` nodes."""
        if self._resumes:
            return view.walltime_after_us(attempt.id, view.after_stop(attempt.id), n_nodes)
        return view.walltime_on_us(attempt.id, n_nodes)

    # ---- proposals

    def _lend(self, state: RestartRound) -> Iterator[Stop]:
        for member in state.lenders:
            if member.running and member.size < member.running.attempt.n_nodes:
                self._members.remember(member, state.view.now_us)
                attempt = member.running.attempt
                move = Move(NodeSet.of(state.nodes[attempt.id]), attempt.priority)
                yield Stop(attempt.id, Cause.MOVED, When.RESIZE, move, "lend")

    def _carry_out(
        self, state: RestartRound, failed: Running, replacement: Replacement
    ) -> Iterator[Stop]:
        for row in replacement.restarts:
            attempt = row.running.attempt
            move = Move(NodeSet.of(list(row.running.nodes)[: row.n_nodes]), attempt.priority)
            yield Stop(attempt.id, Cause.PREEMPTED, When.NOW, move, "restart for another")
        move = Move(NodeSet.of(replacement.nodes), Priority.FAILED)
        yield Stop(failed.attempt.id, Cause.NODE_FAILURE, When.NOW, move, replacement.step)


class ReplacementOptions(ReactionOptions, frozen=True, tag="replacement"):
    """Replace failed nodes of running jobs (Prabhakaran et al. 2018)."""

    moves_jobs: ClassVar[bool] = True
    kind = NodeReplacement
    in_each: ClassVar[str] = "group"
    boxless: ClassVar[str] = "a replacement node would be outside the box"
    uncustom: ClassVar[bool] = True

    steps: Annotated[
        str,
        several(
            STEPS,
            "Steps to try, joined by +: the job shrinks (local), takes idle nodes (idle), takes "
            "nodes from malleable jobs (remote) or from moldable jobs that restart (restart), or "
            "waits first in the queue (wait).",
        ),
    ] = "local+idle+remote+restart+wait"
    spares: Annotated[
        int,
        number(
            0,
            2**31 - 1,
            "a number of nodes",
            "Number of spare nodes to reserve. Partitions share them by size.",
        ),
    ] = 0
    repair: Annotated[
        float, number(1e-6, 1e9, "seconds", "Expected mean time to repair a node, in seconds.")
    ] = 10_080.0  # 2.8 h, the mean of section IV-C
    solver: Annotated[
        str, choice(SOLVERS, "Solver of the integer program of the step restart.")
    ] = "kernel"

    expected: Annotated[
        str,
        choice(
            EXPECTED,
            "How to estimate the wait with which the step restart is compared: until other jobs "
            "end or nodes are repaired, or until other jobs end (section III-4 of the paper).",
        ),
    ] = "jobs+repairs"
    wait: Annotated[
        str,
        choice(
            WAITS,
            "What a job in the step wait does with its surviving nodes: it releases them and is "
            "requeued (requeue), or holds them until the failed nodes are replaced (hold).",
        ),
    ] = "requeue"
    restarts: Annotated[
        str,
        choice(
            RESTARTS,
            "Whether moldable jobs restart from the beginning or from their last checkpoint in the "
            "step restart.",
        ),
    ] = "beginning"
    lenders: Annotated[
        str,
        choice(
            LENDERS,
            "Which malleable jobs shrink first for a job that lost nodes: the jobs that the option "
            "malleable selects (rule), the job that grew earliest or latest, or the job with the "
            "fewest resizes.",
        ),
    ] = "rule"

    def idle(self) -> frozenset[str]:
        """Return the options of steps that are switched off."""
        steps, names = parts(self.steps), set[str]()
        if "idle" not in steps:
            names.add("spares")
        if "restart" not in steps:
            names |= {"solver", "repair", "expected", "restarts"}
        elif self.expected == "jobs":
            names.add("repair")
        if "wait" not in steps:
            names.add("wait")
        if not {"remote", "restart"} & set(steps):
            names.add("lenders")
        return frozenset(names)

    @property
    def holds(self) -> bool:
        """Whether waiting jobs hold their surviving nodes."""
        return self.wait == "hold" and "wait" in parts(self.steps)

    @property
    def n_spares(self) -> int:
        """Number of nodes reserved as spare nodes."""
        return self.spares

    @property
    def hit_first(self) -> bool:
        """Whether attempts that lost nodes wait at the head of the queue."""
        return "wait" in parts(self.steps)
