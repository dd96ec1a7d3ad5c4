# SPDX-License-Identifier: Apache-2.0
"""Rewards: functions of the totals from the start of an episode.

The reward of a step is the increase of the function since the previous step. Therefore, the rewards
of an episode add up to the value of the function at its end.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from rebat.core.decisions import Reply
from rebat.core.errors import unknown_name
from rebat.core.events import Message
from rebat.core.units import US_PER_S
from rebat.drive.ask import Session
from rebat.results.measures.jobs import losses_us, lost_us
from rebat.results.measures.nodetime import dot

US_PER_H = 3600 * US_PER_S


class Totals(msgspec.Struct):
    """Totals from the start of an episode until now, in microseconds or node-microseconds.

    Attributes
    ----------
    n_nodes : int
        Number of nodes of the machine.
    alive_us : int
        Time that jobs have spent in the system, summed over jobs. At the end of the episode, this
        is the total flow of the jobs.
    alive_node_us : int
        Time that a job has spent in the system, multiplied by the nodes of its attempt and summed
        over jobs.
    queued_us : int
        Time that attempts have spent in the queue, summed over attempts.
    lost_node_us : int
        Work lost to interruptions, multiplied by the nodes of the attempt.
    idle_node_us : int
        Time of nodes on which no attempt runs, including nodes that are down.
    """

    n_nodes: int
    alive_us: int = 0
    alive_node_us: int = 0
    queued_us: int = 0
    lost_node_us: int = 0
    idle_node_us: int = 0


Reward = Callable[[Totals], float]
"""Function of the totals. Its value at the end of an episode is the sum of all rewards."""


def flow(totals: Totals) -> float:
    """Return minus the total flow of all jobs, in hours."""
    return -totals.alive_us / US_PER_H


def weighted_flow(totals: Totals) -> float:
    """Return minus the total flow of jobs, weighted by nodes, in hours of the entire machine."""
    return -totals.alive_node_us / (totals.n_nodes * US_PER_H)


def waiting(totals: Totals) -> float:
    """Return minus the total time of all jobs in the queue, in hours."""
    return -totals.queued_us / US_PER_H


def lost(totals: Totals) -> float:
    """Return minus the node time lost to interruptions, in hours of the entire machine."""
    return -totals.lost_node_us / (totals.n_nodes * US_PER_H)


def utilisation(totals: Totals) -> float:
    """Return minus the time of nodes without an attempt, in hours of the entire machine."""
    return -totals.idle_node_us / (totals.n_nodes * US_PER_H)


REWARDS: dict[str, Reward] = {
    "flow": flow,
    "weighted-flow": weighted_flow,
    "waiting": waiting,
    "lost": lost,
    "utilisation": utilisation,
}
"""Rewards by name."""


def reward_of(reward: str | Reward) -> Reward:
    """Return the reward with this name. A function is returned unchanged.

    Raises
    ------
    InputError
        If the name is unknown.
    """
    if callable(reward):
        return reward
    if reward not in REWARDS:
        raise unknown_name("reward", str(reward), REWARDS)
    return REWARDS[reward]


class Meter:
    """A wrapper of a session that adds up its totals. Call `handle` here, not on the session.

    Parameters
    ----------
    session : Session
    n_nodes : int
        Number of nodes of the machine.
    validate : bool
        Whether to check the session's invariants after each message.
    """

    def __init__(self, session: Session, n_nodes: int, validate: bool = False) -> None:
        self.totals = Totals(n_nodes)
        self._session, self._validate = session, validate
        self._now_us = 0
        self._n_attempts = 0

    def handle(self, message: Message) -> Reply:
        """Add the time since the previous message. Then pass the message to the session."""
        self._pass(message.now_us)
        reply = self._session.handle(message)
        if self._validate:
            self._session.validate()
        return reply

    def _pass(self, now_us: int) -> None:
        elapsed_us, self._now_us = now_us - self._now_us, now_us
        if not elapsed_us:
            return
        totals, view = self.totals, self._session.view
        n_queued = len(view.queue)
        totals.alive_us += elapsed_us * (n_queued + len(view.running) + len(view.waiting))
        totals.queued_us += elapsed_us * n_queued
        busy = sum([running.attempt.n_nodes for running in view.running.values()])
        others = sum([attempt.n_nodes for attempt in view.queue.values()])
        if view.waiting:
            others += sum(waiting.n_held + waiting.n_lost for waiting in view.waiting.values())
        totals.alive_node_us += elapsed_us * (busy + others)
        totals.idle_node_us += elapsed_us * (totals.n_nodes - busy)

    def read(self) -> Totals:
        """Return the totals until now. Losses are included only for attempts that have ended."""
        attempts = self._session.ledger.attempts
        for place in range(self._n_attempts, len(attempts)):
            record = attempts[place]
            self.totals.lost_node_us += lost_us(record) * record.attempt.n_nodes
        self._n_attempts = len(attempts)
        return self.totals

    def settle(self) -> Totals:
        """Return the totals at the end. They include losses that became known later."""
        attempts = self._session.ledger.attempts
        self.totals.lost_node_us = dot(losses_us(attempts), attempts.column("n_nodes"))
        self._n_attempts = len(attempts)
        return self.totals
