# SPDX-License-Identifier: Apache-2.0
"""R-LIST and R-SHELF as policies: the engine has the kernels' schedules; errors on the wire.

In RR-9296, the duration of a job is known exactly, but an engine (like Batsim) kills jobs that
reach their walltime. Therefore a job of t seconds has a walltime of t seconds and a microsecond.
The axis ``margin`` subtracts this microsecond in plans, so that plans, priorities and ends agree
exactly. (The placement ``named`` differs: a job needs the same free machines during its whole
time.)
"""

from __future__ import annotations

import json
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.core.attempts import Cause
from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.core.units import to_us
from rebat.engine.engine import Engine, EngineOptions
from rebat.models import resilient
from rebat.models.silent_errors import add_silent_errors
from rebat.policies.presets import preset
from rebat.policies.queue_order import PRIORITY_RULES, QUEUE_ORDERS, ranks
from rebat.runs.single import RunResult, simulate
from rebat.wire import batsim4
from rebat.wire.conversation import Conversation, session_for
from tests.support.amount import few
from tests.support.recordings import job_sets
from tests.support.scenarios import check_run, fails, failures, machine, run, workloads

EXACT = "margin=-0.000001"
PROCS = 8

# Policy, kernel, kind of reservations.
AS_WRITTEN = [(f"{name.lower()}:{EXACT}", name, "paper") for name in resilient.HEURISTICS]
DEEPER = [
    (f"r-list-1:{EXACT},depth=2", "R-LIST-2", "paper"),
    (f"r-list-1:{EXACT},depth=5", "R-LIST-5", "paper"),
    (f"r-list-1:{EXACT},reserve=blocked", "R-LIST-1", "easy_head"),
    (f"r-list-1:{EXACT},reserve=blocked,depth=3", "R-LIST-3", "easy_head"),
]


def job_set(n_procs: int, jobs: list[tuple[int, int]], errors: list[int]) -> Workload:
    """Return jobs of (time in seconds, size), all released at 0, with these numbers of silent
    errors."""
    digits = len(str(len(jobs)))  # Batsim submits simultaneous jobs in order of their ids
    made = tuple(
        Job(str(number).zfill(digits), size, 0, to_us(time) + 1, str(time))
        for number, (time, size) in enumerate(jobs)
    )
    profiles = {str(time): {"type": "delay", "delay": time} for time, _ in jobs}
    return add_silent_errors(Workload("set", n_procs, made, profiles), errors)


def start_dates(result: RunResult) -> list[list[int]]:
    """Return the start times of the attempts of each job, in microseconds."""
    dates = defaultdict(list)
    for record in result.ledger.attempts:
        dates[record.attempt.job_serial].append(record.start_us)
    return [sorted(dates[serial]) for serial in sorted(dates)]


def expected_starts(
    heuristic: str, rule: str, reservations: str, n_procs: int, jobs: list[tuple[int, int]],
    errors: list[int], seed: int = 0,
) -> list[list[int]]:  # fmt: skip
    """Return the start times of the kernel, in microseconds."""
    times, sizes = [to_us(time) for time, _ in jobs], [size for _, size in jobs]
    rank = ranks(rule, times, sizes, n_procs=n_procs, seed=seed)
    found = resilient.starts(
        heuristic, times, sizes, rank, errors, n_procs=n_procs, reservations=reservations
    )
    return [dates.tolist() for dates in found]


@st.composite
def instances(draw) -> tuple[list[tuple[int, int]], list[int]]:
    """Draw job sets with many ties, and a failure scenario."""
    jobs = draw(
        st.lists(st.tuples(st.integers(1, 9), st.integers(1, PROCS)), min_size=1, max_size=12)
    )
    worst = draw(st.integers(0, 3))
    return jobs, draw(st.lists(st.integers(0, worst), min_size=len(jobs), max_size=len(jobs)))


@settings(max_examples=few(60))
@given(instances(), st.integers(0, 9))
@pytest.mark.parametrize(("policy", "heuristic", "reservations"), AS_WRITTEN + DEEPER)
def test_the_engine_gives_the_kernels_schedule(
    policy, heuristic, reservations, instance, seed
) -> None:
    """Every attempt starts exactly at the time of Algorithms 1 and 2, under every priority rule."""
    jobs, errors = instance
    workload = job_set(PROCS, jobs, errors)
    for rule in PRIORITY_RULES:
        chosen = preset(f"{policy},order={rule},seed={seed}")
        result = simulate(workload, chosen)
        want = expected_starts(heuristic, rule, reservations, PROCS, jobs, errors, seed)
        assert start_dates(result) == want, rule


@pytest.mark.slow
def test_the_engine_gives_the_recorded_makespans() -> None:
    """One scenario of each recorded job set, with all heuristics and rules, and both meanings of
    m = 1."""
    compared = 0
    for path in job_sets():
        data = json.loads(path.read_text())
        jobs = [(job["t"], job["p"]) for job in data["jobs"]]
        scenario = min(data["scenarios"], key=lambda one: (sum(one["f"]) == 0, sum(one["f"])))
        workload = job_set(data["P"], jobs, scenario["f"])
        easy_head = {"r-list-1:reserve=blocked,": scenario["makespan_r_list_1_easy_head"]}
        tables = {f"{name}:": table for name, table in scenario["makespan_paper"].items()}
        for start, table in (tables | easy_head).items():
            for rule, makespan in table.items():
                policy = f"{start}{rule},{EXACT}"
                result = simulate(workload, preset(policy))
                assert result.summary.makespan_s == makespan, (path.name, policy)
                compared += 1
    assert compared == 16 * 36


def test_a_job_that_errs_keeps_its_place_and_its_time_is_waste() -> None:
    """Job 1 has two errors on 2 nodes. It is the longest job and runs before job 2 each time."""
    result = run("r-list-0", add_silent_errors(machine(2, (2, 10), (2, 5)), [2, 0]))
    check_run(result)
    assert start_dates(result) == [[0, to_us(10), to_us(20)], [to_us(30)]]
    causes = [record.cause for record in result.ledger.attempts]
    assert causes == [Cause.SILENT_ERROR, Cause.SILENT_ERROR, Cause.COMPLETED, Cause.COMPLETED]
    one, two = result.rows
    assert (one.attempts, one.wasted_node_seconds, two.wasted_node_seconds) == (3, 40, 0)
    assert one.final_state == "COMPLETED_SUCCESSFULLY"
    assert result.summary.platform.waste_silent == 40
    assert result.summary.platform.useful == 30


def test_without_the_option_a_job_that_errs_is_over() -> None:
    result = run("baseline", add_silent_errors(machine(2, (2, 10)), [3]))
    check_run(result)
    assert [row.final_state for row in result.rows] == ["COMPLETED_FAILED"]
    assert result.rows[0].attempts == 1
    assert result.ledger.attempts[0].cause == Cause.JOB_FAILED


def test_a_return_code_in_the_workload_is_one_error() -> None:
    profiles = {"10s": {"type": "delay", "delay": 10, "ret": 7}}
    workload = machine(2, (1, 10))
    workload = Workload(workload.name, 2, workload.jobs, profiles)
    result = run("easy:silent_errors=retry", workload)
    states = [record.state for record in result.ledger.attempts]
    assert states == ["COMPLETED_FAILED", "COMPLETED_SUCCESSFULLY"]


def test_a_node_failure_does_not_use_up_an_error() -> None:
    """An attempt that ends by a node failure never reaches its error detector."""
    workload = add_silent_errors(machine(2, (1, 10)), [1])
    result = run("r-list-0", workload, fails(0, 4, 1000))
    check_run(result)
    causes = [record.cause for record in result.ledger.attempts]
    assert causes == [Cause.NODE_FAILURE, Cause.SILENT_ERROR, Cause.COMPLETED]
    assert start_dates(result) == [[0, to_us(4), to_us(14)]]


def test_an_error_voids_the_checkpoints_of_earlier_attempts() -> None:
    """At the failure at 7, 4 s of work are saved. The restart reads them, but the error at the
    end invalidates them."""
    profile = {
        "type": "delay", "delay": 10, "checkpoint_period": 4.0, "checkpoint_cost": 1.0,
        "recovery_cost": 1.0, "Tfirst": 4.0, "Rfirst": 0.0,
    }  # fmt: skip
    workload = Workload("w", 1, (Job("1", 1, 0, to_us(10.01), "p"),), {"p": profile})
    workload = add_silent_errors(workload, [1])
    result = simulate(workload, preset("r-list-0"), n_nodes=2, machine_events=fails(0, 7, 1000))
    check_run(result)
    first, second, third = result.ledger.attempts
    assert [r.cause for r in (first, second, third)] == [
        Cause.NODE_FAILURE, Cause.SILENT_ERROR, Cause.COMPLETED,
    ]  # fmt: skip
    assert first.useful_us and first.lost_to == Cause.SILENT_ERROR
    assert third.end_us - third.start_us == to_us(10)  # the entire job runs again
    lost = first.end_us - first.start_us + second.end_us - second.start_us - to_us(1)
    assert result.rows[0].wasted_node_seconds == pytest.approx(lost / 1e6)


@settings(max_examples=few(60))
@given(workloads(), failures(), st.lists(st.integers(0, 3), min_size=12, max_size=12))
@pytest.mark.parametrize(
    "policy",
    ["r-list-0", "r-list-1:la", "r-list-q:random", "r-shelf-b:ljf", "r-shelf-nb:spt",
     "r-list-1:placement=named",
     "sfsj:silent_errors=retry", "batsched-easy:silent_errors=retry,order=lpa"],
)  # fmt: skip
def test_errors_and_node_failures_together_are_safe(policy, workload, events, errors) -> None:
    """Jobs arrive at any time, reach their walltimes, have silent errors, and lose their nodes."""
    result = run(policy, add_silent_errors(workload, errors[: len(workload.jobs)]), events)
    check_run(result)
    assert len(result.rows) == len(workload.jobs)
    for row in result.rows:
        f = errors[int(row.job_id) - 1]
        silent = row.attempts - 1 - row.failures - row.stolen
        late = row.final_state == "COMPLETED_WALLTIME_REACHED"
        assert silent == (0 if late else f), row
        assert late or row.final_state == "COMPLETED_SUCCESSFULLY"


def over_the_wire(policy: str, workload: Workload) -> tuple[list[dict], Engine]:
    """Run a workload over the wire; return the decisions in Batsim's JSON, and the engine."""
    conversation = Conversation(lambda _, began: session_for(policy, {}, began))
    decisions = []

    def answer(message):
        reply = conversation.answer(batsim4.encode_message(message))
        decisions.extend(json.loads(reply)["events"])
        return batsim4.decode_reply(reply)

    engine = Engine(workload, options=EngineOptions())
    engine.run(answer)
    return decisions, engine


def test_attempts_that_will_err_are_registered_so_on_the_wire() -> None:
    """Batsim's jobs.csv then shows which attempts ended with an error."""
    workload = add_silent_errors(machine(2, (2, 10), (1, 5)), [2, 0])
    decisions, engine = over_the_wire("r-list-q:lpt", workload)
    profiles = [e["data"]["profile"] for e in decisions if e["type"] == "REGISTER_PROFILE"]
    assert [profile["ret"] for profile in profiles] == [1, 0]
    ended = [(job.id, job.state) for job in engine.ended]
    assert ended == [
        ("w0!1", "COMPLETED_FAILED"),
        ("w0!1#1", "COMPLETED_FAILED"),
        ("w0!1#2", "COMPLETED_SUCCESSFULLY"),
        ("w0!2", "COMPLETED_SUCCESSFULLY"),
    ]


def test_what_the_policy_reads_says_nothing_of_errors() -> None:
    """If two scenarios differ only in future errors, the first start is the same."""
    jobs = machine(2, (2, 10), (1, 5), (2, 3))
    firsts = []
    for errors in ([0, 0, 0], [1, 2, 3]):
        decisions, _ = over_the_wire("r-list-1:sa", add_silent_errors(jobs, errors))
        executed = [e for e in decisions if e["type"] == "EXECUTE_JOB"]
        firsts.append(executed[0])
    assert firsts[0] == firsts[1]


def test_a_job_that_must_run_again_needs_dynamic_jobs() -> None:
    workload = add_silent_errors(machine(1, (1, 5)), [1])
    engine = Engine(workload, options=EngineOptions(dynamic_jobs=False))
    with pytest.raises(InputError, match="dynamic-jobs"):
        engine.run(session_for("r-list-0", {}, engine.began()).handle)


def test_every_rule_is_a_queue_order() -> None:
    assert {rule.lower() for rule in PRIORITY_RULES} <= set(QUEUE_ORDERS)


@pytest.mark.parametrize("spec", ["r-list-q:la", "R-LIST-Q:LA", "r-list-q:order=la"])
def test_a_bare_choice_is_a_queue_order(spec) -> None:
    assert preset(spec).point.common.order == "la"
    assert preset(spec).session.silent_errors == "retry"


def test_an_unknown_bare_choice_is_refused() -> None:
    with pytest.raises(InputError, match="name:axis=choice"):
        preset("r-list-q:fastest")
