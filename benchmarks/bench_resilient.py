# SPDX-License-Identifier: Apache-2.0
"""Scenarios per second of the R-LIST and R-SHELF kernels, on one core.

    python benchmarks/bench_resilient.py [jobs ...]

The job sets are drawn like the synthetic sets of the paper (P = 10,000, average failure probability
0.3), by default with 100, 1,000 and 10,000 jobs.
"""

from __future__ import annotations

import sys
import time

from rebat.models import resilient, silent_errors
from rebat.policies.queue_order import ranks

MEAN_PROBABILITY = 0.3
SCENARIOS = {100: 2000, 1000: 100, 10_000: 3}
CASES = [
    *((name, "paper") for name in resilient.HEURISTICS),
    ("R-LIST-1", "easy_head"),
    ("R-LIST-1", "stale"),
    ("R-LIST-Q", "stale"),
    ("R-LIST-3", "paper"),
]


def scenarios_per_second(
    name: str, reservations: str, rule: str, n_jobs: int, repetitions: int = 3
) -> float:
    """Return the best rate of several repetitions, after a run that compiles the kernel."""
    n_procs = silent_errors.SYNTHETIC_PROCS
    times, sizes = silent_errors.synthetic_jobs(1, 0, n_jobs)
    rate = silent_errors.error_rate(times, sizes, MEAN_PROBABILITY)
    count = SCENARIOS.get(n_jobs, max(1, 200_000 // n_jobs))
    failures = silent_errors.draw_failures(times, sizes, rate, range(count), seed=1)
    rank = ranks(rule, times, sizes, n_procs=n_procs)

    def play(jobs: int) -> float:
        start = time.perf_counter()
        resilient.makespans(
            name,
            times[:jobs],
            sizes[:jobs],
            rank[:jobs],
            failures[:, :jobs],
            n_procs=n_procs,
            reservations=reservations,
        )
        return time.perf_counter() - start

    play(min(n_jobs, 10))
    return count / min(play(n_jobs) for _ in range(repetitions))


def main(arguments: list[str] | None = None) -> None:
    """Print the table of rates."""
    counts = [int(argument) for argument in (sys.argv[1:] if arguments is None else arguments)]
    print(f"{'jobs':>6} {'heuristic':<12} {'reservations':<12} {'LPT':>12} {'LA':>12}")
    for n_jobs in counts or SCENARIOS:
        for name, reservations in CASES:
            lpt, la = (
                scenarios_per_second(name, reservations, rule, n_jobs) for rule in ("LPT", "LA")
            )
            print(f"{n_jobs:>6} {name:<12} {reservations:<12} {lpt:>12,.1f} {la:>12,.1f}")


if __name__ == "__main__":
    main()
