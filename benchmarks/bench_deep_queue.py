# SPDX-License-Identifier: Apache-2.0
"""Run time with a long queue, on one core: EASY and conservative backfilling.

    python -m benchmarks.bench_deep_queue [jobs ...]

All jobs are submitted at time 0 to 1,000 nodes. Sizes are uniform up to 200 nodes, and run times
are uniform up to two hours. Walltimes are 1.1 to 3 times the run times. Therefore, every end of a
job moves nearly all reservations of conservative backfilling. Each line also contains the ratio of
its time to the time with the previous number of jobs.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from rebat.core.jobs import Workload
from rebat.core.units import US_PER_S
from rebat.policies.presets import preset
from rebat.runs.single import simulate
from rebat.workloads.build import delay_workload

JOBS = {
    "easy": (25_000, 50_000, 100_000, 200_000),
    "baseline": (1_250, 2_500, 5_000, 10_000),
    "baseline:maintenance=rebuild": (1_250, 2_500, 5_000, 10_000),
}
"""Policies, and the numbers of jobs."""
N_NODES = 1_000


def deep_queue(n_jobs: int, seed: int = 0) -> Workload:
    """Return random jobs that are all submitted at time 0."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, N_NODES // 5 + 1, n_jobs)
    run_s = rng.integers(60, 7200, n_jobs)
    walltime_s = np.ceil(run_s * rng.uniform(1.1, 3.0, n_jobs)).astype(np.int64)
    return delay_workload(
        f"deep-queue-{n_jobs}",
        N_NODES,
        ids=[str(number) for number in range(n_jobs)],
        sizes=size,
        submit_us=np.zeros(n_jobs),
        walltime_us=walltime_s * US_PER_S,
        run_us=run_s * US_PER_S,
    )


def seconds(n_jobs: int, policy: str) -> float:
    """Return the processor time of one complete run. The kernels must already be compiled."""
    workload, scheduler = deep_queue(n_jobs), preset(policy)
    start = time.process_time()
    simulate(workload, scheduler)
    return time.process_time() - start


def main(arguments: list[str] | None = None) -> None:
    """Print a line per policy and number of jobs."""
    counts = [int(argument) for argument in (sys.argv[1:] if arguments is None else arguments)]
    for policy, numbers in JOBS.items():
        seconds(300, policy)
        before = 0.0
        for n_jobs in counts or numbers:
            spent = seconds(n_jobs, policy)
            growth = f"   {spent / before:5.1f} times the last" if before else ""
            print(f"{policy:<30} {n_jobs:>6} jobs {spent:8.2f} s{growth}", flush=True)
            before = spent


if __name__ == "__main__":
    main()
