# SPDX-License-Identifier: Apache-2.0
"""Changes of a run that must not change any decision."""

from __future__ import annotations

import pytest

from tests.support.amount import few
from tests.support.metamorphic import RELATIONS, compare


@pytest.mark.sampled
@pytest.mark.parametrize("name", RELATIONS)
def test_the_outcome_is_equal(name: str) -> None:
    """``python -m tests.support.metamorphic 2000`` compares more pairs of runs."""
    policies = {compare(name, seed) for seed in range(few(60))}
    assert policies - {""}
