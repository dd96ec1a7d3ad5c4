# SPDX-License-Identifier: Apache-2.0
"""Laws fitted to records: compared with scipy's fits, and with the laws of generated records."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.fitting import (
    Parameters,
    UpTimes,
    fit_nodes,
    likeliest,
    likeliest_scale_s,
    log_likelihood,
    up_times,
)
from rebat.models.failures.law import generate_events
from rebat.models.failures.laws import parse_law
from rebat.models.failures.per_node import FAMILIES
from rebat.models.failures.statistics import fits, samples

NONE = np.array([])
SCIPY = {
    "weibull": stats.weibull_min, "gamma": stats.gamma, "lognormal": stats.lognorm,
    "exponential": stats.expon,
}  # fmt: skip


def drawn(family: str, count: int, seed: int = 4) -> np.ndarray:
    """Return random times to failure with a scale of 100 s."""
    shape = 1.0 if family == "exponential" else 1.7
    law = FAMILIES[family](np.array([100.0]), np.array([shape]))
    return law.gaps(np.random.default_rng(seed), count)[0]


def fitted_by_scipy(family: str, data) -> Parameters:
    found = SCIPY[family].fit(data, floc=0)
    return Parameters(found[-1], found[0] if len(found) == 3 else 1.0)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("count", [12, 400])
def test_uncensored_times_are_fitted_as_scipy_does(family: str, count: int) -> None:
    times_s = drawn(family, count)
    found = likeliest(FAMILIES[family], UpTimes(times_s, NONE))
    assert found == pytest.approx(fitted_by_scipy(family, times_s), rel=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("count", [12, 400])
def test_censored_times_are_fitted_as_scipy_does(family: str, count: int) -> None:
    """A third of the times is censored at a limit."""
    times_s = drawn(family, count)
    limit_s = np.quantile(times_s, 2 / 3)
    failed_s, going_s = times_s[times_s <= limit_s], np.full((times_s > limit_s).sum(), limit_s)
    found = likeliest(FAMILIES[family], UpTimes(failed_s, going_s))
    data = stats.CensoredData(uncensored=failed_s, right=going_s)
    assert found == pytest.approx(fitted_by_scipy(family, data), rel=2e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_neighbour_is_likelier(family: str) -> None:
    kind, times_s = FAMILIES[family], drawn(family, 30)
    seen = UpTimes(times_s[:20], times_s[20:] / 2)
    best = likeliest(kind, seen)
    top = log_likelihood(kind, best, seen)
    shape = [] if family == "exponential" else [best.shape]
    law = SCIPY[family](*shape, scale=best.scale_s)
    expected = law.logpdf(seen.failed_s).sum() + law.logsf(seen.going_s).sum()
    assert top == pytest.approx(expected, rel=1e-9)
    for factor in (0.99, 1.01):
        scaled = best._replace(scale_s=best.scale_s * factor)
        assert log_likelihood(kind, scaled, seen) < top
        other = best.shape * factor
        if shape:
            beside = Parameters(likeliest_scale_s(kind, other, seen), other)
            assert log_likelihood(kind, beside, seen) < top


@pytest.mark.parametrize("family", FAMILIES)
def test_times_that_fit_no_shape(family: str) -> None:
    """If all times are equal, the likelihood has no maximum: it grows as the law narrows."""
    found = likeliest(FAMILIES[family], UpTimes(np.full(5, 70.0), NONE))
    assert found == (pytest.approx((70, 1)) if family == "exponential" else None)


def event(at_s: float, available: bool, *nodes: int) -> MachineEvent:
    return MachineEvent(round(at_s * 1e6), available, NodeSet.of(nodes))


RECORD = [
    event(10, False, 0, 1), event(12, True, 0, 1), event(20, False, 0), event(20, True, 0),
    event(20, False, 0), event(25, True, 0), event(40, False, 1),
]  # fmt: skip


def test_up_times_count_from_repairs_and_the_last_one_goes_on() -> None:
    seen, uptime_s = up_times(RECORD, 3, 50_000_000)
    assert [node.failed_s.tolist() for node in seen] == [[10, 8, 1e-6], [10, 28], []]
    assert [node.going_s.tolist() for node in seen] == [[25], [], [50]]
    assert uptime_s.tolist() == [25, 0, 50]


def test_what_comes_after_the_end_of_the_record_is_passed_over() -> None:
    seen, uptime_s = up_times(RECORD, 3, 15_000_000)
    assert [node.failed_s.tolist() for node in seen] == [[10], [10], []]
    assert uptime_s.tolist() == [3, 3, 15]
    seen, uptime_s = up_times(RECORD, 3, 11_000_000)
    assert [node.failed_s.tolist() for node in seen] == [[10], [10], []]
    assert uptime_s.tolist() == [0, 0, 11]


HOUR, SPAN_S = 3600.0, 20_000 * 3600.0


def test_the_parameters_behind_a_record_are_found_again() -> None:
    """64 nodes for 20,000 h: about 45 failures each.

    Asymptotic standard errors of Weibull fits: 0.7797 shape / sqrt(n), and 1.0530 scale / (shape
    sqrt(n)) (Harter and Moore, 1967; Lawless, Statistical Models and Methods for Lifetime Data,
    2003, section 5.2).
    """
    law = parse_law("weibull:scale=500h,shape=2")
    record = generate_events(law, 64, horizon_s=SPAN_S, seed=11)
    fit = fit_nodes(record, 64, until_s=SPAN_S)
    assert fit.n_own == 64
    assert fit.n_failures == sum(len(e.nodes) for e in record if not e.available)
    truth = law.nodes(64, 11)
    count = fit.n_failures
    assert abs(fit.pooled.shape / 2 - 1) < 4 * 0.7797 / math.sqrt(count)
    assert abs(fit.pooled.scale_s / (500 * HOUR) - 1) < 4 * 1.0530 / (2 * math.sqrt(count))
    each = count / 64
    off_shape = (fit.table.laws.shape / truth.shape - 1) / (0.7797 / math.sqrt(each))
    error = 1.0530 / (truth.shape * math.sqrt(each))
    off_scale = (fit.table.laws.scale_s / truth.scale_s - 1) / error
    for off in (off_shape, off_scale):
        # sums of squares of 64 standard normals
        assert stats.chi2(64).ppf(1e-4) < (off**2).sum() < stats.chi2(64).ppf(1 - 1e-4)
    seen, uptime_s = up_times(record, 64, round(SPAN_S * 1e6))
    told = sum(
        log_likelihood(type(truth), Parameters(*pair), node)
        for *pair, node in zip(truth.scale_s, truth.shape, seen, strict=True)
    )
    gain = 2 * (fit.log_likelihood - told)  # 64 nodes have two free parameters each: Wilks' theorem
    assert stats.chi2(128).ppf(1e-4) < gain < stats.chi2(128).ppf(1 - 1e-4)
    assert np.array_equal(fit.table.uptime_s, uptime_s)


OTHERS = ["gamma:scale=100h,shape=4", "lognormal:median=400h,sigma=0.7", "exponential:mean=400h"]


@pytest.mark.parametrize("text", OTHERS)
def test_other_families_find_theirs_likelier_than_the_truth(text: str) -> None:
    law = parse_law(text)
    record = generate_events(law, 16, horizon_s=SPAN_S, seed=2)
    fit = fit_nodes(record, 16, law=law.kind.family, until_s=SPAN_S)
    truth = law.nodes(16, 2)
    seen, _ = up_times(record, 16, round(SPAN_S * 1e6))
    told = sum(
        log_likelihood(type(truth), Parameters(*pair), node)
        for *pair, node in zip(truth.scale_s, truth.shape, seen, strict=True)
    )
    free = 16 * len(law.normals)
    gain = 2 * (fit.log_likelihood - told)
    assert stats.chi2(free).ppf(1e-4) < gain < stats.chi2(free).ppf(1 - 1e-4)


def regular(family: str) -> tuple[list[MachineEvent], dict[int, list[float]]]:
    """Return events of nodes 0 to 2 with 20, 3 and no failures, all repaired after 1 us."""
    times_s = {0: drawn(family, 20).tolist(), 1: drawn(family, 3, seed=5).tolist(), 2: []}
    events = []
    for node, lives_s in times_s.items():
        at_us = 0
        for life_s in lives_s:
            at_us += round(life_s * 1e6)
            nodes = NodeSet.of([node])
            events += [MachineEvent(at_us, False, nodes), MachineEvent(at_us + 1, True, nodes)]
            at_us += 1
    return sorted(events, key=lambda e: (e.at_us, not e.available)), times_s


@pytest.mark.parametrize("family", FAMILIES)
def test_nodes_with_few_failures_share_the_shape(family: str) -> None:
    events, times_s = regular(family)
    fit = fit_nodes(events, 3, law=family, pool=10, until_s=50_000)
    shape = fit.pooled.shape
    assert fit.n_own == 1
    assert fit.n_failures == 23
    assert fit.table.laws.shape[1:].tolist() == [shape, shape]
    assert (fit.table.laws.shape[0] != shape) == (family != "exponential")
    # the scale is the most likely one: that of scipy's fit with a fixed shape
    own = {} if family == "exponential" else {"f0": shape}
    data = stats.CensoredData(uncensored=times_s[1], right=[fit.table.uptime_s[1]])
    expected = SCIPY[family].fit(data, floc=0, **own)[-1]
    assert fit.table.laws.scale_s[1] == pytest.approx(expected, rel=1e-4)
    # a node without failures gets one at the time for which the pooled scale is the most likely
    alone = fit.pooled.scale_s * (shape if family == "gamma" else 1)
    data = stats.CensoredData(uncensored=[alone], right=[50_000])
    expected = SCIPY[family].fit(data, floc=0, **own)[-1]
    assert fit.table.laws.scale_s[2] == pytest.approx(expected, rel=1e-4)
    assert fit.table.laws.scale_s[2] > fit.pooled.scale_s
    usual_s = likeliest_scale_s(FAMILIES[family], shape, UpTimes(np.array([alone]), NONE))
    assert usual_s == pytest.approx(fit.pooled.scale_s, rel=1e-6)


def test_progress_is_told_after_every_node() -> None:
    told: list[int] = []
    fit_nodes(regular("gamma")[0], 3, law="gamma", until_s=50_000, on_progress=told.append)
    assert told == [1, 2, 3]


def test_the_scale_given_the_shape_is_the_closed_form() -> None:
    """It is (sum t**k / failures)**(1/k) over all up-times, including censored ones."""
    seen = UpTimes(np.array([3.0, 5.0]), np.array([4.0]))
    expected = ((3**2.5 + 5**2.5 + 4**2.5) / 2) ** (1 / 2.5)
    assert likeliest_scale_s(FAMILIES["weibull"], 2.5, seen) == pytest.approx(expected, rel=1e-12)


def test_a_record_that_gives_no_law_is_refused() -> None:
    with pytest.raises(InputError, match="unknown law 'x'"):
        fit_nodes(RECORD, 3, law="x")
    with pytest.raises(InputError, match="a law cannot be fitted to 0 failures"):
        fit_nodes([], 3)
    with pytest.raises(InputError, match="a law cannot be fitted to 1 failure"):
        fit_nodes(RECORD[-1:], 3)
    with pytest.raises(InputError, match="node 1 is not on the machine"):
        fit_nodes(RECORD, 1)
    alike = [event(10, False, 0, 1)]
    with pytest.raises(InputError, match="no weibull law fits the up-times of 2 failures"):
        fit_nodes(alike, 2)


def test_a_node_that_is_down_at_date_0_has_not_lived_before() -> None:
    """Node 0 is repaired at 5 s and fails at 9 s: it has one up-time of 4 s, and none of 0 s."""
    told = [(0, False), (5, True), (9, False), (12, True)]
    events = [MachineEvent(at * 1_000_000, up, NodeSet.of([0])) for at, up in told]
    (seen, other), uptime_s = up_times(events, 2, 20_000_000)
    assert seen.failed_s.tolist() == [4]
    assert seen.going_s.tolist() == [8]
    assert other.going_s.tolist() == [20]
    assert uptime_s.tolist() == [8, 20]
    gaps, lives, repairs = (sample.times for sample in samples(events, 2, 20_000_000))
    assert (gaps.failed_s.tolist(), repairs.failed_s.tolist()) == ([], [3])
    assert lives.failed_s.tolist() == [4]


def test_what_was_down_as_a_record_begins_does_not_change_the_laws() -> None:
    """The record of a known law begins at a time at which some nodes are down.

    Up-times that began earlier are counted from that time, so the fitted shape is slightly smaller.
    """
    rng = np.random.default_rng(0)
    spans = []
    for node in range(200):
        at = 0.0
        while at < 4000:
            down = at + 100 * rng.weibull(2.0)
            spans.append((down, down + 30, node))
            at = down + 30
    events = []
    for down, up, node in spans:
        if up > 1000:  # the record begins at 1,000 s
            nodes = NodeSet.of([node])
            events.append(MachineEvent(round(max(0, down - 1000) * 1e6), False, nodes))
            events.append(MachineEvent(round((up - 1000) * 1e6), True, nodes))
    events.sort(key=lambda event: event.at_us)
    lives = samples(events, 200)[1]
    found = {fit.family: fit for fit in fits(lives.times)}
    assert found["weibull"].parameters.shape == pytest.approx(2.0, rel=0.1)
    assert min(found.values(), key=lambda fit: fit.aic).family == "weibull"
