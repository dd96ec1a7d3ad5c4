# SPDX-License-Identifier: Apache-2.0
"""Notebooks show the options of functions: signatures list them, and calls are unchanged."""

from __future__ import annotations

import inspect

import pytest

import rebat
from rebat.api.run import ARGUMENTS
from rebat.core.errors import InputError
from rebat.runs.scenario import OF_FAILURES, ScenarioOptions


def parameters(function) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)


def test_run_lists_each_option_with_its_default() -> None:
    listed = parameters(rebat.run)
    assert set(ARGUMENTS) <= listed.keys()
    assert "options" not in listed
    fields = {field: getattr(ScenarioOptions(), field) for field in ARGUMENTS}
    assert {name: listed[name].default for name in ARGUMENTS} == fields
    assert all(listed[name].kind is inspect.Parameter.KEYWORD_ONLY for name in ARGUMENTS)
    assert listed["checkpoint_cost"].annotation == float | int | str
    assert listed["seeds"].default is None  # declared by the function itself


def test_failures_lists_each_option() -> None:
    names = {"file" if n == "failures" else n for n in OF_FAILURES}
    assert parameters(rebat.failures).keys() == names


def test_advise_lists_its_options() -> None:
    listed = parameters(rebat.advise)
    assert {"checkpoint_cost", "recovery_cost", "nodes", "cores_per_node"} <= listed.keys()
    assert listed["checkpoints"].default is None and "checkpoint" not in listed


def test_a_sweep_accepts_what_it_lists() -> None:
    """It accepts the listed options, and other names as parameters in policies."""
    listed = parameters(rebat.sweep)
    assert {"mtbf", "downtime", "checkpoint_cost", "nodes", "window", "horizon"} <= listed.keys()
    assert listed["parameters"].kind is inspect.Parameter.VAR_KEYWORD
    own = {"workload", "policies", "failures", "seeds", "workers", "out", "parameters"}
    for name in listed.keys() - own:
        with pytest.raises((InputError, rebat.PolicyError)) as error:
            rebat.sweep("toy", "baseline", **{name: "nonsense"})
        assert "unknown parameter" not in str(error.value), name


def test_calls_are_checked_as_before() -> None:
    with pytest.raises(InputError, match="unknown option of run 'colour'"):
        rebat.run("toy", "baseline", colour="red")
    with pytest.raises(InputError, match="checkpoint_cost: has no effect"):
        rebat.run("toy", "baseline", checkpoint_cost="5min")


@pytest.fixture
def shell():
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    made = interactive.InteractiveShell()
    made.push({"rebat": rebat})
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("rebat.run('toy', 'baseline', checkpoint_c", "checkpoint_cost="),
        ("rebat.failures(cascade_wi", "cascade_window="),
        ("rebat.sweep('toy', 'baseline', down", "downtime="),
        ("rebat.advise('toy', recov", "recovery_cost="),
    ],
)
def test_tab_completes_options_in_a_notebook(code, expected, shell) -> None:
    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter():
        matches = [match.text for match in shell.Completer.completions(code, len(code))]
    assert expected in matches


def test_shift_tab_shows_the_options(shell) -> None:
    text = shell.inspector.info(rebat.run, oname="rebat.run")["definition"]
    assert "checkpoint_cost" in text and "walltime_kills" in text
