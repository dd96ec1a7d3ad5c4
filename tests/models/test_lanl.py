# SPDX-License-Identifier: Apache-2.0
"""Los Alamos' failure records: joined outages, dates, invalid lines, and the real file."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.models.failures.events import check_alternation, read_events
from rebat.models.failures.records.record import Record, record_of
from rebat.records import lanl
from tests.support.outages import down_intervals
from tests.support.recordings import beside

HEADER = "System,nodes,nodenumz,Prob Started,Prob Fixed,Down Time\n"
LINES = """\
20,512,3,1/1/2002 10:00,1/1/2002 11:00,60
20,512,3,1/1/2002 10:30,1/1/2002 12:00,90
20,512,5,1/1/2002 9:00,1/1/2002 9:00,0
19,1024,7,1/1/1999 9:00,1/1/1999 9:30,30
20,512,3,1/2/2002 9:00,1/2/2002 9:05,5
"""
REAL = "traces/LA-UR-05-7318-failure-data-1996-2005.csv.xz"


def read_lanl(path: Path, system: int | None) -> Record:
    return record_of(lanl.read_lanl(path, system))


def written(folder: Path, lines: str) -> Path:
    path = folder / "lanl.csv"
    path.write_text(HEADER + lines)
    return path


def test_by_hand(tmp_path) -> None:
    record = read_lanl(written(tmp_path, LINES), 20)
    hour = 3600 * 10**6
    found = {(node, down / hour, up / hour) for node, down, up in down_intervals(record.events)}
    assert found == {(5, 0, 1 / 60), (3, 1, 3), (3, 24, 24 + 1 / 12)}
    assert (record.taken.total(), record.origin) == (4, datetime(2002, 1, 1, 9))


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("20,512,x,1/1/2002 10:00,1/1/2002 11:00,60", "lanl.csv:2.*nodenumz is 'x'"),
        ("20,512,1,soon,1/1/2002 11:00,60", "Prob Started is 'soon'"),
        ("20,512,1,1/1/2002 10:00,1/1/2001 11:00,60", "ends before it begins"),
        (
            "19,512,1,1/1/2002 10:00,1/1/2002 11:00,60\n3,9,1,1/1/2002 10:00,1/1/2002 11:00,60",
            r"--system: system 20 has no failures \(expected one of: 3, 19\)",
        ),
    ],
)
def test_what_cannot_be(tmp_path, line, match) -> None:
    with pytest.raises(InputError, match=match):
        read_lanl(written(tmp_path, line + "\n"), 20)


def test_a_system_need_not_be_given_where_there_is_one(tmp_path) -> None:
    several = written(tmp_path, LINES)
    with pytest.raises(InputError, match=r"several systems \(expected one of: 19, 20\)"):
        read_lanl(several, None)
    of_20 = read_lanl(several, 20)
    alone = written(tmp_path, "".join(f"{x}\n" for x in LINES.splitlines() if x.startswith("20")))
    assert read_lanl(alone, None).events == of_20.events


def test_a_file_without_the_columns(tmp_path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="no column System, nodenumz"):
        read_lanl(path, 20)


def test_the_command_writes_events(tmp_path, capsys) -> None:
    trace, out = written(tmp_path, LINES), tmp_path / "20.events"
    main(["failures", "import", str(trace), "--system", "20", "-o", str(out)])
    assert "3 failures in 1 d from 2002-01-01 09:00:00" in capsys.readouterr().out
    assert read_events(out) == read_lanl(trace, 20).events


def test_the_real_record() -> None:
    """System 20 has 2,478 lines and 512 nodes; 509 is the highest node that failed."""
    record = read_lanl(beside(REAL), 20)
    assert record.taken == {"node": 2478}
    assert record.n_lines == 23739
    assert record.n_nodes == 512
    check_alternation(record.events, 512)
    assert max(node for node, _, _ in down_intervals(record.events)) == 509


def test_a_node_of_the_real_record_by_hand() -> None:
    """The twelve outages of node 194 of system 20 last as long as Down Time, which is not read."""
    starts = (
        "2001-12-20 08:00", "2001-12-26 15:38", "2002-04-28 12:54", "2002-08-09 10:22",
        "2002-11-18 23:18", "2003-11-25 21:20", "2004-02-11 01:08", "2004-03-17 08:30",
        "2004-05-25 10:52", "2004-08-19 01:10", "2004-10-01 14:50", "2005-03-14 04:02",
    )  # fmt: skip
    minutes = (8955, 12671, 161, 198, 92, 16, 12, 80, 22, 64, 56, 414)
    record = read_lanl(beside(REAL), 20)
    first = datetime(2001, 12, 20, 8)
    down_s = [(datetime.fromisoformat(text) - first).total_seconds() for text in starts]
    expected = [
        (int(at) * 10**6, int(at + 60 * lasts) * 10**6)
        for at, lasts in zip(down_s, minutes, strict=True)
    ]
    found = [(down, up) for node, down, up in down_intervals(record.events) if node == 194]
    assert found == expected


def test_a_system_without_nodes_is_refused() -> None:
    """All 126 lines of system 17 lack a node."""
    real = beside(REAL)
    with pytest.raises(InputError, match="system 17 has no failures"):
        read_lanl(real, 17)
