# SPDX-License-Identifier: Apache-2.0
"""Growth of a run with the number of failures per job: processor time of the compiled loop.

    python -m benchmarks.bench_failures [failures per job ...]

10,000 jobs have 1 to 64 nodes of 1,000, and the same node time A. They have no checkpoints and
restart from the beginning, so a node MTBF of M causes exp(A / M) - 1 failures per job on average.
The arrivals are such that the load is 70 % including the lost work. Each line also contains the
time to read the failures alone, and the ratio of the run's time to the time of the previous line.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from rebat.core.jobs import Workload
from rebat.core.units import US_PER_S
from rebat.drive.simulate import events_of
from rebat.models.failures.law import Law
from rebat.models.failures.renewal import Poisson
from rebat.policies.presets import preset
from rebat.runs.single import RunResult, simulate
from rebat.workloads.build import delay_workload

PER_JOB = 1.0, 2.0, 4.0, 8.0
N_JOBS, N_NODES, LOAD = 10_000, 1_000, 0.7
NODE_S = 64 * 900
"""Node time of each job."""


def jobs_of(per_job: float, n_jobs: int = N_JOBS, seed: int = 0) -> Workload:
    """Return random jobs whose arrivals leave room for their restarts."""
    draw = np.random.default_rng(seed)
    size = 2 ** draw.integers(0, 7, n_jobs)
    run_s = NODE_S // size
    used_s = NODE_S * per_job / np.log1p(per_job)  # with the lost work
    submit_s = np.cumsum(draw.exponential(used_s / (N_NODES * LOAD), n_jobs))
    return delay_workload(
        f"failing-{n_jobs}",
        N_NODES,
        ids=[str(number) for number in range(n_jobs)],
        sizes=size,
        submit_us=submit_s * US_PER_S,
        walltime_us=2 * run_s * US_PER_S,
        run_us=run_s * US_PER_S,
    )


def law_of(per_job: float) -> Law:
    """Return independent exponential failures of the nodes."""
    return Poisson(NODE_S / float(np.log1p(per_job)) / N_NODES, downtime_s=10.0)


def run(per_job: float, seed: int = 1, n_jobs: int = N_JOBS) -> tuple[float, RunResult]:
    """Return the processor time of a run, and its result."""
    workload, events = jobs_of(per_job, n_jobs), law_of(per_job).events(N_NODES, seed)
    start = time.process_time()
    result = simulate(workload, preset("easy"), machine_events=events, how="compiled")
    return time.process_time() - start, result


def reading_s(per_job: float, end_us: int, seed: int = 1) -> float:
    """Return the processor time to read the failures up to a time, as the loop does."""
    events = events_of(law_of(per_job).events(N_NODES, seed))
    start = time.process_time()
    events.columns(end_us, N_NODES)
    return time.process_time() - start


def main(arguments: list[str] | None = None) -> None:
    """Print a line per number of failures per job."""
    counts = [float(text) for text in (sys.argv[1:] if arguments is None else arguments)]
    run(1.0, n_jobs=100)  # loads the machine code
    before_s = 0.0
    for per_job in counts or PER_JOB:
        seconds, result = run(per_job)
        ledger = result.ledger
        hits = len(ledger.attempts) / N_JOBS - 1
        read_s = reading_s(per_job, max(row.end_us for row in ledger.attempts), seed=2)
        ratio = f"  x{seconds / before_s:.1f}" if before_s else ""
        print(
            f"{hits:6.2f} failures per job, {len(ledger.node_events):>9,} events: {seconds:6.2f} s,"
            f" of which reading {read_s:5.2f} s{ratio}",
            flush=True,
        )
        before_s = seconds


if __name__ == "__main__":
    main()
