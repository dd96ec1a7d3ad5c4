# SPDX-License-Identifier: Apache-2.0
"""Groups of nodes that fail together in a record, and the failure rate over time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.models.ettr import DAY_S
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.laws import parse_law
from rebat.models.failures.statistics import exposure_of, rate_over_time, together, trend


def record(law: str, n_nodes: int, days: float, seed: int = 0):
    """Return the events of a law, their exposure, and the end of the record in microseconds."""
    end_us = to_us(days * DAY_S)
    events = list(parse_law(law).events(n_nodes, seed, horizon_s=days * DAY_S))
    return events, exposure_of(events, n_nodes, end_us), end_us


def test_groups_and_rates_by_hand() -> None:
    """Four days of two nodes; node 0 is down in the entire second day."""
    day = to_us(DAY_S)
    events = [
        MachineEvent(day, False, NodeSet.of([0])),
        MachineEvent(2 * day, True, NodeSet.of([0])),
        MachineEvent(3 * day + 5, False, NodeSet.of([0, 1])),
        MachineEvent(3 * day + 6, True, NodeSet.of([0, 1])),
    ]
    exposure = exposure_of(events, 2, 4 * day)
    assert together(exposure) == {1: 1, 2: 1}
    rows = rate_over_time(events, exposure, 4 * day)
    assert [row.failures for row in rows] == [0, 1, 0, 1]
    assert [row.rate for row in rows] == pytest.approx([0, 1000, 0, 500])
    assert rows[1].low < 1000 < rows[1].high
    change = trend(exposure, 4 * day)
    assert change.z == pytest.approx((0.5 - 0.5) * 24**0.5, abs=1e-5)


def test_a_record_without_failures() -> None:
    exposure = exposure_of([], 3, to_us(DAY_S))
    assert together(exposure) == {}
    assert trend(exposure, to_us(DAY_S)) is None
    assert [row.failures for row in rate_over_time([], exposure, to_us(DAY_S))] == [0] * 4
    assert rate_over_time([], exposure_of([], 3), 0) == []


def test_switches_and_burn_in_are_found() -> None:
    law = "fleet:rate=20,switch=16,switch_rate=30,new_factor=6,burn_in=10d"
    events, exposure, end_us = record(law, 128, 60)
    groups = together(exposure)
    assert groups[16] > 5 * groups.get(15, 0)
    rows = rate_over_time(events, exposure, end_us)
    assert rows[0].low > rows[3].high
    assert trend(exposure, end_us).p < 1e-6


@pytest.mark.slow
def test_the_trend_test_has_its_level() -> None:
    """P-values of machines without a burn-in are uniform."""
    tests = (record("fleet:rate=30", 40, 100, seed)[1:] for seed in range(200))
    p = np.array([trend(*test).p for test in tests])
    assert stats.kstest(p, "uniform").pvalue > 1e-3
