# SPDX-License-Identifier: Apache-2.0
"""``rebat failures import``, ``export``, ``map`` and ``describe``: files and output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rebat.cli.main import main
from rebat.models.failures.events import read_events
from rebat.models.failures.records.formats import FORMATS, detected
from tests.models.test_fta import line
from tests.models.test_fta import written as fta_table
from tests.models.test_lanl import HEADER, LINES
from tests.support.outages import down_intervals

TABLE = """\
node,down,up
a,2024-03-01T10:00,2024-03-01T11:00
b,2024-03-01T10:30,2024-03-01T10:40
a,2024-03-01T10:50,2024-03-01T12:00
b,2024-03-03T00:00,
"""


def run(*arguments: object) -> None:
    main(["failures", *map(str, arguments)])


def refused(capsys, *arguments: object) -> str:
    with pytest.raises(SystemExit) as left:
        run(*arguments)
    assert left.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "Traceback" not in error
    return error


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    path.write_text(TABLE)
    return path


def test_import_says_what_became_of_every_line(table: Path, tmp_path: Path, capsys) -> None:
    out, names = tmp_path / "m.events", tmp_path / "names.csv"
    run("import", table, "--format", "csv", "--names", names, "-o", out)
    told = capsys.readouterr().out.splitlines()
    assert told == [
        f"{out}: 3 failures in 2 d from 2024-03-01 00:00:00",
        "  4 lines read, 4 used (kinds: 4 node)",
        "  4 node outages, 1 joined to others that overlap or touch",
        f"next: rebat failures describe {out}",
    ]
    assert names.read_text() == "node,name\n0,a\n1,b\n"
    minute = 60 * 10**6
    found = {(0, 600 * minute, 720 * minute), (1, 630 * minute, 640 * minute)}
    assert set(down_intervals(read_events(out))) == {*found, (1, 2880 * minute, None)}


def test_an_archives_table(tmp_path: Path, capsys) -> None:
    path = fta_table(tmp_path, line(1, 0, 0, 60), line(1, 1, 60, 90), line(2, 0, 30, 60))
    run("import", path, "--format", "fta", "-o", tmp_path / "f.events")
    told = capsys.readouterr().out
    assert "2 failures in 1 min from 2001-09-09 01:46:40" in told
    assert "1 dropped: available" in told


def test_unreadable_lines_of_slurm_are_counted_once(tmp_path: Path, capsys) -> None:
    lines = ["NodeName|Start|End|StateRaw|Reason", "n1|100|200|1|x"]
    lines += [f"n1|{start}|100|1|x" for start in (300, 400)]
    lines += [f"n2|{start}|{start + 9}|1|x" for start in range(1000, 3000, 100)]
    (tmp_path / "events.txt").write_text("\n".join(lines) + "\n")
    run("import", tmp_path / "events.txt", "-o", tmp_path / "s.events")
    told = capsys.readouterr().out
    assert "  23 lines read, 21 used (kinds: 21 down)" in told
    assert "  2 dropped: the outage ends before it begins (first: line 3)" in told


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        ("2024-03-01T11:30", None, {(0, 0, 30), (1, 2190, None)}),
        ("690min", "2024-03-02", {(0, 0, 30)}),
        (None, "10h20min", {(0, 600, 720)}),
    ],
)
def test_a_window(table: Path, tmp_path: Path, capsys, begin, end, expected) -> None:
    out = tmp_path / "w.events"
    given = {"--begin": begin, "--end": end}
    options = [part for pair in given.items() if pair[1] for part in pair]
    run("import", table, "--format", "csv", *options, "-o", out)
    minute = 60 * 10**6
    found = down_intervals(read_events(out))
    assert {(n, a // minute, b and b // minute) for n, a, b in found} == expected
    dropped = {1: "2 node outages dropped", 2: "1 node outage dropped"}[len(expected)]
    assert dropped in capsys.readouterr().out


def test_describe_leads_with_the_machines_mtbf(tmp_path: Path, capsys) -> None:
    """A rack of four nodes fails twice in 20 h, so the value for --mtbf is 10 h."""
    events = tmp_path / "rack.csv"
    rows = [f"{node},{hour * 3600},{(hour + 1) * 3600}" for hour in (5, 19) for node in range(4)]
    events.write_text("\n".join(["node,down,up", *rows]) + "\n")
    run("import", events, "-o", tmp_path / "rack.events")
    run("describe", tmp_path / "rack.events", "--nodes", "8")
    told = capsys.readouterr().out.splitlines()[4:7]
    assert told == [
        "2 failures of the machine; 8 failures of single nodes, on 4 nodes",
        "MTBF of the machine          10 h (--mtbf; failures at the same time count once)",
        "  between node failures      2.5 h (each failed node counts)",
    ]


@pytest.mark.slow
def test_a_note_if_the_record_may_end_before_the_last_submission(tmp_path: Path, capsys) -> None:
    """Two failures until 20 h. Jobs are submitted until 80 h, so the MTBF may be 40 h, not 10 h."""
    table, events, jobs = (tmp_path / name for name in ("f.csv", "f.events", "jobs.json"))
    table.write_text("node,down,up\n1,18000,21600\n2,68400,72000\n")
    run("import", table, "-o", events)
    rows = [{"id": str(h), "subtime": h * 3600, "res": 1, "profile": "p"} for h in (0, 80)]
    profiles = {"p": {"type": "delay", "delay": 60}}
    jobs.write_text(json.dumps({"nb_res": 8, "jobs": rows, "profiles": profiles}))
    described = ("failures", "describe", str(events), "--workload", str(jobs))
    simulated = ("run", str(jobs), "-p", "easy", "--checkpoint", "young-daly", "--law")
    advised = ("advise", str(jobs), "--seeds", "1", "--minutes", "0.001", "--failures", str(events))
    commands = {
        "set --end 288000": described,
        "set --mtbf 144000": (*simulated, f"record:file={events}", "--out", str(tmp_path / "o")),
        "MTBF is 1.67 d: set --mtbf 144000": (*advised, "--out", str(tmp_path / "a")),
    }
    for option, command in commands.items():
        capsys.readouterr()
        main(list(command))
        note = "last event is at 20 h, but jobs are submitted until 3.33 d. The MTBF of 10 h"
        told = capsys.readouterr().err
        assert note in told and option in told
    main([*described, "--end", "80h"])
    assert "last event" not in capsys.readouterr().err


@pytest.mark.slow
def test_describe_lists_lemon_nodes_and_limits_their_number(tmp_path: Path, capsys) -> None:
    """Of 400 nodes, 12 fail 15 times, the others once."""
    rows = [
        f"{node},{node * 10 + 86400 * day},{node * 10 + 86400 * day + 5}"
        for node in range(400)
        for day in range(1, 16 if node < 12 else 2)
    ]
    table, file = tmp_path / "lemons.csv", tmp_path / "lemons.events"
    table.write_text("\n".join(["node,down,up", *rows]) + "\n")
    run("import", table, "-o", file)
    capsys.readouterr()
    run("describe", file, "--nodes", 400)
    lines = capsys.readouterr().out.splitlines()
    first = lines.index("12 nodes fail significantly more often than the others (lemon nodes):")
    assert lines[first + 1].startswith(
        "  0                          15 failures (10.8 x the others)"
    )
    assert lines[first + 11] == "  and 2 more (--json lists all)"
    run("describe", file, "--nodes", 400, "--json")
    record = json.loads(capsys.readouterr().out)
    assert [lemon["node"] for lemon in record["lemons"]] == list(range(12))
    assert record["lemons"][0]["failures"] == 15
    # the other 399 nodes have 11 x 15 + 388 failures
    assert record["lemons"][0]["factor"] == pytest.approx(15 / (553 / 399), rel=1e-4)
    assert [row["nodes"] for row in record["mttf_by_size"]] == [1, 8, 64, 400]


def test_describe_of_a_record_without_failures(tmp_path: Path, capsys) -> None:
    """The MTTF has only a lower limit: 3 d / 3.69 for a job of all 8 nodes."""
    file = tmp_path / "empty.events"
    file.write_text("")
    run("describe", file, "--nodes", 8, "--end", "3d", "--json")
    record = json.loads(capsys.readouterr().out)
    row = record["mttf_by_size"][1]
    assert (row["mttf_s"], row["high_s"]) == (None, None)
    assert row["low_s"] == pytest.approx(3 * 86400 / 3.6889, rel=1e-4)
    run("describe", file, "--nodes", 8, "--end", "3d")
    assert "no node fails significantly more often" in capsys.readouterr().out


def test_the_format_of_a_record_is_detected(table: Path, tmp_path: Path, capsys) -> None:
    lanl = tmp_path / "lanl.csv"
    lanl.write_text(HEADER + LINES)
    archive = fta_table(tmp_path, "# a comment\n", line(1, 0, 0, 60))
    mira = tmp_path / "mira.cor"
    mira.write_text("#count=1\nsomething\n")
    for file, form in ((table, "csv"), (lanl, "lanl"), (archive, "fta"), (mira, "mira-ras")):
        assert detected(file) == form
    run("import", table, "-o", tmp_path / "a.events")
    run("import", table, "--format", "csv", "-o", tmp_path / "b.events")
    assert (tmp_path / "a.events").read_bytes() == (tmp_path / "b.events").read_bytes()
    told = refused(capsys, "import", tmp_path / "a.events", "-o", tmp_path / "c.events")
    assert "is already an event file" in told
    other = tmp_path / "other.txt"
    other.write_text("a,b\n1,2\n")
    assert "its format is not recognised" in refused(capsys, "import", other, "-o", tmp_path / "d")
    unknown = ("import", lanl, "--system", "21", "-o", tmp_path / "d")
    assert "expected one of: 19, 20" in refused(capsys, *unknown)


BAD = {
    "no such format": (["--format", "x"], "unknown format 'x'"),
    "an option of another": (["--format", "csv", "--platform", "1"], "--platform: has no effect"),
    "no date": (["--format", "csv", "--begin", "soon"], "--begin: is 'soon'"),
    "before it": (["--format", "csv", "--begin", "2023-01-01"], "--begin: is before the record"),
    "order": (["--format", "csv", "--begin", "2d", "--end", "1d"], "--end: is not after"),
    "no failure": (["--format", "csv", "--end", "1s"], "--end: no failure is in this period"),
    "two times 0": (["--begin", "1d", "--workload", "w.json"], "--begin: sets time 0"),
    "zone": (["--format", "csv", "--end", "2024-03-02T00Z"], "--end: is '2024-03-02T00Z'"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_imported(case: str, table: Path, tmp_path: Path, capsys) -> None:
    options, told = BAD[case]
    out = tmp_path / "m.events"
    assert told in refused(capsys, "import", table, *options, "-o", out)
    assert not out.exists()


def test_names_of_numbers_and_dates_of_none_are_refused(tmp_path: Path, capsys) -> None:
    path, out = tmp_path / "n.csv", tmp_path / "m.events"
    path.write_text("node,down,up\n1,2,3\n")
    base = ["import", path, "--format", "csv", "-o", out]
    assert "--names: has no effect" in refused(capsys, *base, "--names", tmp_path / "names.csv")
    assert "a duration like 400d" in refused(capsys, *base, "--begin", "2024-01-01")
    assert not out.exists()


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_broken_files_are_told_in_a_line(suffix: str, tmp_path: Path, capsys) -> None:
    path = tmp_path / f"r.csv{suffix}"
    for form in FORMATS:
        options = ["--format", form, *(["--system", "2"] if form == "lanl" else [])]
        for content in (b"", b"\xff\xfe\x00", b"\x1f\x8b\x00cut", b"a\n\n\x00\n"):
            path.write_bytes(content)
            assert path.name in refused(capsys, "import", path, *options, "-o", tmp_path / "o")
        path.unlink()
        assert path.name in refused(capsys, "import", path, *options, "-o", tmp_path / "o")


def test_a_file_that_is_there_is_kept(table: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "m.events"
    base = ["import", table, "--format", "csv", "-o", out]
    run(*base)
    before = out.read_bytes()
    assert "exists" in refused(capsys, *base)
    assert "exists" in refused(capsys, "export", out, "-o", table)
    assert "exists" in refused(capsys, "map", out, "--nodes", "4", "-o", table)
    run(*base, "--force")
    assert out.read_bytes() == before


def test_every_format_is_in_the_help(capsys) -> None:
    run("import", "--help")
    told = " ".join(capsys.readouterr().out.split())
    for name, form in FORMATS.items():
        assert f"{name} {form.about}" in told


def test_map(table: Path, tmp_path: Path, capsys) -> None:
    events, out = tmp_path / "m.events", tmp_path / "big.events"
    run("import", table, "--format", "csv", "-o", events)
    run("map", events, "--nodes", "8", "--by", "share", "-o", out)
    assert "3 failures in 2 d, mapped from 2 to 8 nodes by share" in capsys.readouterr().out
    first, second, last = (event.nodes for event in read_events(out) if not event.available)
    assert (str(first), str(second), str(last)) == ("0-3", "4-7", "4-7")
    assert "unknown way to map" in refused(
        capsys, "map", events, "--nodes", "8", "--by", "x", "-o", tmp_path / "y"
    )
    assert "m.events: node 1 is not on the machine" in refused(
        capsys, "map", events, "--from-nodes", "1", "--nodes", "8", "-o", tmp_path / "y"
    )


@pytest.mark.slow
def test_describe_with_its_picture(tmp_path: Path, capsys) -> None:
    events, figure = tmp_path / "w.events", tmp_path / "w.png"
    law = "weibull:scale=40h,shape=2,downtime=1h"
    run("generate", "--nodes", "32", "--law", law, "--horizon", "1000h", "-o", events)
    capsys.readouterr()
    run("describe", events, "--nodes", "32", "--figure", figure)
    told = capsys.readouterr().out
    assert "MTBF of the machine" in told
    rows = [line for line in told.splitlines() if " * " in line]
    assert len(rows) == 3
    assert "lives of nodes" in rows[1]
    assert "weibull *" in rows[1]  # the family of the law
    assert "exponential *" in rows[2]  # all repairs last an hour: no other law fits
    assert figure.read_bytes().startswith(b"\x89PNG")
    again = tmp_path / "x.png"
    run("describe", events, "--nodes", "32", "--figure", again)
    assert again.read_bytes() == figure.read_bytes()


def test_describe_a_window(tmp_path: Path, capsys) -> None:
    events = tmp_path / "e.events"
    run("generate", "--nodes", "8", "--mtbf", "1h", "--horizon", "100h", "-o", events)
    capsys.readouterr()
    run("describe", events, "--nodes", "8", "--begin", "50h", "--end", "60h")
    found = [e for e in read_events(events) if not e.available and 50 <= e.at_us / 3.6e9 < 60]
    down = sum(since < 50 * 3.6e9 < to for _, since, to in down_intervals(read_events(events)))
    assert capsys.readouterr().out.startswith(f"{len(found) + down} failures")
    assert "--end: is not after" in refused(
        capsys, "describe", events, "--nodes", "8", "--begin", "2h", "--end", "1h"
    )


def test_describe_what_is_too_little(tmp_path: Path, capsys) -> None:
    events, figure = tmp_path / "e.events", tmp_path / "e.png"
    events.write_text('{"type": "machine_unavailable", "resources": "2", "timestamp": 10}\n')
    run("describe", events, "--nodes", "4", "--figure", figure)
    assert capsys.readouterr().out.count("too few to fit") == 3
    assert figure.exists()
