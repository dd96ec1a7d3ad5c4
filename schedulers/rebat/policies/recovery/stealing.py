"""Node stealing (Algorithm 1 of Du et al. 2024), timing T1: interrupt the victim at once."""

from __future__ import annotations

from collections.abc import Iterable

from rebat.core.attempts import Cause, Priority, Running
from rebat.core.options import Semantics
from rebat.models.checkpoint import remaining_after, since_last_checkpoint
from rebat.policies.base import Failure, Interrupt, View
from rebat.policies.recovery.victims import RELEASE, Criterion, VictimKey


class NodeStealing:
    """When a job fails and no node is free, interrupt a victim and take a node of its.

    Parameters
    ----------
    victim : VictimKey
    criterion : Criterion
    semantics : 'paper' or 'authors'
        Whose release date a resubmission has (see ``victims.RELEASE``).
    """

    def __init__(
        self, victim: VictimKey, criterion: Criterion, semantics: Semantics = "paper"
    ) -> None:
        self._key = victim
        self._criterion = criterion
        self._semantics = semantics

    def recover(self, view: View, failure: Failure) -> Iterable[Interrupt]:
        """One victim at most for each attempt hit; what is hit is left to the session."""
        lost = {running.attempt.id: self._nodes_lost(running, failure) for running in failure.hit}
        free = view.n_free
        spared = set(lost)
        for failed in failure.hit:
            needed = lost[failed.attempt.id]
            if free >= needed:
                free -= needed  # no need for node stealing: a free node replaces the dead one
                continue
            victim = self._victim(view, failed, needed, spared)
            if victim is not None:
                spared.add(victim.attempt.id)
                yield self._interrupt(view, victim)

    def _nodes_lost(self, running: Running, failure: Failure) -> int:
        return sum(node in running.nodes for node in failure.nodes)

    def _victim(self, view: View, failed: Running, needed: int, spared: set[str]) -> Running | None:
        """The victim, or None: if the rule's first choice will not do there is no second."""
        release = RELEASE[self._semantics]
        candidates = [r for r in view.running.values() if r.attempt.id not in spared]
        if not candidates:
            return None
        victim = min(candidates, key=lambda r: self._key(r, release(r.attempt)))
        if victim.attempt.n_nodes < needed or not self._criterion(victim, failed, release):
            return None
        return victim

    def _interrupt(self, view: View, victim: Running) -> Interrupt:
        remaining = remaining_after(
            view.checkpointing(victim.attempt.id),
            view.now_us - victim.start_us,
            since_last_checkpoint,
            self._semantics,
        )
        return Interrupt(victim.attempt.id, Cause.STOLEN, Priority.VICTIM, remaining)
