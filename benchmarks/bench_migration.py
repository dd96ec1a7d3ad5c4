# SPDX-License-Identifier: Apache-2.0
"""Run time with nodes of several cores, compaction and other migration, on one core.

python -m benchmarks.bench_migration [days] [growth]
"""

from __future__ import annotations

import sys
import time

from rebat.policies.presets import preset
from rebat.runs.single import simulate
from rebat.workloads.cluster_day import ClusterDay, cluster_day

DAYS = ("cluster", "compaction", "compaction:targets=several", "priorities", "tiers",
        "compaction:react=compaction+sleep")  # fmt: skip


def timed(day: ClusterDay, policy: str, times: int) -> None:
    """Print the best processor time of several runs."""
    workload, best, attempts, moves = cluster_day(0, day), float("inf"), 0, 0
    for _ in range(times):
        began = time.process_time()
        summary = simulate(workload, preset(policy), cores_per_node=day.cores).summary
        best = min(best, time.process_time() - began)
        attempts, moves = summary.attempts, summary.migrations.count
    print(
        f"    {policy:<36} {best:8.3f} s   {len(workload.jobs):7,} jobs, {attempts:8,} attempts, "
        f"{moves:7,} migrations",
        flush=True,
    )


def days() -> None:
    """Run a day of the paper's cluster, 8 nodes of 16 cores."""
    for load in (50, 75, 90):
        print(f"a day at a load of {load} %")
        for policy in DAYS:
            timed(ClusterDay(load=load), policy, 5)


def growth() -> None:
    """Run more nodes with jobs of the same sizes, then the largest machine with larger jobs."""
    for nodes in (8, 64, 512, 4096):
        day = ClusterDay(load=75, nodes=nodes, parallelism=16, length_s=18_000)
        print(f"{nodes:,} nodes of 16 cores, a day at a load of 75 %, jobs of 16 cores")
        for policy in DAYS[:3]:
            timed(day, policy, 1)
    day = ClusterDay(load=75, nodes=4096, parallelism=66, length_s=12_000)
    print("4,096 nodes of 16 cores, jobs of 66 cores")
    for policy in DAYS[:3]:
        timed(day, policy, 1)


if __name__ == "__main__":
    for name in sys.argv[1:] or ["days"]:
        {"days": days, "growth": growth}[name]()
