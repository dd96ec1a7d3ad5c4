# SPDX-License-Identifier: Apache-2.0
"""Random runs have the records of a slow oracle that was written from the documentation."""

from __future__ import annotations

import pytest

from tests.support.against_oracle import play
from tests.support.both_ways import Case


@pytest.mark.parametrize("first", range(0, 150, 25))
def test_runs_have_the_records_of_the_oracle(first):
    for seed in range(first, first + 25):
        play(Case(seed, depends=False, limited=False))


@pytest.mark.parametrize("first", range(0, 150, 25))
def test_runs_with_dependencies_and_arrays_have_the_records_of_the_oracle(first):
    for seed in range(first, first + 25):
        play(Case(seed, depends=True, limited=False))


@pytest.mark.parametrize("seed", [1802, 2721, 5433, 6507, 7884])
def test_runs_that_once_differed_from_the_oracle(seed):
    """For example, a job is given up at the end of its wait, and other jobs depend on it."""
    assert play(Case(seed, limited=False)) in ("holds", "requeues", "steals")
