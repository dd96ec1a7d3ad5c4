# SPDX-License-Identifier: Apache-2.0
"""Mira's fatal events: each kind of location, outages, invalid lines, and the real file."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.models.boxes import MIDPLANES, TorusBlocks
from rebat.models.failures.events import check_alternation, read_events
from rebat.models.failures.records.mira import joined_periods, mira_record, within
from rebat.models.failures.records.record import Record
from rebat.models.topology import MIRA
from tests.support.outages import down_intervals
from tests.support.recordings import beside

REAL = "traces/mira-ras-fatal-events-0.9.cor.gz"
MAINTENANCE = "traces/mira-maintenance-periods.txt"
MEMBERS = TorusBlocks(MIRA, MIDPLANES[MIRA]).members
H = 3600 * 10**6


def event(location: str, start: str = "01:00:00.000000", end: str = "01:00:00.000000") -> str:
    dates = f"2013-04-02;{start} 2013-04-02;{end}"
    return f"event 1 00062001 13217458 FATAL Block MMCS {dates} 4 TYPE {location} 0\n"


def written(folder: Path, *lines: str, count: int | None = None) -> Path:
    path = folder / "mira.cor"
    n_events = sum(not line.startswith("\t") for line in lines)
    path.write_text(f"#count={n_events if count is None else count}\n" + "".join(lines))
    return path


def down_nodes(path: Path) -> set[int]:
    return {node for node, _, _ in down_intervals(mira_record(path).events)}


@pytest.mark.parametrize(
    ("location", "kind", "block", "members"),
    [
        ("R00-M0-N00-J00", "card", 0, slice(0, 1)),
        ("R00-M1-N00-J31", "card", 1, slice(31, 32)),
        ("R1F-M1-N15-J04", "card", 2 * 31 + 1, slice(484, 485)),
        ("R2F-M1-N15-J31-C05", "card", 95, slice(511, 512)),
        ("R10-M0-N03", "board", 32, slice(96, 128)),
        ("R10-M0-N03-U07", "board", 32, slice(96, 128)),
        ("R0A-M1", "midplane", 21, slice(0, 512)),
        ("R0A-M1-S", "midplane", 21, slice(0, 512)),
    ],
)
def test_locations(tmp_path, location, kind, block, members) -> None:
    path = written(tmp_path, event(location))
    assert mira_record(path).taken == {kind: 1}
    assert down_nodes(path) == set(MEMBERS[block][members].tolist())


@pytest.mark.parametrize("location", ["R21", "R21-L", "R21-K", "R21-B0-P0"])
def test_a_rack_is_two_midplanes(tmp_path, location) -> None:
    path = written(tmp_path, event(location))
    assert mira_record(path).taken == {"rack": 1}
    assert down_nodes(path) == set(MEMBERS[66:68].ravel().tolist())


def test_all_cards_are_all_nodes_once(tmp_path) -> None:
    racks = [f"{row}{column:X}" for row in range(3) for column in range(16)]
    places = [f"R{r}-M{m}-N{n:02}" for r in racks for m in range(2) for n in range(16)]
    record = mira_record(written(tmp_path, *map(event, places)))
    assert record.taken == {"board": 1536}
    assert [str(e.nodes) for e in record.events] == ["0-49151"] * 2


def test_what_is_left_out(tmp_path) -> None:
    places = ("Q0H-I1-J05", "Q2G-I6", "Q0G-I7-H2-F0", "Q1H-B-P5", "", "NULL", "R00-M0-N00-J00")
    record = mira_record(written(tmp_path, *map(event, places), "\t0.9 2 000 R01 anything\n"))
    assert record.dropped == {"I/O drawers": 4, "no location": 2}
    assert record.taken == {"card": 1}


def test_outages_by_hand(tmp_path) -> None:
    """An outage lasts at least an hour, overlapping outages are joined, and time 0 is midnight.

    Times without a fraction of a second are also read.
    """
    card, other = "R00-M0-N00-J00", "R00-M0-N00-J01"
    path = written(
        tmp_path,
        event(card, "02:30:00.000000", "02:30:00.000000"),
        event(card, "02:00:00", "02:00:01"),
        event(other, "05:00:00.000001", "08:00:00.000002"),
        event("Q0G-I1", "00:10:00", "00:10:00"),
    )
    record = mira_record(path)
    first, second = MEMBERS[0][:2].tolist()
    found = {(first, 2 * H, 2 * H + 3 * H // 2), (second, 5 * H + 1, 8 * H + 2)}
    assert set(down_intervals(record.events)) == found
    assert record.origin == datetime(2013, 4, 2)
    shorter = down_intervals(mira_record(path, downtime_s=60).events)
    assert (first, 2 * H, 2 * H + H // 60) in shorter
    assert len(shorter) == 3


def test_a_card_within_its_board(tmp_path) -> None:
    """The board is down from 1:00 to 2:00; one of its cards is down half an hour longer."""
    path = written(tmp_path, event("R00-M0-N00"), event("R00-M0-N00-J03", "01:30:00", "01:30:00"))
    record = mira_record(path)
    check_alternation(record.events, MIRA.n_nodes)
    ends = {node: up for node, _, up in down_intervals(record.events)}
    late = int(MEMBERS[0][3])
    assert ends.pop(late) == 5 * H // 2
    assert set(ends.values()) == {2 * H}
    assert len(ends) == 31


@pytest.mark.parametrize(
    ("line", "match"),
    [
        (event("R30-M0"), "mira.cor:2.*location 'R30-M0'"),
        (event("R00-M2"), "location 'R00-M2'"),
        (event("R00-M0-N16"), "location"),
        (event("R00-M0-N00-J32"), "location"),
        (event("R00-J00"), "location"),
        (event("X00"), "location 'X00'"),
        (event("R00", "soon"), "mira.cor:2.*START is '2013-04-02Tsoon'"),
        (event("R00", end="25:00:00"), "END is"),
        (event("R00", "02:00:00", "01:00:00"), "ends before it begins"),
        (event("R00").replace("FATAL", "WARN"), "mira.cor:2: is 'event 1"),
        ("event 1 2\n", "mira.cor:2: is 'event 1 2'"),
        ("R00 failed\n", "mira.cor:2: is 'R00 failed'"),
        (event("Q0G-I1"), "contains no failure of a compute node"),
    ],
)
def test_what_cannot_be(tmp_path, line, match) -> None:
    with pytest.raises(InputError, match=match):
        mira_record(written(tmp_path, line))


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "is empty"),
        ("System,nodes\n", "x.cor:1: begins with 'System,nodes'"),
        ("#count=2\n" + event("R00"), "1 event.*expected 2"),
    ],
)
def test_a_file_of_another_form_or_cut(tmp_path, text, match) -> None:
    path = tmp_path / "x.cor"
    path.write_text(text)
    with pytest.raises(InputError, match=match):
        mira_record(path)


def test_the_command(tmp_path, capsys) -> None:
    trace = written(tmp_path, event("R00-M0-N00-J00"), event("Q0G-I1"))
    out = tmp_path / "m.events"
    main(["failures", "import", str(trace), "--format", "mira-ras", "-o", str(out)])
    told = capsys.readouterr().out
    assert "from 2013-04-02 00:00:00" in told
    assert "2 lines read, 1 used (kinds: 1 card)" in told
    assert "1 dropped: I/O drawers" in told
    assert read_events(out) == mira_record(trace).events


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (
            ["--format", "mira-ras", "--system", "20"],
            "--system: has no effect with --format mira-ras (expected --format lanl)",
        ),
        (
            ["--format", "lanl", "--downtime", "1h", "--system", "20"],
            "--downtime: has no effect with --format lanl (expected --format mira-ras)",
        ),
        (["--format", "lanl"], ":1: has no column System"),
    ],
)
def test_options_of_the_other_form(tmp_path, capsys, options, match) -> None:
    trace, out = written(tmp_path, event("R00")), tmp_path / "m.events"
    with pytest.raises(SystemExit) as stop:
        main(["failures", "import", str(trace), *options, "-o", str(out)])
    assert stop.value.code == 2
    assert match in capsys.readouterr().err
    assert not out.exists()


def periods(folder: Path, *lines: str) -> Path:
    path = folder / "periods.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_maintenance_by_hand(tmp_path) -> None:
    """Maintenance is from 1:30 to 2:00; one card fails before it, one during it, one at its end."""
    cards = [f"R00-M0-N00-J0{card}" for card in range(3)]
    at = ("01:00:00", "01:45:00", "02:00:00")
    path = written(tmp_path, *(event(c, t, t) for c, t in zip(cards, at, strict=True)))
    found = periods(tmp_path, "2013-04-02 01:30:00,2013-04-02 02:00:00")
    left = mira_record(path, 3600, found)
    first, second, third = MEMBERS[0][:3].tolist()
    assert left.dropped == {"during maintenance": 1}
    assert set(down_intervals(left.events)) == {(first, H, 2 * H), (third, 2 * H, 3 * H)}
    down = mira_record(path, 3600, found, "down")
    assert down.dropped == {}
    outages = {node: (since, to) for node, since, to in down_intervals(down.events)}
    assert len(outages) == len(down_intervals(down.events)) == MIRA.n_nodes
    assert outages.pop(first) == (H, 2 * H)  # failed before the period, still down at its start
    assert outages.pop(second) == (3 * H // 2, 7 * H // 4 + H)
    assert outages.pop(third) == (3 * H // 2, 3 * H)  # fails as the period ends
    assert set(outages.values()) == {(3 * H // 2, 2 * H)}
    check_alternation(down.events, MIRA.n_nodes)


def test_periods(tmp_path) -> None:
    day = "2013-04-02"
    path = periods(
        tmp_path, f"{day} 05:00:00,{day} 06:00:00", "", f"{day} 01:00:00,{day} 02:00:00",
        f"{day} 02:00:00,{day} 03:00:00",
    )  # fmt: skip
    zero_s = datetime(2013, 4, 2, tzinfo=UTC).timestamp()
    found = joined_periods(path) - zero_s
    assert (found / 3600).tolist() == [[1, 3], [5, 6]]
    assert np.flatnonzero(within(3600.0 * np.arange(8), found)).tolist() == [1, 2, 5]


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("2013-04-02,2013-04-01", r"periods\.txt:2: the outage ends before it begins"),
        ("2013-04-02", r"periods\.txt:2: has 1 fields"),
        ("soon,later", r"periods\.txt:2: START is 'soon'"),
        ("2013-04-02T00:00Z,2013-04-03T00:00Z", r"periods\.txt:2: START is '2013-04-02T00:00Z'"),
    ],
)
def test_what_is_no_period(tmp_path, line, match) -> None:
    with pytest.raises(InputError, match=match):
        joined_periods(periods(tmp_path, "2013-04-02,2013-04-03", line))
    with pytest.raises(InputError, match="is empty"):
        joined_periods(periods(tmp_path))
    zoned = "2013-04-02T00:00Z,2013-04-03T00:00Z"
    with pytest.raises(InputError, match="has a time zone"):
        joined_periods(periods(tmp_path, zoned))


@cache
def real_record() -> Record:
    """Read the entire record once; it takes a second."""
    return mira_record(beside(REAL))


def test_the_first_lines_of_the_real_record_by_hand() -> None:
    """Lines 9 to 13 of the file: the first five events of compute nodes, all cards.

    The fifth event is on the same card as the fourth, 8.6 s later, and extends its outage.
    """
    record = real_record()
    day = 24 * H
    expected = [
        (63, 4 * 32 + 17, 8 * day + 66188679297, H),  # R1F-M1-N04-J17, 04-10, 18:23:08.679297
        (64, 2 * 32 + 14, 8 * day + 68002687239, H),  # R20-M0-N02-J14, 04-10, 18:53:22.687239
        (50, 2 * 32 + 18, 9 * day + 3661112052, H),  # R19-M0-N02-J18, 04-11, 01:01:01.112052
        (
            71,
            5 * 32 + 3,
            9 * day + 53761504030,
            H + 8577136,
        ),  # R23-M1-N05-J03, 04-11, 14:56:01.504030
    ]
    found = sorted(down_intervals(record.events), key=lambda interval: interval[1])[:4]
    assert found == [(int(MEMBERS[u][m]), at, at + lasts) for u, m, at, lasts in expected]


def test_three_of_the_real_events_are_during_maintenance() -> None:
    """They are a board on 2013-07-02, a board on 2013-07-23 and a card on 2017-08-09.

    A loop over both files found them.

    """
    record = mira_record(beside(REAL), 3600, beside(MAINTENANCE))
    assert record.dropped["during maintenance"] == 3
    assert record.taken == {"card": 1251, "board": 1127, "midplane": 65, "rack": 76}


def test_the_real_record() -> None:
    """The first line says 2,903 events; 351 are in I/O drawers, 30 have no location.

    The counts by kind were computed with grep on the LOCATION column: 1,252 cards, 784 boards and
    345 of their link chips, 65 service cards, 70 coolant monitors and 6 power modules.
    """
    record = real_record()
    assert record.taken == {"card": 1252, "board": 784 + 345, "midplane": 65, "rack": 76}
    assert record.dropped == {"I/O drawers": 351, "no location": 30}
    assert record.n_lines == 2903
    assert record.origin == datetime(2013, 4, 2)
    check_alternation(record.events, MIRA.n_nodes)
    assert all(up - down >= H for _, down, up in down_intervals(record.events) if up is not None)
