# SPDX-License-Identifier: Apache-2.0
"""Every option that changes a run changes its key, its columns in the results table and its label.

Otherwise a report silently combines or drops the runs of two scenarios. An option is declared in
one place, from which all others are derived.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import rebat
from rebat.campaign.grid import KEYS
from rebat.cli.run import run as command
from rebat.core.errors import InputError
from rebat.models.failures.laws import parse_law
from rebat.runs.case import check_options
from rebat.runs.labels import COLUMNS, ScenarioLabel, about, labels
from rebat.runs.scenario import OF_FAILURES, OPTIONS, Conditions, Scenario, ScenarioOptions
from rebat.runs.unit import RunSpec, Source, identity

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
    "checkpoint_mtbf": (YOUNG_DALY, 60.0),
    "silent_errors": ({}, 1e-9),
    "silent_error_probability": ({}, 0.1),
    "operations": ({}, "operations.jsonl"),
    "nodes": ({}, 100),
    "load": ({}, 1.2),
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


PACKAGE = Path(rebat.__file__).parent
USES = {
    "walltime_kills": {
        "results/measures/platform.py",
        "results/measures/summary.py",
        "runs/recorded.py",  # a recorded schedule has a fixed value
        "api/recorded.py",
    },
}
"""Files that use an option. Only these and the declaration contain its name as an identifier."""

DECLARATION = "runs/scenario.py"


@pytest.mark.parametrize("option", USES)
def test_only_the_declaration_and_the_uses_name_an_option(option: str) -> None:
    word = re.compile(rf"\b{option.replace('_', '[_-]')}\b")
    naming = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if word.search(path.read_text())
    }
    assert naming == USES[option] | {DECLARATION}


def test_all_forms_of_a_scenario_have_its_conditions() -> None:
    for name in Conditions.__struct_fields__:
        for form in (ScenarioOptions, Scenario, ScenarioLabel):
            assert name in form.__struct_fields__, form
        assert name in KEYS
        assert name in COLUMNS
        assert name in inspect.signature(rebat.run).parameters


def test_all_options_are_on_the_command_line_and_in_python() -> None:
    assert OPTIONS.keys() <= {parameter.name for parameter in command.params}
    listed = inspect.signature(rebat.run).parameters.keys()
    assert OPTIONS.keys() - OF_FAILURES <= listed


WITHOUT_EFFECT: dict[str, dict[str, Any]] = {
    "failures": {"law": CHANGES["law"][1]},
    "mtbf": {"law": CHANGES["law"][1]},
}
"""Other options with which an option has no effect, if this is not the case with the defaults."""


@pytest.mark.parametrize("option", [name for name in OPTIONS if OPTIONS[name].extra["needs"]])
def test_an_option_has_no_effect_without_what_it_needs(option: str) -> None:
    others, value = WITHOUT_EFFECT.get(option, {}), CHANGES[option][1]
    options = ScenarioOptions(**others, **{option: value})
    with pytest.raises(InputError, match="has no effect") as error:
        check_options(options, {option: f"--{option}"})
    assert error.value.where == f"--{option}"
    working = ScenarioOptions(**(CHANGES[option][0] | {option: value}))
    check_options(working, {option: f"--{option}"})
