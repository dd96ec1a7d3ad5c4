# SPDX-License-Identifier: Apache-2.0
"""The files of a run do not depend on how many of its records are converted together."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebat.core import table
from rebat.models.checkpoint import add_young_daly
from rebat.models.failures.renewal import Authors
from rebat.policies.presets import preset
from rebat.runs.single import write_run
from rebat.workloads.generate import synthetic
from tests.support.asked import simulate


@pytest.mark.parametrize("policy", ["sfsj", "easy:detect=1min", "greedy"])
def test_blocks_of_any_length_give_the_same_files(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks have 16,384, 7 and 1 records, with failures, steals, checkpoints and hanging jobs."""
    jobs = add_young_daly(synthetic(0, 200), n_nodes=128, mtbf_s=600, cost_s=10, recovery_s=10)
    written = []
    for block in (table.BLOCK, 7, 1):
        monkeypatch.setattr(table, "BLOCK", block)
        events = Authors(600, 600).events(128, 0, None, 1)
        folder = tmp_path / str(block)
        write_run(folder, simulate(jobs, preset(policy), machine_events=events, how="asked"), {})
        written.append({file.name: file.read_bytes() for file in folder.iterdir()})
    assert written[0] == written[1] == written[2]
    assert b"stolen" in written[0]["rebat_attempts.csv"] or policy != "sfsj"
