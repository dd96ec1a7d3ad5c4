# SPDX-License-Identifier: Apache-2.0
"""Invalid input causes one line with the error and its place, exit status 2, and no files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rebat.cli.main import main

GOOD = {
    "nb_res": 4,
    "jobs": [{"id": "1", "subtime": 0, "walltime": 20, "res": 2, "profile": "d"}],
    "profiles": {"d": {"type": "delay", "delay": 10}},
}


def job(**fields) -> dict:
    """Return the valid workload with fields of its job changed; None removes a field."""
    one = {k: v for k, v in ({**GOOD["jobs"][0], **fields}).items() if v is not None}
    return {**GOOD, "jobs": [one]}


def speedup(**fields) -> dict:
    """Return the valid workload with a speedup."""
    return {**GOOD, "profiles": {"d": {"type": "delay", "delay": 10, "speedup": fields}}}


def text(value) -> str:
    return value if isinstance(value, str) else json.dumps(value)


WORKLOADS = {
    "broken JSON": ('{"nb_res": 4, "jobs": [', "w.json"),
    "not an object": ("[1, 2]", "w.json"),
    "empty file": ("", "w.json"),
    "no jobs": ({**GOOD, "jobs": []}, "w.json"),
    "no profiles": ({"nb_res": 4, "jobs": GOOD["jobs"]}, "profiles"),
    "no machine size": ({k: v for k, v in GOOD.items() if k != "nb_res"}, "nb_res"),
    "negative size": (job(res=-1), "job 1"),
    "size zero": (job(res=0), "job 1"),
    "size with decimals": (job(res=1.5), "job 1"),
    "no size": (job(res=None), "job 1"),
    "negative submission": (job(subtime=-5), "job 1"),
    "no submission": (job(subtime=None), "job 1"),
    "walltime zero": (job(walltime=0), "job 1"),
    "walltime is a text": (job(walltime="1h"), "job 1"),
    "unknown profile": (job(profile="x"), "job 1"),
    "same id twice": ({**GOOD, "jobs": GOOD["jobs"] * 2}, "1"),
    "id with a comma": (job(id="1,2"), "1,2"),
    "negative delay": ({**GOOD, "profiles": {"d": {"type": "delay", "delay": -1}}}, "d"),
    "a delay of zero": ({**GOOD, "profiles": {"d": {"type": "delay", "delay": 0}}}, "d"),
    "an id of a resubmission": (
        {**GOOD, "jobs": [{**GOOD["jobs"][0], "id": name} for name in ("a#1", "a")]}, "job a#1",
    ),
    "delay beyond reason": ({**GOOD, "profiles": {"d": {"type": "delay", "delay": 1e300}}}, "d"),
    "no delay": ({**GOOD, "profiles": {"d": {"type": "delay"}}}, "d"),
    "least above most": (
        job(shape={"kind": "malleable", "min": 3, "max": 2}), "job 1: invalid shape",
    ),
    "asked for more than most": (
        job(res=3, shape={"kind": "malleable", "min": 1, "max": 2}), "job 1: res: is 3",
    ),
    "sizes beyond the machine": (
        job(shape={"kind": "moldable", "sizes": [2, 8]}), "job 1: shape: sizes: contains 8",
    ),
    "sizes repeated": (job(shape={"kind": "moldable", "sizes": [2, 2]}), "job 1: invalid shape"),
    "no sizes": (job(shape={"kind": "moldable", "sizes": []}), "job 1: invalid shape"),
    "unknown shape": (job(shape={"kind": "soft"}), "job 1: unknown shape 'soft'"),
    "a table that does not fit": (
        speedup(model="table", sizes=[1, 2], speeds=[1]), "speedup: has 2 sizes and 1 speed",
    ),
    "unknown speedup": (speedup(model="warp"), "profile 'd': unknown speedup 'warp'"),
    "parallelism below zero": (
        speedup(model="downey", parallelism=-2, sigma=1), "profile 'd': speedup: parallelism",
    ),
    "network profile": (
        {**GOOD, "profiles": {"d": {"type": "parallel", "cpu": [1], "com": [1]}}},
        "network model",
    ),
}  # fmt: skip

EVENTS = {
    "broken line": ('{"type": "machine_unav', "f.events:1"),
    "unknown type": ('{"type": "meteor", "resources": "0", "timestamp": 1}\n[]', "f.events:2"),
    "no date": ('{"type": "machine_unavailable", "resources": "0"}', "f.events:1"),
    "negative date": (
        '{"type": "machine_unavailable", "resources": "0", "timestamp": -1}', "f.events:1",
    ),
    "broken node set": (
        '{"type": "machine_unavailable", "resources": "0-", "timestamp": 1}', "f.events:1",
    ),
    "node outside the machine": (
        '{"type": "machine_unavailable", "resources": "7", "timestamp": 1}', "7",
    ),
    "failing twice": (
        '{"type": "machine_unavailable", "resources": "0", "timestamp": 1}\n'
        '{"type": "machine_unavailable", "resources": "0", "timestamp": 2}', "f.events:2",
    ),
    "repaired while up": (
        '{"type": "machine_available", "resources": "0", "timestamp": 1}', "f.events:1",
    ),
}  # fmt: skip

OPTIONS = {
    "unknown policy": (["-p", "magic"], "baseline"),
    "no policy": ([], "policy"),
    "unknown failure model": (["-p", "sfsj", "--mtbf", "1h", "--failure-model", "x"], "authors"),
    "no duration": (["-p", "sfsj", "--mtbf", "soon"], "soon"),
    "negative duration": (["-p", "sfsj", "--mtbf", "-5"], "-5"),
    "zero MTBF": (["-p", "sfsj", "--mtbf", "0"], "0"),
    "period without MTBF": (["-p", "sfsj", "--checkpoint", "young-daly"], "--mtbf"),
    "broken window": (["-p", "sfsj", "--window", "3d"], "window"),
    "empty window": (["-p", "sfsj", "--window", "3d:1d"], "window"),
    "broken selection": (["-p", "sfsj", "--select", "0.8:0.2"], "0.8:0.2"),
    "no nodes": (["-p", "sfsj", "--nodes", "0"], "--nodes"),
    "no event file": (["-p", "sfsj", "--failures", "absent.events"], "absent.events"),
    "negative seed": (["-p", "sfsj", "--mtbf", "1h", "--seed", "-1"], "--seed"),
}


def refused(arguments: list[str], capsys, told: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    captured = capsys.readouterr()
    assert stop.value.code == 2
    assert told in captured.err
    assert "Traceback" not in captured.err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("good.json").write_text(text(GOOD))
    return tmp_path


@pytest.mark.parametrize("name", WORKLOADS)
def test_bad_workload(name: str, folder: Path, capsys) -> None:
    content, told = WORKLOADS[name]
    Path("w.json").write_text(text(content))
    refused(["run", "w.json", "-p", "baseline", "--out", "out"], capsys, told)
    assert sorted(p.name for p in folder.iterdir()) == ["good.json", "w.json"]


@pytest.mark.parametrize("name", EVENTS)
def test_bad_events(name: str, folder: Path, capsys) -> None:
    content, told = EVENTS[name]
    Path("f.events").write_text(content)
    arguments = ["run", "good.json", "-p", "sfsj", "--failures", "f.events", "--out", "out"]
    refused(arguments, capsys, told)
    assert sorted(p.name for p in folder.iterdir()) == ["f.events", "good.json"]


@pytest.mark.parametrize("name", OPTIONS)
def test_bad_options(name: str, folder: Path, capsys) -> None:
    options, told = OPTIONS[name]
    refused(["run", "good.json", *options, "--out", "out"], capsys, told)
    assert [p.name for p in folder.iterdir()] == ["good.json"]


def test_a_missing_workload_is_told(folder: Path, capsys) -> None:
    refused(["run", "absent.json", "-p", "sfsj", "--out", "out"], capsys, "absent.json")


def test_a_workload_of_unknown_kind_is_told(folder: Path, capsys) -> None:
    Path("w.txt").write_text("hello")
    refused(["run", "w.txt", "-p", "sfsj", "--out", "out"], capsys, "w.txt")


def test_a_damaged_gz_is_told(folder: Path, capsys) -> None:
    Path("w.json.gz").write_bytes(b"\x1f\x8b\x08\x00damaged")
    refused(["run", "w.json.gz", "-p", "sfsj", "--out", "out"], capsys, "w.json.gz")


def test_a_folder_with_other_things_is_left_alone(folder: Path, capsys) -> None:
    Path("mine").mkdir()
    Path("mine/thesis.txt").write_text("years of work")
    refused(["run", "good.json", "-p", "sfsj", "--out", "mine"], capsys, "mine")
    assert Path("mine/thesis.txt").read_text() == "years of work"


def test_jobs_that_never_start_are_told(folder: Path, capsys) -> None:
    """A machine that loses a node permanently never runs a job that needs all nodes."""
    Path("w.json").write_text(text(job(res=4, subtime=5)))
    Path("f.events").write_text(
        '{"type": "machine_unavailable", "resources": "0", "timestamp": 1}\n'
    )
    arguments = ["run", "w.json", "-p", "sfsj", "--failures", "f.events", "--out", "out"]
    refused(arguments, capsys, "have not ended")


def test_the_installed_command_prints_one_line_and_no_traceback(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rebat", "run", "absent.json", "-p", "sfsj", "--out", "o"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
