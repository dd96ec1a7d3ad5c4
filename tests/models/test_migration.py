# SPDX-License-Identifier: Apache-2.0
"""The cost of a checkpoint and restart, compared with check values for Table 1."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.core.errors import InputError
from rebat.models.migration import MEMORY_MB, OVERHEAD_S, TASKS, cost_us, overhead_s


@pytest.mark.parametrize(
    ("tasks", "memory_mb", "seconds"),
    [(1, 50, 51), (16, 100, 66), (128, 1000, 608), (16, 550, 134.0), (24, 100, 73.605),
     (256, 2000, 608)],
)  # fmt: skip
def test_between_and_beyond_the_sizes_that_were_measured(tasks, memory_mb, seconds) -> None:
    assert overhead_s(tasks, memory_mb) == pytest.approx(seconds, abs=5e-4)


def test_at_the_sizes_that_were_measured() -> None:
    table = [[overhead_s(tasks, memory) for memory in MEMORY_MB] for tasks in TASKS]
    assert table == OVERHEAD_S.tolist()


@given(tasks=st.integers(1, 10**6), memory=st.floats(0, 1e5))
def test_is_never_beyond_what_was_measured(tasks: int, memory: float) -> None:
    assert 51 <= overhead_s(tasks, memory) <= 608


@pytest.mark.parametrize("text", ["", "-1", "nan", "table*", "table*-5", "chair", "3*4", "2e6"])
def test_other_costs_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="cost"):
        cost_us(text, 4)
