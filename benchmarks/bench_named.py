# SPDX-License-Identifier: Apache-2.0
"""Run time of Batsched's schedulers, which plan on named nodes, on one core.

    python -m benchmarks.bench_named WORKLOAD [WORKLOAD ...]

A workload is any file that ``rebat run`` accepts.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from rebat.core.jobs import Workload
from rebat.policies.presets import Preset, preset
from rebat.runs.single import simulate
from rebat.workloads.generate import mira_like
from rebat.workloads.load import load_workload

POLICIES = ("batsched-conservative", "batsched-easy", "batsched-fcfs")


def engine_seconds(workload: Workload, policy: Preset, repetitions: int = 3) -> float:
    """Return the shortest wall-clock time of several complete runs, in seconds."""
    spans = []
    for _ in range(repetitions):
        start = time.perf_counter()
        simulate(workload, policy)
        spans.append(time.perf_counter() - start)
    return min(spans)


def main(arguments: list[str] | None = None) -> None:
    """Print a line per workload and scheduler. The default is a generated month of Mira."""
    names = sys.argv[1:] if arguments is None else arguments
    workloads = [load_workload(Path(name)) for name in names]
    for workload in workloads or [mira_like("june-2017", 0)]:
        for name in POLICIES:
            seconds = engine_seconds(workload, preset(name))
            print(f"{workload.name:<28} {name:<24} {seconds:8.2f} s", flush=True)


if __name__ == "__main__":
    main()
