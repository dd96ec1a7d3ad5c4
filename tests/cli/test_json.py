# SPDX-License-Identifier: Apache-2.0
"""Commands that print a table can also print JSON with the same numbers."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from rebat.cli.main import cli, main
from tests.support.campaigns import campaign_file
from tests.wire.test_processes import DYNAMIC, REBAT, free_port, simulate

ROOT = Path(__file__).parents[2]
TOY = ["toy", "--failures", "toy", "-p", "baseline", "-p", "sfsj"]
LAW = "weibull:scale=50h,shape=4,scale_sigma=2h"
BATCH = ["--torus", "4x4x2", "--size", "8", "--jobs", "30", "--law", LAW, "--duration", "2h"]

Value = Callable[[Any], Any]


STUCK = """
from rebat import Policy

class Stuck(Policy):
    def plan(self, view, changes):
        raise ValueError("no")
"""


class Example(NamedTuple):
    """A command, a number in its JSON, and the text of this number in its table."""

    words: list[str]
    value: Value
    number: Any
    text: str
    status: int = 0


def metric(name: str, policy: str, of: str, key: str = "value") -> Value:
    """Return a function that reads the value of a metric from the JSON of a comparison."""
    wanted = {"metric": name, "policy": policy, "size_class": of}

    def value(record: Any) -> Any:
        (row,) = (row for row in record["metrics"] if wanted.items() <= row.items())
        return row[key]

    return value


def at(*path: Any) -> Value:
    """Return a function that reads the value at a path of keys and positions."""

    def value(record: Any) -> Any:
        for step in path:
            record = record[step]
        return record

    return value


EXAMPLES: dict[str, list[Example]] = {
    "toy": [Example(["--out", "t"], metric("flow_max_s", "sfsj", "all"), 21.0, "21 s")],
    "run": [
        Example([*TOY, "--out", "o", "--force"], metric("flow_max_s", "sfsj", "all", "change"),
                pytest.approx(21 / 25 - 1), "\N{MINUS SIGN}16.0 %"),
        Example([*TOY[:1], "-p", "baseline", "--mtbf", "1min", "--downtime", "5s", "--seeds", "5",
                 "--workers", "1", "--out", "o", "--force"],
                metric("flow_max_s", "baseline", "all", "low"), pytest.approx(18.3, abs=0.05),
                "22 s [18, 27]"),
    ],
    "compare": [
        Example(["runs/baseline", "runs/sfsj"], at("metrics", 0, "ratio"), 0.84, "0.840", 1),
        Example(["--batsched", "synthetic-small", "-p", "batsched-fcfs"],
                at("comparisons", 0, "jobs"), 100, "equal, 100 jobs"),
    ],
    "validate": [
        Example(["runs/sfsj"], at("rows"), 7, "7 rows"),
        Example(["runs/sfsj", "--nodes", "4"], lambda of: {row["kind"] for row in of["findings"]},
                {"outside"}, "a node outside the machine", 1),
    ],
    "policies": [
        Example([], at("policies", 0, "name"), "baseline", "baseline"),
        Example(["easy-sfsj"], at("policies", 0, "axes", "react"), "stealing", "react=stealing"),
        Example(["--axes"], at("kinds", 0, "axes", 0, "default"), "list", "planning       list"),
    ],
    "batch": [
        Example([*BATCH, "-p", "slurm-linear", "-p", "faps", "--out", "b", "--force"],
                at("cases", 1, "less_than_linear"), pytest.approx(0.1065, abs=5e-5), "10.7 %"),
    ],
    "bound": [Example(["toy"], at("scenarios", 0, "r_list_0_at_most"), 31.640625, "31.640625")],
    "boxes": [Example(["--torus", "8x8x8x8", "--size", "256"], at("placements"), 11392, "11,392")],
    "failures describe": [
        Example(["f.events", "--nodes", "64"], at("fits", 0, "laws", 0, "aic"),
                pytest.approx(4395.8, abs=0.05), "4,395.8"),
        Example(["f.events", "--nodes", "64"], at("mean_downtime_s"), 600.0, "10 min"),
        Example(["f.events", "--nodes", "64"], at("lemons"), [],
                "no node fails significantly more often than the others"),
        Example(["f.events", "--nodes", "64"], at("mttf_by_size", 2, "low_s"),
                pytest.approx(53.13 * 60, abs=1), "53.1 min"),
        Example(["f.events", "--nodes", "64"], at("mttf_by_size", 1, "high_s"),
                pytest.approx(9.162 * 3600, abs=2), "9.16 h"),
    ],
    "platform describe": [
        Example(["mira-zero-latency"], at("diameter_hops"), 27, "diameter 27 hops"),
    ],
    "workload describe": [Example(["toy"], at("size_classes", "[1, 2)"), 3, "3")],
    "policy check": [
        Example(["easy", "--seeds", "1"], at("checks", 0, "cases"), 3, "(cases: 3)"),
    ],
    "campaign status": [Example(["small.toml"], at("left"), 10, "10 left")],
}  # fmt: skip
"""Examples of each command that prints a table. The numbers are copied from the tables."""

ELSEWHERE = {
    "calibrate": "tests/studies/test_calibrate.py",
    "serve": "test_a_server_prints_its_comparison_as_json",
    "advise": "tests/studies/test_advice.py",
    "diff-policies": "test_where_two_policies_part",
    "explain": "tests/cli/test_explain.py",
    "reproduce": "tests/api/test_provenance.py",
    "failures models": "tests/models/test_scaled.py",
    "goodput": "tests/studies/test_goodput.py",
    "wire check": "tests/cli/test_batsim5.py",
}
"""Commands with a table that are tested elsewhere."""

NO_TABLE = {
    "makespan": "prints CSV; with -o, a sentence",
    "view": "a page",
    "site check": "sentences",
    "export": "the name of its file",
    "sweep": "a sentence; its table is a file",
    "whatif": "the address of its page",
    "simulate": "the names of its files",
    "operations": "the name of its file",
    "pybatsim-path": "a path",
    "cite": "BibTeX",
    "completion": "a script",
    "warmup": "a sentence",
    "policy new": "the names of its files",
    "campaign run": "a sentence; campaign status has the numbers",
    "campaign report": "the names of its files",
    "campaign clean": "a sentence",
    "workload import": "notes on a conversion",
    "workload generate": "the name of its file",
    "workload flex": "the name of its file",
    "workload prepare": "the name of its file",
    "workload export": "the name of its file",
    "bundle": "the name of its file",
    "failures generate": "the name of its file",
    "failures nodes": "the name of its file",
    "failures fit": "writes its table to a file",
    "failures import": "notes on a conversion",
    "failures map": "notes on a conversion",
    "failures export": "the name of its file",
    "platform generate": "the name of its file",
}
"""What the other commands print."""


def commands(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{prefix}{name} ")
        elif command is not None:
            yield f"{prefix}{name}", command


def test_each_command_has_json_or_no_table() -> None:
    walked = dict(commands(cli))
    with_json = {name for name, of in walked.items() if any("--json" in p.opts for p in of.params)}
    assert with_json == EXAMPLES.keys() | ELSEWHERE.keys()
    assert walked.keys() - with_json == NO_TABLE.keys()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Write the inputs of the examples."""
    path = tmp_path_factory.mktemp("json")
    campaign_file(path)
    main(["run", *TOY, "--out", str(path / "runs")])
    main(["failures", "generate", "--nodes", "64", "--mtbf", "1h", "--downtime", "10min",
          "--horizon", "10d", "-o", str(path / "f.events")])  # fmt: skip
    return path


def printed(capsys, *words: str) -> tuple[str, int]:
    """Run a command; return standard output and the exit status."""
    capsys.readouterr()
    status = 0
    try:
        main(list(words))
    except SystemExit as ended:
        status = int(ended.code or 0)
    return capsys.readouterr().out, status


CASES = [(name, example) for name, examples in EXAMPLES.items() for example in examples]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "example"), CASES, ids=[" ".join([name, *of.words[:2]]) for name, of in CASES]
)
def test_json_has_the_numbers_of_the_table(name, example, folder, monkeypatch, capsys) -> None:
    monkeypatch.chdir(folder)
    words = [*name.split(), *example.words]
    text, status = printed(capsys, *words)
    raw, status_of_json = printed(capsys, *words, "--json")
    assert status == status_of_json == example.status
    assert example.text in text
    assert example.value(json.loads(raw)) == example.number


def test_a_run_prints_the_rows_of_its_comparison(folder, monkeypatch, capsys) -> None:
    monkeypatch.chdir(folder)
    seeds = ["--mtbf", "1min", "--downtime", "5s", "--seeds", "6", "--workers", "1"]
    words = ["run", "toy", "-p", "baseline", "-p", "sfsj", *seeds, "--out", "many", "--force"]
    record = json.loads(printed(capsys, *words, "--json")[0])
    rows = list(csv.DictReader((folder / "many/comparison.csv").open()))
    assert len(rows) == len(record["metrics"])
    for row, ours in zip(rows, record["metrics"], strict=True):
        names = (row["metric"], row["size_class"] or None, row["policy"])
        assert names == (ours["metric"], ours["size_class"], ours["policy"])
        for key in ("mean", "low", "high"):
            assert number(row[key]) == close(ours[key])
        for key, ratio in (("change", "ratio"), ("change_low", "ratio_low")):
            assert number(row[ratio]) == close(None if ours[key] is None else ours[key] + 1)
        assert int(row["seeds"]) == ours["n"]
    assert (record["seeds"], record["failed"], record["out"]) == (6, {}, "many")


def number(text: str) -> float | None:
    return float(text) if text else None


def close(value: float | None) -> Any:
    """Return an approximation for comparison with a CSV, whose numbers have six digits."""
    return None if value is None else pytest.approx(value, rel=1e-5, abs=1e-9)


def test_columns_limit_the_metrics(folder, monkeypatch, capsys) -> None:
    monkeypatch.chdir(folder)
    words = ["run", *TOY, "--columns", "flow_max_s", "--out", "few", "--force", "--json"]
    record = json.loads(printed(capsys, *words)[0])
    rows = [(row["metric"], row["policy"], row["value"]) for row in record["metrics"]]
    assert rows == [("flow_max_s", "baseline", 25.0), ("flow_max_s", "sfsj", 21.0)]


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["run", *TOY, "--all-metrics", "--out", "new"], "--all-metrics"),
        (["validate", "runs/sfsj", "--show", "3"], "--show"),
        (["serve", "-p", "baseline"], "--json"),
    ],
)
def test_options_without_effect_on_json_are_errors(
    words, option, folder, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as ended:
        main([*words, "--json"])
    assert ended.value.code == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.startswith(f"rebat: error: {option}: has no effect")
    assert not (folder / "new").exists()


def test_a_policy_that_fails_is_in_the_json(folder, monkeypatch, capsys) -> None:
    monkeypatch.chdir(folder)
    (folder / "stuck.py").write_text(STUCK)
    words = ["run", "toy", "-p", "baseline", "-p", "stuck.py:Stuck", "--out", "s", "--force"]
    raw, status = printed(capsys, *words, "--json")
    assert status == 2
    record = json.loads(raw)
    assert list(record["failed"]) == ["Stuck"] and record["policies"] == ["baseline"]


@pytest.mark.slow
def test_a_server_prints_its_comparison_as_json(folder, tmp_path) -> None:
    port = free_port()
    shutil.copy(ROOT / "workloads/toy.json", tmp_path / "w.json")
    serve = [*REBAT, "serve", "-p", "baseline", "--endpoint", f"tcp://127.0.0.1:{port}",
             "--timeout", "30s", "--out", str(tmp_path / "out"), "--json"]  # fmt: skip
    server = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        simulate(tmp_path, port, tmp_path / "sim", *DYNAMIC)
        record = json.loads(server.communicate(timeout=30)[0])
    finally:
        server.kill()
        server.communicate()
    assert metric("jobs", "baseline", None)(record) == 5


def test_where_two_policies_part(tmp_path, capsys) -> None:
    main(["run", *TOY, "--out", str(tmp_path / "toy")])
    capsys.readouterr()
    command = ["diff-policies", str(tmp_path / "toy"), "baseline", "sfsj"]
    main([*command, "--json"])
    record = json.loads(capsys.readouterr().out)
    main(command)
    text = capsys.readouterr().out
    assert (record["at_s"], record["equal_decisions"], record["same"]) == (1.0, 3, False)
    assert text.startswith(
        "baseline and sfsj differ at 1 s (1.000000 s), after 3 equal decisions\n"
    )
    (stop,) = [choice for choice in record["only_b"] if choice["verb"] == "stop"]
    assert f"stop job {stop['job']} on 1 node (stolen: for 3)" in text
    assert "--window 0s:3s" in text
    same = ["diff-policies", str(tmp_path / "toy"), "baseline", "baseline"]
    with pytest.raises(SystemExit) as error:
        main(same)
    assert error.value.code == 2


def test_numbers_that_json_lacks_are_null_and_numpy_is_plain() -> None:
    import numpy as np

    from rebat.console.output import json_text

    text = json_text({"a": float("nan"), "b": float("inf"), "c": np.int64(3), "d": Path("x")})
    assert json.loads(text) == {"a": None, "b": None, "c": 3, "d": "x"}
    with pytest.raises(TypeError, match="JSON cannot represent object"):
        json_text(object())


def test_the_json_of_a_run_ends_with_a_newline_and_nothing_else(folder) -> None:
    command = [sys.executable, "-m", "rebat", "run", *TOY, "--out", "p", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    shutil.rmtree(folder / "p")
    assert done.stdout.startswith("{\n") and done.stdout.endswith("\n}\n")
