# SPDX-License-Identifier: Apache-2.0
"""Campaigns of training clusters: checkpoints in tiers, and the included files."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rebat.campaign.opening import open_campaign
from rebat.campaign.reporting import write_report
from rebat.campaign.run import run_campaign
from rebat.core.errors import InputError
from rebat.models.failures.laws import parse_law
from rebat.report.runs_index import RunIndex, numbers_of, simulations, sweeps
from rebat.runs.labels import ScenarioLabel
from rebat.runs.scenario import ScenarioOptions, TierCheckpoints
from rebat.shipped.campaigns.training.report import ettr_pictures
from tests.support.campaigns import campaign_file, specs_of

ROOT = Path(__file__).parents[2]
GRID = """
[[grid]]
name = "tiers"
workloads = ["one"]
policies = ["training-requeue"]
nodes = 4096
[grid.failures]
law = "rsc-1"
[grid.checkpoint]
model = "tiers:auto"
"""
TEXTS = ["peer=1s/30s+remote=30s/2min", "memory=1s/10s+remote=30s/2min", "remote=30s/2min"]


def checkpoints_of(folder: Path, grid: str) -> list[TierCheckpoints]:
    specs = specs_of(open_campaign(campaign_file(folder, grid, jobs=5)))
    return [spec.scenario.checkpoint for spec in specs]


@pytest.mark.parametrize("text", TEXTS)
def test_tiers_are_those_of_a_run_with_the_same_options(text: str, tmp_path: Path) -> None:
    law = parse_law("rsc-1")
    options = ScenarioOptions(law=law, checkpoint="tiers:auto", tiers=text, nodes=4096)
    expected = options.with_law_mtbf(4096).scenario().checkpoint
    assert isinstance(expected, TierCheckpoints)
    assert checkpoints_of(tmp_path, f'{GRID}tiers = "{text}"') == [expected]


def test_tiers_can_have_several_values_and_a_default(tmp_path: Path) -> None:
    several = checkpoints_of(tmp_path, f"{GRID}tiers = {TEXTS}\nmtbf = ['1h', '2h']")
    assert [(c.mtbf_s, c.tiers) for c in several] == [
        (mtbf_s, text) for mtbf_s in (3600, 7200) for text in TEXTS
    ]
    assert checkpoints_of(tmp_path, GRID)[0].tiers == ScenarioOptions().tiers


def test_a_law_per_node_sets_the_period_of_other_checkpoints_too(tmp_path: Path) -> None:
    (young_daly,) = checkpoints_of(tmp_path, GRID.replace("tiers:auto", "young-daly"))
    assert young_daly.mtbf_s == parse_law("rsc-1").mtbf_on(4096)


BAD = {
    "no last tier": ('tiers = "peer=1s/30s"', "checkpoint.tiers: .*does not survive all failures"),
    "unknown tier": ('tiers = "tape=1s/30s"', "checkpoint.tiers: unknown tier"),
    "no tier": ("tiers = []", "checkpoint.tiers"),
    "a cost": ('cost = "1min"', "checkpoint.cost: has no effect"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tiers_are_refused(case: str, tmp_path: Path) -> None:
    line, error = BAD[case]
    with pytest.raises(InputError, match=error):
        checkpoints_of(tmp_path, GRID + line)


def test_tiers_need_their_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"checkpoint\.tiers: has no effect"):
        other = GRID.replace("tiers:auto", "young-daly")
        checkpoints_of(tmp_path, f'{other}tiers = "remote=30s/2min"')


def test_a_grid_without_nodes_has_the_mtbf_of_the_workload(tmp_path: Path) -> None:
    (ours,) = checkpoints_of(tmp_path, GRID.replace("nodes = 4096\n", ""))
    assert ours.mtbf_s == parse_law("rsc-1").mtbf_on(128)


@pytest.mark.slow
def test_the_quick_campaign_runs_all_presets(tmp_path: Path) -> None:
    campaign = open_campaign(ROOT / "campaigns/training/quick.toml")
    status = run_campaign(campaign, tmp_path, executor="inline")
    assert (status.ok, status.failed) == (35, 0)
    rows = pq.read_table(tmp_path / "results.parquet").to_pylist()
    presets = {row["policy"] for row in rows if row["metric"] == "training_ettr"}
    assert presets == {
        "training-requeue", "training-swap", "training-swap:spares=2", "training-stealing",
        "training-preempt", "training-shrinking",
    }  # fmt: skip
    assert {row["size_class"] for row in rows if row["metric"] == "training_ettr_queued"} >= {
        "all", "[1, 2)", "[32, 64)",
    }  # fmt: skip
    write_report(campaign, tmp_path, tmp_path / "report")
    text = (tmp_path / "report/report.md").read_text()
    assert "training-shrinking" in text and "spare utilisation" in text
    page = (tmp_path / "report/report.html").read_text()
    assert "job flagship of rsc-1#0: attempts, recoveries and ETTR" in page
    shared, labels = text.partition("All failure laws have these parameters: ")[::2]
    assert "lemons=0.013" in labels.partition("\n")[0]
    assert "lemons" not in shared + labels.partition("\n")[2]


@pytest.mark.slow
def test_the_full_campaign_has_both_tiers_and_rates() -> None:
    specs = specs_of(open_campaign(ROOT / "campaigns/training/full.toml"))
    rigid = [spec for spec in specs if spec.grid == "rigid jobs"]
    scenarios = {(s.scenario.checkpoint.tiers, s.scenario.failures.law.rate) for s in rigid}
    assert scenarios == {(text, rate) for text in (TEXTS[0], TEXTS[2]) for rate in (6.5, 23.7)}


SWEPT = """
report = "training/report.py"

[workloads.small]
generator = "training-cluster:nodes=16,days=1,load=40,flagship=8,flagship_days=0.5"
seeds = [0, 1]

[[grid]]
name = "spare nodes"
workloads = ["small"]
policies = ["training-requeue", "training-swap:spares={spares}"]
nodes = 18
[grid.sweep]
spares = [0, 1, 2]
[grid.failures]
law = "rsc-1"
rate = 500
seeds = "workload"
[grid.checkpoint]
model = "tiers:auto"

[[grid]]
name = "intervals"
workloads = ["small"]
policies = ["training-requeue"]
nodes = 18
[grid.failures]
law = "rsc-1"
rate = 500
seeds = "workload"
[grid.checkpoint]
model = "tiers:auto"
tiers = ["remote=30s/2min@5min", "remote=30s/2min@20min", "remote=30s/2min@80min"]
"""


@pytest.mark.slow
def test_the_report_draws_ettr_over_spare_nodes_and_intervals(tmp_path: Path) -> None:
    file = tmp_path / "swept.toml"
    file.write_text(SWEPT)
    run_campaign(open_campaign(file), tmp_path / "results", executor="inline")
    runs = RunIndex(simulations(tmp_path / "results/results.parquet", str))
    spare, interval = sweeps(runs)
    assert (spare.axis, spare.values) == ("spares", [0, 1, 2])
    assert (interval.axis, interval.values) == ("checkpoint_interval", [300, 1200, 4800])
    assert interval.is_time and "@" not in interval.fixed_text
    first, second = ettr_pictures(runs)
    assert first.title == "spare nodes: ETTR of small over spares"
    assert second.title == "intervals: ETTR of small over work between two checkpoints"
    assert "jobs of [8, 16) nodes" in first.svg and "training-swap" in first.svg


def test_two_intervals_are_no_sweep() -> None:
    text = "tiers peer=1s/30s@5min+remote=30s/2min@20min"
    assert "checkpoint_interval" not in numbers_of(ScenarioLabel(checkpoint=text))
