# SPDX-License-Identifier: Apache-2.0
"""Correct resubmissions have no findings; impossible sequences of resubmissions have findings."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from rebat.api.validation import validate_files
from rebat.cli.main import main
from rebat.core.attempts import Cause, job_name, split_attempt
from rebat.core.files import write_text
from rebat.core.jobs import Job, Workload
from rebat.core.units import US_PER_S
from rebat.models.failures.events import read_events
from rebat.results.files.batsim_csv import jobs_csv
from rebat.results.files.batsim_files import STATES, read_jobs
from rebat.results.validate.findings import Reference
from rebat.results.validate.validate import validate
from rebat.runs.single import write_run
from rebat.workloads.batsim_json import read_workload
from tests.support.findings import findings_in
from tests.support.random_runs import (
    FLEXIBLE,
    MIGRATING,
    STEALING,
    Written,
    random_run,
    varied_run,
)
from tests.support.recordings import DATA
from tests.support.scenarios import fails, machine, run
from tests.support.tables import edited, table, without, written

RECORDED = DATA / "real-batsim"
POLICIES = (*FLEXIBLE, *MIGRATING, *STEALING, "r-list-q")

Row = dict[str, str]


def reference(made: Written, **known) -> Reference:
    """Return what is known about a run without its folder."""
    return Reference(made.workload.n_nodes, made.events, made.workload, **known)


# ---- correct runs


@pytest.mark.parametrize("policy", POLICIES)
def test_nothing_is_found_in_correct_runs(tmp_path: Path, policy: str) -> None:
    """This holds whether or not the number of digits and the scheduler are known."""
    for seed in range(12):
        made = varied_run(seed, tmp_path / str(seed), policy)
        jobs = read_jobs(made.folder)
        six = policy.startswith("authors-")
        for known in (
            Reference(made.workload.n_nodes, made.events, ended_us=ends(made)),
            reference(made),
            reference(made, by_rebat=True, resubmits=True, six_digits=six),
        ):
            assert validate(jobs, known) == [], (seed, known.workload is None)


def ends(made: Written) -> dict[str, int]:
    """Return when rebat ended each job without an end."""
    records = made.result.ledger.attempts
    return {job_name(r.attempt.job_id): r.end_us for r in records if r.cause == Cause.HORIZON}


def endless(made: Written) -> frozenset[str]:
    return frozenset(job.id for job in made.workload.jobs if "eternal" in job.extra)


def test_the_runs_have_what_they_are_for(tmp_path: Path) -> None:
    """The runs have six-digit times, jobs that never end, and ids that look like resubmissions."""
    made = [varied_run(seed, tmp_path / str(seed), "authors-h111") for seed in range(12)]
    exact = [validate(read_jobs(one.folder), reference(one, six_digits=False)) for one in made]
    assert sum(map(bool, exact)) >= 4
    assert all(any(split_attempt(job.id)[1] for job in one.workload.jobs) for one in made[:1])
    eternal = [varied_run(seed, tmp_path / f"t{seed}", "tiers") for seed in range(12)]
    ended = [r for one in eternal for r in one.result.ledger.attempts if r.cause == "horizon"]
    assert len(ended) >= 12


# ---- digits


def test_six_digits_are_told_from_the_rows_alone() -> None:
    """The table is of an authors' policy under the real Batsim; its folder has no summary."""
    folder = RECORDED / "authors-validate"
    jobs = read_jobs(folder / "real_jobs.csv.gz")
    events, workload = read_events(folder / "f.events"), read_workload(folder / "w.json.gz")
    assert validate(jobs, Reference(128, events, workload)) == []
    exact = validate(jobs, Reference(128, events, workload, six_digits=False))
    assert {finding.kind for finding in exact} == {"run time"}
    longer = [lengthened(row, 1_000_000) if row.job_id == "42#1" else row for row in jobs.records]
    changed = msgspec.structs.replace(jobs, records=longer)
    findings = validate(changed, Reference(128, events, workload))
    assert "run time" in {finding.kind for finding in findings if "w0!42#1" in finding.text}


def lengthened(row, by_us: int):
    """Return the row with a longer run time."""
    end_us, run_us, flow_us = row.end_us + by_us, row.run_us + by_us, row.flow_us + by_us
    return msgspec.structs.replace(
        row, end_us=end_us, run_us=run_us, flow_us=flow_us, stretch=flow_us / run_us
    )


def test_a_row_beyond_six_digits_makes_all_exact(tmp_path: Path) -> None:
    """The times of the job are whole seconds, so a change by a millisecond is found."""
    workload, events = machine(2, (2, 3000, 0, 6000)), fails(0, 1000, 1500)
    result = run("baseline", workload, events)
    known = Reference(2, events, workload)
    jobs = table(tmp_path, csv_of(result))
    assert validate(jobs, known) == []
    longer = [lengthened(row, 1000) if row.job_id == "1#1" else row for row in jobs.records]
    changed = msgspec.structs.replace(jobs, records=longer)
    assert [finding.kind for finding in validate(changed, known)] == ["run time"]


def test_six_digits_are_told_if_other_resubmissions_have_more() -> None:
    """A job that is moved, or initialised again, has a walltime with more digits."""
    folder = RECORDED / "authors-validate"
    jobs = read_jobs(folder / "real_jobs.csv.gz")
    events, workload = read_events(folder / "f.events"), read_workload(folder / "w.json.gz")
    again = [row for row in jobs.records if "#" in row.job_id and row.walltime_us]
    for other in again:
        longer = msgspec.structs.replace(other, walltime_us=other.walltime_us + 1)
        rows = [longer if row is other else row for row in jobs.records]
        changed = msgspec.structs.replace(jobs, records=rows)
        assert validate(changed, Reference(128, events, workload)) == []


@pytest.mark.parametrize(("digits", "status"), [(None, 0), ("six", 0), ("all", 1)])
def test_the_command_takes_the_digits(digits: str | None, status: int, capsys) -> None:
    folder = RECORDED / "authors-validate"
    arguments = [
        "validate", str(folder / "real_jobs.csv.gz"), "--events", str(folder / "f.events"),
        "--workload", str(folder / "w.json.gz"), *(["--digits", digits] if digits else []),
    ]  # fmt: skip
    assert exit_status(arguments) == status
    assert f"{6 * status} findings" in capsys.readouterr().out


def exit_status(arguments: list[str]) -> int:
    try:
        main(arguments)
    except SystemExit as error:
        return int(error.code or 0)
    return 0


# ---- jobs without an end


def test_a_job_without_an_end_may_be_ended() -> None:
    folder = RECORDED / "eternal-validate"
    jobs = read_jobs(folder / "real_jobs.csv")
    events, workload = read_events(folder / "f.events"), read_workload(folder / "w.json")
    assert validate(jobs, Reference(4, events, workload)) == []
    mortal = msgspec.structs.replace(
        workload, jobs=tuple(msgspec.structs.replace(job, extra={}) for job in workload.jobs)
    )
    (finding,) = validate(jobs, Reference(4, events, mortal))
    assert finding.text == "job w0!1 was killed, but not resubmitted"


def test_rebats_own_folder_says_what_was_ended(tmp_path: Path, capsys) -> None:
    made = varied_run(3, tmp_path / "run", "tiers")
    assert any(one.cause == "horizon" for one in made.result.ledger.attempts)
    assert exit_status(["validate", str(made.folder)]) == 0, capsys.readouterr().out


def test_an_end_for_good_at_another_time_than_the_others_is_found(tmp_path: Path) -> None:
    """If the last resubmission of a preempted job is deleted, the job ends at its preemption."""
    found = 0
    for seed in range(12):
        made = varied_run(seed, tmp_path / str(seed), "tiers")
        rows = rows_of(made)
        lasts = [row for row in rows if is_last(row, rows) and row["final_state"] == KILLED]
        for row in lasts if len(lasts) > 1 else []:
            base, number = attempt_of(row, made.workload)
            if number and base in endless(made):
                left = without((made.folder / "jobs.csv").read_text(), row["job_id"])
                texts = [f.text for f in validate(table(tmp_path, left), reference(made))]
                assert any("which never completes, was ended at" in text for text in texts), (
                    seed,
                    row,
                )
                found += 1
    assert found >= 5


KILLED = "COMPLETED_KILLED"


def rows_of(made: Written) -> list[Row]:
    with (made.folder / "jobs.csv").open(newline="") as text:
        return list(csv.DictReader(text))


def attempt_of(row: Row, workload: Workload) -> tuple[str, int]:
    """Return the job and the number of the attempt."""
    if row["job_id"] in {job.id for job in workload.jobs}:
        return row["job_id"], 0
    return split_attempt(row["job_id"])


def is_last(row: Row, rows: list[Row]) -> bool:
    base, number = split_attempt(row["job_id"])
    ids = {other["job_id"] for other in rows}
    return f"{row['job_id']}#1" not in ids and not (number and f"{base}#{number + 1}" in ids)


# ---- what only the tables of rebat contain


@pytest.mark.parametrize("ret", [0, 1])
def test_a_job_that_hangs_may_complete_before_it_is_resubmitted(ret: int) -> None:
    """The node fails at 9 s, the attempt ends at 10 s, and the failure is detected at 14 s."""
    profiles = {"d": {"type": "delay", "delay": 10, "ret": ret}}
    workload = Workload("w", 2, (Job("0", 1, 0, None, "d"),), profiles)
    events = fails(0, 9, 30)
    result = run("easy:detect=5s", workload, events)
    assert [row.end_us for row in result.jobs] == [10 * US_PER_S, 24 * US_PER_S]
    assert findings_in(result, workload, events) == []


HOLD = (
    "baseline:react=exclude+replacement,wait=hold,hits=1,within=50,excluded_for=9,most_excluded=0.5"
)


def test_a_wait_may_end_when_a_node_is_excluded_no_longer(tmp_path: Path) -> None:
    workload, events = machine(2, (2, 20)), fails(0, 5, 7)
    result = run(HOLD, workload, events)
    assert [row.submit_us for row in result.jobs] == [0, 14 * US_PER_S]
    assert findings_in(result, workload, events) == []
    write_run(tmp_path, result, {})
    sooner = {"submission_time": "13.000000", "waiting_time": "1.000000"}
    sooner |= {"turnaround_time": "21.000000", "stretch": "1.050000"}
    text = edited((tmp_path / "jobs.csv").read_text(), "1#1", **sooner)
    write_text(tmp_path / "jobs.csv", text)
    (finding,) = validate_files(tmp_path, Reference(2, events, workload)).findings
    assert finding.text == "job w0!1#1: submitted at 13 s, but w0!1 ends at 5 s"


def test_jobs_without_an_end_may_be_ended_one_after_another() -> None:
    """One job starts when the other hangs, because its node failed before all other jobs ended."""
    profiles = {"d": {"type": "delay", "delay": 90}}
    jobs = [Job(str(n), 1, n * 20 * US_PER_S, None, "d", {"eternal": True}) for n in range(2)]
    workload, events = Workload("w", 2, tuple(jobs), profiles), fails(0, 19, 30)
    result = run("easy:detect=3s", workload, events)
    assert [row.end_us for row in result.jobs] == [20 * US_PER_S, 22 * US_PER_S]
    assert findings_in(result, workload, events) == []


# ---- ids


def test_an_id_like_a_resubmissions_is_a_jobs_own(tmp_path: Path) -> None:
    """If the workload has no job ``a``, ``a#1`` is a job, and its resubmission is ``a#1#1``."""
    workload = machine(2, (2, 10), (1, 5))
    one, other = workload.jobs
    jobs = (msgspec.structs.replace(one, id="a#1"), msgspec.structs.replace(other, id="b"))
    workload, events = msgspec.structs.replace(workload, jobs=jobs), fails(0, 3, 4)
    text = csv_of(run("baseline", workload, events))
    known = Reference(2, events, workload)
    assert validate(table(tmp_path, text), known) == []
    assert validate(table(tmp_path, text), Reference(2, events)) == []
    gone = without(text, "a#1")
    kinds = [finding.kind for finding in validate(table(tmp_path, gone), known)]
    assert kinds == ["lost", "attempts"]


def test_a_resubmission_without_its_job_is_found_without_the_workload(tmp_path: Path) -> None:
    text = csv_of(run("baseline", machine(2, (2, 10)), fails(0, 3, 4)))
    (finding,) = validate(table(tmp_path, without(text, "1")))
    assert finding.text == "job w0!1#1: attempt 0 is missing"


def csv_of(result) -> str:
    return "".join(f"{line}\n" for line in jobs_csv(result.jobs))


# ---- single cells


def ran(row: Row) -> bool:
    return row["starting_time"] != ""


Change = tuple[str, Callable[[Row], Iterator[Row]]]


def rejected(row: Row) -> Iterator[Row]:
    if ran(row):
        yield row | {"final_state": "REJECTED", "success": "0"}


def other_states(row: Row) -> Iterator[Row]:
    for state in STATES:
        if state != row["final_state"]:
            success = str(int(state == "COMPLETED_SUCCESSFULLY"))
            yield row | {"final_state": state, "success": success}


def other_profile(row: Row) -> Iterator[Row]:
    yield row | {"profile": "other"}
    yield row | {"profile": f"x{row['profile']}"}
    yield row | {"profile": f"{row['profile']}0"}


def other_submission(row: Row) -> Iterator[Row]:
    """Yield rows with another submission time; the other cells are consistent with it."""
    for by in (-0.7, 0.001, 1.3):
        submit = float(row["submission_time"]) + by
        if not ran(row) or submit < 0:
            continue
        start, run, end = (
            float(row[name]) for name in ("starting_time", "execution_time", "finish_time")
        )
        times = {
            "submission_time": submit, "waiting_time": start - submit,
            "turnaround_time": end - submit, "stretch": (end - submit) / run,
        }  # fmt: skip
        yield row | {name: f"{value:.6f}" for name, value in times.items()}


CHANGES: dict[str, Callable[[Row], Iterator[Row]]] = {
    "rejected": rejected, "state": other_states, "profile": other_profile,
    "submission": other_submission,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_changed_cell_of_a_resubmission_is_found(tmp_path, policy: str, change: str) -> None:
    """This holds for every row of a resubmission."""
    found = 0
    for seed in range(2):
        made = varied_run(seed, tmp_path / str(seed), policy)
        rows = rows_of(made)
        known = reference(made, resubmits=True, by_rebat=True)
        for at, row in enumerate(rows):
            if not attempt_of(row, made.workload)[1]:
                continue
            for changed in CHANGES[change](row):
                others = [changed if n == at else other for n, other in enumerate(rows)]
                findings = validate(table(tmp_path, written(others)), known)
                named = re.compile(rf"w0!{re.escape(row['job_id'])}(?![\w#])")
                assert findings, (seed, row, changed)
                if change != "state":  # a state may be reported for the following attempt
                    assert any(named.search(one.text) for one in findings), (changed, findings)
                found += 1
    assert found >= 4


@pytest.mark.parametrize("policy", ["h111", "dbes", "tiers"])
def test_the_profile_of_one_resubmission_says_who_made_the_others(tmp_path, policy: str) -> None:
    made = varied_run(8, tmp_path / "run", policy)
    again = [row for row in rows_of(made) if attempt_of(row, made.workload)[1]]
    assert len(again) > 1
    text = (made.folder / "jobs.csv").read_text()
    for row in again:
        changed = table(tmp_path, edited(text, row["job_id"], profile="other"))
        assert [one.kind for one in validate(changed, reference(made))] == ["request"]


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_a_job_that_ran_is_not_rejected(tmp_path: Path, seed: int) -> None:
    """This holds for first attempts too, and without the workload."""
    made = random_run(seed, tmp_path / "run")
    rows = rows_of(made)
    text = (made.folder / "jobs.csv").read_text()
    for row in filter(ran, rows[:6]):
        changed = edited(text, row["job_id"], final_state="REJECTED", success="0")
        kinds = {finding.kind for finding in validate(table(tmp_path, changed))}
        assert "state" in kinds, row
