# SPDX-License-Identifier: Apache-2.0
"""Several values of a parameter in a grid, and `rebat.sweep`."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

import rebat
from rebat.campaign.opening import open_campaign
from rebat.campaign.reporting import write_report
from rebat.cli.main import cli
from rebat.core.errors import InputError
from rebat.core.numbers import share
from rebat.report.runs_index import RunIndex, Setting, lines_of, numbers_of, sweeps
from rebat.runs.labels import ScenarioLabel
from tests.support.campaigns import campaign_file, contents, run_here, specs_of

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
        ("{spares}", "{spares}{more}", "'more' has no values"),
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
        ({"policies": "h999", "mtbf": ["1h", "2h"]}, "^policies: unknown policy"),
    ],
)
def test_wrong_sweeps_are_refused(options, words: str) -> None:
    with pytest.raises(InputError, match=words):
        rebat.sweep("toy", **{"policies": "easy", "seeds": 2} | options)


def test_the_winner_of_a_combination_is_that_of_its_runs() -> None:
    result = rebat.sweep(
        "toy", ["baseline", "sfsj"], mtbf=["30s", "1min"], downtime=["5s", "20s"], seeds=6
    )
    table = result.winners("flow_mean_s").set_index(["mtbf", "downtime"])
    assert len(table) == 4
    for (mtbf_s, downtime_s), row in table.iterrows():
        failures = rebat.failures(mtbf=mtbf_s, downtime=downtime_s)
        runs = rebat.run("toy", ["baseline", "sfsj"], failures=failures, seeds=6).seeds
        means = {
            name: sum(runs.of(name, ("flow_mean_s", "all")).values()) / 6 for name in runs.policies
        }
        assert means[row["winner"]] == min(means.values())
        assert row["lead"] == pytest.approx(1 - means[row["winner"]] / means[row["second"]])
        assert row["decided"] == (row["low"] > 0)


def test_a_winner_along_an_option_that_one_policy_lacks() -> None:
    result = rebat.sweep(
        "toy", ["baseline", "baseline:react=replacement,spares={spares}"], seeds=5,
        mtbf=["30s", "1min"], downtime="5s", spares=[0, 1],
    )  # fmt: skip
    table = result.winners(over=("mtbf", "spares"))
    assert len(table) == 4
    assert {*table["winner"]} <= {"baseline", "baseline:react=replacement"}


@pytest.mark.parametrize(
    ("metric", "over", "words"),
    [
        ("steals", (), "no value is better than another"),
        (None, ("mtbf", "mtbf"), "two parameters"),
        (None, ("mtbf", "nodes"), "unknown swept parameter 'nodes'"),
    ],
)
def test_a_map_that_means_nothing_is_refused(metric, over, words) -> None:
    result = rebat.sweep(
        "toy", ["baseline", "sfsj"], mtbf=["30s", "1min"], downtime=["5s", "9s"], seeds=2
    )
    with pytest.raises(InputError, match=words):
        result.winners(metric, over)


def test_the_default_of_an_option_is_a_value_like_others() -> None:
    result = rebat.sweep(
        "synthetic-small", ["easy", "baseline"], load=[0.5, 1.0, 2.0], mtbf=["1h", "2h"], seeds=2
    )
    table = result.winners(over=("load", "mtbf"))
    assert len(table) == 6 and {*table["load"]} == {0.5, 1.0, 2.0}
    assert {*result.frame["load"]} == {0.5, 1.0, 2.0}


COMMAND = ["sweep", "toy", "-p", "baseline", "-p", "sfsj", "--seeds", "5"]


def test_the_command_writes_tables_and_pictures_and_goes_on(tmp_path: Path) -> None:
    over = ["--over", "mtbf=30s..2min:3", "--over", "downtime=5s,20s"]
    arguments = [*COMMAND, *over, "--load", "1.5", "--out", str(tmp_path / "o")]
    cli.main(arguments, standalone_mode=False)
    rows = pd.read_csv(tmp_path / "o/sweep.csv")
    assert [*rows.columns[:3]] == ["mtbf", "downtime", "winner"]
    assert [*zip(rows["mtbf"], rows["downtime"], strict=True)] == [
        (30.0, 5.0), (30.0, 20.0), (60.0, 5.0), (60.0, 20.0), (120.0, 5.0), (120.0, 20.0)
    ]  # fmt: skip
    runs = pd.read_parquet(tmp_path / "o/results.parquet")
    assert {*runs["load"]} == {1.5} and runs["seed"].nunique() == 5
    pictures = {path.name for path in (tmp_path / "o").glob("map.*")}
    assert pictures == {"map.png", "map.svg", "map.pdf"}
    before = contents(tmp_path / "o")
    cli.main(arguments, standalone_mode=False)
    assert contents(tmp_path / "o") == before


def test_the_mtbf_of_the_failures_is_a_period_like_others() -> None:
    result = rebat.sweep(
        "toy", ["baseline", "sfsj"], mtbf="1min", downtime="5s", seeds=2, checkpoint="young-daly",
        checkpoint_cost="1s", recovery_cost="1s", checkpoint_mtbf=["30s", "1min", "2min"],
    )  # fmt: skip
    assert [*result.means("flow_mean_s")["checkpoint_mtbf"]] == [30.0, 60.0, 120.0] * 2
    assert {*result.frame["checkpoint_mtbf"]} == {30.0, 60.0, 120.0}


def test_one_policy_has_lines_for_each_value_of_the_other_parameter(tmp_path: Path) -> None:
    over = ["--over", "mtbf=30s,1min", "--over", "downtime=5s,20s"]
    arguments = ["sweep", "toy", "-p", "easy", "--seeds", "2", *over, "--out"]
    cli.main([*arguments, str(tmp_path / "o")], standalone_mode=False)
    rows = pd.read_csv(tmp_path / "o/sweep.csv")
    assert len(rows) == 4 and rows["setting"].nunique() == 2
    assert (tmp_path / "o/lines.png").exists() and not (tmp_path / "o/map.png").exists()


def test_one_parameter_gives_a_line_per_policy(tmp_path: Path, capsys) -> None:
    arguments = [*COMMAND, "--mtbf", "30s", "--over", "downtime=5s..20s:3", "--out"]
    cli.main([*arguments, str(tmp_path / "o")], standalone_mode=False)
    rows = pd.read_csv(tmp_path / "o/sweep.csv")
    assert [*rows["policy"]] == ["baseline"] * 3 + ["sfsj"] * 3
    assert (tmp_path / "o/lines.pdf").exists()
    best = rows.loc[rows["policy"] == "baseline", ["downtime", "mean"]].max()
    assert (
        f"baseline: the best useful utilisation is {share(best['mean'])} ["
        in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("over", "words"),
    [
        (["mtbf"], "NAME=LOW..HIGH:N"),
        (["mtbf="], "NAME=LOW..HIGH:N"),
        (["mtbf=2h..1h:3"], "LOW below HIGH"),
        (["mtbf=1h..2h:1"], "N from 2"),
        (["mtbf=1h..x:3"], "'x'"),
        (["mtbf=1h", "downtime=1h", "load=1"], "one or two different parameters"),
        (["mtbf=1h", "mtbf=2h"], "one or two different parameters"),
        (["speed=1,2"], "unknown parameter 'speed'"),
        (["spares=1,2"], "unknown parameter 'spares'"),
        (["load=0,1"], "load"),
        (["checkpoint-cost=1s,2s"], "checkpoint young-daly"),
    ],
)
def test_wrong_parameters_of_the_command_are_refused(over, words, tmp_path: Path) -> None:
    options = [word for text in over for word in ("--over", text)]
    with pytest.raises(InputError, match=re.escape(words)):
        cli.main([*COMMAND, *options, "--out", str(tmp_path / "o")], standalone_mode=False)
    assert not (tmp_path / "o").exists()


def test_an_option_with_one_value_and_several_is_refused(tmp_path: Path) -> None:
    arguments = [*COMMAND, "--mtbf", "1h", "--over", "mtbf=1h,2h", "--out", str(tmp_path / "o")]
    with pytest.raises(InputError, match="only one of --mtbf and --over mtbf"):
        cli.main(arguments, standalone_mode=False)


def test_a_sweep_of_the_command_has_the_runs_of_run(tmp_path: Path) -> None:
    """Each option of a scenario reaches the runs."""
    options = [
        "--model", "poisson", "--downtime", "9s", "--cascade", "0.2", "--cascade-window", "3s",
        "--checkpoint", "young-daly", "--checkpoint-cost", "1s", "--recovery-cost", "2s",
        "--checkpoint-rounding", "ceil", "--nodes", "9", "--window", "0s:20s", "--select", "all",
        "--max-attempts", "50", "--begin", "10s",
    ]  # fmt: skip
    swept = [*COMMAND, *options, "--over", "mtbf=30s,60s", "--out", str(tmp_path / "s")]
    cli.main(swept, standalone_mode=False)
    runs = pd.read_parquet(tmp_path / "s/results.parquet")
    one = ["run", *COMMAND[1:], *options, "--mtbf", "60s", "--out", str(tmp_path / "r")]
    cli.main(one, standalone_mode=False)
    seeds = pd.read_csv(tmp_path / "r/seeds.csv")
    for metric in ("useful_utilisation", "failures_hit", "platform_total"):
        ours = runs[(runs["mtbf_s"] == 60) & (runs["metric"] == metric)]
        theirs = seeds[seeds["metric"] == metric]
        key = ["policy", "seed", "value"]
        assert [*map(tuple, ours[key].sort_values(key).to_numpy())] == [
            *map(tuple, theirs[key].sort_values(key).to_numpy())
        ]
