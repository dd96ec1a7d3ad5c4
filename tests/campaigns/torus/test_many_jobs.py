# SPDX-License-Identifier: Apache-2.0
"""The report of boxes on a torus: its content, and the campaigns that have this report."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebat.campaign.opening import open_campaign
from rebat.campaign.reporting import write_report
from rebat.figures.torus import DOWN, FREE, owners
from rebat.models.boxes import TorusBlocks
from rebat.models.topology import Torus
from rebat.policies.presets import preset
from rebat.report.runs_index import RunIndex, Setting
from rebat.results.intervals import interval, minus
from rebat.results.measures.platform import free_steps
from rebat.runs.labels import ScenarioLabel
from rebat.runs.single import simulate
from rebat.shipped.campaigns.partitions.report import busiest, judgements
from tests.support.campaigns import campaign_of
from tests.support.scenarios import fails, machine

ROOT = Path(__file__).parents[3]

FILE = """
report = "partitions/report.py"
[workloads.load]
generator = "torus-load:load=70,nodes=64,days=3"
[[grid]]
name = "boxes"
workloads = ["load"]
policies = ["baseline", "slurm-linear:torus=4x4x4", "rps:torus=4x4x4", "faps:torus=4x4x4"]
[grid.failures]
law = "weibull"
scale = "300h"
shape = 8
begin = "3000h"
seeds = [0, 1, 2]
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return campaign_of(tmp_path_factory.mktemp("partitions"), FILE)


@pytest.mark.slow
def test_the_page_has_tables_and_a_machine_at_an_instant(ran, tmp_path) -> None:
    campaign = open_campaign(ran[0])
    for path in write_report(campaign, ran[1], tmp_path):
        text = path.read_text()
        assert "Boxes on a torus for many concurrent jobs" in text
        assert "load: placements (" in text
        assert "begin=3000h" in text
        assert "compared with rps:torus=4x4x4 under the same failures" in text
        assert "FAPS has fewer failures that hit jobs than RPS" in text
        assert ("probability of a failure within 1 d" in text) == (path.suffix == ".html")


def test_differences_are_paired_by_seed() -> None:
    difference = interval(minus({0: 5.0, 1: 7.0, 2: 0.0}, {0: 4.0, 1: 5.0, 3: 9.0}))
    assert difference is not None
    assert (difference.mean, difference.n) == (1.5, 2)


@pytest.mark.parametrize(
    ("faps", "number", "direction"),
    [((3.0, 5.0, 4.0), -4.0, "holds"), ((7.0, 8.0, 10.0), 1 / 3, "undecided"),
     ((10.0, 13.0, 12.0), 11 / 3, "contradicted")],
)  # fmt: skip
def test_claims_follow_from_their_numbers(faps, number, direction) -> None:
    """The claim compares failures that hit jobs; with RPS they are 6, 9 and 9."""
    setting = Setting("", "w", ScenarioLabel("weibull", law="x"))
    rows = [
        (setting, policy, "failures_hit", "", (-1, seed), value)
        for policy, values in (("faps:torus=8", faps), ("rps:torus=8", (6.0, 9.0, 9.0)))
        for seed, value in enumerate(2 * values)
    ]
    (found,) = judgements(RunIndex(rows))
    assert found.claim == "FAPS has fewer failures that hit jobs than RPS"
    assert (found.number, found.direction) == (pytest.approx(number), direction)
    assert found.own


def test_owners_and_the_busiest_date_by_hand() -> None:
    jobs = machine(8, (2, 10), (2, 30), (2, 10, 5))
    result = simulate(jobs, preset("torus-first:torus=8"), machine_events=fails(7, 6, 8))
    blocks = TorusBlocks(Torus((8,)))
    at_us = busiest(result)
    dates, free = free_steps(result.ledger, 8)
    assert free[dates == at_us] == free.min() == 1
    assert at_us == 6_000_000
    assert owners(result.ledger, blocks, at_us).tolist() == [1, 1, 2, 2, 3, 3, FREE, DOWN]
    assert owners(result.ledger, blocks, 8_000_000)[7] == FREE


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quick", "full"])
def test_shipped_campaigns_are_of_boxes(name: str) -> None:
    campaign = open_campaign(ROOT / f"campaigns/partitions/{name}.toml")
    assert campaign.kinds["simulation"].code == "partitions/report.py"
