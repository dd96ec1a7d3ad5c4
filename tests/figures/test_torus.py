# SPDX-License-Identifier: Apache-2.0
"""A torus at one time: a cell for each unit, and the same bytes for the same data."""

from __future__ import annotations

import numpy as np

from rebat.figures.torus import DOWN, FREE, _colours, torus_instant


def test_what_is_free_is_white_and_what_is_down_black() -> None:
    colours = _colours(np.array([FREE, DOWN, 0, 1, 0]))
    assert colours[0].tolist() == [1, 1, 1]
    assert colours[1].tolist() == [0, 0, 0]
    assert (colours[2] == colours[4]).all()
    assert (colours[2] != colours[3]).any()


def test_the_same_bytes_for_the_same_data() -> None:
    owner, hazard = np.arange(24) % 5 - 2, np.linspace(0, 1, 24)
    first = torus_instant((2, 3, 4), owner, hazard, "probability")
    assert first == torus_instant((2, 3, 4), owner, hazard, "probability")
    assert first.startswith("<svg")
    assert "probability" in first
    assert len(torus_instant((2, 3, 4), owner, None)) < len(first)
