# SPDX-License-Identifier: Apache-2.0
"""Several values of a parameter in a grid, and `rebat.sweep`."""

from __future__ import annotations

from pathlib import Path

import pytest

import rebat
from rebat.campaign.opening import open_campaign
from rebat.campaign.reporting import write_report
from rebat.core.errors import InputError
from rebat.report.runs_index import RunIndex, Setting, lines_of, numbers_of, sweeps
from rebat.runs.labels import ScenarioLabel
from tests.support.campaigns import campaign_file, run_here, specs_of

GRID = """
[[grid]]
name = "swept"
workloads = ["one"]
policies = ["baseline", "baseline:react=replacement,spares={spares}"]
nodes = [120, 128]
[grid.sweep]
spares = [0, 2, 4]
[grid.failures]
mtbf = "30min"
downtime = "10min"
seeds = [0, 1]
[grid.checkpoint]
cost = ["1min", "5min"]
"""


def test_a_grid_has_a_run_for_each_combination_of_values(tmp_path: Path) -> None:
    specs = specs_of(open_campaign(campaign_file(tmp_path, GRID)))
    assert len(specs) == 2 * 4 * 2 * 2  # nodes, policies, costs, seeds
    assert {spec.policy for spec in specs} == {
        "baseline",
        *(f"baseline:react=replacement,spares={n}" for n in (0, 2, 4)),
    }
    assert {(s.scenario.nodes, s.scenario.checkpoint.cost_s) for s in specs} == {
        (120, 60.0), (120, 300.0), (128, 60.0), (128, 300.0),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("spares = [0, 2, 4]", "spares = []", "sweep.spares: is empty"),
        ("spares = [0, 2, 4]", "spares = [0, 0]", "sweep.spares: lists 0 twice"),
        ("spares = [0, 2, 4]", "span = [0]", "sweep.span: has no effect"),
        ("spares={spares}", "spares=1", "sweep.spares: has no effect"),
        ("{spares}", "{spares}{more}", "unknown swept parameter 'more'"),
        ("nodes = [120, 128]", "nodes = []", "nodes: is empty"),
        ("nodes = [120, 128]", "nodes = [120, 120]", "nodes: lists 120 twice"),
        ('["1min", "5min"]', '["1min", "60s"]', "cost: lists 60.0 twice"),
    ],
)
def test_wrong_values_are_refused_by_name(
    tmp_path: Path, before: str, after: str, words: str
) -> None:
    with pytest.raises(InputError, match=r"small\.toml: ") as caught:
        open_campaign(campaign_file(tmp_path, GRID.replace(before, after)))
    assert words in str(caught.value)


def _rows(policy: str, scenario: ScenarioLabel, value: float):
    setting = Setting("grid", "jobs", scenario)
    return [(setting, policy, "flow_mean_s", "all", (-1, s), value + s) for s in range(6)]


def test_runs_that_differ_in_one_number_are_a_sweep() -> None:
    """The number is a parameter of a law or an option of a policy. Other differences separate
    sweeps."""
    rows = [
        row
        for scale in (100, 200, 300)
        for shape in (1, 2)
        for policy in ("easy", "easy:spares=1")
        for row in _rows(
            policy, ScenarioLabel("weibull", law=f"scale={scale}h,shape={shape}"), scale
        )
    ]
    runs = RunIndex(rows)
    swept = list(sweeps(runs))
    assert [(item.axis, sorted(item.lines)) for item in swept] == [
        ("scale", ["easy", "easy:spares=1"])
    ] * 2
    assert [item.values for item in swept] == [[360000.0, 720000.0, 1080000.0]] * 2
    line = lines_of(runs, swept[0], "flow_mean_s")["easy"]
    assert [(x, mean.mean, mean.n) for x, mean in line] == [
        (360000.0, 102.5, 6), (720000.0, 202.5, 6), (1080000.0, 302.5, 6),
    ]  # fmt: skip
    assert [item.axis for item in sweeps(runs, fewest=2)] == ["scale"] * 2 + ["shape"] * 3
    assert "shape=1" in swept[0].fixed_text and "scale" not in swept[0].fixed_text


def test_a_policy_without_the_swept_option_is_level() -> None:
    calm = ScenarioLabel()
    rows = [
        row
        for policy, value in (("easy", 5), *((f"easy:spares={n}", n) for n in (1, 2, 4)))
        for row in _rows(policy, calm, value)
    ]
    (item,) = sweeps(RunIndex(rows))
    lines = lines_of(RunIndex(rows), item, "flow_mean_s")
    assert item.axis == "spares"
    assert [(x, mean.mean) for x, mean in lines["easy (no spares)"]] == [
        (1, 7.5), (4, 7.5),
    ]  # fmt: skip
    assert [(x, mean.mean) for x, mean in lines["easy"]] == [(1, 3.5), (2, 4.5), (4, 6.5)]


def test_the_period_of_checkpoints_is_a_parameter() -> None:
    text = "Young/Daly (cost 5 min, recovery 1 min, floor, for an MTBF of 2 h)"
    values = numbers_of(ScenarioLabel("authors", 3600.0, 60.0, checkpoint=text))
    assert (values["checkpoint_cost"], values["recovery_cost"]) == (300.0, 60.0)
    assert (values["checkpoint_mtbf"], values["mtbf"]) == (7200.0, 3600.0)


@pytest.mark.slow
def test_reports_of_plain_campaigns_begin_with_the_lines(tmp_path: Path) -> None:
    file = campaign_file(tmp_path, GRID.replace("[120, 128]", "128"))
    run_here(file, tmp_path / "results")
    report, _ = write_report(open_campaign(file), tmp_path / "results", tmp_path / "out")
    text = report.read_text()
    assert text.index("swept: one over spares") < text.index("ratios to baseline")


@pytest.mark.slow
def test_sweeps_in_python_continue_and_agree_with_single_runs(tmp_path: Path, capsys) -> None:
    options = {"mtbf": ["30s", "1min"], "downtime": "5s", "seeds": 2, "workers": 1}
    policies = ["baseline", "baseline:react=replacement,spares={spares}"]
    first = rebat.sweep("toy", policies, spares=[0, 1], out=tmp_path / "out", **options)
    assert first.axes == ["mtbf", "spares"]
    single = rebat.run(
        "toy", policies[:1], failures=rebat.failures(mtbf="30s", downtime="5s", seed=1)
    )
    frame = first.frame.query("policy == 'baseline' and mtbf == 30 and seed == 1")
    ours = frame.set_index("metric")["value"]
    assert ours["useful_utilisation"] == single.runs[0].summary.useful_utilisation
    capsys.readouterr()
    again = rebat.sweep("toy", policies, spares=[0, 1], out=tmp_path / "out", **options)
    assert "12/12 done" in capsys.readouterr().err.splitlines()[0]
    assert again.frame.equals(first.frame)


def test_means_and_plots_of_a_sweep(tmp_path: Path) -> None:
    result = rebat.sweep("toy", ["easy", "sfsj"], mtbf=["30s", "1min"], downtime="5s", seeds=5)
    table = result.means("flow_max_s", over="mtbf")
    assert list(table.columns[:3]) == ["setting", "policy", "mtbf"]
    assert (table["low"] <= table["mean"]).all() and (table["n"] == 5).all()
    result.plot("flow_max_s").save(tmp_path / "line.png")
    assert (tmp_path / "line.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match="unknown swept parameter 'spares'"):
        result.plot(over="spares")
    with pytest.raises(InputError, match="unknown metric"):
        result.means("flows")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mtbf": "1min"}, "no parameter has several values"),
        ({"mtbf": ["1min", "2min"], "spar": 1}, "unknown parameter 'spar'"),
        ({"mtbf": ["1min", "2min"], "checkpoint_cost": 1}, "has no effect"),
        ({"mtbf": []}, "^mtbf: is empty"),
        ({"mtbf": "1h", "nodes": [8, 0]}, "^nodes: is 0 "),
        (
            {"mtbf": "1h", "checkpoint": "young-daly", "checkpoint_cost": []},
            "^checkpoint_cost: is empty",
        ),
        (
            {"policies": "easy:hold={x}", "mtbf": "1h"},
            r"^policies: 'x' has no values .* x = \[...\]\)",
        ),
        ({"policies": "h999", "mtbf": "1h"}, "^policies: unknown policy"),
    ],
)
def test_wrong_sweeps_are_refused(options, words: str) -> None:
    with pytest.raises(InputError, match=words):
        rebat.sweep("toy", **{"policies": "easy", "seeds": 2} | options)
