# SPDX-License-Identifier: Apache-2.0
"""Random episodes: ``python -m tests.support.random_episodes 1000``.

A random agent runs half of the episodes with each of the two decisions. The invariants of the
session are checked after each message. The finished run is checked like in ``rebat policy check``.
"""

from __future__ import annotations

import sys
import time
from collections import Counter

import numpy as np

from rebat.env import BatchScheduling
from rebat.env.observation import ActionMask, Observation
from rebat.state.ledger import Ledger
from rebat.workloads.generate import synthetic


class RandomAgent:
    """An agent that chooses a random valid action. With equal seeds, its choices are equal."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def __call__(self, observation: Observation, mask: ActionMask) -> int:
        """Return a valid action."""
        return int(self._rng.choice(np.flatnonzero(mask)))


def episodes(decision: str, number: int, seed: int = 0) -> int:
    """Run this number of episodes; return the number of steps.

    A broken invariant raises an error.
    """
    env = BatchScheduling(
        decision, synthetic(seed, 200), window="4h", mtbf="10min", downtime="20min", validate=True
    )
    agent, steps = RandomAgent(seed), 0
    for episode in range(number):
        observation, info = env.reset(seed=seed if episode == 0 else None)
        n_jobs, over = env.n_jobs, False
        ledger = env.ledger
        while not over:
            action = agent(observation, info["action_mask"])
            observation, _, over, _, info = env.step(action)
            steps += 1
        check(ledger, n_jobs)
    return steps


def check(ledger: Ledger, n_jobs: int) -> None:
    """Check that every job ends exactly once, and that no proposal was refused."""
    ends = Counter(
        record.attempt.job_id
        for record in ledger.attempts
        if record.state.startswith("COMPLETED") and record.state != "COMPLETED_KILLED"
    )
    assert len(ends) == n_jobs, f"{n_jobs - len(ends)} jobs did not end"
    assert set(ends.values()) == {1}, "a job ended twice"
    assert not ledger.refusals, ledger.refusals[0]


def main(number: int) -> None:
    """Run random episodes of both decisions; print their number of steps."""
    for decision in ("victim", "queue"):
        start = time.perf_counter()
        steps = episodes(decision, number // 2)
        seconds = time.perf_counter() - start
        print(f"{decision}: {number // 2} episodes, {steps} steps, {seconds:.0f} s, none broken")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
