# SPDX-License-Identifier: Apache-2.0
"""Free nodes that no job can use, compared with the slow oracle and values computed by hand."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.core.units import US_PER_S
from rebat.models.failures.law import generate_events
from rebat.models.failures.renewal import Authors
from rebat.policies.presets import preset
from rebat.results.comparison import comparison
from rebat.results.measures.platform import fragmentation
from rebat.results.measures.summary import as_json
from rebat.results.metric import flat_metrics
from rebat.runs.single import simulate
from rebat.workloads.generate import mira_like, synthetic
from tests.oracles import fragmentation as oracle
from tests.support.amount import few
from tests.support.scenarios import failures, machine, run, workloads

POLICIES = ["baseline", "sfsj", "greedy", "easy:placement=torus-first", "greedy:placement=rps"]


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=few(25))
@given(jobs=workloads(), events=failures(), cut=st.tuples(st.integers(0, 50), st.integers(1, 150)))
def test_the_oracle_sees_the_same(policy, jobs, events, cut) -> None:
    ledger = run(policy, jobs, events).ledger
    window = cut[0] * US_PER_S, (cut[0] + cut[1]) * US_PER_S
    time_us, node_us = oracle.blocked(ledger, jobs.n_nodes, window)
    found = fragmentation(ledger, jobs.n_nodes, window)
    assert found.blocked_share == time_us / (window[1] - window[0])
    assert found.blocked == node_us / US_PER_S


def test_a_box_waits_for_its_place_by_hand() -> None:
    """Nodes 0 and 2 of a ring of 4 are busy until 30 s: two nodes are free, but no box of 2."""
    jobs = machine(4, (1, 30), (1, 10), (1, 30), (1, 10), (2, 10, 1))
    boxes = simulate(jobs, preset("greedy:placement=torus-first,torus=4")).summary
    assert boxes.fragmentation.blocked_share == 20 / 40
    assert boxes.fragmentation.blocked_free_nodes == 2
    assert boxes.fragmentation.blocked == 40
    counted = simulate(jobs, preset("greedy")).summary
    assert counted.fragmentation.blocked_share == counted.fragmentation.blocked == 0


@settings(max_examples=few(50))
@given(jobs=workloads(), events=failures())
def test_without_reservations_and_boxes_nothing_is_blocked(jobs, events) -> None:
    assert run("greedy", jobs, events).summary.fragmentation.blocked_share == 0


def test_a_torus_is_blocked_where_a_counted_machine_is_not() -> None:
    jobs = synthetic(0, 300)
    torus = simulate(jobs, preset("greedy:placement=torus-first,torus=8x4x4")).summary
    assert torus.fragmentation.blocked_share > 0
    assert simulate(jobs, preset("greedy")).summary.fragmentation.blocked_share == 0


@pytest.mark.parametrize(
    ("policy", "waste"),
    [
        ("torus-first:torus=4x4", 10 * (1 + 1)),  # 7 nodes need a box of 2x4, 5 nodes one of 2x3
        ("slurm-linear:torus=4x4", 0),
        ("slurm-linear:torus=4x4,unit=2x2", 10 * (1 + 3)),
        ("baseline", 0),
    ],
)
def test_box_waste_by_hand(policy: str, waste: float) -> None:
    result = simulate(machine(16, (7, 10), (5, 10)), preset(policy))
    assert result.summary.fragmentation.box_waste == waste
    assert result.summary.platform.idle >= waste


def test_people_and_campaigns_see_it() -> None:
    result = simulate(machine(16, (7, 10), (5, 10)), preset("torus-first:torus=4x4"))
    shown = {line.metric: line.values["x"] for line in comparison({"x": result.summary})}
    waste = 20 / (16 * 10)
    assert shown["box waste (within idle), share of all node time"] == waste
    table = {name for name, _, _ in flat_metrics(as_json(result.summary))}
    assert {"fragmentation_blocked_share", "fragmentation_box_waste"} <= table


@pytest.mark.slow
def test_a_month_is_measured_in_no_time() -> None:
    """The limit is 50 ms for 5,300 attempts; this month has 4,024 jobs, and more after failures."""
    jobs = mira_like("march-2018", 0)
    events = generate_events(Authors(3600, 3600), jobs.n_nodes, horizon_s=3e6)
    ledger = simulate(jobs, preset("baseline"), machine_events=events).ledger
    took = []
    for _ in range(5):
        began = time.process_time()
        fragmentation(ledger, jobs.n_nodes, (0, 10**13), lambda n: n + 1)
        took.append(time.process_time() - began)
    assert min(took) < 0.05 * len(ledger.attempts) / 5300
