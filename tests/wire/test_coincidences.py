# SPDX-License-Identifier: Apache-2.0
"""Simultaneous events: the schedule is the same embedded, over the protocol and in a recording."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.amount import few
from tests.support.coincidences import Case, play, play_noisy, play_split

SEEDS = range(8)
pytestmark = pytest.mark.sampled

EACH = few(40)


@pytest.mark.parametrize("first", SEEDS)
def test_all_ways_to_play_agree(first: int, tmp_path: Path) -> None:
    for seed in range(first * EACH, (first + 1) * EACH):
        play(Case(seed), tmp_path)


@pytest.mark.parametrize("first", SEEDS)
def test_an_instant_in_several_messages_loses_nothing(first: int) -> None:
    for seed in range(first * EACH, (first + 1) * EACH):
        play_split(Case(seed))


@pytest.mark.slow
@pytest.mark.parametrize("first", SEEDS)
def test_messages_that_bring_nothing_change_nothing(first: int) -> None:
    for seed in range(first * EACH, (first + 1) * EACH):
        play_noisy(Case(seed))
