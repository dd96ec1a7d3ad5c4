# SPDX-License-Identifier: Apache-2.0
"""Node stealing: Algorithm 1 of Du et al. 2024, all timings, victims and criteria.

A steal whose timing waits for a checkpoint (T2, T3) is a stop of the victim that is to come, on
which the failed job waits with its surviving nodes; the session carries it out, or calls it off
when the victim ends or is hit first (section 7.2.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

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
    VictimKey,
    earliest_end,
)
from rebat.policies.variants import Difference, choice, text


class NodeStealing:
    """When a job fails and no node is free, stop a victim and take a node of its.

    The victim rule orders the running attempts. Its first is the victim; there is no second choice.
    """

    def __init__(self, options: StealingOptions, context: Context) -> None:
        dialect = self._dialect = context.dialect
        self._key: VictimKey = options.rule("victim")
        self._criterion: Criterion = options.rule("criterion")
        self._timing = TIMINGS[options.timing]
        self._release, self._last = RELEASES[dialect.release], TIES[dialect.tie]
        self._choose, self._least = context.placement.choose, context.rule.least
        self._once: set[str] | None = set() if dialect.chosen == "once" else None

    def react(self, view: View, news: News) -> Iterable[Proposal]:
        """Decide on each attempt hit; one victim at most for each."""
        if not news.failed:
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
                continue  # another reaction found something for it
            survivors = failed.nodes.mask(view.n_nodes) & usable
            again = self._choose(free | survivors, self._request(view, failed), view.machine)
            if again is not None:
                free |= survivors
                again.put(free, False)  # no need for node stealing
            elif failed.attempt.id not in news.called_off:
                yield from self._steal(view, failed, survivors, spared)

    def _give_up(self, view: View, news: News) -> Iterator[Release]:
        """Consecutive failures on the nodes that are held (section 7.2.3): the victim goes on."""
        for job_id in news.held_hit:
            waiting = view.waiting.get(job_id)
            victim = view.running.get(waiting.on) if waiting else None
            if waiting and victim:
                too_few = victim.attempt.n_nodes < waiting.n_lost
                if waiting.n_held == 0 or too_few:
                    yield Release(job_id)

    def _steal(
        self, view: View, failed: Running, survivors: Mask, spared: set[str]
    ) -> Iterator[Stop]:
        """The stops of one steal: of the victim, and of the failed job when that has to wait."""
        victim = self._victim(view, spared)
        if victim is None or not self._fits(view, failed, survivors, victim):
            return
        if self._timing != When.NOW and not survivors.any():
            return  # nothing would be left to hold (section 7.2.1)
        victim_id = victim.attempt.id
        failed_left = view.after_stop(failed.attempt.id)
        left = view.after_stop(victim_id, self._timing)
        if not self._criterion(self._case(view, failed, victim, failed_left, left)):
            return
        spared.add(victim_id)
        if self._once is not None:
            self._once.add(victim_id)
        why = f"for {job_name(failed.attempt.job_id)}"
        yield Stop(victim_id, Cause.STOLEN, self._timing, Requeue(Priority.VICTIM), why)
        if left.wait_us > 0:
            yield Stop(failed.attempt.id, Cause.NODE_FAILURE, When.NOW, Wait(on=victim_id))

    def _fits(self, view: View, failed: Running, survivors: Mask, victim: Running) -> bool:
        """Whether the failed job can go on on its surviving nodes and the victim's."""
        mask = survivors.copy()
        victim.nodes.put(mask, True)
        mask &= ~(view.machine.down | view.machine.drained)
        return self._choose(mask, self._request(view, failed), view.machine) is not None

    def _request(self, view: View, failed: Running) -> Request:
        """What a failed job needs to go on."""
        attempt = failed.attempt
        least = self._least(view.job(attempt.job_id).shape, attempt.n_nodes)
        return Request.later(msgspec.structs.replace(attempt, n_nodes=least))

    def _victim(self, view: View, spared: set[str]) -> Running | None:
        candidates = [
            self._candidate(view, running)
            for running in view.running.values()
            if running.attempt.id not in spared
        ]
        return min(candidates, key=self._key).running if candidates else None

    def _candidate(self, view: View, running: Running) -> Candidate:
        run_us = view.now_us - running.start_us
        kept = view.after_stop(running.attempt.id)
        lost_us = max(0, run_us - self._recovery_us(view, running) - kept.useful_us)
        release = self._release(running.attempt)
        return Candidate(running, release, lost_us, self._last(running.attempt, release[1]))

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
    """Check the option hold_margin; InputError for what is no number of seconds."""
    try:
        fits = margin == "auto" or 0 <= float(margin) <= 1e9
    except ValueError:
        fits = False
    if not fits:
        raise InputError(f"hold_margin {margin!r}", expected="seconds, 0 to 1e+09, or auto")


class StealingOptions(ReactionOptions, frozen=True, tag="stealing"):
    """A job that lost a node takes one of a victim, which is stopped for that (Du et al. 2024).

    An option that is 'auto' follows the option semantics.
    """

    kind = NodeStealing

    victim: Annotated[
        str, choice(VICTIMS, "Which job a node is stolen from; or FILE.py:FUNCTION.", OwnVictim)
    ] = "fewest-nodes"
    criterion: Annotated[
        str, choice(CRITERIA, "Whether to steal from it; or FILE.py:FUNCTION.", OwnCriterion)
    ] = "fewer-nodes"
    timing: Annotated[str, choice(TIMINGS, "When the victim is stopped.")] = "now"
    release: Difference = "auto"
    held: Difference = "auto"
    hold_margin: Annotated[
        str | float,
        text(
            check_margin,
            "Seconds that plans expect nodes to be held longer; auto: 0, or 900 as the program.",
        ),
    ] = "auto"
    tie: Difference = "auto"
    ended: Difference = "auto"
    hit: Difference = "auto"
    chosen: Difference = "auto"
    k3: Difference = "auto"
