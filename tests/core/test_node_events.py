# SPDX-License-Identifier: Apache-2.0
"""Node events as columns: outages equal those of a plain loop over the events."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rebat.core.node_events import NodeEvents, Outages
from rebat.core.nodes import NodeSet
from tests.support.outages import Span, joined

SETS = st.lists(st.integers(0, 5), min_size=1).map(NodeSet.of)
EVENTS = st.lists(st.tuples(st.integers(0, 9), st.booleans(), SETS)).map(
    lambda events: sorted(events, key=lambda event: event[0])
)


def plain(events: list[tuple[int, bool, NodeSet]], horizon_us: int) -> list[tuple[int, int, int]]:
    """Return node, start and end of each outage."""
    since: dict[int, int] = {}
    outages = []
    for at_us, up, nodes in events:
        for node in nodes:
            if up and node in since:
                outages.append((node, since.pop(node), at_us))
            elif not up:
                since.setdefault(node, at_us)
    return outages + [(node, at_us, max(at_us, horizon_us)) for node, at_us in since.items()]


@given(events=EVENTS, horizon_us=st.integers(0, 12))
def test_outages(events: list[tuple[int, bool, NodeSet]], horizon_us: int) -> None:
    ours = NodeEvents()
    for event in events:
        ours.append(event)
        assert ours[-1] == event
    expected = plain(events, horizon_us)
    found = [part.tolist() for part in ours.outages(horizon_us)]
    assert list(zip(*found, strict=True)) == expected
    same = NodeEvents.of_columns(*ours.columns())
    assert len(same) == len(events)
    assert same == ours == events
    same.append((10, True, NodeSet.of([1])))
    assert [*same] == [*events, (10, True, NodeSet.of([1]))]


ROWS = st.lists(st.builds(Span, st.integers(0, 3), st.integers(0, 20), st.integers(0, 20)))


@given(rows=ROWS.map(lambda rows: [row for row in rows if row.up_us > row.down_us]))
def test_joined_outages(rows: list[Span]) -> None:
    assert Outages.of(rows).joined().rows() == [tuple(span) for span in joined(rows)]
