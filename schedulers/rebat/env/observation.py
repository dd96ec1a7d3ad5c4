# SPDX-License-Identifier: Apache-2.0
"""Observations of an agent: one row per candidate, followed by the state of machine and queue.

An observation is a float32 array of K x F + C numbers from 0 to 1. `ObservationLayout` names the F
features of a candidate and the C features of the context. All features are shares, or logarithms of
durations and counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log1p

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.contract import View
from rebat.core.attempts import Attempt, Priority, Running
from rebat.core.units import US_PER_S

Observation = npt.NDArray[np.float32]
"""An observation: shape (K * F + C,), values from 0 to 1."""

ActionMask = npt.NDArray[np.int8]
"""A mask of actions: shape (K + 1,), 1 for a valid action. Action K chooses no candidate."""

MINUTE_US = 60 * US_PER_S
LONGEST_US = 30 * 24 * 60 * MINUTE_US
"""Duration that is scaled to 1 (30 days). The scale is log(1 + minutes) / log(1 + 43,200)."""

MOST = 2**16
"""Count that is scaled to 1. The scale is log(1 + n) / log(1 + 65,536)."""

_PER_TIME = 1 / log1p(LONGEST_US / MINUTE_US)
_PER_COUNT = 1 / log1p(MOST)


def scaled_time(us: float) -> float:
    """Return a duration (us) on a logarithmic scale from 0 (0 us) to 1 (30 days or more)."""
    return min(1.0, log1p(max(0.0, us) / MINUTE_US) * _PER_TIME)


def scaled_count(n: float) -> float:
    """Return a count on a logarithmic scale from 0 (count 0) to 1 (65,536 or more)."""
    return min(1.0, log1p(max(0.0, n)) * _PER_COUNT)


class ObservationLayout(msgspec.Struct, frozen=True):
    """Names and definitions of the features of an observation, in order.

    Attributes
    ----------
    candidate : dict
        Features of a candidate. If a row has no candidate, all its features are 0, including
        ``present``.
    context : dict
        Features of the machine, the queue and the failed job.
    """

    candidate: dict[str, str]
    context: dict[str, str]

    def size(self, n_candidates: int) -> int:
        """Return the length of an observation with K candidates."""
        return n_candidates * len(self.candidate) + len(self.context)

    def flat(
        self, rows: Sequence[Sequence[float]], context: Sequence[float], n_candidates: int
    ) -> Observation:
        """Join the features of at most K candidates (``rows``) and of the context in one array."""
        n_features = len(self.candidate)
        observation = np.zeros(self.size(n_candidates), dtype=np.float32)
        if rows:
            observation[: len(rows) * n_features] = np.array(rows, dtype=np.float32).ravel()
        observation[n_candidates * n_features :] = context
        return observation

    def split(self, observation: Observation) -> tuple[Observation, Observation]:
        """Return the candidates, shape (K, F), and the context, shape (C,)."""
        n_features = len(self.candidate)
        at = len(observation) - len(self.context)
        return observation[:at].reshape(-1, n_features), observation[at:]


_MACHINE = {
    "free": "free nodes / nodes of the machine",
    "up": "nodes that are up / nodes of the machine",
    "running": "number of running attempts (logarithmic)",
    "queued": "number of queued attempts (logarithmic)",
}

VICTIM = ObservationLayout(
    candidate={
        "present": "1 for a candidate",
        "valid": "1 if the candidate may be interrupted",
        "size": "nodes / nodes of the machine",
        "relative size": "nodes / nodes of the failed job, at most 1",
        "lost": "work per node that an interruption would destroy (logarithmic time)",
        "lost area": "lost work x nodes / nodes of the machine (logarithmic time)",
        "run": "time since the start (logarithmic)",
        "left": "time until the end of the walltime (logarithmic)",
        "age": "time since the submission of the original job (logarithmic)",
        "rank V1": "position in the order of fewest-nodes (first: 0) / K, at most 1",
        "rank V2": "position in the order of latest-release (first: 0) / K, at most 1",
        "rank lost": "position in the order of least-lost-work (first: 0) / K, at most 1",
        "resubmission": "1 for an attempt of a job that was interrupted before",
    },
    context=_MACHINE
    | {
        "failed size": "nodes of the failed job / nodes of the machine",
        "failed age": "time since the submission of the failed job (logarithmic)",
        "failed lost": "work per node that the failure destroyed (logarithmic time)",
        "failed left": "walltime of the failed job's resubmission (logarithmic)",
        "missing": "number of nodes that the failed job lost (logarithmic count)",
    },
)
"""Layout of the observations for the decision ``victim``."""

QUEUE = ObservationLayout(
    candidate={
        "present": "1 for a candidate",
        "valid": "1 if the attempt fits on the free nodes",
        "size": "nodes / nodes of the machine",
        "relative size": "nodes / free nodes, at most 1",
        "walltime": "walltime (logarithmic)",
        "area": "walltime x nodes / nodes of the machine (logarithmic time)",
        "waited": "time in the queue (logarithmic)",
        "age": "time since the submission of the original job (logarithmic)",
        "raised": "1 if the attempt has a higher priority because it was interrupted",
    },
    context=_MACHINE
    | {
        "next end": "time until a running attempt first reaches its walltime (logarithmic)",
        "started": "number of attempts that the agent started at the current time (logarithmic)",
    },
)
"""Layout of the observations for the decision ``queue``."""

LAYOUTS = {"victim": VICTIM, "queue": QUEUE}
"""For each decision, the layout of its observations."""


def machine_features(view: View, n_free: int, n_queued: int) -> list[float]:
    """Return the features of the machine and the queue."""
    n_nodes = view.n_nodes
    return [
        n_free / n_nodes,
        view.n_up / n_nodes,
        scaled_count(len(view.running)),
        scaled_count(n_queued),
    ]


def victim_row(
    view: View, running: Running, failed_nodes: int, lost_us: int, valid: bool
) -> list[float]:
    """Return the features of a candidate, except its ranks and ``resubmission``."""
    attempt, now_us, n_nodes = running.attempt, view.now_us, view.n_nodes
    return [
        1.0,
        float(valid),
        attempt.n_nodes / n_nodes,
        min(1.0, attempt.n_nodes / failed_nodes),
        scaled_time(lost_us),
        scaled_time(lost_us * attempt.n_nodes / n_nodes),
        scaled_time(now_us - running.start_us),
        scaled_time(running.planned_end_us - now_us),
        scaled_time(now_us - attempt.submit_us),
    ]


def failed_features(view: View, failed: Running, lost_us: int, n_missing: int) -> list[float]:
    """Return the features of the failed job."""
    attempt = failed.attempt
    left_us = view.walltime_after_us(attempt.id, view.after_stop(attempt.id))
    return [
        attempt.n_nodes / view.n_nodes,
        scaled_time(view.now_us - attempt.submit_us),
        scaled_time(lost_us),
        scaled_time(left_us),
        scaled_count(n_missing),
    ]


def queue_row(
    now_us: int, n_nodes: int, n_free: int, attempt: Attempt, duration_us: int
) -> list[float]:
    """Return the features of a queued attempt."""
    return [
        1.0,
        float(attempt.n_nodes <= n_free),
        attempt.n_nodes / n_nodes,
        min(1.0, attempt.n_nodes / max(1, n_free)),
        scaled_time(duration_us),
        scaled_time(duration_us * attempt.n_nodes / n_nodes),
        scaled_time(now_us - attempt.queued_us),
        scaled_time(now_us - attempt.submit_us),
        float(attempt.priority > Priority.REGULAR),
    ]
