# SPDX-License-Identifier: Apache-2.0
"""Records of a real Slurm with the rules of a site, which `scripts/record-rules.py` wrote."""

from __future__ import annotations

import csv
import gzip
import json
import math
import random
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rebat.api.workloads import load_workload
from rebat.cli.main import main
from rebat.core.traits import Traits
from rebat.core.units import US_PER_S, parse_duration, to_us
from rebat.models.formula import COLUMNS, formula_of
from rebat.policies.limits import read_limits, why_barred
from rebat.policies.shares import Shares
from rebat.records.queues import read_queues
from rebat.records.slurm_rules import SlurmRules, read_rules
from rebat.runs.scenario import ScenarioOptions
from rebat.studies.calibration import design
from rebat.studies.calibration.calibrated import ComparedConfiguration, verdict_of
from rebat.studies.calibration.design import CalibratedRun
from rebat.studies.calibration.distance import RecordedUse, RecordedWaits, read_waits
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
    """A row of sprio: the priority of a pending job, and its parts. Arrays are left out."""

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
        return [*_samples(file.read().splitlines(), jobs_of(name))]


ANNOUNCED = "announced"


def announced_s(name: str) -> float:
    """Return the time at which the maintenance of a record was announced."""
    with gzip.open(folder_of(name) / "samples.txt.gz", "rt") as file:
        (row,) = (line.split() for line in file if line.strip().endswith(ANNOUNCED))
    return float(row[1])


def _samples(lines: list[str], jobs: Rows) -> Iterator[Sample]:
    rows: dict[str, list[list[str]]] = {}
    command, time_s = "", 0.0
    for line in [*lines, "@ 0 end"]:
        if line.startswith("@"):
            if "squeue" in rows:
                yield _sample(time_s, rows, jobs)
                rows = {}
            _, at, command = line.split()
            if command == ANNOUNCED:
                continue
            time_s = time_s if rows else float(at)
            rows[command] = []
        elif line:
            rows[command].append([cell.strip() for cell in line.split("|")])


def _sample(time_s: float, rows: dict[str, list[list[str]]], jobs: Rows) -> Sample:
    users = [row for row in rows["sshare"] if len(row) > 7 and row[1]]
    return Sample(
        time_s,
        [
            Priority(row[0], row[1], *map(int, row[2:7]))
            for row in rows["sprio"]
            if row[0] in jobs and jobs[row[0]]["Eligible"].isdecimal()
        ],
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


# ---- the order of starts

SLACK_S = 2
"""Slurm's times are whole seconds, and Slurm considers a job once a second."""


class Started(NamedTuple):
    """A recorded job that started."""

    id: str
    user: str
    account: str
    partition: str
    nodes: int
    limit_min: int
    eligible_s: int
    start_s: int
    end_s: int


@cache
def starts_of(name: str) -> list[Started]:
    return [
        Started(
            job, row["User"], row["Account"], row["Partition"],
            *(int(row[key]) for key in ("NNodes", "TimelimitRaw", "Eligible", "Start", "End")),
        )
        for job, row in started(name).items()
    ]  # fmt: skip


@cache
def computations(name: str) -> list[int]:
    """Return the times at which Slurm computed the priorities, once a minute."""
    times = sorted({computed_s(name, sample) or 0 for sample in samples_of(name)} - {0})
    first, last = min(row.start_s for row in starts_of(name)), max(times)
    return [*range(last, first - PERIOD_S, -PERIOD_S)][::-1]


PERIOD_S = 60


def latest_s(name: str, at_s: float) -> int:
    """Return the last time before ``at_s`` at which Slurm computed the priorities."""
    return max((time_s for time_s in computations(name) if time_s <= at_s), default=0)


Value = Callable[[Started, int], float]
"""Function that returns the value of a job in an order at a time. The largest value is first."""


def weights_of(name: str) -> dict[str, float]:
    """Return the weights of partitions, divided by the largest weight."""
    rows = read_queues(folder_of(name) / "partitions.txt")
    most = max(row.get("weight", 1) for row in rows.values())
    return {partition: row.get("weight", 1) / most for partition, row in rows.items()}


def value_of(name: str, order: str) -> Value:
    """Return the value of a formula, with rebat's usage at Slurm's computations."""
    formula, weights = formula_of(order), weights_of(name)

    def value(job: Started, at_s: int) -> float:
        last_s = latest_s(name, at_s)
        table = {
            "age": max(0, last_s - job.eligible_s),
            "size": job.nodes,
            "nodes": N_NODES,
            "partition": weights[job.partition],
            "submitted": job.eligible_s,
        }
        if "fairshare" in formula.columns:
            table["fairshare"] = factors_at(name, last_s)[job.user]
        values = np.array([[table.get(column, 0.0) for column in COLUMNS]])
        return float(formula.values(values)[0])

    return value


@cache
def factors_at(name: str, at_s: int) -> dict[str, float]:
    """Return rebat's fair-share factors of the users."""
    shares = shares_at(name, at_s)
    users = {row["User"]: traits(row) for row in started(name).values()}
    return {user: shares.factor(row, at_s * US_PER_S) for user, row in users.items()}


def usage_at(name: str, at_s: int) -> dict[str, float]:
    """Return rebat's usage of the users, in node-seconds."""
    shares = shares_at(name, at_s)
    users = {row["User"]: traits(row) for row in started(name).values()}
    return {user: shares.usage_s(row, at_s * US_PER_S) for user, row in users.items()}


def ordered_pairs(name: str, value: Value, limits: str = "", busy_s: int = 0) -> tuple[int, int]:
    """Return how many pairs of a started and a waiting job are in an order, and all such pairs.

    The waiting job could have started instead of the other one: it is in the same partition, needs
    no more nodes and no more time, and does not exceed a limit. A job counts for limits until
    ``busy_s`` after its end. Pairs with equal values are left out.
    """
    n_ordered = n_pairs = 0
    for job in starts_of(name):
        at_s = job.start_s
        for other in starts_of(name):
            waits = other.eligible_s <= at_s - SLACK_S and other.start_s > at_s + SLACK_S
            fits = other.nodes <= job.nodes and other.limit_min <= job.limit_min
            if waits and fits and other.partition == job.partition:
                values = value(job, at_s), value(other, at_s)
                if values[0] != values[1] and not is_barred(name, other, job, limits, busy_s):
                    n_pairs += 1
                    n_ordered += values[0] > values[1]
    return n_ordered, n_pairs


def is_barred(name: str, job: Started, other: Started, limits: str, busy_s: int) -> bool:
    """Return whether a job could not start when another one started, because of a limit."""
    rows = read_limits(limits)
    at_s, reasons = other.start_s, []
    for kind in ("user", "account"):
        label = getattr(job, kind)
        if limit := rows.get((kind, label)):
            running = [
                row.nodes
                for row in starts_of(name)
                if getattr(row, kind) == label and row is not other
                and row.start_s <= at_s <= row.end_s + busy_s
            ]  # fmt: skip
            used = len(running), sum(running)
            reasons.append(why_barred(kind, label, limit, used, job.nodes))
    return any(reasons)


# ---- calibration


class Calibrated(NamedTuple):
    """Simulations of a record by policy, as in `rebat calibrate` on all nodes in partitions."""

    recorded: RecordedWaits
    runs: dict[str, CalibratedRun]
    compared: dict[str, ComparedConfiguration]

    def order(self, policy: str, other: CalibratedRun) -> float:
        """Return the share of pairs of jobs that two simulations start in the same order."""
        waits_s = np.array([other.waits_s[job] for job in self.recorded.ids])
        return self.runs[policy].near(self.recorded._replace(wait_s=waits_s)).same_order


def imported(name: str, folder: Path) -> Path:
    """Import a record with its partitions and rules. Return the workload."""
    jobs, records = folder / f"{name}.json", folder_of(name)
    rules = [word for file in RULES for word in ("--rules", str(records / file))]
    main([
        "workload", "import", str(records / "jobs.txt.gz"), "-o", str(jobs),
        "--schedule", str(folder / name), "--partitions", str(records / "partitions.txt"), *rules,
    ])  # fmt: skip
    return jobs


def simulated(jobs: Path, policies: Iterable[str]) -> dict[str, CalibratedRun]:
    workload = load_workload(jobs)
    chosen = design.on_all_nodes(policies, workload, N_NODES)
    runs = design.simulated(workload, ScenarioOptions(), 1, chosen, lambda *_: None)
    return {run.configuration.policy: run for run in runs}


def calibrated(name: str, jobs: Path, policies: Iterable[str]) -> Calibrated:
    recorded = read_waits(jobs.with_suffix(""), load_workload(jobs))
    runs = simulated(jobs, policies)
    ranked = design.nearest_first({run.configuration: run for run in runs.values()}, recorded)
    verdict = verdict_of(ranked, recorded, RecordedUse(), {}, N_NODES)
    return Calibrated(recorded, runs, {row.policy: row for row in verdict.configurations})


def without_dependencies(jobs: Path) -> Path:
    """Remove the dependencies and the limits of arrays from a workload."""
    workload = json.loads(jobs.read_text())
    for job in workload["jobs"]:
        job.pop("dependency", None)
        job.pop("array", None)
    jobs.write_text(json.dumps(workload))
    return jobs


def longer(jobs: Path, seed: int, most_s: float) -> Path:
    """Write a workload whose jobs each run up to ``most_s`` longer, by a random time."""
    workload, draw = json.loads(jobs.read_text()), random.Random(seed)
    for job in workload["jobs"]:
        profile = dict(workload["profiles"][job["profile"]])
        profile["delay"] += draw.uniform(0, most_s)
        job["profile"] = f"longer{job['id']}"
        job["walltime"] += most_s
        workload["profiles"][job["profile"]] = profile
    out = jobs.with_name(f"{jobs.stem}-{seed}.json")
    out.write_text(json.dumps(workload))
    return out
