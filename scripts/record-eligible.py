#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Record jobs that become eligible after their submission, on a real Slurm.

The script needs a Slurm of 16 nodes with accounting, and the users u1 to u4:

    export SLURM_ACCOUNTING=1 SLURM_NODES=16
    export SLURM_OPTIONS=$(scripts/record-eligible.py --options)
    eval "$(scripts/one-machine-slurm.sh up)"
    for user in u1 u2 u3 u4; do useradd --no-create-home $user; done
    scripts/record-eligible.py jobs.txt
    scripts/one-machine-slurm.sh down

About half of the jobs have a dependency, a begin time or a hold, or are tasks of an array with a
limit. The name of a job states why it could not start at first. The script submits jobs for 15
minutes, waits for their ends, and writes the export that `rebat workload import` documents. This
takes about 18 minutes. tests/accounting/test_recorded_eligible.py uses two of these records.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from slurm_load import N_NODES, USERS, Submission, export_jobs, planned, play, shape

OPTIONS = """\
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,bf_resolution=1
PriorityType=priority/multifactor
PriorityWeightAge=1000000
PriorityCalcPeriod=1
"""
"""Lines of slurm.conf. Slurm considers every job each second. The job that has been eligible for
the longest time is first in the queue. Slurm computes the priorities once a minute.
"""

SUBMISSION_S = 900.0
LOAD = 1.0
"""Node time of the jobs, divided by the node time of the machine during the submissions."""

N_BURSTS = 3
"""Parts of the time of submissions. At the beginning of a part, more jobs are submitted."""

KINDS = {"plain": 62, "after": 13, "begin": 11, "held": 10, "array": 4}
"""Weights of the kinds of units. A unit is a job, an array, or a job and two that depend on it."""


def unit_of(draw: random.Random, number: int) -> Iterator[Submission]:
    """Yield the submissions of a unit. The first eight units fill the machine."""
    burst, share = draw.randrange(N_BURSTS), draw.random() ** 1.6
    time_s = 0.0 if number < 8 else SUBMISSION_S * (burst + share) / N_BURSTS
    kind = draw.choices([*KINDS], [*KINDS.values()])[0]
    job = Submission(time_s, draw.choice(USERS), *shape(draw), kind)
    delay_s = draw.randrange(60, 300)
    match kind:
        case "begin":
            yield job._replace(name=f"begin {delay_s}", options=(f"--begin=now+{delay_s}",))
        case "held":
            yield job._replace(name=f"held {delay_s}", options=("--hold",), held_s=delay_s)
        case "array":
            n_tasks, limit = draw.randrange(6, 11), draw.randrange(1, 4)
            options = (f"--array=1-{n_tasks}%{limit}",)
            nodes = min(job.nodes, 4)
            yield job._replace(name=f"array {limit}", options=options, n_tasks=n_tasks, nodes=nodes)
        case "after":
            yield job._replace(name="plain")
            for n_before in (1, draw.choice((1, 2))):
                nodes, run_s = shape(draw)
                yield job._replace(nodes=nodes, run_s=run_s, after=n_before)
        case _:
            yield job


def main() -> None:
    """Print the options of Slurm, or record jobs."""
    if sys.argv[1:] == ["--options"]:
        print(OPTIONS, end="")
        return
    out, draw = Path(sys.argv[1]), random.Random(2)
    since_s = time.time() - 1
    jobs = planned(lambda number: unit_of(draw, number), LOAD * N_NODES * SUBMISSION_S)
    play(jobs, draw)
    export_jobs(out, since_s)


if __name__ == "__main__":
    main()
