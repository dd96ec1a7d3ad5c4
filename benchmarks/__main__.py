# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of the main features: ``make bench``, or ``python -m benchmarks [names]``.

Each benchmark only prints its measurements, and tests nothing. Real traces are in the folder that
the environment variable REBAT_TRACES names (default: ../shared/traces). Benchmarks of missing
traces are skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rebat.core.jobs import Workload
from rebat.models.checkpoint import add_young_daly
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.law import generate_events
from rebat.models.failures.renewal import Authors
from rebat.policies.presets import preset
from rebat.runs.single import simulate
from rebat.workloads.generate import mira_like
from rebat.workloads.load import load_workload

ROOT = Path(__file__).parents[1]
TRACES = Path(os.environ.get("REBAT_TRACES", ROOT.parent / "shared" / "traces"))


def best_of(times: int, action: Callable[[], object]) -> float:
    """Return the shortest wall-clock time (s) of several repetitions, after a warm-up run."""
    action()
    spans = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        spans.append(time.perf_counter() - start)
    return min(spans)


def timed(name: str, workload: Workload, policy: str, events: Sequence[MachineEvent] = ()) -> None:
    """Time one simulation."""
    seconds = best_of(2, lambda: simulate(workload, preset(policy), machine_events=events))
    rate = len(workload.jobs) / seconds
    print(f"{name:<52} {seconds:8.2f} s   {rate:10,.0f} jobs/s", flush=True)


def november() -> Workload | None:
    """Return Mira's workload of November 2018 (5,321 jobs), or None if the trace is missing."""
    trace = TRACES / "mira-2018-09_2018-12.swf.gz"
    if not trace.exists():
        print(f"(skipped: no {trace.name} in the folder of traces)")
        return None
    return load_workload(trace, months="2018-11", cap=49_000)


def engine() -> None:
    """Time a month of Mira, without failures and with an MTBF of 1 h."""
    month = november() or mira_like("june-2017", 0)
    events = generate_events(Authors(3600, 3600), 49_152, seed=0)
    longer = add_young_daly(month, n_nodes=49_152, mtbf_s=3600, rounding="ceil")
    for policy in ("baseline", "easy", "greedy"):
        timed(f"{month.name}, {policy}, no failures", month, policy)
    for policy in ("baseline", "sfsj", "easy-sfsj"):
        timed(f"{month.name}, {policy}, MTBF 1 h", longer, policy, events)


def growth() -> None:
    """Measure how the run time grows with the number of jobs, on CEA-Curie."""
    trace = TRACES / "CEA-Curie-2011-2.1-cln.swf.gz"
    if not trace.exists():
        print(f"(skipped: no {trace.name} in the folder of traces)")
        return
    for jobs in (1_000, 10_000, 100_000):
        workload = load_workload(trace, max_jobs=jobs)
        for policy in ("baseline", "easy", "greedy"):
            timed(f"CEA-Curie, {jobs:,} jobs, {policy}", workload, policy)


def process() -> None:
    """Time entire processes: --help, and the default month with two policies."""
    commands = {
        "rebat --help": ["--help"],
        "rebat run (default month, two policies)": [
            "run", str(ROOT / "workloads/mira-like-june-2017.json.gz"), "-p", "baseline",
            "-p", "sfsj", "--mtbf", "1h", "--checkpoint", "young-daly", "--out", "out/bench",
            "--force",
        ],
    }  # fmt: skip
    for name, arguments in commands.items():
        command = [sys.executable, "-m", "rebat", *arguments]
        seconds = best_of(2, lambda c=command: subprocess.run(c, capture_output=True, check=True))
        print(f"{name:<52} {seconds:8.2f} s")


BENCHMARKS = {"engine": engine, "process": process, "growth": growth}


def main(names: Sequence[str]) -> None:
    """Run the benchmarks with these names, or all benchmarks."""
    for name in names or BENCHMARKS:
        print(f"-- {name}: {(BENCHMARKS[name].__doc__ or '').splitlines()[0]}")
        BENCHMARKS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
