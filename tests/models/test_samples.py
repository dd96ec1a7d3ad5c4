# SPDX-License-Identifier: Apache-2.0
"""Laws fitted to the times of a record equal scipy's fits; samples equal those computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rebat.models.failures.fitting import UpTimes
from rebat.models.failures.per_node import FAMILIES
from rebat.models.failures.statistics import empirical, fits, samples
from tests.support.outages import Span, events_of_spans

SCIPY = {
    "weibull": stats.weibull_min, "gamma": stats.gamma, "lognormal": stats.lognorm,
    "exponential": stats.expon,
}  # fmt: skip
NONE = np.empty(0)


def drawn(family: str, shape: float, count: int = 2000) -> np.ndarray:
    """Return random times with a scale of 5,000 s."""
    law = FAMILIES[family](np.array([5000.0]), np.array([shape]))
    return law.gaps(np.random.default_rng(7), count)[0]


CASES = [
    ("weibull", 0.6), ("weibull", 2.0), ("gamma", 0.5), ("gamma", 3.0), ("lognormal", 0.4),
    ("lognormal", 2.0), ("exponential", 1.0),
]  # fmt: skip


@pytest.mark.parametrize(("family", "shape"), CASES)
def test_all_four_as_scipy_fits_them(family: str, shape: float) -> None:
    """Parameters and AIC equal scipy's, also for families from which the times were not drawn."""
    times_s = drawn(family, shape)
    found = {fit.family: fit for fit in fits(UpTimes(times_s, NONE))}
    assert found.keys() == FAMILIES.keys()
    for name, fit in found.items():
        theirs = SCIPY[name].fit(times_s, floc=0)
        scale_s, shape_found = fit.parameters
        expected = (theirs[-1],) if name == "exponential" else (theirs[-1], theirs[0])
        assert (scale_s, shape_found)[: len(expected)] == pytest.approx(expected, rel=0.01)
        aic = 2 * len(expected) - 2 * SCIPY[name].logpdf(times_s, *theirs).sum()
        assert fit.aic == pytest.approx(aic, abs=0.5)
        assert fit.mean_s == pytest.approx(SCIPY[name].mean(*theirs), rel=0.02)


@pytest.mark.parametrize(("family", "shape"), CASES)
def test_censored_times_as_scipy_fits_them(family: str, shape: float) -> None:
    times_s = drawn(family, shape)
    limit_s = float(np.quantile(times_s, 0.7))
    seen = UpTimes(times_s[times_s < limit_s], np.full((times_s >= limit_s).sum(), limit_s))
    data = stats.CensoredData(uncensored=seen.failed_s, right=seen.going_s)
    (found,) = (fit for fit in fits(seen) if fit.family == family)
    theirs = SCIPY[family].fit(data, floc=0)
    assert found.parameters.scale_s == pytest.approx(theirs[-1], rel=0.01)
    if family != "exponential":
        assert found.parameters.shape == pytest.approx(theirs[0], rel=0.01)


@pytest.mark.parametrize(("family", "shape"), CASES[:-1])
def test_the_law_behind_the_times_is_the_best(family: str, shape: float) -> None:
    assert fits(UpTimes(drawn(family, shape), NONE))[0].family == family


def test_samples_by_hand() -> None:
    """Nodes 0 and 1 are down from 10 s to 12 s, 0 fails again, and 2 is never repaired."""
    some = [Span(0, 10, 12), Span(1, 10, 12), Span(0, 20, 25), Span(2, 30, 2**62)]
    events = events_of_spans([s._replace(down_us=s.down_us * 10**6, up_us=up(s)) for s in some])
    gaps, lives, repairs = samples(events, 4, 40 * 10**6)
    assert gaps.times.failed_s.tolist() == [10, 10]
    assert sorted(lives.times.failed_s.tolist()) == [8, 10, 10, 30]
    assert sorted(lives.times.going_s.tolist()) == [15, 28, 40]
    assert sorted(repairs.times.failed_s.tolist()) == [2, 5]
    assert repairs.times.going_s.tolist() == [10]


def up(span: Span) -> int:
    return span.up_us if span.up_us == 2**62 else span.up_us * 10**6


def test_times_that_are_all_alike_fit_the_exponential_law_alone() -> None:
    (fit,) = fits(UpTimes(np.full(50, 3600.0), NONE))
    assert (fit.family, fit.mean_s) == ("exponential", pytest.approx(3600.0))


def test_too_few_times_fit_nothing() -> None:
    assert fits(UpTimes(np.array([1.0, 2.0]), np.array([4.0]))) == []


def test_the_share_that_is_longer_counts_what_goes_on() -> None:
    """The Kaplan-Meier estimate by hand: 3/4, then half of this, then 0."""
    seen = UpTimes(np.array([1.0, 3.0, 4.0]), np.array([2.0]))
    times_s, share = empirical(seen)
    at = dict(zip(times_s.tolist(), share.tolist(), strict=True))
    assert [at[time] for time in (1.0, 3.0, 4.0)] == pytest.approx([0.75, 0.375, 0.0])
