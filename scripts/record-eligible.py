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

import math
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rebat.records.sacct import EXPORT

OPTIONS = """\
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,bf_resolution=1
PriorityType=priority/multifactor
PriorityWeightAge=1000000
PriorityCalcPeriod=1
"""
"""Lines of slurm.conf. Slurm considers every job each second. The job that has been eligible for
the longest time is first in the queue. Slurm computes the priorities once a minute.
"""

N_NODES = 16
SUBMISSION_S = 900.0
LOAD = 1.0
"""Node time of the jobs, divided by the node time of the machine during the submissions."""

N_BURSTS = 3
"""Parts of the time of submissions. At the beginning of a part, more jobs are submitted."""

KINDS = {"plain": 62, "after": 13, "begin": 11, "held": 10, "array": 4}
"""Weights of the kinds of units. A unit is a job, an array, or a job and two that depend on it."""

SIZES = {1: 50, 2: 25, 4: 16, 8: 7, 12: 2}
USERS = ("u1", "u2", "u3", "u4")


class Submission(NamedTuple):
    """A command sbatch. It depends on the ``after`` submissions before it."""

    time_s: float
    user: str
    nodes: int
    run_s: int
    name: str
    options: tuple[str, ...] = ()
    n_tasks: int = 1
    after: int = 0
    held_s: float = 0.0

    @property
    def work(self) -> int:
        """Node time in seconds."""
        return self.nodes * self.run_s * self.n_tasks


def plan(draw: random.Random) -> list[Submission]:
    """Return submissions in the order of their times."""
    units = list[list[Submission]]()
    while sum(job.work for unit in units for job in unit) < LOAD * N_NODES * SUBMISSION_S:
        units.append(list(unit_of(draw, len(units))))
    return [job for unit in sorted(units, key=lambda unit: unit[0].time_s) for job in unit]


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


def shape(draw: random.Random) -> tuple[int, int]:
    """Return a number of nodes and a run time in seconds."""
    nodes = draw.choices([*SIZES], [*SIZES.values()])[0]
    return nodes, min(max(round(draw.lognormvariate(math.log(16), 0.6)), 5), 75)


def slurm(*command: str) -> str:
    """Run a command of Slurm, and return its output."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"record-eligible: {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout.strip()


def submit(job: Submission, earlier: list[str], draw: random.Random) -> str:
    """Submit a job, and return its id."""
    name, options = job.name, list(job.options)
    if job.after:
        before = earlier[-job.after :]
        name = f"after {' '.join(before)}"
        options.append(f"--dependency={draw.choice(('afterok', 'afterany'))}:{':'.join(before)}")
    limit = math.ceil(job.run_s * draw.uniform(1.2, 4) / 60)
    return slurm(
        "sbatch", "--parsable", "--output=/dev/null", "--chdir=/tmp", f"--uid={job.user}",
        f"--nodes={job.nodes}", f"--time={limit}", f"--job-name={name}", *options,
        "--wrap", f"sleep {job.run_s}",
    )  # fmt: skip


def play(jobs: list[Submission], draw: random.Random) -> None:
    """Submit the jobs at their times, release held jobs, and wait until all jobs have ended."""
    begin_s = time.monotonic()
    ids = list[str]()
    releases = list[tuple[float, str]]()
    while len(ids) < len(jobs) or releases:
        now_s = time.monotonic() - begin_s
        while len(ids) < len(jobs) and jobs[len(ids)].time_s <= now_s:
            job = jobs[len(ids)]
            ids.append(submit(job, ids, draw))
            if job.held_s:
                releases.append((job.time_s + job.held_s, ids[-1]))
        for release in [release for release in releases if release[0] <= now_s]:
            slurm("scontrol", "release", release[1])
            releases.remove(release)
        time.sleep(0.1)
    while slurm("squeue", "--noheader"):
        time.sleep(1)
    time.sleep(10)  # Slurm updates the database some seconds later.


def main() -> None:
    """Print the options of Slurm, or record jobs."""
    if sys.argv[1:] == ["--options"]:
        print(OPTIONS, end="")
        return
    out, draw = Path(sys.argv[1]).resolve(), random.Random(2)
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() - 1))
    play(plan(draw), draw)
    text = EXPORT.replace("2024-01-01", since).replace("jobs.txt", f"'{out}'")
    subprocess.run(["bash", "-c", text], check=True)


if __name__ == "__main__":
    main()
