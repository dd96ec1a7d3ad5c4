# SPDX-License-Identifier: Apache-2.0
"""The page about agents lists every feature and every reward, with its definition."""

from __future__ import annotations

from pathlib import Path

import pytest

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
