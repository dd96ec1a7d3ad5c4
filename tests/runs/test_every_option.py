# SPDX-License-Identifier: Apache-2.0
"""Every option that changes a run changes its key, its columns in the results table and its label.

Otherwise a report silently combines or drops the runs of two scenarios.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rebat.models.failures.laws import parse_law
from rebat.runs.keys import identity
from rebat.runs.labels import COLUMNS, about, labels
from rebat.runs.options import ScenarioOptions
from rebat.runs.spec import RunSpec, Source

MTBF: dict[str, Any] = {"mtbf": 3600.0}
CASCADE = MTBF | {"cascade": 0.3}
YOUNG_DALY = MTBF | {"checkpoint": "young-daly"}
TIERS: dict[str, Any] = {
    "law": parse_law("fleet:rate=6.5"),
    "checkpoint": "tiers:auto",
    "mtbf": 3600.0,
}

CHANGES: dict[str, tuple[dict[str, Any], Any]] = {
    "law": (MTBF, parse_law("poisson:mtbf=1h,downtime=1h")),
    "failures": ({}, "events.jsonl"),
    "mtbf": (MTBF, 7200.0),
    "downtime": (MTBF, 60.0),
    "seed": (MTBF, 1),
    "model": (MTBF, "renewal"),
    "horizon": (MTBF, 9000.0),
    "begin": (MTBF, 60.0),
    "failure_group": (MTBF, 2),
    "cascade": (MTBF, 0.2),
    "cascade_window": (CASCADE, 60.0),
    "cascade_within": (CASCADE, 4),
    "cores_per_node": ({}, 2),
    "checkpoint": (MTBF, "young-daly"),
    "tiers": (TIERS, "disk=10s/20s+remote=1min/2min"),
    "checkpoint_cost": (YOUNG_DALY, 60.0),
    "recovery_cost": (YOUNG_DALY, 60.0),
    "checkpoint_rounding": (YOUNG_DALY, "ceil"),
    "silent_errors": ({}, 1e-9),
    "silent_error_probability": ({}, 0.1),
    "operations": ({}, "operations.jsonl"),
    "nodes": ({}, 100),
    "window": ({}, "1d:2d"),
    "select": ({}, "all"),
    "walltime_kills": ({}, "useful"),
    "max_attempts": ({}, 5),
    "accounting": ({}, "program"),
}
"""For each option: the other options, and a value that differs from the default or from these."""


def run(options: dict[str, Any]) -> RunSpec:
    scenario = ScenarioOptions(**options).scenario()
    return RunSpec(grid="a", workload="w", policy="easy", source=Source("mira"), scenario=scenario)


def test_every_option_is_tested() -> None:
    assert set(CHANGES) == set(ScenarioOptions.__struct_fields__)


@pytest.mark.parametrize("option", CHANGES)
def test_an_option_changes_key_columns_and_label(option: str, tmp_path: Path) -> None:
    others, value = CHANGES[option]
    if isinstance(value, str) and value.endswith(".jsonl"):
        value = tmp_path / value
        value.write_text('{"timestamp": 5, "type": "drain", "nodes": "0"}\n')
    runs = run(others), run(others | {option: value})
    for text in (lambda spec: identity(spec, "hash", "easy"), labels, about):
        assert text(runs[0]) != text(runs[1]), text
    assert set(labels(runs[1])) == set(COLUMNS)
