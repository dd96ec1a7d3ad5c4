# SPDX-License-Identifier: Apache-2.0
"""Predicted run times in plans: known answers, slow oracles, and jobs that exceed a prediction."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.api.remarks import of_users
from rebat.core.attempts import Attempt, Cause
from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.core.units import FOREVER_US, to_us
from rebat.policies.composition import Scheduler, Wrapping
from rebat.policies.placement.choosers import lowest
from rebat.policies.placement.plans import Placement
from rebat.policies.planning.list_scheduling import MAINTENANCE
from rebat.policies.presets import identity, preset
from rebat.rules.predict import STEPS_US, later_end
from rebat.runs.single import RunResult
from rebat.state.tables import Attempt as Row
from tests.support.amount import few
from tests.support.asked import simulate
from tests.support.both_ways import Case
from tests.support.planning import by_list
from tests.support.scenarios import Custom, fails, failures, flows, machine, run, workloads

pytestmark = pytest.mark.usefixtures("both_ways")

MIN = 60


def with_owners(made: Workload, *users: str) -> Workload:
    """Return a workload whose jobs have these users. Jobs after the last name have none."""
    jobs = [
        msgspec.structs.replace(job, extra={"user": user} if user else {})
        for job, user in zip(made.jobs, [*users, *[""] * len(made.jobs)], strict=False)
    ]
    return msgspec.structs.replace(made, jobs=tuple(jobs))


# On 2 nodes, Ann's jobs ran for 10 s and 20 s before job 3. Job 4 needs both nodes, and job 5 fits
# next to job 3. It may start if its planned end is not after that of job 3.
ANN = ((2, 10, 0, 100), (2, 20, 0, 100), (1, 15, 40, 100), (2, 10, 41, 100))
SHORT = (1, 12, 42, 14)
NOW, AFTER = 12, 23 + 12
"""Flow of job 5 if it starts immediately, or after job 4."""


@pytest.mark.parametrize(
    ("predict", "fifth", "flow"),
    [
        ("walltime", SHORT, NOW),  # until 56 and 140
        ("recent", SHORT, AFTER),  # until 56 and 55
        ("recent", (1, 12, 42, 13), NOW),  # until 55 and 55
        ("actual", (1, 12, 42, 99), NOW),  # until 54 and 55
        ("actual", (1, 13.5, 42, 14), AFTER + 1.5),  # until 55.5 and 55
        ("0.15", (1, 12, 42, 84), NOW),  # until 54.6 and 55
        ("0.12", (1, 12, 42, 84), AFTER),  # until 52.08 and 52
    ],
)
@pytest.mark.parametrize("depth", ["easy", "conservative"])
@pytest.mark.parametrize("placement", ["any", "named"])
def test_a_job_that_backfills_ends_before_the_predicted_end(
    predict: str, fifth: tuple, flow: float, depth: str, placement: str
) -> None:
    workload = with_owners(machine(2, *ANN, fifth), *["ann"] * 3)
    policy = f"easy:depth={depth},placement={placement},predict={predict}"
    assert flows(run(policy, workload)) == {"1": 10, "2": 30, "3": 15, "4": 24, "5": flow}


@pytest.mark.parametrize("users", [("ann", "bob", "ann"), ("", "", ""), ("ann", "ann", "bob")])
def test_with_fewer_than_two_jobs_of_the_user_the_walltime_is_planned(users) -> None:
    """Also for jobs without a user: they do not form a user."""
    workload = with_owners(machine(2, *ANN, SHORT), *users)
    assert flows(run("easy:predict=recent", workload))["5"] == 12


@pytest.mark.parametrize("ended_at", [40, 39])
def test_only_jobs_that_ended_before_the_submission_count(ended_at: int) -> None:
    """Not those that end at its time, because messages of a time have no fixed order."""
    jobs = (ANN[0], (2, ended_at - 10, 0, 100), *ANN[2:])
    workload = with_owners(machine(2, *jobs, (1, 12, 42, 25)), *["ann"] * 3)
    # the mean of 10 s and 29 s is 19.5 s: job 3 is planned to 59.5, or to 140
    assert flows(run("easy:predict=recent", workload))["5"] == (12 if ended_at == 40 else AFTER)


def test_a_walltime_limits_the_mean() -> None:
    """Ann's jobs ran for 70 s and 90 s. Job 3 is planned with its walltime of 20 s."""
    jobs = ((2, 70, 0, 100), (2, 90, 0, 100), (1, 15, 200, 20), (2, 10, 201, 100))
    workload = with_owners(machine(2, *jobs, (1, 12, 202, 19)), *["ann"] * 3)
    assert flows(run("easy:predict=recent", workload))["5"] == 23 + 12


@pytest.mark.parametrize(
    ("first", "predict", "fits", "too_long"),
    [((1, 90, 0, 400), "0.125", 400, 401), ((1, 90, 0, 100), "0.5", 80, 81)],
)
def test_a_prediction_that_is_exceeded_becomes_one_minute_longer(
    first: tuple, predict: str, fits: float, too_long: float
) -> None:
    """Job 1 is predicted until 50. At 60, it is planned until 110, or until its limit at 100.

    Job 3 is predicted until this time, or a little longer. Then it waits for job 2.
    """
    for walltime, flow in ((fits, 30), (too_long, 70)):
        workload = machine(2, first, (2, 10, 1, 100), (1, 30, 60, walltime))
        assert flows(run(f"easy:predict={predict}", workload)) == {"1": 90, "2": 99, "3": flow}


def test_the_margin_is_added_to_the_prediction() -> None:
    """Job 1 is predicted until 50, and planned until 52. At 51, it is not corrected."""
    workload = machine(2, (1, 90, 0, 100), (2, 10, 1, 100), (1, 1.5, 51, 4))
    assert flows(run("easy:predict=0.5", workload))["3"] == 1.5
    assert flows(run("easy:predict=0.5,margin=2", workload))["3"] == 49 + 1.5


def test_the_remaining_work_of_a_failed_job_limits_its_prediction() -> None:
    """Job 3 restarts at 45 with perfect checkpoints: 5 s are done, 10 s are left."""
    jobs = (ANN[0], ANN[1], (1, 15, 40, 100), (2, 10, 46, 100), (1, 12, 47, 9))
    made = with_owners(machine(3, *jobs), *["ann"] * 3)
    profiles = {
        name: {**fields, "checkpoint_period": 1e-6, "checkpoint_cost": 0, "recovery_cost": 0}
        for name, fields in made.profiles.items()
    }
    workload = msgspec.structs.replace(made, profiles=profiles)
    result = run("easy:predict=actual", workload, fails(0, 45, 500))
    ends = {row.attempt.id: row.end_us for row in result.ledger.attempts}
    assert ends["w0!3#1"] == to_us(55)


# ---- corrections


def later_end_us(start: int, predicted: int, wall: int, margin: int, now: int) -> int:
    """Return the planned end that the rules set."""
    row = Row(start=start, wall=wall, predicted=predicted)
    return int(later_end([row], 0, margin, now))


def step_by_step(start: int, predicted: int, wall: int, margin: int, now: int) -> int:
    """Return the planned end after each correction until it is later than the present time."""
    lengths = [predicted + step for step in STEPS_US] + [FOREVER_US]
    planned = max(1, predicted + margin)
    while start + planned <= now and lengths:
        planned = max(1, min(lengths.pop(0), wall) + margin)
    return start + planned if start + planned > now else now + 1


@given(
    st.integers(0, 10**6),
    st.integers(1, 10**6),
    st.integers(1, 10**6),
    st.integers(-(10**7), 10**7),
    st.integers(1, 2 * 10**6),
)
def test_corrections_step_by_step(start_s, wall_s, predicted_s, margin, run_s) -> None:
    start, wall, now = to_us(start_s), to_us(wall_s), to_us(start_s + run_s)
    predicted = min(wall, to_us(predicted_s))
    end = later_end_us(start, predicted, wall, margin, now)
    expected = step_by_step(start, predicted, wall, margin, now)
    assert end > now
    assert end <= max(now + 1, start + max(1, wall + margin))
    if start + max(1, predicted + margin) <= now:
        assert end == expected


def test_the_steps() -> None:
    hour = 60 * MIN
    steps = [MIN, 5 * MIN, 15 * MIN, 30 * MIN, *(h * hour for h in (1, 2, 5, 10, 20, 50, 100))]
    assert list(STEPS_US) == [to_us(step) for step in steps]
    ends = [later_end_us(0, 1, FOREVER_US, 0, now) for now in (1, to_us(MIN), to_us(MIN) + 1)]
    assert ends == [to_us(MIN) + 1, to_us(MIN) + 1, to_us(5 * MIN) + 1]


@settings(max_examples=few(100))
@given(workloads(), failures(), st.sampled_from(["0.02", "0.5", "recent", "actual"]),
       st.sampled_from(["easy", "greedy", "all"]), st.sampled_from([*MAINTENANCE]),
       st.sampled_from(["any", "named"]))  # fmt: skip
def test_no_job_is_killed_before_its_walltime(
    workload, events, predict, depth, maintenance, placement
) -> None:
    upkeep = f",maintenance={maintenance}" if depth == "all" else ""
    policy = f"baseline:depth={depth},predict={predict},placement={placement}{upkeep}"
    result = run(policy, with_owners(workload, *["ann"] * 6, *["bob"] * 3), events)
    done = {Cause.COMPLETED, Cause.WALLTIME, Cause.NODE_FAILURE}
    for row in result.ledger.attempts:
        assert row.cause in done
        if row.cause == Cause.WALLTIME:
            assert row.end_us - row.start_us == row.attempt.walltime_us


# ---- oracles


class Watched(Wrapping):
    """List scheduling whose predictions are read before each next plan."""

    def __init__(self, **options) -> None:
        super().__init__(by_list(**options))
        self.said: dict[str, int] = {}
        self.attempts: dict[str, Attempt] = {}
        self._entered: list[Attempt] = []

    def plan(self, view, changes):
        rows = view._state.state.attempts
        for attempt in self._entered:
            self.said[attempt.id] = rows[attempt.serial - 1].predicted
            self.attempts[attempt.id] = attempt
        self._entered = [*changes.arrived, *changes.resubmitted]
        return self._planning.plan(view, changes)


def mean_of_last_two(result: RunResult, users: dict[str, str], attempt: Attempt) -> int:
    """Return the prediction ``recent`` from the records of the run."""
    user, ends = users[attempt.job_id], []
    for row in result.ledger.attempts:
        over = row.cause in (Cause.COMPLETED, Cause.WALLTIME, Cause.JOB_FAILED)
        if over and users[row.attempt.job_id] == user and row.end_us < attempt.queued_us:
            ends.append((row.end_us, row.attempt.serial, row.end_us - row.start_us))
    if not user or len(ends) < 2:
        return attempt.walltime_us
    (*_, first), (*_, second) = sorted(ends)[-2:]
    return min(attempt.walltime_us, (first + second) // 2)


def users_of(workload: Workload) -> dict[str, str]:
    """Return the user of each job."""
    return {f"w0!{job.id}": job.extra.get("user", "") for job in workload.jobs}


@pytest.mark.parametrize("seed", range(few(60)))
def test_predictions_of_random_runs_are_those_of_the_records(seed: int) -> None:
    rng = random.Random(seed)
    case = Case(seed)
    users = [rng.choice(["", "ann", "ann", "bob"]) for _ in case.workload.jobs]
    workload, depth = with_owners(case.workload, *users), rng.choice([0, 1, 2, "all"])
    for name in ("recent", "0.25"):
        planning = Watched(depth=depth, predict=name)
        result = simulate(
            workload, Custom(Scheduler(planning)), n_nodes=case.n_nodes, machine_events=case.events
        )
        assert planning.said.keys() >= {
            row.attempt.id for row in result.ledger.attempts if row.start_us >= 0
        }
        for attempt_id, attempt in planning.attempts.items():
            wall = attempt.walltime_us
            expected = max(1, wall // 4) if wall < FOREVER_US else wall
            if name == "recent":
                expected = mean_of_last_two(result, users_of(workload), attempt)
            assert planning.said[attempt_id] == expected


@pytest.mark.parametrize("seed", range(few(60)))
def test_actual_is_the_run_time_of_attempts_that_no_failure_hits(seed: int) -> None:
    case = Case(seed)
    planning = Watched(predict="actual")
    result = simulate(
        case.workload, Custom(Scheduler(planning)), n_nodes=case.n_nodes, machine_events=case.events
    )
    for row in result.ledger.attempts:
        if row.start_us >= 0 and row.cause != Cause.NODE_FAILURE:
            assert planning.said[row.attempt.id] == row.end_us - row.start_us


@pytest.mark.parametrize("seed", range(few(100)))
def test_the_plan_of_named_nodes_starts_what_the_plain_one_starts(seed: int) -> None:
    case, rng = Case(seed), random.Random(seed)
    options = {
        "predict": rng.choice(["recent", "actual", "0.5", "0.02"]),
        "depth": rng.choice([0, 1, 2, "all"]),
        "margin": rng.choice([0.0, 5.0]),
        "maintenance": rng.choice(["rebuild", "compression"]),
    }

    def ran(placement) -> list[tuple[str, int, str]]:
        planning = by_list(placement, **options)
        result = simulate(
            with_owners(case.workload, "ann", "ann", "ann", "bob", "bob", "ann", "bob", "ann"),
            Custom(Scheduler(planning)), n_nodes=case.n_nodes, machine_events=case.events,
        )  # fmt: skip
        return [(job.id, job.start_us, str(job.nodes)) for job in result.jobs]

    assert ran("named") == ran(Placement(lowest))


# ---- the option


def test_the_walltime_is_the_default_and_leaves_the_identity_unchanged() -> None:
    plain = preset("easy")
    assert preset("easy:predict=walltime").point == plain.point
    assert "predict" not in identity(plain)
    assert identity(preset("easy:predict=recent"))["predict"] == "recent"


def test_a_note_says_that_no_job_has_a_user() -> None:
    made, policies = machine(2, *ANN), [preset("easy"), preset("easy:predict=recent")]
    notes = [text for _, text in of_users(made, policies)]
    assert notes == ["no job has a user, so predict=recent plans with the walltimes"]
    assert not [*of_users(made, policies[:1])]
    assert not [*of_users(with_owners(made, "ann"), policies)]


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "nan", "inf", "soon"])
def test_other_values_are_refused(value: str) -> None:
    with pytest.raises(InputError, match=r"walltime, recent, actual, or a factor of the walltime"):
        preset(f"easy:predict={value}")


def test_a_true_run_time_that_is_unknown_is_refused() -> None:
    profiles = {"p": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0}}
    workload = Workload("w", 1, (Job("1", 1, 0, to_us(9), "p"),), profiles)
    simulate(workload, preset("easy:predict=recent"), how="asked")
    with pytest.raises(InputError, match=r"job w0!1: its true run time is unknown.*is a delay"):
        simulate(workload, preset("easy:predict=actual"), how="asked")
