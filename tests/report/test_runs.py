# SPDX-License-Identifier: Apache-2.0
"""Reports of any runs, and the report on the causes of the gain of node stealing."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pandas as pd
import pytest

from rebat.campaign.kinds import kinds_of
from rebat.campaign.opening import open_campaign
from rebat.campaign.reporting import write_report
from rebat.core import numbers
from rebat.core.errors import InputError
from rebat.core.numbers import spread
from rebat.report.runs_index import RunIndex, Setting, pooled, simulations
from rebat.report.usual import METRICS, labels_of, n_of
from rebat.results.intervals import interval, mean_of_ratios
from rebat.runs.labels import SCENARIO_COLUMNS, USUAL_CHECKPOINTS, ScenarioLabel
from rebat.shipped.campaigns.node_stealing.differences import counterpart, gain, parsed
from tests.support.campaigns import campaign_file, run_here

CAMPAIGNS = Path(__file__).parents[2] / "campaigns"

GRID = """
[[grid]]
name = "mine"
workloads = ["one"]
policies = ["easy", "baseline", "h111", "h111:margin=5", "baseline:margin=5"]
[grid.failures]
mtbf = "30min"
downtime = "10min"
seeds = [0, 1, 2]
[grid.checkpoint]
"""

DRAWN = """
[workloads.drawn]
generator = "torus-load:load=70,nodes=16,days=3"
seeds = [3, 4]
[[grid]]
name = "draws"
workloads = ["drawn"]
policies = ["baseline", "h111"]
[grid.failures]
mtbf = "10h"
downtime = "1h"
seeds = [0, 1]
[grid.checkpoint]
cost = "1min"
"""


def index(path: Path) -> RunIndex[str]:
    return RunIndex(simulations(path, str))


def made(folder: Path, report: str) -> tuple[RunIndex[str], str]:
    file = campaign_file(folder, GRID, jobs=40)
    file.write_text((f'report = "{report}"\n' if report else "") + file.read_text())
    run_here(file, folder / "results")
    write_report(open_campaign(file), folder / "results", folder / "report")
    text = (folder / "report/report.md").read_text()
    return index(folder / "results/results.parquet"), text


def test_runs_are_in_the_files_order_with_ratios_to_the_first(tmp_path: Path) -> None:
    runs, text = made(tmp_path, "")
    (setting,) = runs.settings
    names = ["easy", "baseline", "h111", "h111:margin=5", "baseline:margin=5"]
    assert runs.cases(setting) == names
    rows = [line.split(" | ")[0].strip("| ") for line in text.splitlines() if " | " in line]
    assert [row for row in rows if row in names] == names
    flow = METRICS[1]
    ratio = runs.ratio(setting, "h111", "easy", flow.metric)
    ours = runs.values(setting, "h111", flow.metric)
    assert ratio == mean_of_ratios(ours, runs.values(setting, "easy", flow.metric))
    assert spread(ratio, numbers.ratio, 1.0) in text and "3 seeds" in text
    for words in ("wait, mean", "bounded slowdown, mean", "useful utilisation"):
        assert words in text
    assert "Node stealing" not in text


def test_settings_are_called_by_their_grids() -> None:
    hour, day = (
        ScenarioLabel("authors", 3600.0, downtime_s, checkpoint=USUAL_CHECKPOINTS)
        for downtime_s in (3600.0, 86400.0)
    )
    usual = "MTBF 1 h, Young/Daly checkpoints"
    of_one_grid = [Setting("one", "june", hour), Setting("one", "june", day)]
    labels = ["one: downtime 1 h", "one: downtime 1 d"]
    assert labels_of(of_one_grid) == (f"june, {usual}", labels)
    same = [Setting("one", "june", hour), Setting("two", "june", hour)]
    assert labels_of(same) == (f"june, {hour.label}", ["one", "two"])
    months = [Setting("one", "june", hour), Setting("one", "march", hour)]
    assert labels_of(months) == (hour.label, ["one: june", "one: march"])
    costs = [hour.replaced(checkpoint=f"Young/Daly (cost {cost}, ceil)") for cost in ("1 s", "9 s")]
    _, labels = labels_of([Setting("one", "june", scenario) for scenario in costs])
    assert labels == [
        f"one: checkpoints: Young/Daly (cost {cost}, ceil)" for cost in ("1 s", "9 s")
    ]


def test_draws_of_a_workload_are_seeds(tmp_path: Path) -> None:
    """Two draws of a workload have two seeds each; a draw's value is the mean over its seeds."""
    file = campaign_file(tmp_path, DRAWN)
    run_here(file, tmp_path / "results")
    runs = index(tmp_path / "results/results.parquet")
    (setting,) = runs.settings
    assert n_of(runs, setting) == "2 draws"
    table = pd.read_parquet(tmp_path / "results/results.parquet")
    table = table[(table.metric == "flow_mean_s") & (table.size_class == "all")]
    table = table[table.policy == "h111"]
    means = table.groupby("workload").value.mean()
    found = runs.values(setting, "h111", "flow_mean_s", "all")
    assert found == {3: means["drawn#3"], 4: means["drawn#4"]}


def test_ratios_of_draws_are_of_the_runs_that_both_have(tmp_path: Path) -> None:
    rows = [
        *(("baseline", "w#1", seed, 10.0 + seed) for seed in (0, 1)), ("h111", "w#1", 1, 22.0),
        *((policy, "w#2", 0, 5.0) for policy in ("baseline", "h111")),
    ]  # fmt: skip
    runs = drawn(tmp_path, rows)
    (setting,) = runs.settings
    assert runs.ratio(setting, "h111", "baseline", "useful_utilisation").mean == 1.5
    assert runs.values(setting, "baseline", "useful_utilisation") == {1: 10.5, 2: 5.0}


def test_one_draw_is_no_sample_of_draws(tmp_path: Path) -> None:
    runs = drawn(tmp_path, [("baseline", "w#7", seed, float(seed)) for seed in range(5)])
    (setting,) = runs.settings
    assert runs.values(setting, "baseline", "useful_utilisation") == dict(enumerate(range(5)))
    assert n_of(runs, setting) == "5 seeds"


def drawn(folder: Path, rows: list[tuple[str, str, int, float]]) -> RunIndex[str]:
    """Return the index of runs with (policy, workload, seed, value)."""
    table = pd.DataFrame(rows, columns=["policy", "workload", "seed", "value"])
    table = table.assign(kind="simulation", grid="g", metric="useful_utilisation", size_class=None)
    for name in SCENARIO_COLUMNS:
        table[name] = None
    table.to_parquet(folder / "results.parquet")
    return index(folder / "results.parquet")


def test_the_gain_is_over_baseline_with_the_same_axes(tmp_path: Path) -> None:
    runs, text = made(tmp_path, "node_stealing/differences.py")
    (setting,) = runs.settings
    flow = METRICS[1]
    own = runs.values(setting, "h111:margin=5", flow.metric)
    base = runs.values(setting, "baseline:margin=5", flow.metric)
    found = gain(runs, setting, "h111:margin=5", flow.metric)
    assert found == {seed: own[seed] / base[seed] for seed in (0, 1, 2)}
    assert "from the paper" in text and "| margin=5 |" in text


def test_counterparts() -> None:
    known = ["baseline", "baseline:margin=5", "authors-baseline", "baseline:digits=six,passes=two"]
    assert counterpart("authors-h111:tie=order", known) == "authors-baseline"
    assert counterpart("h111:passes=two", known) == "baseline"
    assert counterpart("h111:digits=six,passes=two", known) == known[-1]
    assert counterpart("h111", ["easy"]) is None
    assert parsed("h111:passes=one,semantics=authors,tie=order").difference == "semantics=authors"


def test_a_report_has_the_title_of_its_file(tmp_path: Path) -> None:
    file = campaign_file(tmp_path, GRID, jobs=20)
    file.write_text('title = "My machine"\n' + file.read_text())
    run_here(file, tmp_path / "results")
    write_report(open_campaign(file), tmp_path / "results", tmp_path / "report")
    text = (tmp_path / "report/report.md").read_text()
    assert text.startswith("# My machine\n")
    assert "Table 2" not in text and "Table 3" not in text


def test_a_file_that_names_no_report_gets_that_of_runs(tmp_path: Path) -> None:
    file = campaign_file(tmp_path, GRID, jobs=20)
    run_here(file, tmp_path / "results")
    write_report(open_campaign(file), tmp_path / "results", tmp_path / "report")
    assert "# Policies compared" in (tmp_path / "report/report.md").read_text()


@pytest.mark.parametrize("file", sorted(CAMPAIGNS.glob("*/*.toml")), ids=str)
def test_the_code_of_every_shipped_campaign_is_in_its_folder(file: Path) -> None:
    tables = tomllib.loads(file.read_text())
    code = {kind.code for kind in kinds_of(tables, file.parent).values() if kind.code}
    assert {Path(name).parent.name for name in code} <= {file.parent.name}
    assert code or file.parent.name in ("findings", "real_failures")


def test_code_of_units_that_are_not_there_has_no_effect(tmp_path: Path) -> None:
    file = campaign_file(tmp_path, GRID, jobs=5)
    grids = file.read_text()
    for key, name in (("units", "torus/units.py"), ("report", "training/report.py")):
        file.write_text(f'{key} = "{name}"\n{grids}')
        if key == "units":
            with pytest.raises(InputError, match="units: has no effect"):
                open_campaign(file)
        else:
            assert open_campaign(file).kinds["simulation"].code == name


WRONG_CODE = {
    "no text": ("report = 3", "report: is 3 (expected a Python file next to"),
    "no Python file": ('report = "training"', "report: is 'training' (expected a Python file"),
    "no such file": ('report = "glossy.py"', "report: there is no 'glossy.py'"),
    "of another folder": ('report = "./training/report.py"', "there is no './training/report.py'"),
    "no report": (
        'report = "torus/units.py"',
        "torus/units.py: defines no REPORT (expected REPORT",
    ),
    "no kind": ('units = "training/report.py"', "training/report.py: defines no KIND"),
    "broken": (
        'report = "broken.py"',
        "broken.py: cannot be imported: ZeroDivisionError: division",
    ),
    "leaves": ('units = "leaves.py"', "leaves.py: cannot be imported: SystemExit: 3"),
}


@pytest.mark.parametrize("case", WRONG_CODE)
def test_wrong_code_is_refused_with_its_place(case: str, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "leaves.py").write_text("raise SystemExit(3)\n")
    line, said = WRONG_CODE[case]
    file = campaign_file(tmp_path, GRID, jobs=5)
    file.write_text(f"{line}\n{file.read_text()}")
    with pytest.raises(InputError) as error:
        open_campaign(file)
    assert said in str(error.value)


def test_workloads_of_a_grid_are_pooled() -> None:
    """Five months have ratios of 1.01 to 1.05, each with two seeds; four months are too few."""
    scenario = ScenarioLabel("authors", 3600.0, 3600.0, checkpoint=USUAL_CHECKPOINTS)
    rows = [
        (Setting("real", f"month {n}", scenario), policy, "useful_utilisation", "", (-1, seed),
         0.5 * (1 + seed) * (1 + share / 100 * n))
        for n in (1, 2, 3, 4, 5)
        for policy, share in (("baseline", 0), ("h111", 1))
        for seed in (0, 1)
    ]  # fmt: skip
    (table,) = pooled(RunIndex(rows), METRICS[:1])
    assert table.columns == ["scenario", "h111"]
    assert table.rows == [
        ["all", spread(interval([1.01, 1.02, 1.03, 1.04, 1.05]), numbers.ratio, 1.0)]
    ]
    assert "mean over 5 workloads" in table.note
    assert [*pooled(RunIndex(rows[:16]), METRICS[:1])] == []
