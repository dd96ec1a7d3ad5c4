# SPDX-License-Identifier: Apache-2.0
"""Run time of the loop on machines of different sizes: compiled, with its records, on one core.

    python -m benchmarks.bench_nodes [nodes ...]

20,000 jobs use 1 to 32 parts of 1,024 of the machine, for up to two hours. The load is 85 %.
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

NODES = (8_192, 16_384, 32_768, 65_536)
POLICIES = ("easy", "baseline", "easy:placement=named")


def jobs_on(n_nodes: int, n_jobs: int = 20_000, seed: int = 0) -> Workload:
    """Return random jobs that arrive over time, whose sizes are parts of the machine."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 33, n_jobs) * n_nodes // 1024
    run_s = rng.integers(60, 7200, n_jobs)
    walltime_s = np.ceil(run_s * rng.uniform(1.1, 3.0, n_jobs)).astype(np.int64)
    span_s = float((size * run_s).sum()) / (0.85 * n_nodes)
    return delay_workload(
        f"nodes-{n_nodes}",
        n_nodes,
        ids=[str(number) for number in range(n_jobs)],
        sizes=size,
        submit_us=(np.sort(rng.uniform(0, span_s, n_jobs)) * US_PER_S).astype(np.int64),
        walltime_us=walltime_s * US_PER_S,
        run_us=run_s * US_PER_S,
    )


def seconds(n_nodes: int, policy: str) -> float:
    """Return the least processor time of two runs. The first also prepares the jobs."""
    workload, times = jobs_on(n_nodes), []
    for _ in range(2):
        start = time.process_time()
        simulate(workload, preset(policy), n_nodes=n_nodes, how="compiled")
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Print a line per policy and number of nodes."""
    for policy in POLICIES:
        for n_nodes in [int(text) for text in sys.argv[1:]] or NODES:
            spent = seconds(n_nodes, policy)
            print(f"{policy:<22} {n_nodes:>7,} nodes {spent:8.3f} s", flush=True)


if __name__ == "__main__":
    main()
