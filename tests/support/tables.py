# SPDX-License-Identifier: Apache-2.0
"""Job tables for the tests: the table of the toy example, and functions that change tables."""

from __future__ import annotations

import csv
import io
from functools import cache
from pathlib import Path

from rebat.models.failures.events import read_events
from rebat.results.files.batsim_csv import jobs_csv
from rebat.results.files.batsim_files import JobsFile, read_jobs
from rebat.workloads.batsim_json import read_workload
from tests.support.scenarios import run

ROOT = Path(__file__).parents[2]
TOY = ROOT / "workloads/toy.json"
TOY_EVENTS = ROOT / "failure_events/toy.events"


@cache
def toy_csv() -> str:
    """Return the jobs.csv of SFSJ on the toy example: a failure, a victim, two resubmissions."""
    jobs = run("sfsj", read_workload(TOY), read_events(TOY_EVENTS)).jobs
    return "".join(f"{line}\n" for line in jobs_csv(jobs))


def edited(text: str, job: str, **cells: str) -> str:
    """Return the table with some cells of one row changed."""
    rows = list(csv.DictReader(io.StringIO(text)))
    assert sum(row["job_id"] == job for row in rows) == 1
    return written([row | cells if row["job_id"] == job else row for row in rows])


def without(text: str, *job_ids: str) -> str:
    """Return the table without the rows of these jobs."""
    rows = csv.DictReader(io.StringIO(text))
    return written([row for row in rows if row["job_id"] not in job_ids])


def only(text: str, *columns: str) -> str:
    """Return the table with only these columns."""
    rows = csv.DictReader(io.StringIO(text))
    return written([{name: row[name] for name in columns} for row in rows])


def written(rows: list[dict[str, str]]) -> str:
    """Return rows as CSV."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def table(folder: Path, text: str, name: str = "jobs.csv") -> JobsFile:
    """Write the table to a file and return what is read from it."""
    path = folder / name
    path.write_text(text)
    return read_jobs(path)
