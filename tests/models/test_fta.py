# SPDX-License-Identifier: Apache-2.0
"""Tables of the Failure Trace Archive, tested against the description of the format.

No table of the archive is available. The lines in the tests follow the description.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from rebat.core.errors import InputError
from rebat.models.failures.records.record import Record, record_of
from rebat.records import fta
from tests.support.outages import down_intervals

HEADER = (
    "# event_id\tcomponent_id\tnode_id\tplatform_id\tnode_name\tevent_type\tevent_start_time"
    "\tevent_stop_time\tevent_end_reason\n"
)
ZERO = 1_000_000_000  # 2001-09-09 01:46:40 UTC
S = 10**6


def read_fta(path: Path, platform: int | None = None, strict: bool = False) -> Record:
    return record_of(fta.read_fta(path, platform, strict))


def line(
    node: int, kind: int, start: float, stop: float | str, *, platform: int = 1, component: int = 1
) -> str:
    end = stop if isinstance(stop, str) else repr(ZERO + stop)
    fields = (7, component, node, platform, f"host{node}", kind, repr(ZERO + start), end, "NULL")
    return "\t".join(map(str, fields)) + "\n"


def written(folder: Path, *lines: str) -> Path:
    path = folder / "event_trace.tab"
    path.write_text(HEADER + "".join(lines))
    return path


def test_by_hand(tmp_path) -> None:
    """Three nodes: one always available, one never repaired, one with two components."""
    path = written(
        tmp_path,
        line(900, 1, 0, 5000),
        line(40, 0, 100, 200.5),
        line(40, 0, 150, 300, component=2),
        line(7000, 0, 400, "NULL"),
        line(40, 2, 500, 600),
        line(40, 0, 700, 700),
    )
    record = read_fta(path)
    # numbered by node_id: 40, 900, 7000
    assert set(down_intervals(record.events)) == {(0, 100 * S, 300 * S), (2, 400 * S, None)}
    assert record.names == ("host40", "host900", "host7000")
    assert record.n_nodes == 3
    assert record.taken == {"node": 3}
    assert record.dropped == {"available": 1, "event type 2": 1, "zero duration": 1}
    assert (record.n_lines, record.n_outages, record.n_joined) == (6, 3, 1)
    assert record.origin == datetime(2001, 9, 9, 1, 46, 40)


def test_one_of_several_platforms(tmp_path) -> None:
    path = written(tmp_path, line(1, 0, 0, 10), line(1, 0, 5, 20, platform=2))
    with pytest.raises(InputError, match="contains platforms 1 and 2"):
        read_fta(path)
    record = read_fta(path, 2)
    assert down_intervals(record.events) == [(0, 0, 15 * S)]
    assert record.dropped == {"of other platforms": 1}
    with pytest.raises(InputError, match="contains no events of platform 3"):
        read_fta(path, 3)


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        ("1\t2\t3\n", "tab:3: has 3 fields"),
        (line(1, 0, 10, 5), "tab:3: the outage ends before"),
        (line(1, 0, 10, "soon"), "tab:3: event_stop_time is 'soon'"),
        (line(1, 0, 10, 20).replace("\t1\thost1", "\tx\thost1"), "tab:3: platform_id is 'x'"),
        (line(-1, 0, 10, 20), "tab:3: node_id is '-1'"),
    ],
)
def test_what_cannot_be(tmp_path, bad, match) -> None:
    with pytest.raises(InputError, match=match):
        read_fta(written(tmp_path, line(1, 0, 0, 1), bad), strict=True)


def test_nothing_unavailable(tmp_path) -> None:
    with pytest.raises(InputError, match="contains no failure"):
        read_fta(written(tmp_path, line(1, 1, 0, 1)))
