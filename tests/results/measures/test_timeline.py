# SPDX-License-Identifier: Apache-2.0
"""Series and outages of a timeline, compared with simple loops over the ledger."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.core.node_events import NodeEvents
from rebat.core.nodes import NodeSet
from rebat.models.failures.outages import node_events
from rebat.results.measures.nodetime import Steps, steps_of
from rebat.results.measures.timeline import outages_of, series_of, timeline_of
from rebat.state.ledger import Ledger
from tests.support.amount import few
from tests.support.scenarios import failures, run, workloads

N_NODES = 10


def value_at(steps: Steps, at: int) -> int:
    dates, values = steps
    return int(values[np.searchsorted(dates, at, side="right") - 1])


def slowly(ledger: Ledger, at: int) -> tuple[int, int, int]:
    """Count the nodes in use, waiting attempts, nodes up and free nodes at a date, one by one."""
    busy: set[int] = set()
    waiting = 0
    for record in ledger.attempts:
        ran = record.start_us >= 0
        if ran and record.start_us <= at < record.end_us:
            busy |= set(record.nodes or ())
        waiting += record.attempt.queued_us <= at < (record.start_us if ran else record.end_us)
    end = max(record.end_us for record in ledger.attempts)
    down = {node for node, since, until in ledger.node_events.outages(end).rows()
            if since <= at < min(until, end)}  # fmt: skip
    return len(busy), waiting, N_NODES - len(busy | down)


@settings(max_examples=few(60))
@given(workloads(N_NODES), failures(N_NODES), st.sampled_from(["baseline", "sfsj", "easy"]))
def test_series_are_what_one_counts_at_any_date(workload, events, policy) -> None:
    ledger = run(policy, workload, events).ledger
    timeline = timeline_of(policy, ledger, N_NODES)
    series = series_of(timeline)
    dates = {int(date) for steps in series for date in steps[0]}
    for at in sorted(dates | {date + 500_000 for date in dates}):
        found = tuple(value_at(steps, at) for steps in series)
        expected = slowly(ledger, at)
        if at < timeline.makespan_us:
            assert found == expected, at
        else:
            assert found[:2] == (0, 0)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(-3, 3)), max_size=30))
def test_steps_are_sums_up_to_each_date(changes) -> None:
    dates = np.array([at for at, _ in changes], dtype=np.int64)
    by = np.array([change for _, change in changes], dtype=np.int64)
    steps, values = steps_of(dates, by)
    assert steps.tolist() == sorted(set(dates.tolist()))
    for at, value in zip(steps.tolist(), values.tolist(), strict=True):
        assert value == sum(change for date, change in changes if date <= at)


@given(failures(N_NODES, most=30), st.integers(1, 120))
def test_outages_of_neighbours_are_joined_and_nothing_is_lost(events, until_s) -> None:
    told = node_events(sorted(events, key=by_date))
    until = until_s * 1_000_000
    outages, (dates, nodes) = outages_of(told, until)
    plain = {
        (node, down, min(up, until))
        for node, down, up in told.outages(until).rows()
        if down < until
    }
    joined = {
        (node, int(down), int(up))
        for down, up, first, last in zip(*outages, strict=True)
        for node in range(first, last + 1)
    }
    assert joined == plain
    assert outages.sizes.sum() == len(plain)
    assert set(zip(nodes.tolist(), dates.tolist(), strict=True)) == {p[:2] for p in plain}


def by_date(event) -> tuple[int, bool]:
    return event.at_us, not event.available


def test_a_rack_that_fails_at_once_is_one_outage() -> None:
    rack = NodeSet.parse("2-5")
    outages, failed = outages_of(NodeEvents([(10, False, rack), (20, True, rack)]), 100)
    assert [column.tolist() for column in outages] == [[10], [20], [2], [5]]
    assert failed[1].tolist() == [2, 3, 4, 5]


def test_a_run_without_attempts_has_empty_series() -> None:
    series = series_of(timeline_of("none", Ledger(), 4))
    assert [values.tolist() for _, values in series] == [[0], [0], [4]]
