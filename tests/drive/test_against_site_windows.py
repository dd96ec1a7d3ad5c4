# SPDX-License-Identifier: Apache-2.0
"""Reservations, and partitions that share nodes: schedules are equal to those of a slow oracle."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.against_site_windows import play
from tests.support.amount import few


@pytest.mark.sampled
def test_random_schedules_are_those_of_the_oracle() -> None:
    kinds = Counter(play(seed) for seed in range(few(1500)))
    excepted = sum(count for kind, count in kinds.items() if kind.startswith("excepted"))
    assert excepted < kinds.total() / 10
    assert kinds["windows that bind"] and kinds["both that bind"] and kinds["partitions"]


@pytest.mark.parametrize("seed", [1, 13, 19, 37, 67, 814, 1728, 3756])
def test_runs_that_once_differed_from_the_oracle(seed: int) -> None:
    """For example, a job that requested a reservation with too few nodes in its partition.

    Seeds 19 and 67: under fifo, partitions that state the order of the policy.
    """
    assert not play(seed).startswith("excepted")
