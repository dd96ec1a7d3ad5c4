# SPDX-License-Identifier: Apache-2.0
"""A policy in which an agent chooses the next queued attempt, or the attempt to interrupt.

An agent is a function of an observation and an action mask. It returns an action: the row of a
candidate, or K for no candidate. The same class of policies is used in the environment and as a
policy in other runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from numbers import Integral
from typing import Any

import numpy as np

from rebat.contract import Changes, News, Policy, Proposal, Reject, Start, View, When
from rebat.core.attempts import Attempt, Running
from rebat.core.errors import InputError, short, unknown_name
from rebat.core.options import SessionOptions
from rebat.core.units import FOREVER_US
from rebat.drive.by_rules import AskedQueue
from rebat.env.observation import (
    QUEUE,
    VICTIM,
    ActionMask,
    Observation,
    failed_features,
    machine_features,
    queue_row,
    scaled_count,
    scaled_time,
    victim_row,
)
from rebat.policies.composition import Scheduler
from rebat.policies.context import Context
from rebat.policies.placement.choosers import Mask
from rebat.policies.planning.by_rules import RulePlanning
from rebat.policies.point import Point
from rebat.policies.presets import preset
from rebat.policies.queue_order import planned_us
from rebat.policies.reactions.stealing import NodeStealing, StealingOptions
from rebat.policies.reactions.victims import VICTIMS, Candidate, earliest_end

Agent = Callable[[Observation, ActionMask], int]
"""Function of an observation (shape (K * F + C,)) and a mask (shape (K + 1,)) to an action."""

K = 16
"""Default number of candidates."""

BASES = {"victim": "sfsj", "queue": "greedy"}
"""Default scheduler for each decision. The agent replaces one of its rules."""

RANKS = ("fewest-nodes", "latest-release", "least-lost-work")
"""Rules that rank victims. An agent observes the rank of each candidate under each rule."""


def checked(action: Any, mask: ActionMask) -> int:
    """Return an agent's action, or raise ValueError if the mask excludes the action."""
    number = int(action)
    if number != action or not 0 <= number < len(mask) or not mask[number]:
        valid = ", ".join(map(str, np.flatnonzero(mask).tolist()))
        raise ValueError(f"the agent returned action {action!r} (expected one of: {valid})")
    return number


class AgentStealing(NodeStealing):
    """Node stealing with a victim that an agent chooses.

    The candidates are the K running attempts that the rules in `RANKS` rank highest. They are
    sorted by the first of these rules. An action is valid if the failed job would fit, and if the
    criterion of the scheduler accepts the victim. If there is no valid candidate, the agent is not
    called.
    """

    def __init__(
        self, options: StealingOptions, context: Context, agent: Agent, n_candidates: int
    ) -> None:
        super().__init__(options, context)
        self._agent, self._n_candidates = agent, n_candidates

    def _victim(self, view: View, failed: Running, nodes: Mask, spared: set[str]) -> Running | None:
        """Return the victim that the agent chooses, or None if it chooses not to steal."""
        if self._timing != When.NOW and not nodes.any():
            return None  # the failed job holds no node
        candidates = [
            self._candidate(view, running)
            for running in view.running.values()
            if running.attempt.id not in spared
        ]
        rows, ranks = self._shown(candidates)
        valid = [self._valid(view, failed, nodes, row.running) for row in rows]
        if not any(valid):
            return None
        mask = np.zeros(self._n_candidates + 1, dtype=np.int8)
        mask[: len(rows)] = valid
        mask[-1] = 1
        observation = self._observation(view, failed, nodes, rows, ranks, valid)
        action = checked(self._agent(observation, mask), mask)
        return rows[action].running if action < len(rows) else None

    def _shown(self, candidates: list[Candidate]) -> tuple[list[Candidate], list[list[float]]]:
        """Return the candidates for the agent, and their ranks divided by K (at most 1)."""
        n, k = len(candidates), self._n_candidates
        orders = [
            sorted(range(n), key=[VICTIMS[rule](c) for c in candidates].__getitem__)
            for rule in RANKS
        ]
        shown = orders[0]
        if n > k:
            in_turn = dict.fromkeys(at for firsts in zip(*orders, strict=True) for at in firsts)
            chosen = set(list(in_turn)[:k])
            shown = [at for at in orders[0] if at in chosen]
        ranks = [[0.0] * len(RANKS) for _ in range(n)]
        for column, order in enumerate(orders):
            for rank, at in enumerate(order):
                ranks[at][column] = min(1.0, rank / k)
        return [candidates[at] for at in shown], [ranks[at] for at in shown]

    def _valid(self, view: View, failed: Running, nodes: Mask, victim: Running) -> bool:
        """Return whether the failed job would fit and the criterion accepts the victim."""
        left = view.after_stop(victim.attempt.id, self._timing)
        return self._accepted(view, failed, victim, left) and self._fits(
            view, failed, nodes, victim
        )

    def _observation(
        self,
        view: View,
        failed: Running,
        nodes: Mask,
        shown: list[Candidate],
        ranks: list[list[float]],
        valid: list[bool],
    ) -> Observation:
        n_failed = failed.attempt.n_nodes
        rows = [
            [
                *victim_row(view, row.running, n_failed, row.lost_us, fits),
                *of_row,
                float(row.running.attempt.number > 0),
            ]
            for row, of_row, fits in zip(shown, ranks, valid, strict=True)
        ]
        missing = max(0, n_failed - int(np.count_nonzero(nodes)))
        context = machine_features(view, view.n_free, len(view.queue))
        context += failed_features(view, failed, self._candidate(view, failed).lost_us, missing)
        return VICTIM.flat(rows, context, self._n_candidates)


class AgentQueue:
    """List scheduling without reservations, in which an agent chooses the next attempt.

    The candidates are the first K attempts of the queue. The agent is called until it chooses no
    candidate, or until no candidate fits. If no attempt runs, it must choose a candidate.
    """

    def __init__(self, context: Context, agent: Agent, n_candidates: int) -> None:
        self._limit, self._margin_us = context.limit_on, context.margin_us
        self._agent, self._n_candidates = agent, n_candidates

    def __call__(self, view: View, p: int, queue: AskedQueue) -> list[Proposal]:
        """Return the attempts to start now. Reject jobs larger than the machine."""
        return [*self._decide(view, queue)]

    def _decide(self, view: View, queue: AskedQueue) -> Iterator[Proposal]:
        for attempt in queue.entered:
            if reason := self._limit(view.n_nodes).exceeded(attempt.n_nodes):
                yield Reject(attempt.id, reason)
            else:
                queue.enter(attempt)
        n_queued, n_free = len(queue), view.n_free
        waiting = map(queue.attempt, range(n_queued))
        shown = [*islice(waiting, self._n_candidates)]
        idle = not (view.running or view.waiting)
        n_started = 0
        while True:
            mask = np.zeros(self._n_candidates + 1, dtype=np.int8)
            mask[: len(shown)] = [attempt.n_nodes <= n_free for attempt in shown]
            if not mask.any():
                return
            mask[-1] = not idle or n_started > 0
            observation = self._observation(view, shown, n_free, n_queued - n_started, n_started)
            action = checked(self._agent(observation, mask), mask)
            if action == self._n_candidates:
                return
            attempt = shown.pop(action)
            shown += islice(waiting, 1)
            n_free -= attempt.n_nodes
            n_started += 1
            yield Start(attempt.id)

    def _observation(
        self, view: View, shown: list[Attempt], n_free: int, n_queued: int, n_started: int
    ) -> Observation:
        now_us, n_nodes = view.now_us, view.n_nodes
        rows = [
            queue_row(
                now_us, n_nodes, n_free, attempt, planned_us(attempt.walltime_us, self._margin_us)
            )
            for attempt in shown
        ]
        end_us = earliest_end(list(view.running.values()))
        context = machine_features(view, n_free, n_queued)
        context += [
            scaled_time(end_us - now_us) if end_us < FOREVER_US else 1.0,
            scaled_count(n_started),
        ]
        return QUEUE.flat(rows, context, self._n_candidates)


class AgentPolicy(Policy):
    """A scheduler in which an agent makes one kind of decision.

    To run an agent like any other policy, derive a class from this class and set its attributes.
    Arguments of the constructor have priority over the attributes and the method `agent`.

    Attributes
    ----------
    decision : {'victim', 'queue'}
        The agent chooses the job to interrupt for a failed job, or the next queued attempt.
    base : str
        The scheduler that makes all other decisions. If empty, the scheduler in `BASES` is used.
        With 'victim', it needs react=stealing. With 'queue', its planning is replaced.
    candidates : int
        Number of candidates in an observation (K).
    """

    decision: str = "victim"
    base: str = ""
    candidates: int = K

    def __init__(
        self, agent: Agent | None = None, *, decision: str = "", base: str = "", candidates: int = 0
    ) -> None:
        self.decision, self.base = decision or self.decision, base or self.base
        self.candidates = candidates or self.candidates
        point = base_of(self.decision, self.base)
        if point.session != SessionOptions():
            expected = "a base with the default semantics and without stages of recovery"
            raise InputError("has other semantics, or stages of recovery", "base", expected)
        self._scheduler = agent_scheduler(
            point, self.decision, agent or self.agent, self.candidates
        )

    def agent(self, observation: Observation, mask: ActionMask) -> int:
        """Return the action for an observation (see `Agent`)."""
        raise NotImplementedError

    def react(self, view: View, news: News) -> Iterable[Proposal]:
        """Return the proposals after failures. The agent may choose the victims."""
        return self._scheduler.react(view, news)

    def plan(self, view: View, changes: Changes) -> Iterable[Proposal]:
        """Return the attempts to start. The agent may choose them."""
        return self._scheduler.plan(view, changes)


def base_of(decision: str, base: str = "") -> Point:
    """Return the scheduler that makes all other decisions.

    Raises
    ------
    InputError
        If the decision is unknown, or if the agent cannot make it in this scheduler.
    """
    if decision not in BASES:
        raise unknown_name("decision", decision, BASES)
    point = preset(base or BASES[decision]).point
    kinds = [type(reaction) for reaction in point.reactions]
    if decision == "victim" and StealingOptions not in kinds:
        raise InputError(f"{base!r} steals no nodes", "base", "a policy with react=stealing")
    names = point.planning.name, point.placement.name
    if decision == "queue" and names != ("list", "any"):
        raise InputError(
            f"{base!r} has another planning or placement", "base", "planning=list, placement=any"
        )
    if decision == "queue" and (point.parted or point.common.limits):
        expected = "an agent that chooses victims, or a base without partitions and limits"
        raise InputError(f"{base!r} has partitions or limits", "base", expected)
    if point.own_sources:
        raise InputError(f"{base!r} has user-defined rules", "base", "the names of rules")
    return point


def check_candidates(n_candidates: Any) -> None:
    """Raise InputError if the number of candidates is less than the number of rules in `RANKS`."""
    whole = isinstance(n_candidates, Integral) and not isinstance(n_candidates, bool)
    if not whole or n_candidates < len(RANKS):
        expected = f"at least {len(RANKS)}" if whole else f"a whole number of at least {len(RANKS)}"
        raise InputError(f"is {short(n_candidates)}", "candidates", expected)


def agent_scheduler(point: Point, decision: str, agent: Agent, n_candidates: int) -> Scheduler:
    """Return the scheduler in which an agent replaces one of the rules.

    Raises
    ------
    InputError
        If the number of candidates is invalid.
    """
    check_candidates(n_candidates)
    context = point.context()
    chooses = decision == "victim"
    reactions = [
        AgentStealing(reaction, context, agent, n_candidates)
        if chooses and isinstance(reaction, StealingOptions)
        else reaction.make(context)
        for reaction in point.reactions
    ]
    decide = None if chooses else AgentQueue(context, agent, n_candidates)
    planning = RulePlanning(point, context.placement, decide=decide)
    return Scheduler(planning, reactions, point.duties())
