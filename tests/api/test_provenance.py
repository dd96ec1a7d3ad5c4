# SPDX-License-Identifier: Apache-2.0
"""provenance.json describes how a result was computed; rebat reproduce computes it again."""

from __future__ import annotations

import hashlib
import json
import math
import platform
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rebat
from rebat.api.provenance import policy_files
from rebat.api.reproduce import compared
from rebat.cli.main import main
from rebat.core.folders import write_manifest
from tests.test_architecture import PACKAGE

OPTIONS = ["--failures", "f.events", "-p", "baseline:order=rules/mine.py:small", "-p", "sfsj"]
RULE = "def small(attempt):\n    return attempt.n_nodes\n"


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def record(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "provenance.json").read_text())


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with a workload, events and a policy, and run a command that writes `out`."""
    root = PACKAGE.parents[1]
    shutil.copy(root / "workloads/toy.json", tmp_path / "w.json")
    shutil.copy(root / "failure_events/toy.events", tmp_path / "f.events")
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/mine.py").write_text(RULE)
    monkeypatch.chdir(tmp_path)
    main(["run", "w.json", *OPTIONS, "--out", "out"])
    return tmp_path


def status(*arguments: str) -> int:
    try:
        main(["reproduce", *arguments, "--yes"])
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def test_the_record_has_command_versions_inputs_and_options(here: Path) -> None:
    found = record(here / "out")
    policies = ["baseline:order=rules/mine.py:small", "sfsj"]
    assert found["command"] == [
        "run", "w.json", "--policy", policies[0], "--policy", "sfsj", "--failures", "f.events",
    ]  # fmt: skip
    assert found["inputs"] == [
        {"option": option, "file": file, "sha256": sha256(here / file)}
        for option, file in (
            ("WORKLOAD", "w.json"), ("--failures", "f.events"), ("--policy", "rules/mine.py"),
        )
    ]  # fmt: skip
    assert found["versions"]["rebat"] == rebat.__version__
    assert found["versions"]["python"] == platform.python_version()
    assert found["versions"]["numpy"] == np.__version__
    assert (found["policies"], found["seeds"]) == (policies, [0])
    summary = json.loads((here / "out/sfsj/summary.json").read_text())
    assert {name: found[name] for name in ("workload", "options")} == {
        name: summary[name] for name in ("workload", "options")
    }
    assert str(here) not in (here / "out/provenance.json").read_text()


def test_options_without_effect_do_not_change_the_record(here: Path) -> None:
    before = (here / "out/provenance.json").read_bytes()
    main(["run", "w.json", "--out=other", *OPTIONS, "--columns", "flow_max_s:all", "--force"])
    assert (here / "other/provenance.json").read_bytes() == before
    main(["run", "w.json", *OPTIONS, "--walltime-kills", "useful", "--out", "third"])
    assert record(here / "third")["command"][-2:] == ["--walltime-kills", "useful"]


@pytest.mark.parametrize(
    ("policy", "files"),
    [
        ("sfsj", []),
        ("a/mine.py:Mine", ["a/mine.py"]),
        ("baseline:order=mine.py:f", ["mine.py"]),
        ("Baseline:mine.py:f,depth=easy", ["mine.py"]),
        ("sfsj:victim=a.py:f,criterion=b.py:g", ["a.py", "b.py"]),
        ("box-foresight:foresight=n.csv,order=a.py:f", ["n.csv", "a.py"]),
        ("easy:react=stealing,foresight=law", []),
    ],
)
def test_policies_name_files(policy: str, files: list[str]) -> None:
    assert list(policy_files(policy)) == list(policy_files([policy])) == files


def test_files_of_laws_are_inputs(here: Path) -> None:
    main(["run", "w.json", "-p", "sfsj", "--law", "trace:file=f.events", "--out", "law"])
    assert record(here / "law")["inputs"][1:] == [
        {"option": "--law", "file": "f.events", "sha256": sha256(here / "f.events")}
    ]


def test_in_python_the_record_has_no_command(here: Path, capsys) -> None:
    result = rebat.run("w.json", ["baseline:order=rules/mine.py:small"])
    result.write("python")
    assert record(here / "python") == result.provenance
    assert result.provenance["command"] == []
    files = [row["file"] for row in result.provenance["inputs"]]
    assert files == ["w.json", "rules/mine.py"]
    assert status("python") == 2
    assert "contains no command" in capsys.readouterr().err


@pytest.mark.slow
def test_a_result_is_reproduced(here: Path, capsys) -> None:
    capsys.readouterr()
    assert status("out", "--out", "again") == 0
    lines = capsys.readouterr().out.splitlines()
    names = {
        path.relative_to(here / "out").as_posix()
        for path in (here / "out").rglob("*")
        if path.is_file() and path.name not in ("SHA256SUMS", "provenance.json")
    }
    assert lines[0] == f"reproduced: all {len(names)} files are equal"
    rows = [line.split() for line in lines[1:] if line.strip().endswith(" equal")]
    assert {row[0] for row in rows} == names
    for name in (*names, "SHA256SUMS", "provenance.json"):
        assert (here / "again" / name).read_bytes() == (here / "out" / name).read_bytes()


@pytest.mark.slow
def test_a_changed_file_is_named_with_its_first_line(here: Path, capsys) -> None:
    path = here / "out/sfsj/rebat_jobs.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:2], "changed\n", *lines[3:]]))
    capsys.readouterr()
    assert status("out", "--json") == 1
    found = json.loads(capsys.readouterr().out)
    unequal = [row for row in found["files"] if row["verdict"] != "equal"]
    assert unequal == [
        {"file": "sfsj/rebat_jobs.csv", "verdict": "differs", "line": 3, "before": "changed",
         "now": lines[2].rstrip("\n"), "field": "", "difference": 0.0}
    ]  # fmt: skip
    assert not found["reproduced"]
    assert found["verdict"] == f"not reproduced: 1 of {len(found['files'])} files differ"


def rewritten(path: Path, edit: Callable[[str], str]) -> None:
    text = path.read_text()
    assert edit(text) != text
    path.write_text(edit(text))


def next_number(text: str) -> str:
    """Replace the mean flow of JSON by the next floating-point number."""
    (value,) = re.findall(r'"mean_s": (\d+\.\d{9,}),', text)[:1]
    return text.replace(value, repr(math.nextafter(float(value), math.inf)), 1)


@pytest.mark.slow
def test_other_last_digits_are_equal_up_to_rounding(here: Path, capsys) -> None:
    main(["run", "synthetic-small", "-p", "easy", "-p", "sfsj", "--mtbf", "30min", "--downtime",
          "10min", "--out", "small"])  # fmt: skip
    rewritten(here / "small/sfsj/summary.json", next_number)
    capsys.readouterr()
    assert status("small", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    rows = [row for row in found["files"] if row["verdict"] != "equal"]
    (row,) = rows
    assert (row["file"], row["verdict"]) == ("sfsj/summary.json", "equal up to rounding")
    keys = ["metrics", "flows"]
    assert row["field"].split(".")[:2] == keys and row["field"].endswith(".mean_s")
    lines = (here / "small/sfsj/summary.json").read_text().splitlines()
    assert row["before"] in lines[row["line"] - 1]
    assert float(row["before"]) == math.nextafter(float(row["now"]), math.inf)
    assert 0 < row["difference"] < 1e-15
    assert found["reproduced"]
    assert found["verdict"] == (
        f"equal up to rounding: numbers in 1 of {len(found['files'])} files differ by at most "
        f"{row['difference']:.2g} (relative; limit: 1e-09). The largest difference is in "
        f"sfsj/summary.json, line {row['line']}: {row['field']}"
    )


@pytest.mark.slow
def test_a_difference_above_the_limit_is_not_reproduced(here: Path, capsys) -> None:
    """A line that differs only by rounding is not the line that is shown."""
    main(["run", "synthetic-small", "-p", "sfsj", "--out", "small"])
    path = here / "small/sfsj/summary.json"
    rewritten(path, next_number)
    rewritten(
        path, lambda text: re.sub(r'(\n    "useful_utilisation": 0\.\d{6})\d', r"\g<1>", text)
    )
    capsys.readouterr()
    assert status("small") == 1
    text = capsys.readouterr().out
    assert text.startswith("not reproduced: 1 of ")
    assert text.count("useful_utilisation") == 2 and "mean_s" not in text


@pytest.mark.parametrize(
    ("name", "before", "now", "row"),
    [
        ("a.csv", "id,flow\n1,0.1\n2,5749.2543198799995\n", "id,flow\n1,0.1\n2,5749.25431988\n",
         ("equal up to rounding", 3, "flow")),
        ("a.csv", "id,flow\n1,0.1\n", "id,flow\n1,0.1000000002\n", ("differs", 2, "")),
        ("a.csv", "id\n10000000001\n", "id\n10000000002\n", ("differs", 2, "")),
        ("a.csv", "id,flow\n1,0.1\n", "id,flow\n1,0.1\n2,0.1\n", ("differs", 3, "")),
        ("a.csv", "id,flow\n1,nan\n", "id,flow\n1,inf\n", ("differs", 2, "")),
        ("a.json", '{\n  "a": {\n    "b: c": [\n      1.0,\n      0.3\n    ]\n  }\n}\n',
         '{\n  "a": {\n    "b: c": [\n      1.0,\n      0.30000000000000004\n    ]\n  }\n}\n',
         ("equal up to rounding", 5, "a.b: c")),
        ("a.json", '{\n  "a": "0.3"\n}\n', '{\n  "a": "0.30000000000000004"\n}\n',
         ("differs", 2, "")),
        ("a.json", '{\n  "a": 0.3\n}\n', '{\n  "b": 0.3\n}\n', ("differs", 2, "")),
        ("a.svg", "0.3", "0.30000000000000004", ("differs", 1, "")),
        ("a.npz", b"\xff0.3", b"\xff0.30000000000000004", ("differs", None, "")),
    ],
)  # fmt: skip
def test_files_are_compared_by_cells(
    tmp_path: Path, name: str, before: str | bytes, now: str | bytes, row: tuple[Any, ...]
) -> None:
    for folder, content in (("before", before), ("now", now)):
        (tmp_path / folder).mkdir()
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / folder / name).write_bytes(data)
        write_manifest(tmp_path / folder)
    (found,) = compared(tmp_path / "before", tmp_path / "now")
    assert (found.verdict, found.line, found.field) == row


def test_parquet_files_are_compared_by_cells(tmp_path: Path) -> None:
    for folder, value, codec in (("a", 0.3, "zstd"), ("b", 0.1 + 0.2, "zstd"), ("c", 0.3, "gzip")):
        (tmp_path / folder).mkdir()
        frame = pd.DataFrame({"job": [1, 2], "flow": [0.5, value]})
        frame.to_parquet(tmp_path / folder / "jobs.parquet", compression=codec)
        write_manifest(tmp_path / folder)
    (row,) = compared(tmp_path / "a", tmp_path / "b")
    assert (row.verdict, row.line, row.field) == ("equal up to rounding", 3, "flow")
    (row,) = compared(tmp_path / "a", tmp_path / "c")
    assert (row.verdict, row.line, row.difference) == ("equal", None, 0)


@pytest.mark.slow
def test_changed_inputs_and_versions_are_named_before_the_run(here: Path, capsys) -> None:
    (here / "rules/mine.py").write_text("def small(attempt):\n    return -attempt.n_nodes\n")
    text = (here / "out/provenance.json").read_text()
    version = f'"numpy": "{np.__version__}"'
    assert version in text
    (here / "out/provenance.json").write_text(text.replace(version, '"numpy": "1.0"'))
    capsys.readouterr()
    assert status("out") == 1
    shown = capsys.readouterr()
    assert f"warning: numpy is {np.__version__}, the result is of 1.0\n" in shown.err
    assert "warning: input rules/mine.py has changed\n" in shown.err
    assert shown.out.startswith("not reproduced: ")


@pytest.mark.slow
def test_inputs_are_found_by_their_hashes(here: Path, capsys) -> None:
    (here / "kept").mkdir()
    for number, name in enumerate(("w.json", "f.events", "rules/mine.py")):
        (here / name).rename(here / f"kept/{number}")
    assert status("out") == 2
    error = capsys.readouterr().err
    assert "rebat: error: w.json: no such file (expected the file with sha256 " in error
    assert status("out", "--inputs", "kept", "--out", "again") == 0
    assert record(here / "again") == record(here / "out")
    (here / "kept/1").unlink()
    assert status("out", "--inputs", "kept") == 2
    assert "f.events: no such file" in capsys.readouterr().err


@pytest.mark.slow
def test_absolute_paths_are_replaced_if_the_files_moved(here: Path) -> None:
    main(["run", str(here / "w.json"), "-p", "sfsj", "--out", "absolute"])
    assert record(here / "absolute")["inputs"][0]["file"] == str(here / "w.json")
    (here / "kept").mkdir()
    (here / "w.json").rename(here / "kept/moved")
    assert status("absolute", "--inputs", "kept") == 0


@pytest.mark.slow
def test_runs_of_several_seeds_and_included_inputs_are_reproduced(here: Path, capsys) -> None:
    main(["run", "toy", "-p", "sfsj", "-p", "easy", "--mtbf", "20s", "--downtime", "5s",
          "--seeds", "3", "--workers", "1", "--out", "seeds"])  # fmt: skip
    found = record(here / "seeds")
    assert found["seeds"] == [0, 1, 2] and found["inputs"][0]["file"] == "toy"
    assert "--workers" not in found["command"]
    capsys.readouterr()
    assert status("seeds") == 0
    assert "seeds.csv" in capsys.readouterr().out


@pytest.mark.slow
def test_a_result_with_a_failed_policy_is_reproduced(here: Path) -> None:
    text = (
        "from rebat import Policy\n\n\nclass Stuck(Policy):\n    def plan(self, view, changes):\n"
    )
    (here / "stuck.py").write_text(f'{text}        raise ValueError("no")\n')
    with pytest.raises(SystemExit):
        main(["run", "w.json", "-p", "sfsj", "-p", "stuck.py:Stuck", "--out", "failed"])
    assert record(here / "failed")["policies"] == ["sfsj", "Stuck"]
    assert status("failed") == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "contains no provenance.json (expected a folder written by rebat run --out)"),
        ("{", "is invalid"),
        ('{"command": ["serve"], "versions": {}, "inputs": []}', "contains no command"),
        ('{"command": ["run", "w.json", "--no"], "versions": {}, "inputs": []}',
         "the command has the argument '--no'"),
    ],
)  # fmt: skip
def test_folders_without_a_usable_record_are_refused(
    tmp_path: Path, capsys, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / "provenance.json").write_text(content)
    assert status(str(tmp_path)) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"rebat: error: {tmp_path}")
    assert message in error


def test_an_earlier_result_is_not_replaced(here: Path, capsys) -> None:
    assert status("out", "--out", "out") == 2
    assert "wrote no result" in capsys.readouterr().err


def test_files_of_one_result_only_are_listed(here: Path) -> None:
    main(["run", "w.json", "-p", "sfsj", "--out", "one"])
    rows = {row.file: row.verdict for row in compared(here / "one", here / "out")}
    assert rows["baseline+order=rules+mine.py+small/jobs.csv"] == "new"
    rows = {row.file: row.verdict for row in compared(here / "out", here / "one")}
    assert rows["baseline+order=rules+mine.py+small/jobs.csv"] == "missing"
