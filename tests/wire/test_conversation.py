# SPDX-License-Identifier: Apache-2.0
"""Warnings and checks at the beginning of a conversation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rebat.core.events import SimulationBegan
from rebat.wire.conversation import other_machines


@pytest.mark.parametrize(("nb_res", "warnings"), [(4, 0), (5, 1)])
def test_a_workload_for_another_machine_is_a_warning(
    nb_res: int, warnings: int, tmp_path: Path
) -> None:
    file = tmp_path / "w.json"
    file.write_text(json.dumps({"nb_res": nb_res, "jobs": [], "profiles": {}}))
    event = SimulationBegan(at_us=0, n_nodes=4, config={}, profiles={}, workloads={"w0": str(file)})
    texts = [*other_machines(event)]
    assert len(texts) == warnings
    assert all("4 hosts" in text and f"is for {nb_res}" in text for text in texts)


def test_a_workload_that_cannot_be_read_is_ignored(tmp_path: Path) -> None:
    broken = tmp_path / "w.json"
    broken.write_text("{")
    workloads = {"w0": str(broken), "w1": str(tmp_path / "absent.json")}
    event = SimulationBegan(at_us=0, n_nodes=4, config={}, profiles={}, workloads=workloads)
    assert [*other_machines(event)] == []
