# SPDX-License-Identifier: Apache-2.0
"""Files that rebat wrote have no findings; each change of a file has one."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rebat.results.files.batsim_files import JobRecord, JobsFile, read_jobs
from rebat.results.validate.findings import Reference
from rebat.results.validate.validate import validate
from tests.support.random_runs import Written, random_run
from tests.support.tables import table, written

Row = dict[str, str]


@pytest.mark.parametrize("first", range(0, 200, 25))
def test_two_hundred_runs_are_clean(tmp_path: Path, first: int) -> None:
    for seed in range(first, first + 25):
        made = random_run(seed, tmp_path / str(seed))
        table = read_jobs(made.folder)
        assert validate(table, reference(made)) == [], seed
        assert validate(table) == [], seed


def reference(made: Written) -> Reference:
    """Return everything that is known about a run of rebat."""
    return Reference(
        made.workload.n_nodes, made.events, made.workload, resubmits=True,
        six_digits=made.policy.startswith("authors-"),
    )  # fmt: skip


def succeeded(row: Row) -> bool:
    return row["final_state"] == "COMPLETED_SUCCESSFULLY"


def ran_half(row: Row) -> Row:
    start, run = float(row["starting_time"]), float(row["execution_time"]) / 2
    flow = start + run - float(row["submission_time"])
    times = {"finish_time": start + run, "execution_time": run, "turnaround_time": flow}
    cells = times | {"stretch": flow / run}
    return row | {name: f"{value:.6f}" for name, value in cells.items()}


def twice(row: Row) -> Row:
    nodes = row["allocated_resources"]
    return row | {"allocated_resources": f"{nodes} {nodes.replace('-', ' ').split()[-1]}"}


def raised(name: str, by: float) -> Callable[[Row], Row]:
    return lambda row: row | {name: f"{float(row[name]) + by:.6f}"}


# Corruption -> (whether a row is suitable for it, the changed row).
CORRUPTIONS: dict[str, tuple[Callable[[Row], bool], Callable[[Row], Row]]] = {
    "ran half its time": (succeeded, ran_half),
    "killed without a failure": (
        succeeded, lambda row: row | {"final_state": "COMPLETED_KILLED", "success": "0"},
    ),
    "success is 0": (succeeded, lambda row: row | {"success": "0"}),
    "requested_time": (lambda row: "#" not in row["job_id"], raised("requested_time", 0.001)),
    "stretch": (lambda row: row["stretch"] != "", raised("stretch", 0.01)),
    "a node twice": (lambda row: row["allocated_resources"] != "", twice),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(0, 200, 10))
def test_every_corruption_is_found_and_named(tmp_path: Path, seed: int) -> None:
    made = random_run(seed, tmp_path / "run")
    rng = np.random.default_rng(seed)
    with (made.folder / "jobs.csv").open(newline="") as text:
        rows = list(csv.DictReader(text))
    for name, (fits, corrupted) in CORRUPTIONS.items():
        chosen = [index for index, row in enumerate(rows) if fits(row)]
        if chosen:
            at = int(rng.choice(chosen))
            changed = [corrupted(row) if n == at else row for n, row in enumerate(rows)]
            assert found(tmp_path, made, changed, rows[at]["job_id"]), (name, rows[at])


@pytest.mark.parametrize("seed", range(0, 200, 10))
def test_a_deleted_last_resubmission_is_found(tmp_path: Path, seed: int) -> None:
    made = random_run(seed, tmp_path / "run")
    jobs = read_jobs(made.folder)
    killed = {record.job_id for record in jobs.records if record.state == "COMPLETED_KILLED"}
    with (made.folder / "jobs.csv").open(newline="") as text:
        rows = list(csv.DictReader(text))
    for last, before in last_resubmissions(jobs):
        if before in killed:
            left = [row for row in rows if row["job_id"] != last.job_id]
            assert found(tmp_path, made, left, before), last


def last_resubmissions(jobs: JobsFile) -> list[tuple[JobRecord, str]]:
    """Return the last attempt of every job with several, and the id of its previous attempt."""
    by_id = {record.job_id: record for record in jobs.records}
    pairs = []
    for job_id, record in by_id.items():
        base, mark, number = job_id.partition("#")
        if mark and f"{base}#{int(number) + 1}" not in by_id:
            pairs.append((record, f"{base}#{int(number) - 1}" if number != "1" else base))
    return pairs


def found(folder: Path, made: Written, rows: list[Row], job_id: str) -> bool:
    """Whether a finding names this job."""
    findings = validate(table(folder, written(rows)), reference(made))
    named = re.compile(rf"w0!{re.escape(job_id)}(?![\w#])")
    return any(named.search(finding.text) for finding in findings)
