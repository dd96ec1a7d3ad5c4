# SPDX-License-Identifier: Apache-2.0
"""Run time with moldable and malleable jobs and failures, on one core.

python -m benchmarks.bench_flexible [runs] [growth] [dependents]
"""

from __future__ import annotations

import sys
import time
from functools import partial

import numpy as np

from benchmarks.__main__ import best_of
from rebat.kernels.dependents import dependents
from rebat.models.failures.laws import parse_law
from rebat.policies.presets import preset
from rebat.runs.scenario import ScenarioOptions
from rebat.runs.staging import Stage, prepared, staged
from rebat.workloads.flexible_load import FlexibleLoad, flexible_load

POLICIES = (
    "baseline", "sa", "pra", "pwa", "dbes",
    "pra:react=replacement", "pwa:react=replacement", "dbes:react=replacement",
)  # fmt: skip
LAW = "renewal:mtbf=1h"


def stage(jobs: int, arrivals: str, failing: bool) -> Stage:
    """Return the prepared run of ``jobs`` jobs of the paper's mixed workload on its machine."""
    load = 80.0 if arrivals != "zero" else None
    workload = flexible_load(0, FlexibleLoad(jobs=jobs, arrivals=arrivals, load=load))
    law = parse_law(LAW) if failing else None
    options = ScenarioOptions(law=law, checkpoint="perfect", cores_per_node=4 if failing else 1)
    scenario = options.scenario()
    return staged(prepared(workload, scenario), scenario)


def timed(scene: Stage, policy: str, times: int) -> None:
    """Print the best processor time of several runs."""
    best, attempts, span_h = float("inf"), 0, 0.0
    for _ in range(times):
        began = time.process_time()
        result = scene.run(preset(policy))
        best = min(best, time.process_time() - began)
        attempts, span_h = result.summary.attempts, result.summary.makespan_s / 3600
    print(
        f"    {policy:<24} {best:8.2f} s   {attempts:8,} attempts, makespan {span_h:9,.1f} h",
        flush=True,
    )


def runs() -> None:
    """Run the paper's 1,000 jobs."""
    for arrivals in ("zero", "poisson"):
        for failing in (False, True):
            scene = stage(1000, arrivals, failing)
            print(f"1,000 jobs, arrivals {arrivals}, {'failures' if failing else 'no failures'}")
            scene.run(preset("dbes"))  # compiles the kernels
            for policy in POLICIES if failing else POLICIES[:5]:
                timed(scene, policy, 3)


def growth() -> None:
    """Run 1,000, 10,000 and 100,000 jobs at a load of 80 %, with failures."""
    for jobs in (1_000, 10_000, 100_000):
        scene = stage(jobs, "poisson", failing=True)
        print(f"{jobs:,} jobs at a load of 80 %, failures")
        for policy in ("baseline", "dbes", "dbes:react=replacement"):
            timed(scene, policy, 1)


def waiting() -> None:
    """Time the kernel that counts dependent reservations: 2,000 reservations, 60 running jobs."""
    rng = np.random.default_rng(0)
    run_end, run_size = rng.integers(1, 10**6, 60), rng.integers(1, 40, 60)
    start = np.sort(rng.integers(1, 5 * 10**7, 2_000))
    end, size = start + rng.integers(1, 10**6, 2_000), rng.integers(1, 40, 2_000)
    count = partial(dependents, 3, run_end, run_size, start, end, size)
    print(f"dependents of 60 jobs among 2,000 reservations {best_of(20, count) * 1000:8.2f} ms")


BENCHMARKS = {"runs": runs, "growth": growth, "dependents": waiting}


if __name__ == "__main__":
    for name in sys.argv[1:] or ["runs"]:
        BENCHMARKS[name]()
