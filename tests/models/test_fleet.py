# SPDX-License-Identifier: Apache-2.0
"""Failures of training clusters: rates, causes, repairs, lemon nodes, racks, switches, burn-in."""

from __future__ import annotations

import math
from collections import Counter
from itertools import takewhile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from rebat.core.errors import InputError
from rebat.models.ettr import DAY_S
from rebat.models.failures.events import check_alternation, read_events, write_events
from rebat.models.failures.laws import name_of, parse_law, prefabs
from tests.support.amount import few

FLEETS = ("rsc-1", "rsc-2", "llama3", "aegis", "delta")
CAUSES = "causes=gpu=3+nic=2+software=5"


def drawn(text: str, n_nodes: int, days: float, seed: int = 0):
    """Return the outages of a law in the first ``days`` days."""
    outages = parse_law(text).outages(n_nodes, seed)
    return list(takewhile(lambda outage: outage.down_us < days * DAY_S * 1e6, outages))


@pytest.mark.parametrize("name", FLEETS)
def test_the_fleets_have_their_printed_rates(name):
    law, n_nodes = parse_law(name), prefabs()[name].nodes
    assert name_of(law) == name
    days = 6000 / (n_nodes * law.rate / 1000)  # about 6,000 failures
    n_failures = sum(len(outage.nodes) for outage in drawn(name, n_nodes, days))
    extra = 1 + law.rack_share * (law.rack - 1)
    # nodes in repair do not fail, which removes at most 3 %
    assert 5500 < n_failures < 6300 * extra


def test_the_rates_of_the_reference():
    hours = {"rsc-1": 1.803, "rsc-2": 5.008, "llama3": 3.093}
    for name, mtbf_h in hours.items():
        assert parse_law(name).mtbf_on(2048) / 3600 == pytest.approx(mtbf_h, rel=1e-3)


def test_llama3_has_the_counts_of_its_table():
    law = parse_law("llama3")
    assert sum(law.weights.values()) == 419
    assert law.rate == pytest.approx(419 / 54 / 2.048, rel=1e-4)
    assert law.hardware_share == pytest.approx(1 - (54 + 7 + 2) / 419)


def test_causes_and_repairs():
    outages = drawn(f"fleet:rate=50,{CAUSES},repair=nic=1h/uniform:2h:4h", 1000, 200)
    counts = Counter(outage.cause for outage in outages)
    n = len(outages)
    for cause, share in (("gpu", 0.3), ("nic", 0.2), ("software", 0.5)):
        assert abs(counts[cause] - share * n) < 4 * (n * share * (1 - share)) ** 0.5
    lasts = {
        cause: [(o.up_us - o.down_us) for o in outages if o.cause == cause] for cause in counts
    }
    assert set(lasts["software"]) == {1}
    assert set(lasts["nic"]) == {3600 * 10**6}
    gpu_h = np.array(lasts["gpu"]) / 3.6e9
    assert 2 <= gpu_h.min() < gpu_h.max() <= 4
    assert abs(gpu_h.mean() - 3) < 4 * (2 / 12**0.5) / len(gpu_h) ** 0.5


def test_the_mean_repair_is_that_of_the_causes():
    law = parse_law(f"fleet:rate=1,{CAUSES},repair=nic=1h/uniform:2h:4h")
    assert law.mean_repair_s == pytest.approx((3 * 3 + 2 * 1) / 5 * 3600)
    assert parse_law("fleet:rate=1,causes=software=1").mean_repair_s == 0


def test_lemons_fail_more_often_at_the_same_mean_rate():
    law = parse_law("fleet:rate=20,lemons=0.02,lemon_factor=20,repair=1s")
    rates = law.node_rates(500, 3)
    lemons = np.flatnonzero(rates > rates.min() * 2)
    assert len(lemons) == 10
    assert rates.mean() == pytest.approx(20 / (1000 * DAY_S))
    counts = Counter(node for o in drawn("fleet:rate=20,lemons=0.02,repair=1s", 500, 1500, 3)
                     for node in o.nodes)  # fmt: skip
    share = sum(counts[node] for node in lemons) / sum(counts.values())
    assert share == pytest.approx(10 * 20 / (10 * 20 + 490), abs=0.02)


def test_racks_fail_together():
    outages = drawn("fleet:rate=20,rack=4,rack_share=0.25,repair=1s", 402, 300)
    together = [o for o in outages if len(o.nodes) > 1]
    assert abs(len(together) - 0.25 * len(outages)) < 4 * (len(outages) * 0.1875) ** 0.5
    for o in together:
        assert list(o.nodes) == [n for n in range(o.nodes.lowest, o.nodes.lowest + 4) if n < 402]
    assert all(o.nodes.lowest % 4 == 0 for o in together)


def test_events_alternate_and_files_keep_causes(tmp_path):
    law = parse_law("fleet:rate=3000,rack=3,rack_share=0.5,causes=gpu=1+software=1,repair=6h")
    events = list(law.events(20, 1, horizon_s=5 * DAY_S))
    check_alternation(events, 20)
    write_events(events, tmp_path / "fleet.events")
    assert read_events(tmp_path / "fleet.events") == events
    assert {event.cause for event in events} == {"gpu", "software", None}


@pytest.mark.slow
@pytest.mark.parametrize("shape", [0.5, 0.7, 2.5])
@pytest.mark.parametrize("repair", ["1s", "5d"])
def test_weibull_lives_have_the_rate_from_the_beginning(shape, repair):
    """The failures in each of four intervals of up time have the rate of the law.

    The intervals are far shorter than the mean time to failure.
    """
    n_nodes, rate = 20_000, 10
    down_days, hits = Counter(), Counter()
    for outage in drawn(f"fleet:rate={rate},repair={repair},shape={shape}", n_nodes, 150):
        node = outage.nodes.lowest
        hits[(outage.down_us / 1e6 / DAY_S - down_days[node]) // 10] += 1
        down_days[node] += (outage.up_us - outage.down_us) / 1e6 / DAY_S
    expected = n_nodes * 10 * rate / 1000
    for interval in range(4):
        # renewal counts vary more than Poisson counts: here at most twice the variance
        assert abs(hits[interval] - expected) < 4 * (2 * expected) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("shape", [0.7, 2.0])
def test_weibull_lives_have_the_shape(shape):
    """About 400 up times of each of 50 nodes follow scipy's Weibull distribution."""
    law = parse_law(f"fleet:rate=20,repair=1d,shape={shape}")
    ends, lives = {}, []
    for outage in drawn(f"fleet:rate=20,repair=1d,shape={shape}", 50, 20_000):
        node = outage.nodes.lowest
        if node in ends:
            lives.append((outage.down_us - ends[node]) / 1e6)
        ends[node] = outage.up_us
    assert len(lives) > 18_000
    mean_s = 1000 * DAY_S / 20
    expected = stats.weibull_min(shape, scale=mean_s / math.gamma(1 + 1 / shape))
    assert stats.kstest(lives, expected.cdf).pvalue > 1e-3
    nodes = law.nodes(50, 0)
    assert nodes.mean_s() == pytest.approx(np.full(50, mean_s))
    days_s = 30 * DAY_S
    assert law.survival(0, days_s, 50) == pytest.approx(expected.sf(days_s))
    assert law.survival(days_s, days_s, 50) == pytest.approx(
        expected.sf(2 * days_s) / expected.sf(days_s)
    )


@pytest.mark.slow
def test_first_lives_are_residual_lives():
    """The density of the first up time is the survival function divided by the mean up time."""
    shape, n_nodes = 0.7, 20_000
    first = {}
    for outage in parse_law("fleet:rate=20,repair=1s,shape=0.7").outages(n_nodes, 4):
        first.setdefault(outage.nodes.lowest, outage.down_us / 1e6 / DAY_S)
        if outage.down_us > 100 * DAY_S * 1e6:
            break
    life = stats.weibull_min(shape, scale=50 / math.gamma(1 + 1 / shape))
    for days in (1, 10, 30, 100):
        share = sum(at <= days for at in first.values()) / n_nodes
        expected = integrate.quad(life.sf, 0, days)[0] / 50
        assert abs(share - expected) < 4 * (expected * (1 - expected) / n_nodes) ** 0.5


def test_weibull_fleets_have_racks_causes_and_lemons():
    text = "rate=3000,rack=3,rack_share=0.5,causes=gpu=1+software=1,repair=6h,lemons=0.1,shape=0.7"
    events = list(parse_law(f"fleet:{text}").events(20, 1, horizon_s=5 * DAY_S))
    check_alternation(events, 20)
    assert {event.cause for event in events} == {"gpu", "software", None}
    assert max(len(event.nodes) for event in events) == 3


def test_a_shape_of_1_changes_no_key():
    law = parse_law("fleet:rate=5")
    assert "shape" not in law.identity()
    assert "shape" not in law.label()
    aged = parse_law("fleet:rate=5,shape=0.7")
    assert aged.identity() == {**law.identity(), "shape": 0.7}
    assert aged.label() == f"{law.label()},shape=0.7"
    assert drawn("fleet:rate=5,shape=1", 50, 90) == drawn("fleet:rate=5", 50, 90)


@settings(max_examples=few(20))
@given(
    st.floats(0, 40), st.sampled_from([1, 3, 16]), st.floats(5, 200), st.floats(1, 8),
    st.floats(2, 40), st.floats(0, 60), st.integers(0, 1000),
)  # fmt: skip
def test_rates_come_out_as_asked(rate, switch, switch_rate, factor, burn_in, age, seed):
    """Nodes and switches fail at the requested rates, also if the nodes' rate falls with age."""
    n_nodes, days = 200, 60
    text = (
        f"fleet:rate={rate + 1},switch={switch},switch_rate={switch_rate},new_factor={factor},"
        f"burn_in={burn_in}d,age={age}d,causes=gpu=1,software=gpu+switch"
    )
    counts = Counter(outage.cause for outage in drawn(text, n_nodes, days, seed))
    n_switches = -(-n_nodes // switch)
    excess_days = (factor - 1) * burn_in * math.exp(-age / burn_in)
    excess_days *= -math.expm1(-days / burn_in)
    for cause, expected in (
        ("gpu", n_nodes * (rate + 1) / 1000 * (days + excess_days)),
        ("switch", n_switches * switch_rate / 1000 * days),
    ):
        assert stats.poisson.cdf(counts[cause], expected) > 1e-6
        assert stats.poisson.sf(counts[cause] - 1, expected) > 1e-6


def test_a_switch_takes_its_nodes_down_and_leaves_the_failures_of_nodes_unchanged():
    plain = "fleet:rate=20,causes=gpu=1,repair=1s"
    alone, outages = (drawn(text, 50, 300) for text in (
        plain, f"{plain}/switch=2h,switch=8,switch_rate=40"
    ))  # fmt: skip
    of_switches = [o for o in outages if o.cause == "switch"]
    assert len(of_switches) > 40
    assert {o.up_us - o.down_us for o in of_switches} == {7200 * 10**6}
    for o in of_switches:
        first = o.nodes.lowest - o.nodes.lowest % 8
        assert set(o.nodes) <= set(range(first, min(first + 8, 50)))
    assert Counter(len(o.nodes) for o in of_switches).most_common(1)[0][0] == 8
    others = {o.down_us for o in outages if o.cause == "gpu"}
    assert others <= {o.down_us for o in alone}
    assert len(others) > 0.95 * len(alone)


def test_weibull_fleets_have_switches():
    text = "fleet:rate=300,shape=0.7,switch=4,switch_rate=500,repair=6h"
    events = list(parse_law(text).events(20, 1, horizon_s=20 * DAY_S))
    check_alternation(events, 20)
    assert {event.cause for event in events} == {"hardware", "switch", None}


def test_the_burn_in_falls_to_the_rate():
    """Failures in ten days follow the integral of the rate; an older machine has less excess."""
    law = "fleet:rate=20,new_factor=5,burn_in=15d,causes=gpu=1,software=gpu"
    for age in (0, 30):
        outages = drawn(f"{law},age={age}d", 500, 80)
        counts = Counter(int(o.down_us / 1e6 / DAY_S // 10) for o in outages)
        for part in range(8):
            excess, _ = integrate.quad(
                lambda day: 4 * math.exp(-day / 15), age + 10 * part, age + 10 * part + 10
            )
            expected = 500 * 20 / 1000 * (10 + excess)
            assert abs(counts[part] - expected) < 4 * expected**0.5


def test_the_mtbf_counts_switches_and_the_tiers_what_they_survive():
    law = parse_law("fleet:rate=10,switch=32,switch_rate=64,causes=gpu=3+software=1")
    per_day = 64 * 10 / 1000 + 2 * 64 / 1000
    assert law.mtbf_on(64) == pytest.approx(DAY_S / per_day)
    assert law.mtbf_on(65) == pytest.approx(DAY_S / (65 * 10 / 1000 + 3 * 64 / 1000))
    assert law.switch_share == pytest.approx(2 / 12)
    assert sum(law.cause_shares.values()) == pytest.approx(1)
    assert law.group == 32
    shares = [law.survived_share(of) for of in ("process", "node", "group", None)]
    assert shares == pytest.approx([0.25 * 10 / 12, 10 / 12, 1, 1])
    # per day 0.48 nodes fail with a repair of 3 h, and 2 x 64 / 1000 switches of 32 nodes
    assert law.mean_in_repair(64) == pytest.approx((0.48 + 0.128 * 32) * 3 / 24)


def test_later_parameters_change_no_key():
    law = parse_law("fleet:rate=5,switch=1,new_factor=1,age=0")
    assert law.identity() == parse_law("fleet:rate=5").identity()
    assert parse_law("fleet:rate=5,burn_in=10d").label().endswith("burn_in=240h")


def test_same_seed_same_failures():
    assert drawn("rsc-1", 100, 100) == drawn("rsc-1", 100, 100)
    assert drawn("rsc-1", 100, 100) != drawn("rsc-1", 100, 100, seed=1)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("fleet:rate=0", "rate: is 0 .expected a number above 0"),
        ("fleet:rate=1,causes=gpu=1+gpu=2", "'gpu=2' is not a weight of a cause"),
        ("fleet:rate=1,causes=gpu=-1", "'gpu=-1' is not a weight"),
        ("fleet:rate=1,lemons=2", "lemons: is 2"),
        ("fleet:rate=1,shape=0", "shape: is 0 .expected 0.1 to 100"),
        ("fleet:rate=1,rack=0", "rack: is 0"),
        ("fleet:rate=1,switch=0", "switch: is 0"),
        ("fleet:rate=1,switch_rate=-1", "switch_rate: is -1"),
        ("fleet:rate=1,new_factor=0.5", "new_factor: is 0.5 .expected a number, at least 1"),
        ("fleet:rate=1,new_factor=2,shape=0.7", "shape: is 0.7 .expected 1, because new_factor"),
        ("fleet:rate=1,burn_in=0", "burn_in: is 0 s"),
        ("fleet:rate=1,repair=3h/switch=1h", "unknown cause 'switch'"),
        ("fleet:rate=1,rack_share=1.5", "rack_share: is 1.5"),
        ("fleet:rate=1,repair=-2h", "repair: '-2h' is not a duration"),
        ("fleet:rate=1,repair=50%*1h+40%*2h", "repair: .* the shares add up to 90 %"),
        ("fleet:rate=1,causes=gpu=1,software=nvlink", "unknown cause 'nvlink'"),
    ],
)
def test_bad_parameters(text, error):
    with pytest.raises(InputError, match=error):
        parse_law(text)
