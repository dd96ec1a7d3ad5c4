# SPDX-License-Identifier: Apache-2.0
"""Failures before a run: uptimes, nodes that are still down, and later failures."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.core.nodes import NodeSet
from rebat.models.failures.events import MachineEvent, check_alternation, in_order
from rebat.models.failures.history import Remembered, after, before
from rebat.models.failures.laws import parse_law
from tests.support.outages import down_intervals
from tests.support.scenarios import failures


def event(at_us: int, available: bool, nodes: str) -> MachineEvent:
    return MachineEvent(at_us, available, NodeSet.parse(nodes))


RECORD = [
    event(10, False, "0-1"),
    event(20, True, "0"),
    event(30, False, "2"),
    event(40, True, "2"),
    event(50, False, "3"),
    event(60, True, "1 3"),
]


@pytest.mark.parametrize(
    ("begin_us", "uptimes", "rest"),
    [
        (5, [5, 5, 5, 5], [(5, False, "0-1"), (15, True, "0"), (25, False, "2")]),
        (20, [0, 0, 20, 20], [(0, False, "1"), (10, False, "2"), (20, True, "2")]),
        (45, [25, 0, 5, 45], [(0, False, "1"), (5, False, "3"), (15, True, "1 3")]),
        (50, [30, 0, 10, 0], [(0, False, "1 3"), (10, True, "1 3")]),
        (99, [79, 39, 59, 39], []),
    ],
)
def test_by_hand(begin_us, uptimes, rest) -> None:
    assert before(RECORD, 4, begin_us).uptime_us.tolist() == uptimes
    assert after(RECORD, begin_us)[:3] == [event(*one) for one in rest]


@given(events=failures(), begin_s=st.integers(0, 140))
def test_the_rest_is_the_record_cut_off(events, begin_s) -> None:
    begin_us, events = begin_s * 10**6, in_order(events)
    rest = after(events, begin_us)
    check_alternation(rest, 10)
    cut = {
        (node, max(down - begin_us, 0), up - begin_us)
        for node, down, up in down_intervals(events)
        if up > begin_us
    }
    assert set(down_intervals(rest)) == cut
    uptimes = before(events, 10, begin_us).uptime_us
    for node in range(10):
        ends = [up for n, _, up in down_intervals(events) if n == node and up <= begin_us]
        down = any(n == node and at == 0 for n, at, _ in cut)
        assert uptimes[node] == (0 if down else begin_us - max(ends, default=0))


def test_a_law_goes_on_without_end_and_again() -> None:
    events = Remembered(parse_law("weibull:scale=100h,shape=2").events(8, 1))
    rest = after(events, 10**12)
    first = list(itertools.islice(rest, 50))
    assert first == list(itertools.islice(rest, 50))
    whole = list(itertools.islice(events, 200))
    later = [e for e in whole if e.at_us > 10**12][:20]
    shifted = [MachineEvent(e.at_us + 10**12, e.available, e.nodes) for e in first if e.at_us][:20]
    assert shifted == later


def test_what_is_remembered_ends_where_it_ends() -> None:
    events = Remembered(iter(RECORD))
    assert [*itertools.islice(events, 2)] == RECORD[:2]
    assert [*events] == RECORD == [*events]


def test_old_nodes_are_of_all_ages() -> None:
    """Far from the start of a renewal process the mean age is E[T^2] / 2E[T]."""
    law = parse_law("weibull:scale=5800h,shape=8")
    begin_us = 200_000 * 3600 * 10**6
    ages_h = before(law.events(256, 0), 256, begin_us).uptime_us / 3.6e9
    gaps_h = law.gaps(256, 5, 0).ravel() / 3600
    assert np.mean(ages_h) == pytest.approx(np.mean(gaps_h**2) / 2 / np.mean(gaps_h), rel=0.15)
