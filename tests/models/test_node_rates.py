# SPDX-License-Identifier: Apache-2.0
"""Lemon nodes of a record, and the mean time to failure by job size, agree with slow oracles."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rebat.models.ettr import DAY_S
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.laws import parse_law
from rebat.models.failures.statistics import (
    SIGNIFICANCE,
    STEPS,
    Exposure,
    chances,
    exposure_of,
    holm,
    job_sizes,
    lemons,
    lives_of,
    mttf_by_size,
    poisson_interval,
)
from tests.support.amount import few
from tests.support.outages import Span, events_of_spans

US = 1_000_000
N_NODES = 11


def fleet(text: str, n_nodes: int, days: float, seed: int) -> Exposure:
    """Return the failures and up times of a fleet."""
    horizon_s = days * DAY_S
    events = list(parse_law(f"fleet:{text}").events(n_nodes, seed, horizon_s=horizon_s))
    return exposure_of(events, n_nodes, round(horizon_s * US))


@st.composite
def records(draw) -> tuple[list[MachineEvent], int]:
    """Draw events of one node or several nodes at a time, and the end of the record."""
    spans = []
    for _ in range(draw(st.integers(0, 12))):
        down_us, length_us = draw(st.integers(0, 40)), draw(st.integers(1, 15))
        first = draw(st.integers(0, N_NODES - 1))
        last = min(first + draw(st.integers(0, 5)), N_NODES - 1)
        spans += [Span(node, down_us, down_us + length_us) for node in range(first, last + 1)]
    return events_of_spans(spans), draw(st.integers(1, 60))


def placed(events: list[MachineEvent], size: int, end_us: int) -> tuple[int, int]:
    """Slow oracle: count node-time up (us) and failures of jobs in each microsecond."""
    jobs = [range(first, first + size) for first in range(0, N_NODES - size + 1, size)]
    up, node_us, failures = set(range(N_NODES)), 0, 0
    for now_us in range(end_us + 1):
        hit = set()
        for event in events:
            if event.at_us == now_us and event.available:
                up |= set(event.nodes)
            elif event.at_us == now_us:
                up -= set(event.nodes)
                hit |= set(event.nodes)
        failures += sum(bool(hit & set(job)) for job in jobs) if now_us else 0
        node_us += sum(len(up & set(job)) for job in jobs) if now_us < end_us else 0
    return node_us, failures


@given(record=records(), size=st.integers(1, N_NODES))
def test_the_mttf_is_that_of_jobs_on_the_record(record, size) -> None:
    events, end_us = record
    (row,) = mttf_by_size(exposure_of(events, N_NODES, end_us), [size])
    node_us, failures = placed(events, size, end_us)
    job_s = node_us / US / size
    assert (row.nodes, row.jobs, row.failures) == (size, N_NODES // size, failures)
    # the limit is the mean count at which this record has a tail of 2.5 %
    most = stats.poisson.cdf(failures, job_s / row.low_s) if job_s else None
    assert most in (None, pytest.approx(0.025))
    if failures and job_s:
        assert row.mttf_s == pytest.approx(job_s / failures)
        assert stats.poisson.sf(failures - 1, job_s / row.high_s) == pytest.approx(0.025)
    elif not failures:
        assert (row.mttf_s, row.high_s) == (None, None)


def test_the_interval_is_the_tabulated_one() -> None:
    """Garwood's table of limits of a Poisson mean."""
    for count, low, high in ((0, 0.0, 3.6889), (1, 0.0253, 5.5716), (10, 4.7954, 18.3904)):
        assert poisson_interval(count) == pytest.approx((low, high), abs=5e-5)


def test_the_mttf_of_a_fleet_is_in_the_interval() -> None:
    """At least 95 % of the intervals contain 1 / (k r) for k nodes with rate r."""
    seeds, rate = 200, 5
    inside = 0
    for seed in range(seeds):
        (row,) = mttf_by_size(fleet(f"rate={rate},repair=2h", 64, 60, seed), [8])
        inside += row.low_s <= 1000 * DAY_S / (8 * rate) <= (row.high_s or math.inf)
    assert inside >= stats.binom.ppf(1e-4, seeds, 0.95)


def test_a_failure_of_a_rack_counts_once_for_each_job() -> None:
    """Half of the failures hit racks of 8: nodes fail 4.5 times as often, jobs of 8 do not."""
    exposure = fleet("rate=5,rack=8,rack_share=0.5,repair=1s", 512, 1000, 0)
    single, eight, large = mttf_by_size(exposure, [1, 8, 64])
    assert single.mttf_s == pytest.approx(1000 * DAY_S / 5 / 4.5, rel=0.1)
    assert eight.mttf_s == pytest.approx(1000 * DAY_S / 5 / 8, rel=0.1)
    assert eight.failures == large.failures < single.failures


@pytest.mark.parametrize(
    ("n_nodes", "sizes"),
    [(1, [1]), (2, [1, 2]), (8, [1, 8]), (9, [1, 8, 9]), (512, [1, 8, 64, 512])],
)
def test_sizes_of_jobs(n_nodes, sizes) -> None:
    assert job_sizes(n_nodes) == sizes


def walked(events: list[MachineEvent], end_us: int) -> list[list[int]]:
    """Slow oracle: each node's total up time at each of its failures and at the record's end."""
    ages, up, lives = [0] * N_NODES, set(range(N_NODES)), [[] for _ in range(N_NODES)]
    for now_us in range(end_us + 1):
        for event in events:
            if event.at_us == now_us:
                for node in event.nodes:
                    if not event.available and now_us:
                        lives[node].append(ages[node])
                (up.update if event.available else up.difference_update)(event.nodes)
        if now_us < end_us:
            for node in up:
                ages[node] += 1
    return [[*failed, age] for failed, age in zip(lives, ages, strict=True)]


def ends_in_steps(lives: list[tuple[int, bool]]) -> list[Fraction]:
    """Slow oracle: the share of up times that end in each step, by the product-limit estimate."""
    left, result = Fraction(1), []
    for step in range(STEPS):
        at_risk = sum(life >= step for life, _ in lives)
        ended = sum(life == step and failed for life, failed in lives)
        result.append(left * ended / at_risk if at_risk else Fraction(0))
        left -= result[-1]
    return result


@settings(max_examples=few(25))
@given(record=records())
def test_chances_are_those_of_exact_fractions(record) -> None:
    events, end_us = record
    exposure = exposure_of(events, N_NODES, end_us)
    ages = walked(events, end_us)
    if not exposure.counts.any() or any(exposure.up_us != [age[-1] for age in ages]):
        return  # a failure at the end of the record adds a microsecond
    width = max(age[-1] for age in ages) / STEPS * (1 + 1e-12)

    def step(us: int) -> int:
        return min(int(us / width), STEPS - 1)

    first = ends_in_steps([(step(age[0]), len(age) > 1) for age in ages])
    later = ends_in_steps([
        (step(b - a), number < len(age) - 2)
        for age in ages for number, (a, b) in enumerate(itertools.pairwise(age))
    ])  # fmt: skip
    expected, density = [Fraction(1)] * N_NODES, first
    for count in range(1, max(len(age) for age in ages)):
        for node, age in enumerate(ages):
            if len(age) - 1 == count:
                expected[node] = sum(density[: step(age[-1]) + 1], Fraction(0))
        sparse = [(k, q) for k, q in enumerate(later) if q]
        shifted = [[q * x for x in density[: STEPS - k]] for k, q in sparse]
        density = [
            sum((row[at - k] for (k, _), row in zip(sparse, shifted, strict=True) if at >= k),
                Fraction(0))
            for at in range(STEPS)
        ]  # fmt: skip
    lives = lives_of(exposure.node, exposure.age_us, exposure.up_us, np.ones(N_NODES, bool))
    chance = chances(exposure.counts, exposure.up_us, lives)
    assert chance == pytest.approx([float(x) for x in expected], abs=1e-12)
    listed = lemons(exposure, significance=1.0)  # all nodes that fail
    assert {lemon.node for lemon in listed} == set(np.flatnonzero(exposure.counts))
    assert [lemon.p for lemon in listed] == sorted(lemon.p for lemon in listed)


def test_holm_of_a_textbook() -> None:
    assert holm(np.array([0.01, 0.04, 0.03, 0.005])) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@pytest.mark.slow
def test_planted_lemons_are_listed() -> None:
    """Each of 10 lemons among 500 nodes fails 87 times on average, the other nodes 4 times."""
    false_alarms = 0
    for seed in range(20):
        law = parse_law("fleet:rate=20,lemons=0.02,lemon_factor=20,repair=1h")
        rates = law.node_rates(500, seed)
        planted = set(np.flatnonzero(rates > 2 * rates.min()).tolist())
        listed = lemons(fleet("rate=20,lemons=0.02,lemon_factor=20,repair=1h", 500, 300, seed))
        assert len(planted) == 10
        assert planted <= {lemon.node for lemon in listed}
        false_alarms += len({lemon.node for lemon in listed} - planted)
        # the other nine lemons add 9 x 19 to the 490 equal nodes
        factors = [lemon.factor for lemon in listed if lemon.node in planted]
        assert np.mean(factors) == pytest.approx(20 * 499 / (490 + 9 * 20), rel=0.1)
    assert false_alarms <= stats.binom.ppf(1 - 1e-4, 20, SIGNIFICANCE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "n_nodes", "days"),
    [
        ("rate=10", 300, 2),
        ("rate=10", 300, 60),
        ("rate=10", 4, 500),
        ("rate=20,shape=0.5", 128, 365),  # a Poisson test lists a node in each of these records
        ("rate=20,shape=0.7", 300, 60),
        ("rate=20,rack=4,rack_share=0.5", 128, 100),
        ("rate=20,switch=16,switch_rate=100", 128, 100),
        ("rate=20,new_factor=5", 128, 100),
    ],
)
def test_equal_nodes_are_no_lemons(law, n_nodes, days) -> None:
    """At most 5 % of the records have a false alarm, also if failures are few or come in bursts."""
    alarms = Counter(
        bool(lemons(fleet(f"{law},repair=3h", n_nodes, days, seed))) for seed in range(100)
    )
    assert alarms[True] <= stats.binom.ppf(1 - 1e-4, 100, SIGNIFICANCE)


def test_a_poisson_test_would_list_nodes_that_fail_in_bursts() -> None:
    """A Poisson test lists nodes in the records with shape 0.5 of the test above."""
    listed = 0
    for seed in range(10):
        exposure = fleet("rate=20,shape=0.5,repair=3h", 128, 365, seed)
        counts, shares = exposure.counts, exposure.up_us / exposure.up_us.sum()
        listed += holm(stats.binom.sf(counts - 1, counts.sum(), shares)).min() <= SIGNIFICANCE
    assert listed == 10


def test_records_without_failures_and_with_one_failing_node() -> None:
    assert lemons(exposure_of([], 5)) == []
    only = events_of_spans(Span(3, at_us * US, at_us * US + 1) for at_us in range(0, 20, 2))
    exposure = exposure_of(only, 50)
    assert exposure.counts[3] == 9  # the outage at time 0 is no failure
    assert lemons(exposure) == []  # all failures may be from one burst
    (lemon,) = lemons(exposure, significance=1.0)
    assert (lemon.node, lemon.failures, lemon.factor) == (3, 9, None)
