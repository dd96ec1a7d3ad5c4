# SPDX-License-Identifier: Apache-2.0
"""The page about agents lists every feature and every reward, with its definition."""

from __future__ import annotations

import json
import runpy
from importlib.util import find_spec
from pathlib import Path

import pytest

from rebat.env.agents import LinearAgent
from rebat.env.observation import LAYOUTS
from rebat.env.rewards import REWARDS

PAGE = (Path(__file__).parents[2] / "docs/how-to/learning.md").read_text()


@pytest.mark.parametrize("decision", LAYOUTS)
def test_the_page_lists_the_features_in_order(decision) -> None:
    layout = LAYOUTS[decision]
    for part in (layout.candidate, layout.context):
        assert "\n".join(f"| {name} | {text} |" for name, text in part.items()) in PAGE


def test_the_page_lists_the_rewards() -> None:
    assert [name for name in REWARDS if f"| `{name}` |" in PAGE] == list(REWARDS)


needs_extra = pytest.mark.skipif(
    not all(map(find_spec, ("gymnasium", "greenlet"))), reason="needs the extra rebat[rl]"
)
RECORDED = Path(__file__).parents[2] / "docs/findings/learning"
PROGRAM = str(RECORDED.parents[2] / "campaigns/node_stealing/train_victim_agent.py")


@needs_extra
def test_the_recorded_agent_can_be_read_and_the_table_is_that_of_the_recorded_months() -> None:
    assert LinearAgent.load(RECORDED / "victim-agent.npz").decision == "victim"
    script = runpy.run_path(PROGRAM)
    record = json.loads((RECORDED / "evaluation.json").read_text())
    assert script["table"](RECORDED) == (RECORDED / "evaluation.md").read_text()
    assert script["changes"](record["runs"]) == record["changes"]
    trained = json.loads((RECORDED / "training.json").read_text())
    assert not {run["seed"] for run in record["runs"]} & set(trained["seeds"])


@pytest.mark.slow
@needs_extra
def test_a_recorded_month_gives_the_same_numbers_again() -> None:
    script = runpy.run_path(PROGRAM)
    run = json.loads((RECORDED / "evaluation.json").read_text())["runs"][0]
    agent = LinearAgent.load(RECORDED / "victim-agent.npz")
    month = script["mira_like"](run["month"], run["seed"])
    again = script["measured"](month, run["seed"], script["Named"](agent))
    assert again == pytest.approx(run["values"]["agent"], rel=1e-12)
