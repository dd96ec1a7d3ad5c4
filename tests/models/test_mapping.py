# SPDX-License-Identifier: Apache-2.0
"""Records mapped to machines of other sizes: properties of each method, and cases by hand."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.core.errors import InputError
from rebat.core.units import FOREVER_US
from rebat.models.failures.events import check_alternation
from rebat.models.failures.outages import window
from rebat.models.failures.recorded import WAYS, MappedRecord, mapped, source_of
from tests.support.outages import Span, down_intervals, events_of_spans

M = 8
LENGTH = 1000

spans = st.lists(
    st.builds(
        lambda node, down, lasts: Span(node, down, min(down + lasts, LENGTH)),
        st.integers(0, M - 1), st.integers(0, LENGTH - 1), st.integers(1, 400),
    ),
    min_size=1,
)  # fmt: skip


def source(some: list[Span], n_nodes: int = M) -> MappedRecord:
    return source_of(events_of_spans(some), n_nodes)


@given(spans, st.sampled_from(WAYS), st.integers(1, 3 * M + 1), st.booleans(), st.integers(0, 9))
def test_no_node_fails_while_it_is_down_and_seeds_repeat(some, way, n, turn, seed) -> None:
    events = mapped(source(some), n, way, seed, turn)
    check_alternation(events, n)
    assert events == mapped(source(some), n, way, seed, turn)


@given(spans, st.sampled_from(WAYS))
def test_on_a_machine_of_its_size_a_record_is_itself(some, way) -> None:
    assert mapped(source(some), M, way, seed=3) == events_of_spans(some)


@given(spans, st.integers(1, 3))
def test_share_takes_the_same_share_of_the_machine(some, times) -> None:
    record = source(some)
    found = mapped(record, times * M, "share")
    assert down_us(found) == times * down_us(record.events)


@given(spans, st.integers(2, 4), st.integers(0, 9))
def test_rate_keeps_each_copys_time_down(some, times, seed) -> None:
    """Rotating copies in time joins and cuts outages, but keeps each node's total downtime."""
    record = source(some)
    found = mapped(record, times * M, "rate", seed)
    per_node: Counter[int] = Counter()
    for node, down, up in down_intervals(found):
        per_node[node] += up - down
    for node in range(times * M):
        assert per_node[node] == sum(
            b - a for n, a, b in down_intervals(record.events) if n == node % M
        )


def down_us(events) -> int:
    return sum(up - down for _, down, up in down_intervals(events))


def test_by_hand() -> None:
    record = source([Span(0, 10, 20), Span(3, 15, 30), Span(2, 25, 40)], 4)
    nodes = {way: set(down_intervals(mapped(record, 8, way))) for way in ("rank", "share")}
    assert nodes["rank"] == {(0, 10, 20), (6, 15, 30), (4, 25, 40)}
    assert nodes["share"] == nodes["rank"] | {(1, 10, 20), (7, 15, 30), (5, 25, 40)}
    halved = set(down_intervals(mapped(record, 2, "rank")))
    assert halved == {(0, 10, 20), (1, 15, 40)}  # nodes 2 and 3 become one node, down from 15 to 40


def test_a_smaller_machine_has_some_of_the_nodes_and_their_rate() -> None:
    """If each of 400 nodes fails once, a quarter of the machine has a quarter of the failures."""
    record = source([Span(node, 10 * node, 10 * node + 5) for node in range(400)], 400)
    found = down_intervals(mapped(record, 100, "rate", seed=1))
    assert len(found) == 100
    assert len({node for node, _, _ in found}) == 100
    assert {down for _, down, _ in found} <= {10 * node for node in range(400)}
    other = down_intervals(mapped(record, 100, "rate", seed=2))
    assert {down for _, down, _ in found} != {down for _, down, _ in other}


def test_copies_do_not_fail_at_the_same_dates() -> None:
    record = source([Span(node, 1000 * node + 7, 1000 * node + 9) for node in range(50)], 50)
    events = mapped(record, 150, "rate", seed=0)
    assert len({down for _, down, _ in down_intervals(events)}) == 150


def test_what_never_came_back_lasts_to_the_end_where_it_is_turned() -> None:
    record = source([Span(0, 40, FOREVER_US), Span(1, 0, 100)], 2)
    (node, down, up), *_ = sorted(down_intervals(mapped(record, 2, "rank", seed=5, turn=True)))
    assert node == 0
    assert up is not None
    assert up - down <= 60


def test_what_cannot_be() -> None:
    record = source([Span(3, 1, 2)])
    with pytest.raises(InputError, match="unknown way to map 'size'"):
        mapped(record, 4, "size")
    with pytest.raises(InputError, match="number of nodes is 0"):
        mapped(record, 0)
    with pytest.raises(InputError, match="node 3 is not on the machine"):
        source_of(record.events, 3)
    with pytest.raises(InputError, match="contains no failures"):
        source_of([])


def test_a_window_by_hand() -> None:
    events = events_of_spans(
        [Span(0, 0, 10), Span(1, 5, 25), Span(2, 12, FOREVER_US), Span(3, 30, 40)]
    )
    found = set(down_intervals(window(events, 10, 30)))
    assert found == {(1, 0, 15), (2, 2, None)}
