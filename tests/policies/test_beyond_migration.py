# SPDX-License-Identifier: Apache-2.0
"""Sleep, defragmentation and proactive migration: small examples, and rules for all runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.models.checkpoint import add_young_daly
from rebat.models.failures.events import GenericEvent, MachineEvent
from rebat.models.failures.laws import parse_law
from rebat.policies.presets import Preset, preset
from rebat.results.comparison import comparison
from rebat.runs.scenario import FailureScenario, Scenario
from rebat.runs.single import RunResult, simulate
from rebat.runs.staging import staged
from tests.support.scenarios import check_run


def day(n_cores: int, *jobs: tuple[int, float, float]) -> Workload:
    """Return jobs of (cores, length, submission), ids '1', '2' ...

    Times are in seconds. Each walltime is a second longer than the length.
    """
    profiles = {f"{n}": {"type": "delay", "delay": job[1]} for n, job in enumerate(jobs, 1)}
    made = [
        Job(str(n), size, to_us(at), to_us(length + 1), str(n))
        for n, (size, length, at) in enumerate(jobs, 1)
    ]
    return Workload("beyond", n_cores, tuple(made), profiles)


def spans(result: RunResult) -> dict[str, list[tuple[float, float, str]]]:
    """Return the start, end and nodes of the attempts of each job."""
    found: dict[str, list[tuple[float, float, str]]] = {}
    for record in sorted(result.ledger.attempts, key=lambda r: r.start_us):
        row = (record.start_us / 1e6, record.end_us / 1e6, str(record.nodes))
        found.setdefault(record.attempt.job_id.partition("!")[2], []).append(row)
    return found


class TestSleep:
    POLICY = "cluster:react=sleep,sleep=100,boot=30,power=10/100/300"

    def test_a_node_sleeps_once_it_was_empty_for_so_long_and_takes_a_while_to_wake_up(self) -> None:
        """Nodes have 2 cores. Node 1 is empty and sleeps from 100 on. Job 2 (2 cores) arrives at
        200, when only one core is free. Node 1 boots and is up at 230."""
        workload = day(4, (1, 400, 0), (2, 50, 200))
        result = simulate(workload, preset(self.POLICY), cores_per_node=2)
        check_run(result)
        assert spans(result) == {"1": [(0, 400, "0")], "2": [(230, 280, "2-3")]}
        asleep = [(one.since_us / 1e6, one.until_us, one.why) for one in result.ledger.drained]
        assert asleep == [
            (100, to_us(200), "sleep"), (200, to_us(230), "boot"), (380, None, "sleep"),
        ]  # fmt: skip

    def test_energy_is_that_of_states(self) -> None:
        """The energy of 400 s. Node 0 uses one of two cores and takes 200 W. Node 1 is empty for
        100 s, asleep for 100 s, boots for 30 s at the power of an empty node, is full for 50 s,
        empty for 100 s and asleep for 20 s."""
        workload = day(4, (1, 400, 0), (2, 50, 200))
        summary = simulate(workload, preset(self.POLICY), cores_per_node=2).summary
        joules = 400 * 200 + 100 * 100 + 100 * 10 + 30 * 100 + 50 * 300 + 100 * 100 + 20 * 10
        assert summary.energy is not None
        assert summary.energy.kwh is not None
        assert summary.energy.kwh * 3.6e6 == pytest.approx(joules)
        assert summary.energy.asleep == pytest.approx(120 / 800)

    def test_without_sleep_empty_nodes_take_their_power(self) -> None:
        policy = preset("cluster:power=5/70/200")
        summary = simulate(day(4, (2, 100, 0)), policy, cores_per_node=2).summary
        assert summary.energy is not None
        assert summary.energy.kwh is not None
        assert summary.energy.kwh * 3.6e6 == pytest.approx(100 * (200 + 70))

    def test_nobody_gave_watts_so_there_is_no_energy(self) -> None:
        summary = simulate(day(4, (2, 100, 0)), preset("cluster"), cores_per_node=2).summary
        assert summary.energy is None
        lines = {line.metric for line in comparison({"cluster": summary})}
        assert "energy, kWh" not in lines

    def test_without_watts_the_time_asleep_is_told_alone(self) -> None:
        workload = day(4, (1, 400, 0), (2, 50, 200))
        policy = preset(self.POLICY.removesuffix(",power=10/100/300"))
        summary = simulate(workload, policy, cores_per_node=2).summary
        assert summary.energy is not None
        assert (summary.energy.kwh, summary.energy.asleep) == (None, pytest.approx(120 / 800))

    def test_watts_of_whole_nodes_are_enough(self) -> None:
        """Two nodes have one core each. One of them is in use for 100 s."""
        summary = simulate(day(2, (1, 100, 0)), preset("cluster:power=5/70/200")).summary
        assert summary.energy is not None
        assert summary.energy.kwh is not None
        assert summary.energy.kwh * 3.6e6 == pytest.approx(100 * (200 + 70))

    @pytest.mark.parametrize("policy", ["easy", "baseline", "cluster", "dbes"])
    def test_nobody_waits_for_ever(self, policy: str) -> None:
        jobs = [(1 + n % 7, 50 + n, 40 * n) for n in range(30)]
        chosen = preset(f"{policy}:react=sleep,sleep=5,boot=7")
        result = simulate(day(12, *jobs), chosen, cores_per_node=3)
        check_run(result)
        assert result.summary.succeeded == len(jobs)


class TestDefragmentation:
    """A ring of 8 nodes, where a box is a run of consecutive nodes."""

    POLICY = "torus-first:torus=8,react=defragment,period=10,migration_cost=5"

    def test_a_job_is_moved_out_of_the_heads_way(self) -> None:
        """Jobs 1 to 4 take 2 nodes each. At 20 jobs 1 and 3 end. Nodes 0-1 and 4-5 are then
        free, but not four consecutive nodes. Job 2 moves from 2-3 to 4-5, and job 5 starts on
        0-3. Job 2 has 5 s of overhead and 80 s of work left."""
        workload = day(8, (2, 20, 0), (2, 100, 0), (2, 20, 0), (2, 100, 0), (4, 50, 15))
        result = simulate(workload, preset(self.POLICY))
        check_run(result)
        found = spans(result)
        assert found["2"] == [(0, 20, "2-3"), (20, 105, "4-5")]
        assert found["5"] == [(20, 70, "0-3")]
        plain = simulate(workload, preset("torus-first:torus=8"))
        assert spans(plain)["5"] == [(100, 150, "0-3")]

    def test_nothing_is_moved_for_a_head_that_would_not_fit_anyway(self) -> None:
        workload = day(8, (2, 20, 0), (2, 100, 0), (2, 20, 0), (2, 100, 0), (6, 50, 15))
        result = simulate(workload, preset(self.POLICY))
        assert result.summary.migrations.count == 0

    def test_a_job_that_is_nearly_done_is_left_alone(self) -> None:
        """At 20 job 2 has 4 s of its walltime left, but moving it takes 5 s. Job 4 moves
        instead: its box 6-7 and the free nodes 4-5 are enough for the head."""
        workload = day(8, (2, 20, 0), (2, 23, 0), (2, 20, 0), (2, 100, 0), (4, 50, 15))
        found = spans(simulate(workload, preset(self.POLICY)))
        assert found["2"] == [(0, 23, "2-3")]
        assert found["4"] == [(0, 20, "6-7"), (20, 105, "0-1")]
        assert found["5"] == [(20, 70, "4-7")]


class TestProactive:
    """Nodes fail almost exactly 1,000 s after their start. Jobs leave nodes older than 980 s."""

    LAW = "weibull:scale=1000,scale_sigma=0,shape=1000,shape_sigma=0,downtime=50"
    POLICY = "baseline:react=foresee,period=10,ahead=20,survival=0.5,migration_cost=5"

    def run(self, policy: str, uptimes: list[float], *jobs: tuple[int, float, float]) -> RunResult:
        """Run jobs on nodes that have these uptimes at time 0."""
        n_nodes = len(uptimes)
        laws = parse_law(self.LAW).nodes(n_nodes, 0)
        chosen = preset(policy)
        assert isinstance(chosen, Preset)
        events = []
        for node, uptime in enumerate(uptimes):
            at = to_us(1000 - uptime)
            nodes = NodeSet.of([node])
            events += [MachineEvent(at, False, nodes), MachineEvent(at + to_us(50), True, nodes)]
        events.sort(key=lambda event: (event.at_us, not event.available))
        return simulate(
            day(n_nodes, *jobs), chosen.knowing(laws), machine_events=events,
            uptime_us=np.array([to_us(uptime) for uptime in uptimes]),
        )  # fmt: skip

    def test_a_job_leaves_a_node_before_it_fails(self) -> None:
        """Node 0 is 900 s old at time 0 and fails at 100. From an age of 980 s on, it is likely
        to fail within 20 s. Therefore the job moves to node 2 at 80, with 5 s of overhead."""
        result = self.run(self.POLICY, [900.0, 400.0, 300.0], (2, 200, 0))
        check_run(result)
        assert spans(result) == {"1": [(0, 80, "0-1"), (80, 205, "1-2")]}
        assert result.summary.failures_hit == 0
        (move,) = [r for r in result.ledger.attempts if r.imaged]
        assert move.why == "foresee"

    def test_without_foresight_it_loses_its_work(self) -> None:
        result = self.run("baseline", [900.0, 400.0, 300.0], (2, 200, 0))
        assert spans(result) == {"1": [(0, 100, "0-1"), (100, 300, "1-2")]}

    def test_it_stays_where_nothing_else_is_free(self) -> None:
        result = self.run(self.POLICY, [900.0, 400.0], (2, 50, 60))
        assert result.summary.migrations.count == 0
        assert result.summary.failures_hit == 1

    def test_nothing_starts_there_until_it_has_failed_and_is_back(self) -> None:
        """Node 0 is drained from 80 on. The drain ends with its failure at 100, and it is up at
        150."""
        result = self.run(self.POLICY, [900.0, 400.0, 300.0], (2, 50, 85), (1, 50, 136))
        assert spans(result) == {"1": [(85, 135, "1-2")], "2": [(136, 186, "1")]}
        (drained,) = result.ledger.drained
        assert (drained.since_us, drained.until_us, drained.why) == (
            to_us(80), to_us(100), "foresee",
        )  # fmt: skip

    def test_nodes_are_not_kept_from_a_job_that_needs_them_all(self) -> None:
        """The job starts at the next check, at 90, and loses its work in the failure at 100."""
        result = self.run(self.POLICY, [900.0, 300.0], (2, 50, 85))
        assert spans(result) == {"1": [(90, 100, "0-1"), (150, 200, "0-1")]}

    def test_a_law_without_memory_keeps_nobody_waiting(self) -> None:
        """With this law no node is safe, but jobs that need all nodes still complete."""
        law = FailureScenario(parse_law("exponential:mean=5h,downtime=10min"), 1, 10_000.0)
        stage = staged(day(8, *[(8, 600.0, 50.0 * n) for n in range(5)]), Scenario(failures=law))
        result = stage.run(preset("baseline:react=foresee"))
        check_run(result)
        assert result.summary.succeeded == 5

    def test_the_law_of_a_run_is_told(self) -> None:
        """The reaction knows the failure law, like FAPS. The same seed results in the same run."""
        law = FailureScenario(parse_law("weibull:scale=3000,shape=20,downtime=30"), 4, 20_000.0)
        jobs = [(3, 300.0, 200.0 * n) for n in range(60)]
        stage = staged(day(8, *jobs), Scenario(failures=law))
        policy = preset(self.POLICY.replace("0.5", "0.9"))
        first, second = stage.run(policy), stage.run(policy)
        assert first.summary == second.summary
        assert first.summary.migrations.by["foresee"] > 3
        assert first.summary.failures_hit < stage.run(preset("baseline")).summary.failures_hit

    def test_survival_is_that_of_the_law(self) -> None:
        """The probability is exp(-((t+d)^k - t^k) / scale^k)."""
        laws = parse_law("weibull:scale=1000,scale_sigma=0,shape=3,shape_sigma=0").nodes(2, 0)
        hazard = laws.hazard(np.array([0.0, 500.0]), 100.0)
        assert np.exp(-hazard[1]) == pytest.approx(math.exp(-(0.6**3 - 0.5**3)))


class TestTogether:
    """Cases in which several reactions affect the same node or the same job."""

    def test_a_node_that_sleeps_can_be_drained_and_is_not_woken(self) -> None:
        """Nodes have 2 cores. Nodes 1 and 2 sleep from 10 on and are drained at 20. Job 2 needs
        a node at 30, but no free node is in service until 60. Then a node boots for 5 s."""
        workload = day(6, (2, 200, 0), (2, 40, 30))
        chosen = preset("cluster:react=sleep,sleep=10,boot=5")
        orders = [
            GenericEvent(to_us(20), {"type": "drain", "nodes": "1-2"}),
            GenericEvent(to_us(60), {"type": "undrain", "nodes": "1-2"}),
        ]
        result = simulate(workload, chosen, cores_per_node=2, operations=orders)
        check_run(result)
        ((start, end, nodes),) = spans(result)["2"]
        assert (start >= 60, end - start, nodes) == (True, 40, "2-3")
        assert result.summary.drains.refused == 0
        assert result.summary.drains.nodes == 2

    def test_no_more_nodes_are_woken_than_are_needed(self) -> None:
        """There are four nodes of 2 cores. Job 2 needs only one of the sleeping nodes."""
        workload = day(8, (2, 500, 0), (2, 40, 100))
        result = simulate(
            workload, preset("cluster:react=sleep,sleep=10,boot=30"), cores_per_node=2
        )
        booted = [one for one in result.ledger.drained if one.why == "boot"]
        assert [(str(one.nodes), one.since_us) for one in booted] == [("2-3", to_us(100))]
        assert spans(result)["2"] == [(130, 170, "2-3")]

    def test_compaction_leaves_jobs_in_their_partitions(self) -> None:
        """Nodes have 4 cores. Job 2 is alone on node 1 and would fit on node 0, but node 0 is
        not in its partition b."""
        extra = [{"partition": "a"}, {"partition": "b"}]
        workload = day(8, (2, 500, 0), (1, 500, 0))
        jobs = tuple(
            Job(job.id, job.n_nodes, job.submit_us, job.walltime_us, job.profile, more)
            for job, more in zip(workload.jobs, extra, strict=True)
        )
        workload = Workload("parts", 8, jobs, workload.profiles)
        for partitions in ("a:0+b:1", "a:0:2+b:1"):
            chosen = preset(f"compaction:partitions={partitions},migration_cost=1")
            result = simulate(workload, chosen, cores_per_node=4)
            assert result.summary.migrations.count == 0
        chosen = preset("compaction:partitions=a:0:2+b:0-1,migration_cost=1")
        result = simulate(workload, chosen, cores_per_node=4)
        assert spans(result)["2"][-1][2] in ("2", "0")  # here b contains node 0

    def test_compaction_does_not_break_boxes(self) -> None:
        with pytest.raises(
            InputError, match="compaction is not possible with placement 'torus-first'"
        ):
            preset("torus-first:react=compaction")

    def test_a_failure_after_a_migration_costs_the_image_again(self) -> None:
        """A recovery from a Young/Daly checkpoint takes 7 s, a restart from the image 11 s. The
        job moves at 100 and is hit at 150, before its first checkpoint after the move. It
        restarts from the image with 100 s of work done."""
        workload = add_young_daly(
            day(4, (1, 1000, 0)), n_nodes=4, mtbf_s=50_000, cost_s=5.0, recovery_s=7.0
        )
        orders = [GenericEvent(to_us(100), {"type": "migrate", "job": "1", "nodes": "1"})]
        nodes = NodeSet.of([1])
        events = [MachineEvent(to_us(150), False, nodes), MachineEvent(to_us(160), True, nodes)]
        chosen = preset("cluster:migration_cost=11")
        result = simulate(workload, chosen, machine_events=events, operations=orders)
        check_run(result)
        found = spans(result)["1"]
        assert found[:2] == [(0, 100, "0"), (100, 150, "1")]
        length = workload.profiles[workload.jobs[0].profile]["delay"]
        assert found[2][:2] == pytest.approx((150, 150 + 11 + length - 100))
        assert result.summary.migrations.cost == 22
        assert result.summary.platform.recovery == 22

    @pytest.mark.parametrize("policy", ["easy", "cluster", "tiers:react=compaction", "dbes"])
    def test_eternal_jobs_end_under_every_scheduler(self, policy: str) -> None:
        jobs = day(4, (1, 50, 0), (1, 10**6, 0))
        eternal = Job("2", 1, 0, None, "2", {"eternal": True})
        workload = Workload("eternal", 4, (jobs.jobs[0], eternal), jobs.profiles)
        result = simulate(workload, preset(policy), cores_per_node=2)
        assert result.summary.makespan_s == 50
        assert {row.final_state for row in result.rows} == {
            "COMPLETED_SUCCESSFULLY", "COMPLETED_KILLED",
        }  # fmt: skip
