# SPDX-License-Identifier: Apache-2.0
"""Colours that a figure shows together are distinct, also for colour-blind readers.

The matrices are those of Machado, Oliveira and Fernandes (2009), "A physiologically-based model for
simulation of color vision deficiency", for severity 1. They apply to linear RGB.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from rebat.figures.canvas import _OTHERS, COLOURS, policy_colours
from rebat.figures.runs import CAUSE_COLOURS, HELD_COLOUR

READERS = {
    "usual vision": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}

XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
WHITE = XYZ.sum(axis=1)


def lab(colour: Any, reader: Any) -> Any:
    """Return a colour as a reader sees it, in the space CIELAB."""
    values = np.array(to_rgb(colour))
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    xyz = XYZ @ np.clip(reader @ linear, 0, 1) / WHITE
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def nearest(colours: Iterable[Any], reader: str) -> float:
    """Return the smallest distance (CIE 1976) between two of the colours."""
    seen = [lab(colour, READERS[reader]) for colour in colours]
    return min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2))


def test_the_distance_is_that_of_cielab() -> None:
    assert nearest(["black", "white"], "usual vision") == pytest.approx(100, abs=0.1)
    assert lab("#ff0000", READERS["usual vision"]) == pytest.approx([53.2, 80.1, 67.2], abs=0.2)
    assert (
        nearest(["#ff0000", "#8f7e00"], "protanopia")
        < 40
        < nearest(["#ff0000", "#8f7e00"], "usual vision")
    )


COMPARED = (
    ["baseline", "sfsj", "easy", "easy-sfsj", "greedy", "greedy-sfsj"],
    ["sfsj", "h111", "baseline"],
    ["faps", "rps", "pwa", "sa"],
    ["one", "two", "three", "four", "five", "six"],
)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("policies", COMPARED, ids=lambda names: names[0])
def test_policies_that_are_often_compared(policies: Sequence[str], reader: str) -> None:
    assert nearest(policy_colours(policies).values(), reader) > 18


@pytest.mark.parametrize("reader", READERS)
def test_all_colours_of_a_scheme(reader: str) -> None:
    assert nearest(_OTHERS, reader) > 18
    assert nearest(COLOURS, reader) > 16


@pytest.mark.parametrize("reader", READERS)
def test_ends_of_attempts_in_a_gantt_chart(reader: str) -> None:
    causes = list(CAUSE_COLOURS.values())
    assert nearest([*causes, "black"], reader) > 16
    assert nearest([*causes, "black", "white", HELD_COLOUR], reader) > 10
