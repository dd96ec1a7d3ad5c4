# SPDX-License-Identifier: Apache-2.0
"""Records of a real Slurm with the rules of a site, which `scripts/record-rules.py` wrote."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Iterator
from datetime import UTC
from functools import cache
from pathlib import Path
from typing import NamedTuple

from rebat.core.traits import Traits
from rebat.core.units import US_PER_S, parse_duration, to_us
from rebat.policies.shares import Shares
from rebat.records.slurm_rules import SlurmRules, read_rules
from tests.support.recordings import DATA

CONFIGURATIONS = ("unenforced", "fair", "limits", "maintenance")
RULES = ("config.txt", "associations.txt", "reservations.txt")
N_NODES = 16

Rows = dict[str, dict[str, str]]


def folder_of(name: str) -> Path:
    return DATA / "slurm-rules" / name


@cache
def jobs_of(name: str) -> Rows:
    """Return the rows of sacct, by id."""
    with gzip.open(folder_of(name) / "jobs.txt.gz", "rt", newline="") as file:
        return {row["JobID"]: row for row in csv.DictReader(file, delimiter="\x1f")}


def started(name: str) -> Rows:
    return {job: row for job, row in jobs_of(name).items() if row["Start"].isdecimal()}


@cache
def rules_of(name: str) -> SlurmRules:
    return read_rules([folder_of(name) / file for file in RULES], UTC)


class Priority(NamedTuple):
    """A row of sprio: the priority of a pending job, and its parts."""

    job: str
    user: str
    priority: int
    age: int
    fairshare: int
    size: int
    partition: int


class Sample(NamedTuple):
    """What Slurm states at a time: priorities of pending jobs, and factors of users."""

    time_s: float
    priorities: list[Priority]
    factors: dict[str, float]
    usages: dict[str, int]


@cache
def samples_of(name: str) -> list[Sample]:
    with gzip.open(folder_of(name) / "samples.txt.gz", "rt") as file:
        return [*_samples(file.read().splitlines())]


def _samples(lines: list[str]) -> Iterator[Sample]:
    rows: dict[str, list[list[str]]] = {}
    command, time_s = "", 0.0
    for line in [*lines, "@ 0 end"]:
        if line.startswith("@"):
            if "squeue" in rows:
                yield _sample(time_s, rows)
                rows = {}
            _, at, command = line.split()
            time_s = time_s if rows else float(at)
            rows[command] = []
        elif line:
            rows[command].append([cell.strip() for cell in line.split("|")])


def _sample(time_s: float, rows: dict[str, list[list[str]]]) -> Sample:
    users = [row for row in rows["sshare"] if len(row) > 7 and row[1]]
    return Sample(
        time_s,
        [Priority(row[0], row[1], *map(int, row[2:7])) for row in rows["sprio"]],
        {row[1]: float(row[7]) for row in users},
        {row[1]: int(row[4]) for row in users},
    )


def computed_s(name: str, sample: Sample) -> int | None:
    """Return when Slurm computed the priorities of a sample: the time that the ages of jobs state.

    None if no pending job has an age.
    """
    order = rules_of(name).options["order"].partition(":")[2]
    options = dict(word.split("=") for word in order.split(","))
    weight, longest_s = float(options["age"]), float(options["max_age"])
    low, high = 0.0, math.inf
    for row in sample.priorities:
        if 0 < row.age < weight:
            eligible_s = int(jobs_of(name)[row.job]["Eligible"])
            low = max(low, eligible_s + (row.age - 0.5) / weight * longest_s)
            high = min(high, eligible_s + (row.age + 0.5) / weight * longest_s)
    return math.ceil(low) if math.ceil(low) <= high < math.inf else None


def shares_at(name: str, at_s: float) -> Shares:
    """Return rebat's usage of the recorded jobs up to a time."""
    options = rules_of(name).options
    half_life_us = to_us(parse_duration(options["half_life"]))
    shares = Shares(options["shares"], half_life_us, options.get("fairshare_rule", "tree"))
    changes = [
        (float(row[field]), sign * int(row["NNodes"]), row)
        for row in started(name).values()
        for field, sign in (("Start", 1), ("End", -1))
        if float(row[field]) <= at_s
    ]
    for time_s, n_nodes, row in sorted(changes, key=lambda change: change[:2]):
        shares.hold(traits(row), n_nodes, round(time_s * US_PER_S))
    return shares


def traits(row: dict[str, str]) -> Traits:
    return Traits(user=row["User"], account=row["Account"])
