# SPDX-License-Identifier: Apache-2.0
"""Slurm dumps with the fields in any order, and invalid dumps."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rebat.cli.main import main
from rebat.records.node_events import read_node_events
from rebat.records.sacct import read_sacct
from tests.support.amount import few
from tests.support.importing import import_accounting

COLUMNS = ("JobID", "JobIDRaw", "User", "Partition", "Submit", "Start", "End", "ElapsedRaw",
           "State", "NNodes", "Timelimit", "NodeList", "JobName", "Priority")  # fmt: skip
ROWS = [
    ("1", "1", "a", "p", "1700000000", "1700000010", "1700000110", "100", "NODE_FAIL", "2",
     "01:00:00", "n[1-2]", "x", "1"),
    ("1", "1", "a", "p", "1700000120", "1700000200", "1700000500", "300", "COMPLETED", "2",
     "01:00:00", "n[3-4]", "x", "1"),
    ("2_3", "3", "b", "q", "1700000050", "1700000060", "1700000065", "5", "CANCELLED by 7", "1",
     "1-00:00:00", "n1", "two\nlines", "1"),
    ("4+1", "5", "b", "q", "1700000050", "1700000070", "1700000090", "20", "TIMEOUT", "1",
     "UNLIMITED", "n7", "", "1"),
    ("6", "6", "b", "q", "1700000070", "None", "1700000090", "0", "CANCELLED by 7", "1",
     "Partition_Limit", "None assigned", "y", "1"),
    ("2_3.batch", "3.batch", "", "", "1700000060", "1700000060", "1700000065", "5", "CANCELLED",
     "1", "", "n1", "batch", ""),
]  # fmt: skip


def text(columns: list[int], delimiter: str, rows: list[tuple[str, ...]] = ROWS) -> str:
    table = [COLUMNS, *rows]
    return "".join(delimiter.join(row[c] for c in columns) + "\n" for row in table)


def facts(path: Path) -> list[tuple[object, ...]]:
    jobs = import_accounting("sacct", path).workload.jobs
    return sorted((j.id, j.n_nodes, j.submit_us, j.profile, j.walltime_us) for j in jobs)


@settings(
    max_examples=few(60), suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # fmt: skip
@given(
    order=st.permutations(range(len(COLUMNS) - 1)), delimiter=st.sampled_from("|;,\t\x1f^~"),
    shuffled=st.permutations(ROWS),
)  # fmt: skip
def test_any_order_of_fields_and_rows_is_the_same_jobs(
    tmp_path: Path, order: list[int], delimiter: str, shuffled: list[tuple[str, ...]]
) -> None:
    """A name with a line end is never the first column: a row must begin on its own line."""
    if COLUMNS[order[0]] == "JobName":
        order = [*order[1:], order[0]]
    path = tmp_path / "dump.txt"
    path.write_text(text([*order, len(COLUMNS) - 1], delimiter, shuffled))
    assert facts(path) == [
        ("1", 2, 0, "delay300", 3_600_000_000),
        ("2_3", 1, 50_000_000, "delay5", 86_400_000_000),
        ("4+1", 1, 50_000_000, "delay20", 21_000_000),
    ]


def good(**changes: str) -> str:
    """Return a dump of a valid row and a row with these fields changed."""
    row = dict(zip(COLUMNS, ROWS[1], strict=True)) | {"JobID": "9", "JobIDRaw": "9"} | changes
    return text(list(range(len(COLUMNS))), "|", [ROWS[1], tuple(row.values())])


BAD_ROWS = {
    "a part of a node": good(NNodes="1.5"),
    "negative elapsed": good(ElapsedRaw="-5"),
    "ends before it starts": good(End="1600000000"),
    "no submission": good(Submit="Unknown"),
    "a time of another planet": good(Start="99999999999999"),
    "a word as a time": good(Start="yesterday"),
    "a date that is none": good(Start="2023-02-30T10:00:00"),
    "an unknown state": good(State="EXPLODED"),
    "no state": good(State=""),
    "a limit that is none": good(Timelimit="1:2:3:4"),
    "too many node names": good(NodeList="n[0-999999]"),
    "many dimensions": good(NodeList="n[0-9999][0-9999]"),
    "a bracket": good(NodeList="n[1-3"),
    "a reversed range": good(NodeList="n[3-1]"),
    "a node group": good(NodeList="@all"),
    "an operator": good(NodeList="n1!n2"),
    "an id of letters": good(JobIDRaw="abc"),
    "nan nodes": good(NNodes="nan"),
    "infinite nodes": good(NNodes="inf"),
    "negative nodes": good(NNodes="-1"),
    "a short row": good() + "1|2|3\n",
    "a long row": good() + "|".join("9" * 40) + "\n",
    "binary rows": good() + "\x00\x01\x02|\x03\n",
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_bad_rows_are_counted_and_others_remain(name: str, tmp_path: Path, capsys) -> None:
    path = tmp_path / "dump.txt"
    path.write_text(BAD_ROWS[name])
    table = read_sacct(path, ZoneInfo("UTC"))
    assert "1" in table.text("raw")
    assert len(table.notes) == 1
    assert "line" in table.notes[0]
    line = refused(
        capsys, "workload", "import", str(path), "-o", str(tmp_path / "j.json"), "--strict"
    )
    assert f"{path}:" in line


DUMPS = {
    "empty": "",
    "binary": "\x00\x7fELF\x01|\x00\n\x00",
    "header only": text(list(range(len(COLUMNS))), "|", []),
    "no times": "User|JobID|Partition|NNodes|State\na|1|p|1|COMPLETED\n",
    "default columns": "JobID|JobName|Partition|Account|AllocCPUS|State|ExitCode\n",
    "a table for people": "JobID           JobName  Partition \n------------ ---------- ------\n",
    "duplicate columns": "JobID|Submit|Submit|Start|End|State|NNodes\n",
    "broken JSON": '{"jobs": [',
    "JSON without jobs": '{"meta": {}}',
    "JSON of numbers": '{"jobs": [1, 2, 3]}',
    "only pending jobs": text(list(range(len(COLUMNS))), "|", [ROWS[4]]),
}


@pytest.mark.parametrize("name", DUMPS)
def test_hostile_dumps_end_with_one_line(name: str, tmp_path: Path, capsys) -> None:
    path = tmp_path / "dump.txt"
    path.write_text(DUMPS[name])
    out = tmp_path / "jobs.json"
    line = refused(capsys, "workload", "import", str(path), "--format", "sacct", "-o", str(out))
    assert "dump.txt" in line
    assert not out.exists()


@pytest.mark.parametrize("name", ["no times", "default columns", "a table for people"])
def test_a_dump_without_times_shows_the_command(name: str, tmp_path: Path, capsys) -> None:
    path = tmp_path / "dump.txt"
    path.write_text(DUMPS[name])
    out = str(tmp_path / "jobs.json")
    line = refused(capsys, "workload", "import", str(path), "--format", "sacct", "-o", out)
    assert "sacct -a -P -X -D" in line


def refused(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as exit_:
        main(list(arguments))
    lines = capsys.readouterr().err.strip().splitlines()
    assert exit_.value.code == 2
    assert len([line for line in lines if "error" in line.lower()]) == 1
    return lines[-1]


def test_epochs_and_local_times_of_any_zone_are_mixed(tmp_path: Path) -> None:
    """The time 1700000010 is 23:13:30 in Paris, or 17:13:30-05:00."""
    path = tmp_path / "dump.txt"
    rows = [ROWS[1], tuple("2023-11-14T23:13:30" if f == "1700000120" else f for f in ROWS[1])]
    path.write_text(text(list(range(len(COLUMNS))), "|", rows))
    table = read_sacct(path, ZoneInfo("Europe/Paris"))
    assert sorted(table.column("submit")) == [1700000010, 1700000120]


def test_the_repeated_hour_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "dump.txt"
    path.write_text(
        "JobID|Submit|Start|End|State|NNodes\n"
        "1|2023-10-29T01:00:00|2023-10-29T02:30:00|2023-10-29T04:00:00|COMPLETED|1\n"
    )
    table = read_sacct(path, ZoneInfo("Europe/Paris"))
    assert "clocks repeat in autumn" in table.notes[0]
    assert read_sacct(path, ZoneInfo("UTC")).notes == []


AUTUMN = {
    "the end is in the second hour": ("02:30:00", "02:10:00", 2400, (0, 2400)),
    "the start is in the second hour": ("02:40:00", "03:20:00", 2400, (4200, 6600)),
    "the end is in the first hour": ("02:10:00", "02:30:00", 1200, (-1200, 0)),
    "both are in the second hour": ("02:10:00", "02:30:00", 1200, (2400, 3600)),
}


@pytest.mark.parametrize("name", AUTUMN)
def test_the_run_time_determines_the_autumn_hour(name: str, tmp_path: Path) -> None:
    start, end, elapsed, expected = AUTUMN[name]
    submit = "2024-10-27T03:00:00+02:00" if "both" in name else "2024-10-27T01:00:00"
    path = tmp_path / "dump.txt"
    path.write_text(
        "JobID|Submit|Start|End|ElapsedRaw|State|NNodes\n"
        f"1|{submit}|2024-10-27T{start}|2024-10-27T{end}|{elapsed}|COMPLETED|1\n"
    )
    table = read_sacct(path, ZoneInfo("Europe/Paris"))
    first = datetime.fromisoformat("2024-10-27T02:30:00+02:00").timestamp()
    times = table.column("start")[0] - first, table.column("end")[0] - first
    assert times == ((2400, 3600) if "both" in name else expected)
    assert "unless only the second matches the run time" in table.notes[0]


def test_numbers_of_nodes_that_contradict_the_node_list_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "dump.txt"
    path.write_text(good(NNodes="3"))
    assert read_sacct(path, ZoneInfo("UTC")).notes == [
        "1 record in which NNodes differs from the number of nodes in NodeList (first: line 3): "
        "the workload uses NNodes, the recorded schedule uses NodeList"
    ]


@pytest.mark.parametrize(("printed", "nodes"), [("1K", 1024), ("1.50K", 1536), ("2M", 2 << 20)])
def test_old_versions_of_slurm_abbreviate_counts(tmp_path: Path, printed: str, nodes: int) -> None:
    path = tmp_path / "dump.txt"
    path.write_text(good(NNodes=printed, NodeList="None assigned"))
    assert read_sacct(path, ZoneInfo("UTC")).column("nodes").tolist() == [2, nodes]


def test_events_that_end_before_they_start_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "events.txt"
    path.write_text("NodeName|Start|End|StateRaw|Reason\nn1|200|100|1|x\nn2|100|200|2049|y\n")
    events = read_node_events(path, ZoneInfo("UTC"))
    assert [row.node for row in events.rows] == ["n2"]
    assert len(events.notes) == 1
