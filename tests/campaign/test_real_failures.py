# SPDX-License-Identifier: Apache-2.0
"""The included campaigns with recorded failures: all their runs are possible."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebat.campaign.opening import open_campaign
from tests.support.recordings import beside

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "n_runs"), [("quick", 72), ("full", 1086)])
def test_a_shipped_file(name: str, n_runs: int, tmp_path: Path) -> None:
    text = (ROOT / f"campaigns/real_failures/{name}.toml").read_text()
    file = tmp_path / f"{name}.toml"
    file.write_text(text.replace("../../traces", str(beside("traces"))))
    campaign = open_campaign(file)
    assert len(campaign.units) == len(campaign.distinct) == n_runs
    turned = [
        unit for unit in campaign.units if unit.spec.scenario.failures.law.identity().get("turn")
    ]
    assert {unit.labels["seed"] for unit in turned} == set(range(6 if name == "quick" else 10))
