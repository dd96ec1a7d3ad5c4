"""Node stealing: Algorithm 1 of Du et al. 2024, all timings, victims and criteria.

A steal whose timing waits for a checkpoint (T2, T3) is pending: the failed job is parked and its
surviving nodes are held until the victim is interrupted, or until the steal is cancelled (section
7.2.3: consecutive failures; a victim that completes first).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from rebat.core.attempts import Cause, Priority, Running
from rebat.core.options import Semantics
from rebat.models.checkpoint import (
    Remaining,
    RemainingRule,
    remaining_after,
    resumed_length_us,
    since_last_checkpoint,
)
from rebat.policies.base import Action, Failure, Interrupt, Resume, View
from rebat.policies.recovery.victims import (
    Candidate,
    Criterion,
    ReleaseOf,
    Steal,
    VictimKey,
    earliest_end,
    original_release,
)


class PendingSteal(msgspec.Struct):
    """A parked job that waits for its victim; ``failures`` counts the nodes it has lost."""

    job_id: str
    victim: Running
    remaining: Remaining
    until_us: int
    failures: int


class NodeStealing:
    """When a job fails and no node is free, interrupt a victim and take a node of its.

    Parameters
    ----------
    victim : VictimKey
        Orders the running attempts; the first is the victim, there is no second choice.
    criterion : Criterion
        Whether to steal from it.
    timing : RemainingRule
        When to interrupt it, and what it keeps.
    release : ReleaseOf
        Release date of an attempt, for the victim rule and the criterion.
    semantics : 'paper' or 'authors'
        What remains of an interrupted attempt where the two differ.
    """

    def __init__(
        self,
        victim: VictimKey,
        criterion: Criterion,
        timing: RemainingRule = since_last_checkpoint,
        release: ReleaseOf = original_release,
        semantics: Semantics = "paper",
    ) -> None:
        self._key = victim
        self._criterion = criterion
        self._timing = timing
        self._semantics: Semantics = semantics
        self._release = release
        self._pending: dict[str, PendingSteal] = {}
        self._cancelled: frozenset[str] = frozenset()

    # ---- a failure

    def recover(self, view: View, failure: Failure) -> Iterable[Action]:
        """Decide on each attempt hit; one victim at most for each."""
        yield from self._hits_on_pending(failure)
        free = view.n_free
        spared = {running.attempt.id for running in failure.hit}
        spared |= {steal.victim.attempt.id for steal in self._pending.values()}
        for failed in failure.hit:
            lost = sum(node in failed.nodes for node in failure.nodes)
            if free >= lost:
                free -= lost  # no need for node stealing: a free node replaces the dead one
            elif failed.attempt.job_id not in self._cancelled:
                yield from self._steal(view, failed, lost, spared)

    def _steal(
        self, view: View, failed: Running, lost: int, spared: set[str]
    ) -> Iterator[Interrupt]:
        """The interrupts of one steal: of the victim now, or of the failed job with a hold."""
        victim = self._victim(view, spared)
        waits = self._timing is not since_last_checkpoint
        if victim is None or victim.attempt.n_nodes < lost:
            return
        if waits and failed.attempt.n_nodes <= lost:
            return  # nothing would be left to hold (section 7.2.1)
        failed_left = self._remaining(view, failed, since_last_checkpoint)
        remaining = self._remaining(view, victim, self._timing)
        if not self._criterion(self._case(view, failed, victim, failed_left, remaining)):
            return
        spared.add(victim.attempt.id)
        if remaining.wait_us <= 0:
            yield Interrupt(victim.attempt.id, Cause.STOLEN, Priority.VICTIM, remaining)
            return
        job_id = failed.attempt.job_id
        until = view.now_us + remaining.wait_us
        self._pending[job_id] = PendingSteal(job_id, victim, remaining, until, lost)
        yield Interrupt(
            failed.attempt.id,
            Cause.NODE_FAILURE,
            Priority.FAILED,
            failed_left,
            hold_us=remaining.wait_us,
        )

    def _victim(self, view: View, spared: set[str]) -> Running | None:
        candidates = [
            self._candidate(view, running)
            for running in view.running.values()
            if running.attempt.id not in spared
        ]
        return min(candidates, key=self._key).running if candidates else None

    def _candidate(self, view: View, running: Running) -> Candidate:
        run_us = view.now_us - running.start_us
        kept = self._remaining(view, running, since_last_checkpoint)
        checkpointing = view.checkpointing(running.attempt.id)
        recovery = checkpointing.first_recovery_us if checkpointing else 0
        lost_us = max(0, run_us - recovery - kept.useful_us)
        return Candidate(running, self._release(running.attempt), lost_us)

    def _remaining(self, view: View, running: Running, rule: RemainingRule) -> Remaining:
        run_us = view.now_us - running.start_us
        checkpointing = view.checkpointing(running.attempt.id)
        return remaining_after(checkpointing, run_us, rule, self._semantics)

    def _case(
        self, view: View, failed: Running, victim: Running, failed_left: Remaining, left: Remaining
    ) -> Steal:
        others = [r for r in view.running.values() if r is not failed]
        return Steal(
            failed=failed,
            victim=victim,
            failed_release_us=self._release(failed.attempt)[0],
            victim_release_us=self._release(victim.attempt)[0],
            kill_us=view.now_us + left.wait_us,
            failed_left_us=self._walltime_left(view, failed, failed_left),
            victim_left_us=self._walltime_left(view, victim, left),
            next_end_us=earliest_end(others),
            next_end_besides_us=earliest_end([r for r in others if r is not victim]),
        )

    def _walltime_left(self, view: View, running: Running, left: Remaining) -> int:
        checkpointing = view.checkpointing(running.attempt.id)
        return resumed_length_us(running.attempt.walltime_us, checkpointing, left)

    # ---- steals that wait for a checkpoint

    def _hits_on_pending(self, failure: Failure) -> Iterator[Resume]:
        """Consecutive failures (section 7.2.3): on the victim, or on held nodes."""
        hit = {running.attempt.id for running in failure.hit}
        cancelled = set()
        for steal in list(self._pending.values()):
            if steal.victim.attempt.id in hit:
                cancelled |= {steal.job_id, steal.victim.attempt.job_id}
                yield self._cancel(steal)
        for job_id, lost, left in failure.held_hit:
            pending = self._pending.get(job_id)
            if pending is None:
                continue
            pending.failures += lost
            if left == 0 or pending.victim.attempt.n_nodes < pending.failures:
                yield self._cancel(pending)  # the victim goes on
        self._cancelled = frozenset(cancelled)

    def _cancel(self, steal: PendingSteal) -> Resume:
        del self._pending[steal.job_id]
        return Resume(steal.job_id)

    def review(self, view: View) -> Iterable[Action]:
        """Interrupt victims whose checkpoint is done; give up on those that completed first."""
        for steal in list(self._pending.values()):
            victim_id = steal.victim.attempt.id
            if victim_id not in view.running:
                yield self._cancel(steal)
            elif steal.until_us <= view.now_us:
                yield Interrupt(victim_id, Cause.STOLEN, Priority.VICTIM, steal.remaining)
                yield self._cancel(steal)
