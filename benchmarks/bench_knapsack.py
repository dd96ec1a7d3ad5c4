# SPDX-License-Identifier: Apache-2.0
"""Run time of the choice of the cheapest restarts, on one core.

    python benchmarks/bench_knapsack.py

There are 30 or 300 running jobs with five smaller sizes each, and 4, 16 or 64 nodes are needed.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

from rebat.policies.reactions.restarts import cheapest_restarts

REPETITIONS = 200


def milliseconds(n_jobs: int, need: int) -> float:
    """Return the median time of several instances, without the first run (compilation)."""
    rng = np.random.default_rng(1)
    spans = []
    for _ in range(REPETITIONS + 1):
        freed = np.sort(rng.integers(1, 64, (n_jobs, 5)), axis=1)[:, ::-1].ravel()
        costs = rng.integers(1, 10**10, n_jobs * 5) * freed
        job = np.repeat(np.arange(n_jobs), 5)
        start = time.perf_counter()
        cheapest_restarts(costs, freed, job, need)
        spans.append(time.perf_counter() - start)
    return 1000 * statistics.median(spans[1:])


def main() -> None:
    """Print the table of times."""
    print(f"{'jobs':>6} {'sizes':>6} {'need':>6} {'ms':>9}")
    for n_jobs in (30, 300):
        for need in (4, 16, 64):
            print(f"{n_jobs:>6} {5:>6} {need:>6} {milliseconds(n_jobs, need):>9.3f}")


if __name__ == "__main__":
    main()
