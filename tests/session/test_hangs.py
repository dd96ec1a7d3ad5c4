# SPDX-License-Identifier: Apache-2.0
"""Recovery in stages: a failed job hangs on its nodes, then restarts and initialises."""

from __future__ import annotations

import msgspec
import pytest

from rebat.cli.main import main
from rebat.contract import Policy, Release, Start, Stop, Wait, Wake
from rebat.core.attempts import Cause
from rebat.core.durations import parse_random, stream
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.options import Recovery, SessionOptions, parse_stage
from rebat.core.units import US_PER_S, to_us
from rebat.drive.ask import Session
from rebat.engine.engine import Engine, EngineOptions
from rebat.models.failures.events import MachineEvent, write_events
from rebat.policies.presets import preset
from rebat.results.measures.summary import as_json
from rebat.runs.single import simulate, write_run
from tests.support.scenarios import Custom, check_run, fails, machine, run


def story(result) -> list[tuple]:
    """Return the attempts as (job, start, end, cause, saved work), in seconds."""
    return [
        (r.attempt.id[3:], r.start_us / 1e6, r.end_us / 1e6, str(r.cause), r.useful_us / 1e6)
        for r in result.ledger.attempts
    ]


def checkpointing(workload, period: float, cost: float, recovery: float):
    """Return the workload with checkpoints at fixed times. Lengths do not change."""
    fields = {"checkpoint_period": period, "checkpoint_cost": cost, "recovery_cost": recovery}
    profiles = {name: profile | fields for name, profile in workload.profiles.items()}
    return msgspec.structs.replace(workload, profiles=profiles)


def test_a_failed_job_hangs_on_its_nodes_and_then_initialises() -> None:
    """The job fails at 25, with checkpoints at 10 and 20. It hangs for 3 + 2 + 1 s and reads its
    checkpoint for 4 s."""
    workload = checkpointing(machine(2, (2, 100, 0, 1000)), 10, 0, 4)
    policy = "easy:detect=3,diagnose=2,reschedule=1,init=5"
    result = run(policy, workload, fails(0, 25, 26))
    assert story(result) == [
        ("1", 0, 31, "node failure", 20),
        ("1#1", 31, 31 + 5 + 4 + 80, "completed", 80),
    ]
    check_run(result)
    platform = result.summary.platform
    assert platform.waste_failure == 2 * 5
    assert platform.downtime == 1
    assert platform.recovery == 2 * 6 - 1 + 2 * 9  # without the second in which a node is down
    record = result.ledger.attempts[0]
    assert record.stages == {
        "detect": 3_000_000, "diagnose": 2_000_000, "reschedule": 1_000_000, "init": 5_000_000,
    }  # fmt: skip


def test_another_failure_matters_while_the_job_loads_but_not_while_it_hangs() -> None:
    workload = checkpointing(machine(1, (1, 100, 0, 1000)), 10, 0, 4)
    events = [*fails(0, 25, 25.5), *fails(0, 26, 27), *fails(0, 32, 32.5)]
    result = run("easy:detect=5", workload, events)
    assert story(result) == [
        ("1", 0, 30, "node failure", 20),
        ("1#1", 30, 37, "node failure", 0),
        ("1#2", 37, 121, "completed", 80),
    ]
    check_run(result)


class Waiter(Policy):
    """Starts all jobs. At 6 s, job 2 waits for the end of job 1, and at 7 s it is released."""

    def plan(self, view, changes):
        if view.now_us == 0:
            yield Wake(6 * US_PER_S, "wait")
            yield Wake(7 * US_PER_S, "release")
        for attempt in list(view.queue):
            yield Start(attempt)

    def react(self, view, news):
        if "wait" in news.woken:
            yield Stop("w0!2", Cause.PREEMPTED, then=Wait("w0!1"))
        if "release" in news.woken:
            yield Release("w0!2")


def test_a_job_that_no_longer_waits_for_a_job_that_hangs_does_not_end_the_hang() -> None:
    options = SessionOptions(recovery=Recovery(detect="10"))
    policy, events = Custom(Waiter(), options), fails(0, 5, 40)
    result = simulate(machine(3, (1, 90), (1, 50)), policy, machine_events=events)
    check_run(result)
    assert story(result)[:2] == [
        ("2", 0, 6, "preempted", 0),
        ("1", 0, 15, "node failure", 0),
    ]
    assert [row.attempt.queued_us for row in result.ledger.attempts if row.attempt.number] == [
        7 * US_PER_S, 15 * US_PER_S,
    ]  # fmt: skip


def test_other_jobs_wait_for_the_nodes_of_a_job_that_hangs() -> None:
    result = run("easy:detect=10", machine(1, (1, 20), (1, 5, 1)), fails(0, 4, 5))
    assert story(result) == [
        ("1", 0, 14, "node failure", 0),
        ("1#1", 14, 34, "completed", 20),
        ("2", 34, 39, "completed", 5),
    ]


@pytest.mark.parametrize("repaired", [19.5, 20])
def test_a_job_that_completes_in_the_simulator_while_it_hangs_has_not_completed(repaired) -> None:
    """The job fails a second before its end. Its node stays held until the hang ends.

    The node is held if the message with the end also contains the repair, in any order.
    """
    result = run("easy:detect=10", machine(1, (1, 20, 0, 60), (1, 5, 1)), fails(0, 19, repaired))
    assert story(result) == [
        ("1", 0, 20, "node failure", 0),
        ("1#1", 29, 49, "completed", 20),
        ("2", 49, 54, "completed", 5),
    ]
    check_run(result)
    assert result.summary.platform.held == 9


def test_a_failed_job_that_completes_before_its_kill_arrives_has_not_completed() -> None:
    """The hang ends at 8 s. With a latency of 1 ms, end and kill of the job are at 8.001 s."""
    workload = machine(1, (1, 8))
    policy = preset("easy:detect=4")
    session = Session(policy.make(), policy.session)
    engine = Engine(
        workload, n_nodes=1, events=fails(0, 4, 5), options=EngineOptions(latency_us=1000)
    )
    engine.run(session.handle)
    first, again = session.ledger.attempts
    assert (first.cause, first.state) == (Cause.NODE_FAILURE, "COMPLETED_SUCCESSFULLY")
    assert (again.cause, again.useful_us) == (Cause.COMPLETED, to_us(8.001))  # with the latency


def test_a_walltime_ends_a_job_that_hangs() -> None:
    result = run("easy:detect=10", machine(1, (1, 30, 0, 20)), fails(0, 19, 19.5))
    assert story(result) == [("1", 0, 20, "walltime", 0)]


def test_an_eternal_job_that_hangs_worked_until_its_failure() -> None:
    """It fails at 10 s. The last other job ends at 11 s, so it ends with its hang."""
    first, other = (jobs := machine(2, (1, 30), (1, 11))).jobs
    eternal = msgspec.structs.replace(first, extra={"eternal": True})
    workload = msgspec.structs.replace(jobs, jobs=(eternal, other))
    result = run("easy:detect=3", workload, fails(0, 10, 90))
    assert story(result)[1] == ("1", 0, 13, "horizon", 10)
    check_run(result)
    assert result.summary.platform.useful == 10 + 11


def test_without_checkpoints_later_attempts_initialise_too() -> None:
    events = [*fails(0, 5, 5.5), *fails(0, 16, 16.5)]
    result = run("easy:init=3", machine(1, (1, 20, 0, 60)), events)
    assert story(result) == [
        ("1", 0, 5, "node failure", 0),
        ("1#1", 5.5, 16, "node failure", 0),
        ("1#2", 16.5, 39.5, "completed", 20),
    ]


def test_a_software_failure_keeps_its_node_and_steals_nothing() -> None:
    """A hardware failure steals a node, but only when the hang ends."""
    jobs = machine(4, (3, 50), (1, 50))
    soft = run("sfsj:detect=10", jobs, fails(0, 5, 5.1))
    hard = run("sfsj:detect=10", jobs, fails(0, 5, 90))
    assert story(soft)[0] == ("1", 0, 15, "node failure", 0)
    assert soft.summary.steals == 0
    assert {(r.cause, r.end_us) for r in hard.ledger.attempts[:2]} == {
        (Cause.NODE_FAILURE, 15_000_000), (Cause.STOLEN, 15_000_000),
    }  # fmt: skip


def test_durations_depend_on_the_cause() -> None:
    events = [
        MachineEvent(to_us(5), False, NodeSet.of([0]), "hang"),
        MachineEvent(to_us(5.5), True, NodeSet.of([0])),
        *fails(0, 40, 40.5),
    ]
    result = run("easy:detect=hang=10/2", machine(1, (1, 100, 0, 1000)), events)
    assert [(r.failure, r.hung_us / 1e6) for r in result.ledger.attempts] == [
        ("hang", 10), ("", 2), ("", 0),
    ]  # fmt: skip


def test_the_same_failure_hangs_equally_long_under_all_policies() -> None:
    jobs, events = machine(3, (2, 50), (1, 9)), fails(0, 5, 6)
    stage = "detect=exponential:10"
    hung = [
        run(f"{name}:{stage}", jobs, events).ledger.attempts[1].hung_us
        for name in ("easy", "baseline", "greedy", "easy-sfsj")
    ]
    assert len(set(hung)) == 1
    assert hung[0] > 0


def test_random_durations() -> None:
    rng = stream(1, "durations")
    for text, mean in (
        ("90%*30s+10%*10min", 87), ("uniform:1h:3h", 7200), ("exponential:5min", 300),
        ("lognormal:60:0.5", 60 * 2.718281828 ** 0.125),
        ("90%*uniform:1h:3h+10%*uniform:1d:3d", 23760),
    ):  # fmt: skip
        duration = parse_random(text)
        assert duration.mean_s == pytest.approx(mean)
        draws = [duration.draw_s(rng) for _ in range(20_000)]
        assert sum(draws) / len(draws) == pytest.approx(mean, rel=0.06)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("-5s", "not a duration"),
        ("50%*30s+40%*10min", "the shares add up to 90 %"),
        ("uniform:3h:1h", "the minimum is above the maximum"),
        ("uniform:3h", "is not a random duration"),
        ("gauss:3h:1h", "is not a random duration"),
        ("x*30s+10%*10min", "is not a share"),
        ("lognormal:5min:-1", "not a duration"),
        ("gpu=30s", "has no duration for other causes"),
        ("gpu=30s/gpu=40s/1", "is a duplicate"),
    ],
)
def test_bad_stages(text, error) -> None:
    with pytest.raises(InputError, match=error):
        parse_stage(text)
    with pytest.raises(InputError):
        run(f"easy:detect={text}", machine(1, (1, 10)))


def test_draws_have_a_seed() -> None:
    a, b = (Recovery(detect="exponential:10", seed=seed) for seed in (1, 2))
    keys = [("w0!1", 5), ("w0!2", 5), ("w0!1", 6)]
    draws = [r.drawn_us(r.stages, "", *key)["detect"] for r in (a, b) for key in keys]
    assert len(set(draws)) == 6
    assert draws[0] == a.drawn_us(a.stages, "gpu", *keys[0])["detect"]


def test_recoveries_have_a_file(tmp_path) -> None:
    workload = checkpointing(machine(1, (1, 100, 0, 1000)), 10, 0, 4)
    events = [MachineEvent(to_us(25), False, NodeSet.of([0]), "nic"), *fails(0, 60, 61)]
    events.insert(1, MachineEvent(to_us(25.5), True, NodeSet.of([0])))
    write_run(tmp_path, run("easy:detect=nic=3/2,init=1", workload, events), {})
    lines = (tmp_path / "rebat_recoveries.csv").read_text().splitlines()
    assert [line.split(",")[:6] for line in lines[1:]] == [
        ["1", "0", "1", "nic", "25.000000", "3.000000"],
        ["1", "1", "1", "", "60.000000", "2.000000"],
    ]
    assert [float(line.split(",")[9]) for line in lines[1:]] == [5, 7]
    write_run(tmp_path / "plain", run("easy", workload, fails(0, 25, 26)), {})
    assert not (tmp_path / "plain" / "rebat_recoveries.csv").exists()


def test_metrics_of_recoveries() -> None:
    workload = checkpointing(machine(2, (2, 100, 0, 1000)), 10, 0, 4)
    events = [
        MachineEvent(to_us(25), False, NodeSet.of([0]), "nic"),
        MachineEvent(to_us(25.5), True, NodeSet.of([0])), *fails(0, 60, 61),
    ]  # fmt: skip
    summary = run("easy:detect=3,init=1", workload, events).summary
    metrics = summary.recoveries
    end = summary.makespan_s
    assert metrics.stages == {"detect": 2 * 2 * 3, "init": 2 * 2 * 1}
    assert metrics.lost == {"nic": 2 * (5 + 4), "unknown": 2 * (7 + 4)}
    assert metrics.ettr == metrics.ettr_queued == pytest.approx(100 / end)
    assert metrics.mttf_s == pytest.approx(end / 2)
    assert as_json(summary)["recoveries"]["second_order"] == 0
    plain = run("easy", workload, fails(0, 25, 26)).summary
    assert plain.recoveries is None
    assert "recoveries" not in as_json(plain)


def test_a_run_with_hangs_is_valid(tmp_path, capsys) -> None:
    """One of the jobs completes in the simulator while it hangs."""
    jobs, events = machine(2, (2, 20, 0, 90), (1, 5, 1)), [*fails(0, 5, 6), *fails(1, 33, 40)]
    write_run(tmp_path, run("easy:detect=10", jobs, events), {})
    write_events(events, tmp_path / "f.events")
    main(["validate", str(tmp_path), "--events", str(tmp_path / "f.events")])
    assert ": valid: 4 rows" in capsys.readouterr().out
    (tmp_path / "rebat_recoveries.csv").unlink()
    with pytest.raises(SystemExit):
        main(["validate", str(tmp_path), "--events", str(tmp_path / "f.events")])
    assert "a job on a node that is down" in capsys.readouterr().out
