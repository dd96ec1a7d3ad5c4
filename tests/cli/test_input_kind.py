# SPDX-License-Identifier: Apache-2.0
"""Files of the wrong kind: importers name the kind of the file and the command that reads it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from rebat.cli.main import main
from rebat.core.files import folder

EVENT = '{"type": "machine_unavailable", "resources": "0", "timestamp": 1}\n'
LANL = (
    "System,nodes,nodenumz,Prob Started,Prob Fixed,Down Time\n"
    "20,5,3,1/1/2002 10:00,1/1/2002 11:00,60\n"
)
NODE_EVENTS = "NodeName|TimeStart|TimeEnd|State|Reason\nn1|10|20|DOWN|x\n"
SWF = "; Version: 2\n1 0 0 10 1 -1 -1 1 20 -1 1 1 1 1 1 1 -1 -1\n"
SACCT = "JobID|Submit|Start|End|NNodes|NodeList|State\n1|1|2|3|1|n1|NODE_FAIL\n"
WORKLOAD = (folder("workloads") / "toy.json").read_text()


def error_of(words: list[str], tmp_path: Path, capsys) -> str:
    """Return the error of an import that writes nothing."""
    out = tmp_path / ("x.json" if words[0] == "workload" else "x.events")
    with pytest.raises(SystemExit) as status:
        main([*words, "-o", str(out)])
    assert status.value.code == 2
    assert not out.exists()
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (EVENT, "is an event file (expected jobs; 'rebat run --failures' reads event files)"),
        (LANL, "is a failure record (lanl) (expected jobs; 'rebat failures import' reads"),
        (NODE_EVENTS, "is a failure record (sacctmgr) (expected jobs"),
        (WORKLOAD, "is a workload (expected a trace; 'rebat run' reads workloads directly)"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("compressed", [False, True])
def test_no_jobs(text: str, problem: str, compressed: bool, tmp_path: Path, capsys) -> None:
    path = tmp_path / ("file.gz" if compressed else "file")
    path.write_bytes(gzip.compress(text.encode()) if compressed else text.encode())
    assert problem in error_of(["workload", "import", str(path)], tmp_path, capsys)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (SWF, "is a trace of jobs (swf) (expected failures; 'rebat workload import' reads jobs)"),
        (WORKLOAD, "is a workload (expected a failure record)"),
        (EVENT, "is already an event file (expected a failure record)"),
    ],
)
def test_no_failures(text: str, problem: str, tmp_path: Path, capsys) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    assert problem in error_of(["failures", "import", str(path)], tmp_path, capsys)


def test_a_parquet_workload_is_no_trace(tmp_path: Path, capsys) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "jobs.json").write_text(WORKLOAD)
    command = ["workload", "export", str(tmp_path / "jobs.json"), "--format", "parquet"]
    main([*command, "-o", str(tmp_path / "jobs.parquet")])
    told = error_of(["workload", "import", str(tmp_path / "jobs.parquet")], tmp_path, capsys)
    assert "is a workload (expected a trace; 'rebat run' reads workloads directly)" in told


def test_raw_records_of_slurm_in_a_run(tmp_path: Path, capsys) -> None:
    """Jobs must be imported. Events can be a law, but then their nodes have other numbers."""
    (tmp_path / "jobs.txt").write_text(SACCT)
    (tmp_path / "events.txt").write_text(NODE_EVENTS)
    campaign = '[workloads.a]\nfile = "jobs.txt"\n[[grid]]\nname = "g"\nworkloads = ["a"]\n'
    (tmp_path / "c.toml").write_text(f'name = "c"\n{campaign}policies = ["easy"]\n')
    run = ["run", "-p", "easy", "--out", str(tmp_path / "out")]
    events = str(tmp_path / "events.txt")
    for command, problem in (
        ([*run, str(tmp_path / "jobs.txt")], "is a trace of jobs (sacct) (expected a workload; "),
        (["campaign", "run", str(tmp_path / "c.toml")], "'rebat workload import' reads traces"),
        ([*run, "toy", "--failures", events], "is a failure record (sacctmgr) (expected an event"),
    ):
        with pytest.raises(SystemExit) as status:
            main(command)
        assert status.value.code == 2
        assert problem in capsys.readouterr().err
    main([*run, "toy", "--law", f"record:file={events}"])
    assert f"'rebat failures import {events} --workload WORKLOAD'" in capsys.readouterr().err


def test_attempts_of_slurm_are_both(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(SACCT)
    main(["workload", "import", str(path), "-o", str(tmp_path / "x.json")])
    main(["failures", "import", str(path), "-o", str(tmp_path / "x.events")])
