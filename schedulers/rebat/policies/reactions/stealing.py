# SPDX-License-Identifier: Apache-2.0
"""Node stealing: Algorithm 1 of Du et al. 2024, with all timings, victims and criteria.

With timings T2 and T3, the victim is stopped at a checkpoint. Until then the failed job waits and
holds its surviving nodes. The session stops the victim at the checkpoint. If the victim ends or
loses a node before that, the session cancels the stop (section 7.2.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, ClassVar

import msgspec

from rebat.contract import News, Proposal, Release, Requeue, Stop, View, Wait, When
from rebat.core.attempts import Cause, Priority, Running, job_name
from rebat.core.errors import InputError
from rebat.models.remaining import Remaining
from rebat.policies.context import Context, ReactionOptions
from rebat.policies.placement.choosers import Mask, Request
from rebat.policies.reactions.victims import (
    CRITERIA,
    RELEASES,
    TIES,
    TIMINGS,
    VICTIMS,
    Candidate,
    Criterion,
    OwnCriterion,
    OwnVictim,
    Steal,
    earliest_end,
)
from rebat.policies.variants import Difference, choice, text


class NodeStealing:
    """A reaction that stops a victim if a job fails while no node is free.

    The failed job continues on a node of the victim, which is the first running attempt in the
    order of the victim rule. If the criterion rejects this victim, no other victim is tried.
    """

    def __init__(self, options: StealingOptions, context: Context) -> None:
        dialect = self._dialect = context.dialect
        rule: Any = options.rule("victim")
        self._key: Callable[[Candidate], tuple[Any, ...]] = rule
        self._criterion: Criterion = options.rule("criterion")
        self._timing = TIMINGS[options.timing]
        self._release, self._tie = RELEASES[dialect.release], TIES[dialect.tie]
        self._fitting = rule.fits
        self._with_free = self._fitting and self._timing == When.NOW
        self._choose, self._least = context.placement.choose, context.rule.least
        self._once: set[str] | None = set() if dialect.chosen == "once" else None

    def react(self, view: View, news: News) -> Iterable[Proposal]:
        """Decide on each hit attempt. For each of them, stop at most one victim."""
        if not (news.failed or news.hit):
            return
        yield from self._give_up(view, news)
        if not news.hit:
            return
        free = view.machine.free
        spared = {running.attempt.id for running in news.hit}
        spared |= view.scheduled.keys() | view.stopping.keys() | (self._once or set())
        usable = ~(view.machine.down | view.machine.drained)
        for failed in news.hit:
            if failed.attempt.id in view.stopping:
                continue  # another reaction replaced the failed nodes
            survivors = failed.nodes.mask(view.n_nodes) & usable
            again = self._choose(free | survivors, self._request(view, failed), view.machine)
            if again is not None:
                free |= survivors
                again.put(free, False)  # no need for node stealing
            elif failed.attempt.id not in news.called_off:
                nodes = survivors | free if self._with_free else survivors
                yield from self._steal(view, failed, nodes, spared)

    def _give_up(self, view: View, news: News) -> Iterator[Release]:
        """Cancel steals that became useless because nodes that the waiting job holds failed.

        The waiting job returns to the queue, and the victim continues (section 7.2.3).
        """
        for job_id in news.held_hit:
            waiting = view.waiting.get(job_id)
            victim = view.running.get(waiting.on) if waiting else None
            if waiting and victim:
                too_few = victim.attempt.n_nodes < waiting.n_lost
                if waiting.n_held == 0 or too_few:
                    yield Release(job_id)

    def _steal(self, view: View, failed: Running, nodes: Mask, spared: set[str]) -> Iterator[Stop]:
        """Yield the stop of the victim, and the stop of the failed job if it has to wait.

        ``nodes`` are the surviving nodes of the failed job and, if the victim rule counts them, the
        free nodes. A job that waits for the victim's checkpoint cannot rely on free nodes, because
        other jobs may start on them.
        """
        victim = self._victim(view, failed, nodes, spared)
        if victim is None or not self._fits(view, failed, nodes, victim):
            return
        if self._timing != When.NOW and not nodes.any():
            return  # the failed job has no node to hold (section 7.2.1)
        victim_id = victim.attempt.id
        left = view.after_stop(victim_id, self._timing)
        if not self._accepted(view, failed, victim, left):
            return
        spared.add(victim_id)
        if self._once is not None:
            self._once.add(victim_id)
        why = f"for {job_name(failed.attempt.job_id)}"
        yield Stop(victim_id, Cause.STOLEN, self._timing, Requeue(Priority.VICTIM), why)
        if left.wait_us > 0:
            yield Stop(failed.attempt.id, Cause.NODE_FAILURE, When.NOW, Wait(on=victim_id))

    def _accepted(self, view: View, failed: Running, victim: Running, left: Remaining) -> bool:
        """Return whether the criterion accepts a steal. ``left`` is what remains of the victim."""
        failed_left = view.after_stop(failed.attempt.id)
        return self._criterion(self._case(view, failed, victim, failed_left, left))

    def _fits(self, view: View, failed: Running, nodes: Mask, victim: Running) -> bool:
        mask, request = nodes.copy(), self._request(view, failed)
        victim.nodes.put(mask, True)
        mask &= ~(view.machine.down | view.machine.drained)
        return self._choose(mask, request, view.machine) is not None

    def _request(self, view: View, failed: Running) -> Request:
        """Return the nodes that a failed job needs to continue."""
        attempt = failed.attempt
        least = self._least(view.job(attempt.job_id).shape, attempt.n_nodes)
        return Request.later(msgspec.structs.replace(attempt, n_nodes=least))

    def _victim(self, view: View, failed: Running, nodes: Mask, spared: set[str]) -> Running | None:
        """Return the first candidate in the order of the victim rule.

        Return None if there is none.
        """
        candidates = [
            self._candidate(view, running)
            for running in view.running.values()
            if running.attempt.id not in spared
        ]
        if not self._fitting:
            return min(candidates, key=self._key).running if candidates else None
        ordered = (candidate.running for candidate in sorted(candidates, key=self._key))
        return next((r for r in ordered if self._fits(view, failed, nodes, r)), None)

    def _candidate(self, view: View, running: Running) -> Candidate:
        run_us = view.now_us - running.start_us
        left = view.after_stop(running.attempt.id)
        lost_us = max(0, run_us - self._recovery_us(view, running) - left.useful_us)
        release = self._release(running.attempt)
        left_us = running.planned_end_us - view.now_us
        return Candidate(
            running.n_nodes, running.start_us, release[0], lost_us, left_us, running, release,
            self._tie(running, release),
        )  # fmt: skip

    def _recovery_us(self, view: View, running: Running) -> int:
        checkpointing = view.checkpointing(running.attempt.id)
        return checkpointing.first_recovery_us if checkpointing else 0

    def _case(
        self, view: View, failed: Running, victim: Running, failed_left: Remaining, left: Remaining
    ) -> Steal:
        others = [r for r in view.running.values() if r is not failed]
        victim_end_us = victim.planned_end_us
        if self._dialect.k3 == "program":
            others += [waiting.held for waiting in view.waiting.values() if waiting.held]
            victim_end_us -= self._recovery_us(view, victim)
        return Steal(
            failed_nodes=failed.n_nodes,
            victim_nodes=victim.n_nodes,
            failed=failed,
            victim=victim,
            failed_release_us=self._release(failed.attempt)[0],
            victim_release_us=self._release(victim.attempt)[0],
            kill_us=view.now_us + left.wait_us,
            failed_left_us=view.walltime_after_us(failed.attempt.id, failed_left),
            victim_left_us=view.walltime_after_us(victim.attempt.id, left),
            victim_end_us=victim_end_us,
            next_end_us=earliest_end(others),
            next_end_besides_us=earliest_end([r for r in others if r is not victim]),
        )


def check_margin(margin: str | float) -> None:
    """Raise InputError if the option hold_margin is not a number of seconds."""
    try:
        fits = margin == "auto" or 0 <= float(margin) <= 1e9
    except ValueError:
        fits = False
    if not fits:
        raise InputError(f"invalid hold_margin {margin!r}", expected="seconds, 0 to 1e+09, or auto")


class StealingOptions(ReactionOptions, frozen=True, tag="stealing"):
    """Stop a victim and give one of its nodes to a job that lost a node (Du et al. 2024).

    The option ``semantics`` determines the values of all options that are 'auto'.
    """

    kind = NodeStealing
    in_each: ClassVar[str] = "partition"

    victim: Annotated[
        str,
        choice(VICTIMS, "Rule that chooses the victim, or FILE.py:FUNCTION.", OwnVictim),
    ] = "fewest-nodes"
    criterion: Annotated[
        str,
        choice(CRITERIA, "Rule that decides whether to steal, or FILE.py:FUNCTION.", OwnCriterion),
    ] = "fewer-nodes"
    timing: Annotated[
        str,
        choice(
            TIMINGS,
            "When to stop the victim: immediately (now), after a checkpoint that starts now "
            "(proactive), or after its next regular checkpoint (next).",
        ),
    ] = "now"
    release: Difference = "auto"
    held: Difference = "auto"
    hold_margin: Annotated[
        str | float,
        text(
            check_margin,
            "Seconds that plans add to the expected time for which nodes are held. auto: 0 with "
            "semantics=paper, 900 with semantics=authors.",
            ("auto",),
        ),
    ] = "auto"
    tie: Difference = "auto"
    ended: Difference = "auto"
    hit: Difference = "auto"
    chosen: Difference = "auto"
    k3: Difference = "auto"
