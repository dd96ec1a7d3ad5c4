# SPDX-License-Identifier: Apache-2.0
"""Invalid campaigns and commands are errors before any run starts or uses memory."""

from __future__ import annotations

import tracemalloc
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

import rebat
from rebat.campaign.opening import open_campaign
from rebat.campaign.run import run_campaign
from rebat.cli.main import main
from rebat.core.cores import MAX_NODES, groups_of
from rebat.core.errors import InputError
from rebat.models.topology import parse_torus
from rebat.results.catalogue import RECORDED
from rebat.results.measures.summary import as_json
from rebat.results.metric import flat_metrics
from tests.support.campaigns import GRID, campaign_file

ROOT = Path(__file__).parents[2]
TOY = str(ROOT / "workloads/toy.json")
EVENTS = str(ROOT / "failure_events/toy.events")
TRACE = "; UnixStartTime: 1500000000\n; MaxNodes: 8\n" + "".join(
    f"{n} {n * 60} 0 600 2 -1 -1 2 1200 -1 1 1 1 1 1 1 -1 -1\n" for n in range(1, 20)
)
"""A trace with jobs of July 2017."""


def refused(file: Path, results: Path) -> str:
    """Return the error of a refused campaign; check that no run has started."""
    with pytest.raises(InputError) as error:
        run_campaign(open_campaign(file), results, executor="inline")
    assert list(results.glob("runs/*")) == []
    return str(error.value)


def test_months_that_a_trace_does_not_hold(tmp_path: Path) -> None:
    (tmp_path / "t.swf").write_text(TRACE)
    text = """
    [workloads.mine]
    file = "t.swf"
    months = "{month}"
    [[grid]]
    name = "small"
    workloads = ["mine"]
    policies = ["baseline", "easy"]
    """
    file = tmp_path / "c.toml"
    file.write_text(text.format(month="2018-11"))
    told = refused(file, tmp_path / "r")
    assert "mine" in told
    assert "no job in 2018-11" in told
    file.write_text(text.format(month="2017-07"))
    assert run_campaign(open_campaign(file), tmp_path / "r", executor="inline").ok == 2


def test_cores_that_do_not_divide_the_machine(tmp_path: Path) -> None:
    file = campaign_file(tmp_path, GRID.replace("[grid.fail", "cores_per_node = 7\n[grid.fail"))
    told = refused(file, tmp_path / "r")
    assert "small, one: cores per node: is 7 (expected a number that divides" in told


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("faps", "no torus is known for 128 nodes (expected its extents, like torus=4x4x2"),
        ("faps:torus=3x3", "3x3 has 9 nodes (expected the machine's 128)"),
        (
            "compaction:partitions=a:0-499,migration_cost=1",
            "partition a has node 499 (expected 0 to 127)",
        ),
    ],
)
@pytest.mark.parametrize("nodes", ["", "nodes = 128\n"])
def test_a_policy_that_does_not_fit_the_machine(
    policy: str, words: str, nodes: str, tmp_path: Path
) -> None:
    grid = GRID.replace('"sfsj"', f'"{policy}"').replace("[grid.fail", f"{nodes}[grid.fail")
    told = refused(campaign_file(tmp_path, grid), tmp_path / "r")
    assert f"small, one: {policy}: " in told
    assert words in told


def test_a_record_in_another_format(tmp_path: Path) -> None:
    (tmp_path / "x.events").write_text(Path(EVENTS).read_text())
    grid = """
    [[grid]]
    name = "small"
    workloads = ["one"]
    policies = ["baseline"]
    [grid.failures]
    law = "record"
    file = "x.events"
    format = "{format}"
    """
    file = campaign_file(tmp_path, grid.format(format="csv"))
    assert "x.events" in refused(file, tmp_path / "r")


# ---- metrics


def test_every_metric_of_a_run_is_known_before() -> None:
    failures = rebat.failures(file="toy")
    for options in ({"failures": failures}, {"cores_per_node": 2}):
        run = rebat.run("toy", "sfsj", **options).run_of("sfsj")
        found = {name for name, _, _ in flat_metrics(as_json(run.summary))}
        assert {name for name in found if not is_metric(name)} == set()


def is_metric(name: str) -> bool:
    return any(fnmatchcase(name, known) for known in RECORDED)


@pytest.mark.parametrize("metric", ["zz", "zz:all", ""])
def test_an_unknown_metric_is_refused_before_anything_runs(
    metric: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys
) -> None:
    monkeypatch.setattr("rebat.runs.seeds.perform", None)
    asked = ["--until-width", "0.05", "--until-metric", metric, "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as stop:
        main(["run", TOY, "-p", "baseline", "-p", "sfsj", "--mtbf", "1h", *asked])
    assert stop.value.code == 2
    told = capsys.readouterr().err
    assert f"--until-metric: unknown metric {metric.partition(':')[0]!r} (expected " in told
    names = told.partition("(expected ")[2].rstrip(")\n").split(", ")
    assert "useful_utilisation" in names
    assert len(names) == len(set(names))


# ---- sizes

HUGE = "1000000000"


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", TOY, "-p", "baseline", "--nodes", HUGE, "--out", "OUT"],
        ["operations", "--rolling-maintenance", "4h", "--nodes", HUGE, "-o", "OUT"],
        ["failures", "map", EVENTS, "--nodes", HUGE, "-o", "OUT"],
        ["failures", "map", EVENTS, "--from-nodes", HUGE, "--nodes", "8", "-o", "OUT"],
        ["failures", "generate", "--nodes", HUGE, "--mtbf", "1h", "--downtime", "1h",
         "--horizon", "1d", "-o", "OUT"],
        ["failures", "describe", EVENTS, "--nodes", HUGE],
        ["batch", "--torus", "1000x1000x1000", "--size", "8", "--duration", "1h", "--law",
         "weibull:scale=1d,shape=0.7", "-p", "faps", "--out", "OUT"],
        ["platform", "generate", f"flat:{HUGE}", "-o", "OUT"],
    ],
)  # fmt: skip
def test_no_command_takes_memory_for_a_machine_that_is_none(
    arguments: list[str], tmp_path: Path, capsys
) -> None:
    out = str(tmp_path / "out.xml")
    tracemalloc.start()
    with pytest.raises(SystemExit) as stop:
        main([out if word == "OUT" else word for word in arguments])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert stop.value.code == 2
    assert str(MAX_NODES) in capsys.readouterr().err
    assert most < 200e6
    assert list(tmp_path.iterdir()) == []


def test_nor_does_the_library_or_a_campaign(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nodes"):
        rebat.run("toy", "baseline", nodes=10**9)
    with pytest.raises(InputError, match=f"at most {MAX_NODES} nodes"):
        groups_of(10**9, 1)
    file = campaign_file(tmp_path, GRID.replace("[grid.fail", f"nodes = {10**9}\n[grid.fail"))
    with pytest.raises(InputError, match=rf"nodes: is {10**9} .expected a whole number, at most"):
        open_campaign(file)
    assert parse_torus("100x100x1000").n_nodes == MAX_NODES
