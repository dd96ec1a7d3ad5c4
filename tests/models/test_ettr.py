# SPDX-License-Identifier: Apache-2.0
"""The effective training time: closed forms agree with printed numbers and a slow oracle."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.core.errors import InputError
from rebat.models.ettr import (
    TrainingJob,
    TwoTiers,
    best_interval_s,
    daly_interval_s,
    enough_spares,
    ettr,
    ettr_safe_load,
    failure_rate,
    rework_s,
    rsc_ettr,
    spare_nodes,
    two_tier_ettr,
    young_interval_s,
)
from tests.oracles.training import (
    one_job,
    one_job_of_two_tiers,
    ratio_with_error,
    tier_ettr_first_order,
    tier_intervals_s,
)

HOUR, MINUTE = 3600.0, 60.0


def job(mtbf_h: float, detect: float, load: float, interval: float, write: float) -> TrainingJob:
    """Return a training job; the MTBF is in hours, the other times are in minutes."""
    return TrainingJob(
        mtbf_s=mtbf_h * HOUR, detect_s=detect * MINUTE, load_s=load * MINUTE,
        interval_s=interval * MINUTE, write_s=write * MINUTE,
    )  # fmt: skip


A = job(1 / failure_rate(128, 6.5) / HOUR, 5, 10, 60, 0)
B = job(1 / failure_rate(2048, 6.5) / HOUR, 5, 5, 30, 0)
C = job(3.093079, 2, 8, 15, 1)
D = job(1 / failure_rate(16384, 6.5) / HOUR, 1, 2, 2, 2 / 60)


# The reference's table of exact ETTRs: closed form, and the one without failures during loads.
@pytest.mark.parametrize(
    ("case", "exact", "safe"),
    [
        (A, 0.974290, 0.974323),
        (B, 0.791934, 0.794305),
        (C, 0.850627, 0.851771),
        (D, 0.732041, 0.745993),
    ],
)
def test_exact_ettr(case, exact, safe):
    assert round(ettr(case), 6) == exact
    assert round(ettr_safe_load(case), 6) == safe


@pytest.mark.slow
@pytest.mark.parametrize("case", [A, B, C, D])
def test_exact_ettr_is_that_of_the_oracle(case):
    mean, error = ratio_with_error(lambda rng: one_job(case, 20_000, rng), 20)
    assert abs(mean - ettr(case)) < 3 * error


@given(
    st.floats(0.05, 100), st.floats(0, 60), st.floats(0, 60), st.floats(0.1, 600), st.floats(0, 30)
)
def test_ettr_is_a_share(mtbf_h, detect, load, interval, write):
    case = job(mtbf_h, detect, load, interval, write)
    assert 0 <= ettr(case) <= ettr_safe_load(case) * (1 + 1e-12) <= 1 + 2e-12
    assert ettr(case) <= interval / (interval + write) * (1 + 1e-12)


def test_rework():
    assert round(rework_s(C) / HOUR, 6) == 0.131418
    short = TrainingJob(mtbf_s=1e9, interval_s=10.0)
    assert rework_s(short) == pytest.approx(5.0, rel=1e-6)
    assert rework_s(TrainingJob(mtbf_s=1.0, interval_s=1e6)) == 1.0


def test_an_endless_interval_is_never_productive():
    assert ettr(TrainingJob(mtbf_s=1.0, interval_s=1e6)) == 0.0


# Rows 2 to 7 of the reference's validation table: nodes, rate, u0, w, Delta (None: the optimum).
@pytest.mark.parametrize(
    ("nodes", "rate", "start", "write", "interval", "printed"),
    [
        (2048, 6.5, 5, 0, 60, 0.6764),
        (2048, 6.5, 5, 0, 5, 0.9307),
        (1500, 1, 5, 5, None, 0.898),
        (1500, 6.5, 5, 5, None, 0.740),
        (1500, 6.5, 5, 1 / 6, None, 0.9205),
        (12500, 2.34, 2, 0, 2, 0.939),
        (12500, 2.34, 3.28, 0, 3.28, 0.900),
        (256, 6.5, 5, 0, 60, 0.960),
        (512, 6.5, 5, 0, 60, 0.919),
    ],
)
def test_formula_of_rsc(nodes, rate, start, write, interval, printed):
    mtbf_s = 1 / failure_rate(nodes, rate)
    interval = interval or young_interval_s(mtbf_s, write * MINUTE) / MINUTE
    case = job(mtbf_s / HOUR, start, 0, interval, write)
    assert rsc_ettr(case) == pytest.approx(printed, abs=10.0 ** -len(str(printed)[2:]) / 1.9)


def test_formula_of_rsc_is_never_negative():
    assert rsc_ettr(job(0.1, 60, 0, 60, 0)) == 0.0


def test_exact_forms_of_rows_2_and_7():
    mtbf_h = 1 / failure_rate(2048, 6.5) / HOUR
    assert round(ettr(job(mtbf_h, 0, 5, 60, 0)), 4) == 0.7144
    assert round(ettr(job(mtbf_h, 0, 5, 5, 0)), 4) == 0.9329
    assert round(ettr(job(54 * 24 / 466, 2, 6, 15, 0)), 4) == 0.9111


@pytest.mark.parametrize(
    ("nodes", "rate", "hours"),
    [(2048, 6.5, 1.803), (16384, 6.5, 0.2254), (128, 6.5, 28.85), (128, 23.7, 7.9), (1, 6.5, 3692)],
)  # fmt: skip
def test_mean_time_between_failures(nodes, rate, hours):
    assert float(f"{1 / failure_rate(nodes, rate) / HOUR:.4g}") == pytest.approx(hours, abs=0.02)


def test_best_intervals():
    # The reference states M = 1.8029 h for these numbers, but they result from 1.8033 h.
    mtbf_s = 1.8033 * HOUR
    assert round(best_interval_s(mtbf_s, 60) / MINUTE, 4) == 14.0514
    assert round(daly_interval_s(mtbf_s, 60) / MINUTE, 4) == 14.0513
    assert round(young_interval_s(mtbf_s, 60) / MINUTE, 4) == 14.7104


@given(st.floats(600, 1e6), st.floats(0.001, 0.5))
def test_no_interval_is_better_than_the_best(mtbf_s, share):
    write_s = share * mtbf_s
    best = best_interval_s(mtbf_s, write_s)

    def at(interval_s: float) -> float:
        return ettr(TrainingJob(mtbf_s=mtbf_s, interval_s=interval_s, write_s=write_s))

    assert all(at(best) >= at(best * factor) for factor in np.linspace(0.5, 1.5, 21))


def test_intervals_at_the_ends_of_their_range():
    assert best_interval_s(3600, 0) == 0.0
    assert daly_interval_s(60, 120) == 60


def test_spares():
    a_day = 2048 * 3.79 / 1000
    assert [spare_nodes(a_day / 6), spare_nodes(a_day), spare_nodes(2048 * 6.5 / 1000)] == [
        5,
        15,
        22,
    ]
    assert enough_spares(a_day, 15) >= 0.99 > enough_spares(a_day, 14)


def test_spares_of_a_repair_shop():
    """Count the nodes in repair at random times; repairs last 1 to 3 hours or 1 to 3 days."""
    rng, rate_h, hours = np.random.default_rng(1), 0.3, 400_000
    starts = np.sort(rng.uniform(0, hours, int(rate_h * hours)))
    long = rng.random(len(starts)) < 0.1
    lasts = np.where(long, rng.uniform(24, 72, len(starts)), rng.uniform(1, 3, len(starts)))
    times = rng.uniform(100, hours - 100, 20_000)
    in_repair = np.array(
        [(starts <= t).sum() - (np.sort(starts + lasts) <= t).sum() for t in times[:500]]
    )
    mean = rate_h * (0.9 * 2 + 0.1 * 48)
    assert in_repair.mean() == pytest.approx(mean, abs=4 * math.sqrt(mean / 500))
    n_spares = spare_nodes(mean)
    assert (in_repair <= n_spares).mean() > 0.97


ROW_11 = TwoTiers(
    mtbf_s=3.093079 * HOUR, light_share=0.8, interval_s=2.6 * MINUTE, per_pattern=12,
    writes_s=(1, 30), loads_s=(3 * MINUTE, 10 * MINUTE),
)  # fmt: skip


def test_two_tiers():
    assert round(two_tier_ettr(ROW_11, safe_loads=True), 6) == 0.933604
    assert round(two_tier_ettr(ROW_11), 6) == 0.932953
    first = tier_ettr_first_order(ROW_11.mtbf_s, (0.8, 0.2), (1, 30), (180, 600))
    assert round(first, 4) == 0.9359


@pytest.mark.slow
def test_two_tiers_are_those_of_the_oracle():
    for detect_s, safe in ((0.0, True), (240.0, False), (0.0, False)):
        tiers = msgspec.structs.replace(ROW_11, detect_s=detect_s)
        mean, error = ratio_with_error(
            lambda rng, tiers=tiers, safe=safe: one_job_of_two_tiers(tiers, 4_000, rng, safe), 20
        )
        assert abs(mean - two_tier_ettr(tiers, safe)) < 3 * error


def test_intervals_of_tiers():
    light, deep = tier_intervals_s(ROW_11.mtbf_s, (0.8, 0.2), (1, 30))
    assert (round(light / MINUTE, 2), round(deep / light)) == (2.78, 11)
    assert tier_intervals_s(3600, (0, 1), (1, 30))[0] == math.inf


def test_two_tiers_without_deep_failures_are_one_tier():
    tiers = TwoTiers(
        mtbf_s=7200, light_share=1, interval_s=600, per_pattern=1, writes_s=(20, 0),
        loads_s=(60, 0), detect_s=100,
    )  # fmt: skip
    alone = TrainingJob(mtbf_s=7200, interval_s=600, write_s=20, load_s=60, detect_s=100)
    assert two_tier_ettr(tiers, safe_loads=True) == pytest.approx(ettr_safe_load(alone), rel=1e-12)
    assert two_tier_ettr(tiers) == pytest.approx(ettr(alone), rel=1e-12)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"mtbf_s": 0.0, "interval_s": 1.0}, "mtbf: is 0 s .expected seconds above 0"),
        ({"mtbf_s": 1.0, "interval_s": -1.0}, "interval: is -1 s .expected seconds above 0"),
        ({"mtbf_s": 1.0, "interval_s": 1.0, "load_s": -1.0}, "load: is -1 s"),
    ],
)
def test_bad_jobs(fields, text):
    with pytest.raises(InputError, match=text):
        TrainingJob(**fields)


def test_bad_tiers():
    fields = {
        "mtbf_s": 1.0, "interval_s": 1.0, "writes_s": (0, 0), "loads_s": (0, 0),
    }  # fmt: skip
    with pytest.raises(InputError, match=r"share of the light tier: is 1\.5 \(expected 0 to 1\)"):
        TwoTiers(light_share=1.5, per_pattern=1, **fields)
    with pytest.raises(InputError, match=r"periods per pattern: is 0 \(expected"):
        TwoTiers(light_share=0.5, per_pattern=0, **fields)
