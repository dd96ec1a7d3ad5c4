# SPDX-License-Identifier: Apache-2.0
"""Dependencies between jobs and limits of arrays: known answers, and random cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebat.core import events as e
from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.core.options import SessionOptions
from rebat.core.units import to_s, to_us
from rebat.policies.presets import preset
from rebat.results.explain.book import RunBook
from rebat.results.explain.story import story
from rebat.runs.single import RunResult, simulate, write_run
from tests.session.test_session import begun, completed, failed, killed, kinds, say, submitted
from tests.support.amount import few
from tests.support.coincidences import Case, play, play_noisy, play_split
from tests.support.dependent import check_dependent
from tests.support.findings import findings_in
from tests.support.scenarios import fails

EACH = few(40)


def jobs(*rows: tuple, n_nodes: int = 4) -> Workload:
    """Return jobs as (id, nodes, submission, run time, dependency[, array]); walltime 100 s."""
    made, profiles = [], {}
    for name, size, submit_s, run_s, *texts in rows:
        profiles[f"d{run_s}"] = {"type": "delay", "delay": run_s}
        extra = {k: v for k, v in zip(("dependency", "array"), texts, strict=False) if v}
        made.append(Job(name, size, to_us(submit_s), to_us(100), f"d{run_s}", extra))
    return Workload("jobs", n_nodes, tuple(made), profiles)


def run(workload: Workload, events=(), policy: str = "easy", **options) -> RunResult:
    result = simulate(
        workload, preset(policy), n_nodes=workload.n_nodes, machine_events=list(events), **options
    )
    check_dependent(result.ledger, workload)
    return result


def starts(result: RunResult) -> dict[str, list[float]]:
    """Return the starts of the attempts of each job in seconds. Jobs that never ran have none."""
    rows: dict[str, list[float]] = {}
    for record in result.ledger.attempts:
        of = rows.setdefault(record.attempt.job_id.removeprefix("w0!"), [])
        if record.start_us >= 0:
            of.append(to_s(record.start_us))
    return rows


def test_a_dependency_waits_for_the_job_and_not_for_its_attempt() -> None:
    """Node 0 fails at 5 s and returns at 7 s. Job 1 runs again from 7 s, and ends at 27 s."""
    workload = jobs(("1", 4, 0, 20, ""), ("2", 1, 0, 10, "afterok:1"))
    result = run(workload, fails(0, 5, 7))
    assert starts(result) == {"1": [0, 7], "2": [27]}
    (second,) = (r.attempt for r in result.ledger.attempts if r.attempt.job_id == "w0!2")
    assert (second.submit_us, second.queued_us) == (0, to_us(27))


def test_a_job_ends_with_its_walltime_as_not_ok() -> None:
    rows = ("1", 1, 0, 120, ""), ("2", 1, 0, 5, "afternotok:1"), ("3", 1, 0, 5, "afterok:1")
    result = run(jobs(*rows, ("4", 1, 0, 5, "afterok:3"), ("5", 1, 0, 5, "afterany:3:4")))
    assert starts(result) == {"1": [0], "2": [100], "3": [], "4": [], "5": [100]}
    assert result.ledger.rejections == [
        ("w0!3", "its dependency afterok:1 can never hold"),
        ("w0!4", "its dependency afterok:3 can never hold"),
    ]


def test_a_job_that_failures_interrupt_too_often_is_not_ok() -> None:
    workload = jobs(
        ("1", 4, 0, 20, ""), ("2", 1, 0, 5, "afterok:1"), ("3", 1, 0, 5, "afternotok:1")
    )
    result = run(workload, fails(0, 5, 7), max_attempts=1)
    assert starts(result) == {"1": [0], "2": [], "3": [5]}


def test_a_chain_and_a_dependency_on_a_job_that_is_submitted_later() -> None:
    rows = ("c", 1, 0, 3, "afterany:b"), ("b", 1, 1, 4, "afterok:a"), ("a", 1, 10, 5, "")
    assert starts(run(jobs(*rows))) == {"a": [10], "b": [15], "c": [19]}


def test_after_waits_for_the_start() -> None:
    """Job 2 starts in the instant of job 1, which waits for the machine until 10 s."""
    rows = ("0", 4, 0, 10, ""), ("1", 2, 0, 10, ""), ("2", 1, 0, 10, "after:1")
    assert starts(run(jobs(*rows))) == {"0": [0], "1": [10], "2": [10]}


def test_a_job_that_arrives_in_the_instant_in_which_its_condition_holds_starts() -> None:
    rows = ("1", 2, 0, 10, ""), ("2", 4, 10, 10, "afterok:1"), ("3", 4, 10, 10, "")
    assert starts(run(jobs(*rows))) == {"1": [0], "2": [10], "3": [20]}


def test_a_released_job_is_behind_those_that_were_queued_before() -> None:
    rows = ("1", 4, 0, 10, ""), ("2", 4, 0, 10, "afterok:1"), ("3", 4, 5, 10, "")
    assert starts(run(jobs(*rows))) == {"1": [0], "3": [10], "2": [20]}


def test_at_most_two_tasks_of_an_array_are_active_also_after_a_failure() -> None:
    """The second attempt of task 1 runs from 6 s to 16 s. Task 3 follows task 2 at 10 s."""
    rows = [(str(n), 1, 0, 10, "", "7%2") for n in (1, 2, 3, 4)]
    result = run(jobs(*rows, n_nodes=2), fails(0, 5, 6))
    assert starts(result) == {"1": [0, 6], "2": [0], "3": [10], "4": [16]}


def test_rejected_tasks_leave_their_places_and_every_rejection_is_planned() -> None:
    """Five tasks are larger than the machine. Each is released by the rejection of the previous."""
    rows = [(str(n), 9, 0, 10, f"afterany:{n - 1}" if n else "", "a%1") for n in range(5)]
    result = run(jobs(*rows, ("5", 1, 0, 10, "afternotok:4", "a%1")))
    assert starts(result) == {**{str(n): [] for n in range(5)}, "5": [0]}


def test_registration_ends_only_when_no_job_is_blocked() -> None:
    session = begun(preset("easy").make())
    say(session, 0, submitted("1"), submitted("2", dependency="afterok:1"))
    assert [*session.view.blocked] == ["w0!2"]
    assert kinds(say(session, 0, e.NoMoreStaticJobs(at_us=0))) == []
    assert kinds(say(session, 20, completed("1", 20, "0-1"))) == ["ExecuteJob"]
    assert kinds(say(session, 40, completed("2", 40, "0-1"))) == ["FinishRegistration"]


def test_batsim_receives_the_rejection() -> None:
    session = begun(preset("easy").make(), options=SessionOptions(max_attempts=1))
    say(session, 0, submitted("1"), submitted("2", dependency="afterok:1"))
    say(session, 0, e.NoMoreStaticJobs(at_us=0))
    assert kinds(say(session, 5, failed(5, "0"))) == ["KillJobs"]
    over = completed("1", 5, "0-1", "COMPLETED_KILLED"), killed(5, "1")
    assert kinds(say(session, 5, *over)) == ["RejectJob", "FinishRegistration"]


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (("afterok:9", ""), "job w0!1: dependency: names job 'w0!9'"),
        (("afterok:2", "after:1"), "is a cycle: w0!"),
        (("after:1", ""), "is a cycle: w0!1 after w0!1"),
    ],
)
def test_what_can_never_be_decided_is_an_error_when_all_jobs_are_submitted(texts, problem) -> None:
    session = begun(preset("easy").make())
    say(session, 0, *(submitted(str(n), dependency=text) for n, text in enumerate(texts, 1)))
    with pytest.raises(InputError, match=problem):
        say(session, 0, e.NoMoreStaticJobs(at_us=0))


def test_eternal_jobs_run_until_no_job_is_blocked() -> None:
    """Job 2 is blocked until 10 s, and ends at 15 s. The eternal job runs until then."""
    workload = jobs(("1", 1, 0, 10, ""), ("2", 1, 0, 5, "afterok:1"), ("3", 1, 0, 1000, ""))
    eternal = Job("3", 1, 0, None, "d1000", {"eternal": True})
    workload = Workload("w", 4, (*workload.jobs[:2], eternal), workload.profiles)
    ends = {r.attempt.job_id: to_s(r.end_us) for r in run(workload).ledger.attempts}
    assert ends == {"w0!1": 10, "w0!2": 15, "w0!3": 15}


@pytest.mark.sampled
@pytest.mark.parametrize("first", range(8))
def test_random_dependencies_are_never_violated_and_all_ways_agree(
    first: int, tmp_path: Path
) -> None:
    for seed in range(first * EACH, (first + 1) * EACH):
        play(Case(seed, depends=True), tmp_path)
        play_split(Case(seed, depends=True))


@pytest.mark.sampled
@pytest.mark.parametrize("first", range(4))
def test_messages_of_an_instant_have_no_influence(first: int) -> None:
    for seed in range(first * EACH, (first + 1) * EACH):
        play_noisy(Case(seed, depends=True))


def test_validation_reports_a_violated_dependency_and_limit() -> None:
    """The schedule is that of the jobs without their dependencies."""
    rows = [
        ("1", 1, 0, 10, ""), ("2", 1, 0, 5, "afterok:1"), ("3", 1, 0, 5, "after:4"),
        ("4", 1, 2, 120, ""), ("5", 1, 150, 5, "afterok:4"), ("6", 1, 150, 5, "afterany:4", "a%1"),
        ("7", 1, 150, 5, "", "a%1"),
    ]  # fmt: skip
    result = run(jobs(*(row[:4] for row in rows), n_nodes=9))
    assert [finding.text for finding in findings_in(result, jobs(*rows, n_nodes=9), [])] == [
        "job w0!2 depends on afterok:1, but starts at 0 s, before job 1 ends at 10 s",
        "job w0!3 depends on after:4, but starts at 0 s, before job 4 starts at 2 s",
        "job w0!5 depends on afterok:4, but job 4 is COMPLETED_WALLTIME_REACHED",
        "job w0!7 starts at 150 s as task 2 of a%1",
    ]


def test_the_story_of_a_job_states_when_it_entered_the_queue(tmp_path: Path) -> None:
    workload = jobs(("1", 4, 0, 20, ""), ("2", 1, 5, 10, "afterok:1"))
    result = run(workload, explain=True)
    write_run(tmp_path, result, {})
    moments = story(RunBook(tmp_path), "2").moments
    assert [(moment.kind, moment.at_s) for moment in moments] == [
        ("submitted", 5), ("released", 20), ("started", 20), ("ended", 30),
    ]  # fmt: skip
