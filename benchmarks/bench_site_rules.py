# SPDX-License-Identifier: Apache-2.0
"""Run time of the rules of sites on the loop, and how it grows.

    python -m benchmarks.bench_site_rules [compiled|interpreted]

Jobs use 1 to 32 of 128 nodes, with a load of 85 %, and belong to users of ten accounts. In the last
rows, all jobs are submitted at time 0. Each line contains the time of each rule, and its ratio to
the time of ``easy`` on the same jobs.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from rebat.core.jobs import Job, Workload
from rebat.policies.presets import preset
from rebat.runs.single import simulate

N_NODES = 128
POLICIES = {
    "easy": "easy",
    "limits": "easy:limits=user:jobs=8+account:nodes=64",
    "fair share": "easy:order=multifactor:age=10:fairshare=1000",
    "reservation": "easy:reservations=night:0-15:begin=22h:length=8h:every=1d",
    "shared nodes": "easy:partitions=batch:all+debug:0-15:2:max_time=10min",
    "every 5 min": "easy:order=multifactor:age=10:fairshare=1000,order_period=5min",
}
ROWS = [
    *((n_jobs, 50, False) for n_jobs in (10_000, 20_000, 40_000, 80_000)),
    *((20_000, n_users, False) for n_users in (100, 200, 400)),
    *((n_jobs, 50, True) for n_jobs in (2_500, 5_000, 10_000)),
]
"""Numbers of jobs and users, and whether all jobs are queued at the beginning."""


def jobs_of_users(n_jobs: int, n_users: int, queued: bool, seed: int = 0) -> Workload:
    """Return random jobs. The first users submit most of them."""
    rng = np.random.default_rng(seed)
    sizes = 2 ** rng.integers(0, 6, n_jobs)
    runs_s = np.minimum(rng.lognormal(7, 1.2, n_jobs), 86_400).astype(np.int64) + 1
    span_s = float((sizes * runs_s).sum()) / (0.85 * N_NODES)
    submit_s = np.zeros(n_jobs) if queued else np.sort(rng.uniform(0, span_s, n_jobs))
    users = rng.zipf(1.5, n_jobs) % n_users
    jobs = tuple(
        Job(
            str(i), int(sizes[i]), int(submit_s[i] * 1e6), int(runs_s[i]) * 1_500_000,
            f"d{runs_s[i]}", extra={"user": f"u{users[i]}", "account": f"a{users[i] % 10}"},
        )
        for i in range(n_jobs)
    )  # fmt: skip
    delays = {f"d{run_s}": {"type": "delay", "delay": int(run_s)} for run_s in np.unique(runs_s)}
    return Workload("site", N_NODES, jobs, delays)


def seconds(workload: Workload, policy: str, how: str) -> float:
    """Return the least processor time of two runs. The first also prepares the jobs."""
    times = []
    for _ in range(2):
        start = time.process_time()
        simulate(workload, preset(policy), n_nodes=N_NODES, how=how)
        times.append(time.process_time() - start)
    return min(times)


def main(how: str = "compiled") -> None:
    """Print a line per number of jobs and users."""
    for policy in POLICIES.values():
        seconds(jobs_of_users(100, 10, False), policy, how)
    print(f"{'jobs':>7} {'users':>6} {'queued':>6}", *(f"{name:>18}" for name in POLICIES))
    for n_jobs, n_users, queued in ROWS:
        workload = jobs_of_users(n_jobs, n_users, queued)
        times = [seconds(workload, policy, how) for policy in POLICIES.values()]
        cells = (f"{each:9.3f} s ({each / times[0]:4.1f})" for each in times)
        print(f"{n_jobs:7} {n_users:6} {'all' if queued else '':>6}", *cells, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
