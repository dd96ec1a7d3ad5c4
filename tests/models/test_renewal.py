# SPDX-License-Identifier: Apache-2.0
"""The renewal process: times between failures, repairs, and failing nodes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from rebat.core.errors import InputError
from rebat.models.failures.events import check_alternation
from rebat.models.failures.law import generate_events
from rebat.models.failures.laws import make_law, parse_law
from rebat.models.failures.renewal import Renewal

HOUR = 3600.0


# Golden numbers: mean = scale x gamma(1 + 1/shape) for a mean gap of 1 h, and
# mean = median x exp(sigma^2 / 2) for the repair of 2.8 h in Prabhakaran et al. 2018, section IV-C.
@pytest.mark.parametrize(("shape", "scale_h"), [(0.7, 0.790000), (0.78, 0.866315), (0.8, 0.882610)])
def test_the_scale_makes_the_mean(shape: float, scale_h: float) -> None:
    assert Renewal(HOUR, shape=shape).scale_s / HOUR == pytest.approx(scale_h, abs=1e-6)


@pytest.mark.parametrize(
    ("sigma", "mu", "median_h"), [(1.9407, -0.8535, 0.4259), (1.8308, -0.6463, 0.5240)]
)
def test_the_median_makes_the_mean_repair(sigma: float, mu: float, median_h: float) -> None:
    law = Renewal(HOUR, 2.8 * HOUR, sigma=sigma)
    assert law.repair_median_s / HOUR == pytest.approx(median_h, abs=6e-5)
    assert math.log(law.repair_median_s / HOUR) == pytest.approx(mu, abs=6e-5)


def test_it_is_written_with_every_parameter() -> None:
    law = parse_law("renewal:mtbf=1h,shape=0.78,repair=2.8h,sigma=1.9407")
    assert law == Renewal(HOUR, 2.8 * HOUR, 0.78, 1.9407)
    assert parse_law("renewal:mtbf=1h") == Renewal(HOUR, 2.8 * HOUR, 0.7, 1.9407)


@pytest.mark.parametrize("shape", [0.7, 0.8, 1.0, 2.0])
def test_gaps_are_weibull(shape: float) -> None:
    count = 40_000
    dates = itertools.islice(Renewal(HOUR, shape=shape).times_us(3), count)
    gaps_h = np.diff([0, *dates]) / 1e6 / HOUR
    variance = math.gamma(1 + 2 / shape) / math.gamma(1 + 1 / shape) ** 2 - 1
    assert gaps_h.mean() == pytest.approx(1, abs=4 * math.sqrt(variance / count))
    scale_h = 1 / math.gamma(1 + 1 / shape)
    for t in (0.1, 0.5, 1.0, 3.0):
        expected = math.exp(-((t / scale_h) ** shape))
        spread = math.sqrt(expected * (1 - expected) / count)
        assert (gaps_h > t).mean() == pytest.approx(expected, abs=4 * spread)


def test_repairs_are_log_normal() -> None:
    count, law = 40_000, Renewal(HOUR)
    logs = np.log(np.array(list(itertools.islice(law.repairs_us(3), count))) / 1e6)
    assert logs.mean() == pytest.approx(math.log(law.repair_median_s), abs=4 * 1.9407 / count**0.5)
    assert logs.std() == pytest.approx(1.9407, rel=4 / math.sqrt(2 * count))
    assert np.median(logs) == pytest.approx(math.log(law.repair_median_s), abs=0.05)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_on_average_2_8_nodes_are_down(seed: int) -> None:
    """One node fails each hour, and a repair takes 2.8 h on average.

    Over 10^4 failures the relative standard deviation is 6.5 %, because repairs have a squared
    coefficient of variation of 42.
    """
    outages = list(itertools.islice(Renewal(HOUR).outages(125, seed), 10_000))
    down_us = sum(outage.up_us - outage.down_us for outage in outages)
    assert down_us / outages[-1].down_us == pytest.approx(2.8, rel=0.2)


def test_any_node_that_is_up_is_hit_as_likely() -> None:
    outages = itertools.islice(Renewal(HOUR).outages(125, 0), 25_000)
    counts = np.bincount([next(iter(outage.nodes)) for outage in outages], minlength=125)
    # chi-squared of 124 degrees of freedom: mean 124, standard deviation 15.7
    assert float(((counts - 200) ** 2 / 200).sum()) == pytest.approx(124, abs=4 * 15.7)


def test_other_repairs_leave_the_dates() -> None:
    short, long = (Renewal(HOUR, repair).times_us(5) for repair in (60.0, HOUR))
    assert list(itertools.islice(short, 50)) == list(itertools.islice(long, 50))


def test_what_is_down_does_not_fail_again() -> None:
    """Two nodes are down most of the time, often both of them."""
    events = generate_events(Renewal(600.0, HOUR), 2, horizon_s=1e6, seed=1)
    check_alternation(events, 2)
    failures = sum(not event.available for event in events)
    assert 100 < failures < 1e6 / 600 / 2


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"mtbf": "0s"}, "mtbf: is 0 s"),
        ({"mtbf": "1h", "shape": 0}, "shape: is 0"),
        ({"mtbf": "1h", "shape": "nan"}, "shape: is nan"),
        ({"mtbf": "1h", "shape": 1e4}, "shape: is 10000"),
        ({"mtbf": "1h", "sigma": -1}, "sigma: is -1"),
        ({"mtbf": "1h", "repair": "0"}, "repair: is 0 s"),
        ({"mtbf": "1h", "downtime": "1h"}, "unknown parameter of renewal 'downtime'"),
        ({}, "renewal: parameter mtbf is missing"),
    ],
)
def test_parameters_that_cannot_be(values, told: str) -> None:
    with pytest.raises(InputError, match=told):
        make_law("renewal", values)
