#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Record jobs that a real Slurm schedules by the rules of a site: shares, limits, maintenance.

The script needs a Slurm of 16 nodes with accounting, and the users u1 to u4:

    export SLURM_ACCOUNTING=1 SLURM_NODES=16
    export SLURM_OPTIONS=$(scripts/record-rules.py fair --options)
    eval "$(scripts/one-machine-slurm.sh up)"
    for user in u1 u2 u3 u4; do useradd --no-create-home $user; done
    scripts/record-rules.py fair FOLDER
    scripts/one-machine-slurm.sh down

Configurations:

- ``fair``: priorities by age, fair share (fair tree) and size. The partition ``main`` has all
  nodes. The partitions ``west`` and ``east`` have one half each, and ``east`` has a higher tier.
- ``unenforced``: as ``fair``, without AccountingStorageEnforce=limits.
- ``limits``: priorities by age, size and partition, limits on the jobs of users and the nodes of
  accounts, arrays with a limit, and dependencies, also on jobs that fail.
- ``maintenance``: priorities by age and fair share (classic), dependencies, and maintenance of half
  of the nodes, announced 5 minutes before. Jobs that then still run continue to their ends.

The script submits jobs for 11 minutes, and waits for their ends. It writes the files that
`rebat workload import` reads, and samples of Slurm's priorities and fair-share factors (`SAMPLES`).
This takes about 15 minutes. tests/accounting/test_recorded_rules.py uses the records.
"""

from __future__ import annotations

import gzip
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from slurm_load import (
    N_NODES,
    USERS,
    Submission,
    export_jobs,
    planned,
    play,
    record,
    shape,
    slurm,
)

from rebat.records.queues import EXPORT_PARTITIONS
from rebat.records.slurm_rules import EXPORT_RULES

COMMON = """\
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,bf_resolution=1
PriorityType=priority/multifactor
PriorityCalcPeriod=1
PriorityMaxAge=10
AccountingStorageEnforce={enforced}
DependencyParameters=kill_invalid_depend
"""
"""Lines of slurm.conf. Slurm considers every job each second, and computes priorities once a
minute. The age of a job counts up to 10 minutes. A job is cancelled if its dependency cannot hold.
"""

SUBMISSION_S = 660.0
LOAD = 1.15
"""Node time of the jobs, divided by the node time of the machine during the submissions."""

DEMANDS = (4, 2, 3, 1)
"""Weights of the numbers of jobs of the users."""

ACCOUNTS = {"phys": ("u1", "u2"), "chem": ("u3", "u4")}

ANNOUNCED_S, MAINTENANCE_S, MAINTENANCE_MIN = 60.0, 360.0, 4
"""Announcement, beginning and length of the maintenance."""

SAMPLE_S = 20.0
SAMPLES = {
    "sprio": ("sprio", "--noheader", "--format=%i|%u|%Y|%A|%F|%J|%P"),
    "sshare": ("sshare", "--noheader", "-P", "-a", "-l"),
    "squeue": ("squeue", "--noheader", "--format=%i|%T|%Q|%u|%a|%P|%D|%r"),
}
"""Commands whose outputs are sampled. A line with ``@``, the Unix time and the name precedes each.
"""

SETTINGS = ("Configuration data", "ClusterName", "AccountingStorageEnforce", "Priority", "SLURM_V")
"""First words of the lines of the configuration that are recorded: no host names and paths."""


class Configuration(NamedTuple):
    """Options of Slurm, the partitions of jobs, and the parts of the load.

    ``accounts`` and ``users`` are options of sacctmgr. ``kinds`` are weights of units.
    """

    seed: int
    options: str
    partitions: dict[str, int]
    accounts: dict[str, str]
    users: str
    kinds: dict[str, int]
    failing: float = 0.0
    enforced: str = "limits"


CONFIGURATIONS = {
    "fair": Configuration(
        seed=11,
        options="""\
PriorityDecayHalfLife=4
PriorityWeightAge=1000
PriorityWeightFairshare=2000
PriorityWeightJobSize=500
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=west Nodes=node[1-8] PriorityTier=1 MaxTime=INFINITE State=UP
PartitionName=east Nodes=node[9-16] PriorityTier=2 MaxTime=INFINITE State=UP
""",
        partitions={"main": 60, "west": 20, "east": 20},
        accounts={"phys": "fairshare=3", "chem": "fairshare=2"},
        users="fairshare=1",
        kinds={"plain": 1},
    ),
    "limits": Configuration(
        seed=12,
        options="""\
PriorityWeightAge=1000
PriorityWeightJobSize=500
PriorityWeightPartition=400
PartitionName=main Nodes=ALL Default=YES PriorityJobFactor=1 MaxTime=INFINITE State=UP
PartitionName=urgent Nodes=node[5-16] PriorityJobFactor=10 MaxTime=INFINITE State=UP
""",
        partitions={"main": 75, "urgent": 25},
        accounts={"phys": "GrpTRES=node=10", "chem": "GrpTRES=node=8"},
        users="MaxJobs=4",
        kinds={"plain": 60, "after": 16, "array": 6},
        failing=0.25,
    ),
    "maintenance": Configuration(
        seed=13,
        options="""\
PriorityDecayHalfLife=4
PriorityFlags=NO_FAIR_TREE
PriorityWeightAge=1000
PriorityWeightFairshare=2000
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
""",
        partitions={"main": 1},
        accounts={"phys": "fairshare=3", "chem": "fairshare=2"},
        users="fairshare=1",
        kinds={"plain": 70, "after": 15},
        failing=0.25,
    ),
}
CONFIGURATIONS["unenforced"] = CONFIGURATIONS["fair"]._replace(enforced="none")


def unit_of(draw: random.Random, config: Configuration, number: int) -> Iterator[Submission]:
    """Yield the submissions of a unit. The first eight units fill the machine."""
    time_s = 0.0 if number < 8 else SUBMISSION_S * draw.random() ** 1.3
    kind = draw.choices([*config.kinds], [*config.kinds.values()])[0]
    partition = draw.choices([*config.partitions], [*config.partitions.values()])[0]
    user = draw.choices(USERS, DEMANDS)[0]
    most = 8 if len(config.partitions) > 1 else N_NODES

    def job() -> Submission:
        nodes, run_s = shape(draw, 20, 0.8, 100)
        options = (f"--partition={partition}",)
        return Submission(time_s, user, min(nodes, most), run_s, "plain", options)

    first = job()
    match kind:
        case "array":
            n_tasks, limit = draw.randrange(5, 9), draw.randrange(1, 4)
            options = (*first.options, f"--array=1-{n_tasks}%{limit}")
            nodes, run_s = min(first.nodes, 4), min(first.run_s, 40)
            yield Submission(time_s, user, nodes, run_s, f"array {limit}", options, n_tasks)
        case "after":
            yield first._replace(fails=draw.random() < config.failing)
            for n_before in (1, draw.choice((1, 2))):
                yield job()._replace(after=n_before)
        case _:
            yield first


def add_accounts(config: Configuration) -> None:
    """Add the accounts and users to Slurm's database."""
    for account, users in ACCOUNTS.items():
        slurm("sacctmgr", "-i", "add", "account", account, config.accounts[account])
        for user in users:
            slurm("sacctmgr", "-i", "add", "user", user, f"account={account}", config.users)


class Watch:
    """Samples the priorities and shares, and announces the maintenance."""

    def __init__(self, announces: bool) -> None:
        self.samples: list[str] = []
        self._next_s = 0.0
        self._announces = announces

    def __call__(self, now_s: float) -> None:
        """Sample if the time has come."""
        if now_s >= self._next_s:
            self._next_s = now_s + SAMPLE_S
            for name, command in SAMPLES.items():
                self.samples.append(f"@ {time.time():.1f} {name}\n{slurm(*command)}\n")
        if self._announces and now_s >= ANNOUNCED_S:
            self._announces = False
            slurm(
                "scontrol", "create", "reservation", "reservationname=maintenance",
                f"starttime=now+{MAINTENANCE_S - ANNOUNCED_S:.0f}seconds",
                f"duration={MAINTENANCE_MIN}", "nodes=node[9-16]", "users=root",
                "flags=maint,ignore_jobs",
            )  # fmt: skip
            self.samples.append(f"@ {time.time():.1f} announced\n")


def main() -> None:
    """Print the options of Slurm, or record jobs."""
    name, out = sys.argv[1], sys.argv[2]
    config = CONFIGURATIONS[name]
    if out == "--options":
        print(COMMON.format(enforced=config.enforced) + config.options, end="")
        return
    folder, draw = Path(out), random.Random(config.seed)
    folder.mkdir(parents=True, exist_ok=True)
    jobs = planned(lambda number: unit_of(draw, config, number), LOAD * N_NODES * SUBMISSION_S)
    add_accounts(config)
    since_s = time.time() - 1
    watch = Watch(name == "maintenance")
    play(jobs, draw, watch)
    jobs_file = folder / "jobs.txt"
    export_jobs(jobs_file, since_s)
    (folder / "jobs.txt.gz").write_bytes(gzip.compress(jobs_file.read_bytes(), mtime=0))
    jobs_file.unlink()
    for command in (*EXPORT_RULES, EXPORT_PARTITIONS):
        file = command.rpartition("> ")[2]
        record(command, since_s, str((folder / file).resolve()), file)
    settings = (folder / "config.txt").read_text().splitlines(keepends=True)
    (folder / "config.txt").write_text("".join(s for s in settings if s.startswith(SETTINGS)))
    (folder / "samples.txt.gz").write_bytes(gzip.compress("".join(watch.samples).encode(), mtime=0))


if __name__ == "__main__":
    main()
