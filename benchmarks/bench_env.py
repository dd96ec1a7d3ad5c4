# SPDX-License-Identifier: Apache-2.0
"""Steps per second of the environment: ``python -m benchmarks.bench_env [SECONDS]``.

For each decision, an agent plays for this number of seconds (default: 10) in one process, then in
two processes with AsyncVectorEnv. The agent chooses the first valid action.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import Any

import gymnasium

from rebat.env import BatchScheduling
from rebat.workloads.generate import synthetic

SETTINGS: dict[str, dict[str, Any]] = {
    "queue": {"decision": "queue", "window": "6h", "mtbf": "1h"},
    "victim": {"decision": "victim", "window": "6h", "mtbf": "10min", "downtime": "10min"},
    "victim, list scheduling": {
        "decision": "victim", "window": "6h", "mtbf": "10min", "downtime": "10min",
        "base": "greedy-sfsj",
    },
}  # fmt: skip
"""Settings of the environment by name, on the synthetic workload for 128 nodes."""


def make(settings: dict[str, Any]) -> BatchScheduling:
    """Return an environment on 1,000 jobs."""
    return BatchScheduling(workload=synthetic(0), **settings)


def alone(settings: dict[str, Any], seconds: float) -> tuple[float, float]:
    """Return the steps and the episodes per second in one process."""
    env = make(settings)
    _, info = env.reset(seed=0)
    steps = episodes = 0
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        _, _, over, _, info = env.step(int(info["action_mask"].argmax()))
        steps += 1
        if over:
            episodes += 1
            _, info = env.reset()
    spent = time.perf_counter() - start
    return steps / spent, episodes / spent


def together(settings: dict[str, Any], seconds: float, processes: int = 2) -> float:
    """Return the steps per second in several processes. Resets do not count as steps."""
    env = gymnasium.vector.AsyncVectorEnv([partial(make, settings)] * processes)
    _, info = env.reset(seed=0)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        _, _, over, _, info = env.step(info["action_mask"].argmax(axis=1))
        steps += processes - int(over.sum())
    spent = time.perf_counter() - start
    env.close()
    return steps / spent


def main(seconds: float) -> None:
    """Measure the steps per second for each decision."""
    for name, settings in SETTINGS.items():
        alone(settings, 1)  # compile the kernels
        rate, episodes = alone(settings, seconds)
        print(
            f"{name:<28} 1 process    {rate:8,.0f} steps/s   {episodes:6.1f} episodes/s", flush=True
        )
        print(f"{name:<28} 2 processes  {together(settings, seconds):8,.0f} steps/s", flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10)
