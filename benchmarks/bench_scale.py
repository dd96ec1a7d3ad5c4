# SPDX-License-Identifier: Apache-2.0
"""Growth of a run with the number of jobs: processor seconds and peak memory of each process.

Jobs have 1 to 128 nodes and run for 10 s to 5 h. The machine has 4,096 nodes, a load of 70 % and an
MTBF of 1 h. The runs use EASY backfilling and Young/Daly checkpoints. A million jobs are about ten
months. For each number of jobs, a separate process reads the file, simulates and writes the
results.

Run: ``python -m benchmarks.bench_scale [JOBS ...]`` (default: 10000 100000 1000000)
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from rebat.core.job_table import Jobs
from rebat.core.jobs import Workload
from rebat.core.table import Texts, distinct
from rebat.core.units import US_PER_S
from rebat.workloads.batsim_json import write_workload

N_NODES, LOAD = 4096, 0.7
OPTIONS = (
    "-p", "easy", "--mtbf", "1h", "--downtime", "1h", "--checkpoint", "young-daly", "--seed", "1",
    "--force",
)  # fmt: skip


def jobs_of(count: int, seed: int = 0) -> Workload:
    """Return random jobs that arrive over time."""
    draw = np.random.default_rng(seed)
    size = 2 ** draw.integers(0, 8, count)
    run_s = np.exp(draw.uniform(np.log(10), np.log(18_000), count)).round().astype(int)
    gap_s = float((size * run_s).mean()) / (N_NODES * LOAD)
    submit_us = (np.cumsum(draw.exponential(gap_s, count)) * 1e6).round().astype(int)
    wall_s = (run_s * draw.uniform(1, 4, count)).round().astype(int)
    rows, codes = distinct(run_s)
    names = [f"d{run}" for run in run_s[rows].tolist()]
    ids = Texts.of(map(str, range(count)))
    plain = np.zeros(count, int)
    jobs = Jobs(ids, [size, submit_us, wall_s * US_PER_S, codes, plain], names, [{}])
    profiles = {f"d{run}": {"type": "delay", "delay": run} for run in set(run_s.tolist())}
    return Workload(f"random-{count}", N_NODES, jobs, profiles)


def main() -> None:
    """Print a row per number of jobs."""
    for count in [int(text) for text in sys.argv[1:]] or [10_000, 100_000, 1_000_000]:
        with tempfile.TemporaryDirectory() as folder:
            file, out = Path(folder) / "jobs.json", Path(folder) / "out"
            write_workload(jobs_of(count), file)
            command = [sys.executable, "-m", "rebat", "run", str(file), *OPTIONS, "--out", str(out)]
            child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(child.pid, 0)
            assert status == 0
        seconds, peak_mb = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        print(f"{count:>10,} jobs: {seconds:8.1f} s of CPU, {peak_mb:8,.0f} MB", flush=True)


if __name__ == "__main__":
    main()
