# SPDX-License-Identifier: Apache-2.0
"""A load of jobs that the scripts ``record-*.py`` submit to a real Slurm, and its records."""

from __future__ import annotations

import math
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from rebat.records.foreign import EXPORT

N_NODES = 16
USERS = ("u1", "u2", "u3", "u4")
SIZES = {1: 50, 2: 25, 4: 16, 8: 7, 12: 2}
"""Weights of the numbers of nodes."""


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
    fails: bool = False

    @property
    def work(self) -> int:
        """Node time in seconds."""
        return self.nodes * self.run_s * self.n_tasks


def planned(unit_of: Callable[[int], Iterable[Submission]], node_time_s: float) -> list[Submission]:
    """Return submissions with a total node time, in the order of their times.

    ``unit_of`` returns a job, an array, or jobs that depend on each other, by its number.
    """
    units = list[list[Submission]]()
    while sum(job.work for unit in units for job in unit) < node_time_s:
        units.append([*unit_of(len(units))])
    return [job for unit in sorted(units, key=lambda unit: unit[0].time_s) for job in unit]


def shape(
    draw: random.Random, median_s: float = 16, spread: float = 0.6, longest_s: int = 75
) -> tuple[int, int]:
    """Return a number of nodes and a run time in seconds."""
    nodes = draw.choices([*SIZES], [*SIZES.values()])[0]
    return nodes, min(max(round(draw.lognormvariate(math.log(median_s), spread)), 5), longest_s)


def slurm(*command: str) -> str:
    """Run a command of Slurm, and return its output."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{Path(sys.argv[0]).stem}: {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout.strip()


def submit(job: Submission, earlier: Sequence[str], draw: random.Random) -> str:
    """Submit a job, and return its id."""
    name, options = job.name, [*job.options]
    if job.after:
        before = earlier[-job.after :]
        name = f"after {' '.join(before)}"
        options.append(f"--dependency={draw.choice(('afterok', 'afterany'))}:{':'.join(before)}")
    limit = math.ceil(job.run_s * draw.uniform(1.2, 4) / 60)
    return slurm(
        "sbatch", "--parsable", "--output=/dev/null", "--chdir=/tmp", f"--uid={job.user}",
        f"--nodes={job.nodes}", f"--time={limit}", f"--job-name={name}", *options,
        "--wrap", f"sleep {job.run_s}{'; exit 1' if job.fails else ''}",
    )  # fmt: skip


def play(
    jobs: Sequence[Submission],
    draw: random.Random,
    watch: Callable[[float], None] = lambda now_s: None,
) -> None:
    """Submit the jobs at their times, release held jobs, and wait until all jobs have ended.

    ``watch`` is called every 0.1 s at least, with the time since the beginning.
    """
    begin_s = time.monotonic()
    ids = list[str]()
    releases = list[tuple[float, str]]()
    while len(ids) < len(jobs) or releases or slurm("squeue", "--noheader"):
        now_s = time.monotonic() - begin_s
        while len(ids) < len(jobs) and jobs[len(ids)].time_s <= now_s:
            job = jobs[len(ids)]
            ids.append(submit(job, ids, draw))
            if job.held_s:
                releases.append((job.time_s + job.held_s, ids[-1]))
        for release in [release for release in releases if release[0] <= now_s]:
            slurm("scontrol", "release", release[1])
            releases.remove(release)
        watch(now_s)
        time.sleep(0.1 if len(ids) < len(jobs) or releases else 1)
    time.sleep(10)  # Slurm updates the database some seconds later.


def record(command: str, since_s: float, out: str, default: str) -> None:
    """Run a documented command that writes the records since a time, to another file."""
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(since_s))
    text = command.replace("2024-01-01", since).replace(f"> {default}", f"> '{out}'")
    subprocess.run(["bash", "-c", text], check=True)


def export_jobs(out: Path, since_s: float) -> None:
    """Write the records of the jobs since a time."""
    record(EXPORT, since_s, str(out.resolve()), "jobs.txt")
