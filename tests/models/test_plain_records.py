# SPDX-License-Identifier: Apache-2.0
"""Failures as plain tables: export and import do not change them."""

from __future__ import annotations

import tempfile
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.core.errors import InputError
from rebat.core.units import FOREVER_US
from rebat.models.failures.events import check_alternation, read_events, write_events
from rebat.models.failures.outages import write_plain
from rebat.models.failures.records.record import Record, record_of
from rebat.records.down_table import read_down_table
from tests.support.outages import Span, down_intervals, events_of_spans

S = 10**6


def read_plain(path: Path, strict: bool = False) -> Record:
    return record_of(read_down_table(path, strict))


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.csv"
    path.write_text(text)
    return path


def test_numbers_by_hand(tmp_path) -> None:
    """A table with further columns, another order, spaces, overlaps, and a node never repaired."""
    text = "up,cause, node,down\n20,disk,3,10.5\n 30 ,,3,15\n,fan,7,2\n5,,1,5\n"
    record = read_plain(written(tmp_path, text.replace(" node", "node")))
    assert set(down_intervals(record.events)) == {(3, 10_500_000, 30 * S), (7, 2 * S, None)}
    assert record.taken == {"node": 3}
    assert record.dropped == {"zero duration": 1}
    assert (record.n_outages, record.n_joined, record.origin) == (3, 1, None)


def test_dates_and_names_by_hand(tmp_path) -> None:
    """Dates with time zones are converted to UTC."""
    text = (
        "node,down,up\nnid0007,2024-03-01T12:00Z,2024-03-01 13:00:00+00:00\n"
        "12,2024-03-02T02:00+02:00,2024-03-01T19:30-05:00\n"
    )
    record = read_plain(written(tmp_path, text))
    hour = 3600 * S
    found = {(0, 12 * hour, 13 * hour), (1, 24 * hour, 24 * hour + hour // 2)}
    assert set(down_intervals(record.events)) == found
    assert record.names == ("nid0007", "12")
    assert record.origin == datetime(2024, 3, 1)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "csv:1: has no column node, down, up"),
        ("node,down\n1,2\n", "csv:1: has no column up"),
        ("node,down,up\n", "contains no failures"),
        ("node,down,up\n,1,2\n", "csv:2: node is empty"),
        ("node,down,up\n1,,2\n", "csv:2: down is unknown"),
        ("node,down,up\n1,1,2\n1,soon,2\n", "csv:3: down is 'soon'"),
        ("node,down,up\n1,3,2\n", "csv:2: the outage ends before it begins"),
        ("node,down,up\n1,nan,2\n", "csv:2: down is unknown"),
        ("node,down,up\n1,-1,2\n", "csv:2: down is -1 s"),
        ("node,down,up\n1,1,2024-03-01\n", "csv:2: up is '2024-03-01'"),
        ("node,down,up\n1,1,2\n1,2024-03-01,\n", "csv:3: down is '2024-03-01'"),
        (
            "node,down,up\n0,2024-03-01T12:00,2024-03-01T14:00\n1,2024-03-01T12:00+05:00,\n",
            "csv:3: down is '2024-03-01T12:00\\+05:00'",
        ),
        ("node,down,up\n0,0001-01-01T00:00+14:00,\n", "csv:2: down is -62135647200 s"),
        (f"node,down,up\n{'9' * 5000},1,2\n", "node 99999999999999999999 is too large"),
        ("node,down,up\n99999999,1,2\n", "node 99999999 is too large"),
    ],
)
def test_what_cannot_be(tmp_path, text, match) -> None:
    with pytest.raises(InputError, match=match):
        read_plain(written(tmp_path, text), strict=True)


spans = st.lists(
    st.builds(
        lambda node, down, lasts: Span(node, down, FOREVER_US if lasts is None else down + lasts),
        st.integers(0, 8),
        st.integers(0, 10**10),
        st.none() | st.integers(1, 10**10),
    ),
    min_size=1,
)


@given(spans)
def test_what_is_imported_is_written_and_read_as_it_is(some: list[Span]) -> None:
    """Events of joined outages alternate; files and tables of them are read back unchanged."""
    events = events_of_spans(some)
    check_alternation(events, 9)
    with tempfile.TemporaryDirectory() as folder:
        first, again, table = (Path(folder) / name for name in ("a.events", "b.events", "t.csv"))
        write_events(events, first)
        assert read_events(first) == events
        write_events(read_events(first), again)
        assert first.read_bytes() == again.read_bytes()
        assert write_plain(read_events(first), table) == len(down_intervals(events))
        assert read_plain(table).events == events
