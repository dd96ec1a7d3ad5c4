# SPDX-License-Identifier: Apache-2.0
"""Two records of Slurm clusters whose jobs became eligible after their submission.

`scripts/record-eligible.py` wrote each record in about 17 minutes. Both clusters had 16 nodes and
received the same submissions. Slurm used its backfilling. The records differ in the order of the
queue:

- ``multifactor``: by the time since a job was eligible. Slurm computed this order once a minute.
- ``basic``: by the submission. Slurm puts a job at the end of the queue when its hold is released.

The name of a job states why it could not start at first:

- ``after 5 6``: a dependency on the jobs 5 and 6,
- ``begin 120``: the option ``--begin=now+120``,
- ``held 90``: a hold by the user, released 90 s after the submission,
- ``array 2``: a task of an array of which at most two tasks run at the same time,
- ``plain``: the job could start at its submission.
"""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from rebat.api.workloads import load_workload
from rebat.cli.main import main
from rebat.core.jobs import Workload
from rebat.runs.scenario import ScenarioOptions
from rebat.studies.calibration import design
from rebat.studies.calibration.calibrated import ComparedConfiguration, verdict_of
from rebat.studies.calibration.design import CalibratedRun, Configuration
from rebat.studies.calibration.distance import RecordedUse, RecordedWaits, read_waits
from tests.support.importing import import_accounting
from tests.support.pages import ROOT
from tests.support.recordings import DATA

RECORDS = ("multifactor", "basic")
SUBMISSIONS = ("eligible", "submitted")
POLICIES = {
    "baseline": "conservative backfilling",
    "easy": "EASY",
    "batsched-fcfs": "strict queue order",
}
US = 1_000_000
N_NODES = 16
N_JOBS = 339
N_THROTTLED = {"multifactor": 70, "basic": 63}
"""Number of tasks that the limit of their array delayed."""

SLACK_S = 2
"""Slurm's times are whole seconds, and Slurm considers a job once a second."""

Record = dict[str, dict[str, str]]


def path_of(name: str) -> Path:
    return DATA / "slurm-eligible" / f"{name}.txt.gz"


def read(name: str) -> Record:
    with gzip.open(path_of(name), "rt", newline="") as file:
        return {row["JobID"]: row for row in csv.DictReader(file, delimiter="\x1f")}


@pytest.fixture(params=RECORDS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def kind(row: dict[str, str]) -> str:
    return row["JobName"].split()[0]


def numbers(row: dict[str, str]) -> list[int]:
    return [int(text) for text in row["JobName"].split()[1:]]


def delay_s(row: dict[str, str]) -> int:
    return int(row["Eligible"]) - int(row["Submit"])


def ends_of(rows: Record, number: int) -> list[int]:
    """Return the end of a job, or the ends of all tasks of an array."""
    return [int(row["End"]) for job, row in rows.items() if job.split("_")[0] == str(number)]


# ---- the record


def test_numbers_of_jobs(name: str) -> None:
    rows = read(name).values()
    assert Counter(map(kind, rows)) == {
        "plain": 162, "array": 92, "after": 46, "begin": 23, "held": 16,
    }  # fmt: skip
    later = Counter(kind(row) for row in rows if delay_s(row) > 1)
    assert later == {"array": N_THROTTLED[name], "after": 46, "begin": 23, "held": 16}
    assert {row["State"] for row in rows} == {"COMPLETED"}
    assert {row["User"] for row in rows} == {"u1", "u2", "u3", "u4"}
    runs_s = [int(row["ElapsedRaw"]) for row in rows]
    assert (min(runs_s), max(runs_s)) == (5, 72)


def test_a_job_is_eligible_when_its_dependencies_have_ended(name: str) -> None:
    rows = read(name)
    for row in rows.values():
        if kind(row) == "after":
            end_s = max(end for number in numbers(row) for end in ends_of(rows, number))
            assert 0 <= int(row["Eligible"]) - end_s <= SLACK_S, row


def test_a_job_is_eligible_at_its_begin_time_or_at_the_end_of_its_hold(name: str) -> None:
    for row in read(name).values():
        if kind(row) in ("begin", "held"):
            assert abs(delay_s(row) - numbers(row)[0]) <= SLACK_S, row


def test_a_task_is_eligible_when_fewer_tasks_of_its_array_run_than_the_limit(name: str) -> None:
    rows = read(name)
    for job, row in rows.items():
        if kind(row) == "array":
            array, (limit,) = job.split("_")[0], numbers(row)
            others = [rows[task] for task in rows if task.split("_")[0] == array and task != job]
            start_s, eligible_s = int(row["Start"]), int(row["Eligible"])
            running = [r for r in others if int(r["Start"]) < start_s < int(r["End"])]
            assert len(running) < limit
            if delay_s(row) > 1:
                assert min(abs(eligible_s - int(r["End"])) for r in others) <= SLACK_S, row


def test_other_jobs_are_eligible_at_their_submission(name: str) -> None:
    assert {delay_s(row) for row in read(name).values() if kind(row) == "plain"} == {0}


# ---- the import


def test_the_import_uses_the_eligible_time(name: str) -> None:
    rows = read(name)
    done = import_accounting("sacct", path_of(name))
    origin_s = min(int(row["Submit"]) for row in rows.values())
    assert len(done.workload.jobs) == len(rows) == N_JOBS
    for job in done.workload.jobs:
        row = rows[job.id]
        assert job.submit_us == (int(row["Eligible"]) - origin_s) * US
        submitted = int(row["Submit"]) - origin_s
        assert job.extra.get("submitted") == (submitted if delay_s(row) else None)


def test_the_import_can_use_the_submission_by_the_user(name: str) -> None:
    rows = read(name)
    workload = import_accounting("sacct", path_of(name), submission="submitted").workload
    origin_s = min(int(row["Submit"]) for row in rows.values())
    assert {job.id: job.submit_us for job in workload.jobs} == {
        job: (int(row["Submit"]) - origin_s) * US for job, row in rows.items()
    }


# ---- the calibration


class Calibrated(NamedTuple):
    """An import of a record, and its simulations by policy."""

    rows: Record
    workload: Workload
    recorded: RecordedWaits
    runs: dict[str, CalibratedRun]
    compared: dict[str, ComparedConfiguration]

    def early(self, policy: str) -> int:
        """Return how many jobs a policy starts before they were eligible."""
        waits_s = self.runs[policy].waits_s
        origin_s = min(int(row["Submit"]) for row in self.rows.values())
        return sum(
            job.submit_us / US + waits_s[job.id] < int(self.rows[job.id]["Eligible"]) - origin_s
            for job in self.workload.jobs
        )


def calibrated(folder: Path, name: str, submission: str, *more: str) -> Calibrated:
    """Import a record, and simulate it on all nodes, as `rebat calibrate` does."""
    jobs, past = folder / f"{name}-{submission}.json", folder / f"{name}-{submission}"
    command = ["workload", "import", str(path_of(name)), "-o", str(jobs), "--schedule", str(past)]
    main([*command, "--submission", submission])
    workload = load_workload(jobs)
    recorded = read_waits(past, workload)
    chosen = [Configuration(policy, N_NODES, N_NODES) for policy in (*POLICIES, *more)]
    done = list(design.simulated(workload, ScenarioOptions(), 1, chosen, lambda *_: None))
    ranked = design.nearest_first({run.configuration: run for run in done}, recorded)
    verdict = verdict_of(ranked, recorded, RecordedUse(), {}, N_NODES)
    return Calibrated(
        read(name), workload, recorded,
        {run.configuration.policy: run for run in done},
        {row.policy: row for row in verdict.configurations},
    )  # fmt: skip


def place_of(rows: Record, job: str) -> int:
    """Return the place of a job in the queue of the record ``basic``."""
    row = rows[job]
    return int(row["Eligible" if kind(row) == "held" else "Submit"])


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Conservative backfilling with the order of the queue of the record ``basic``."""
    rows = read("basic")
    file = tmp_path_factory.mktemp("order") / "places.py"
    file.write_text(
        f"PLACES = { {job: place_of(rows, job) for job in rows} }\n"
        "def place(attempt):\n"
        "    return PLACES[attempt.job_id.split('!')[1]]\n"
    )
    return f"baseline:order={file}:place"


@pytest.fixture(scope="module")
def calibrations(
    tmp_path_factory: pytest.TempPathFactory, places: str
) -> dict[tuple[str, str], Calibrated]:
    folder = tmp_path_factory.mktemp("eligible")
    return {
        (name, submission): calibrated(
            folder, name, submission, *([places] if name == "basic" else [])
        )
        for name in RECORDS
        for submission in SUBMISSIONS
    }


@pytest.mark.slow
def test_the_default_starts_no_job_before_it_was_eligible(
    calibrations: dict[tuple[str, str], Calibrated],
) -> None:
    """With the submissions of the users, each policy starts between 64 and 129 jobs too early."""
    for (name, submission), result in calibrations.items():
        early = {policy: result.early(policy) for policy in POLICIES}
        assert early == (EARLY[name] if submission == "submitted" else dict.fromkeys(POLICIES, 0))


EARLY = {
    "multifactor": {"baseline": 104, "easy": 98, "batsched-fcfs": 64},
    "basic": {"baseline": 129, "easy": 126, "batsched-fcfs": 94},
}


def test_the_distances(calibrations: dict[tuple[str, str], Calibrated], places: str) -> None:
    """With ``basic``, the places of jobs in the queue explain the distance."""
    distances = {
        key: {row.policy: round(row.distance, 2) for row in result.compared.values()}
        for key, result in calibrations.items()
    }
    assert distances == {
        ("multifactor", "eligible"): {"baseline": 1.34, "easy": 1.30, "batsched-fcfs": 1.34},
        ("multifactor", "submitted"): {"baseline": 1.38, "easy": 1.34, "batsched-fcfs": 1.41},
        ("basic", "eligible"): {
            "baseline": 1.40, "easy": 1.37, "batsched-fcfs": 1.45, places: 1.17,
        },
        ("basic", "submitted"): {
            "baseline": 1.42, "easy": 1.35, "batsched-fcfs": 1.21, places: 1.34,
        },
    }  # fmt: skip
    compared = calibrations["basic", "eligible"].compared
    correlations = [round(compared[policy].correlation, 2) for policy in ("baseline", places)]
    assert correlations == [0.32, 0.84]


# ---- the page


def test_the_page_states_these_numbers(
    calibrations: dict[tuple[str, str], Calibrated], places: str
) -> None:
    page = (ROOT / "docs/how-to/calibrate.md").read_text()
    text = " ".join(page.split())
    later = [n_later(calibrations[name, "eligible"]) for name in RECORDS]
    assert f"{later[0]} and {later[1]} jobs became eligible after their submission" in text
    assert f"two records of {N_JOBS} jobs on {N_NODES} nodes" in text
    assert "All jobs ran for 5 to 72 s" in text
    for name in RECORDS:
        eligible, submitted = (calibrations[name, submission] for submission in SUBMISSIONS)
        for policy, title in POLICIES.items():
            pair = [result.compared[policy].distance_text for result in (eligible, submitted)]
            assert f"| {title} | {pair[0]} | {pair[1]} | {submitted.early(policy)} |" in page
        means = [np.mean(result.recorded.wait_s) for result in (eligible, submitted)]
        middle = {
            "multifactor": "the recorded mean wait is {} s from the eligible time, and {} s from",
            "basic": "it is {} s and {} s.",
        }[name]
        assert middle.format(*(round(float(mean)) for mean in means)) in text
    compared = calibrations["basic", "eligible"].compared
    distances = compared[places].distance_text, compared["baseline"].distance_text
    assert "the distance from the eligible time is {} instead of {}.".format(*distances) in text


def n_later(result: Calibrated) -> int:
    return sum("submitted" in job.extra for job in result.workload.jobs)


def test_the_page_compares_the_two_distances(
    calibrations: dict[tuple[str, str], Calibrated],
) -> None:
    text = " ".join((ROOT / "docs/how-to/calibrate.md").read_text().split())
    smaller, overlap = dict[str, set[bool]](), set[bool]()
    for name in RECORDS:
        eligible, submitted = (calibrations[name, key].compared for key in SUBMISSIONS)
        smaller[name] = {eligible[p].distance < submitted[p].distance for p in POLICIES}
        if name == "multifactor":
            overlap = {(eligible[p].high or 0) > (submitted[p].low or 0) for p in POLICIES}
    assert (smaller["multifactor"], overlap) == ({True}, {True})
    assert "the distances from the eligible time are smaller**, but the intervals overlap." in text
    assert smaller["basic"] == {True, False}
    assert "the distances from the eligible time are not always smaller.**" in text
