# SPDX-License-Identifier: Apache-2.0
"""The cheapest restarts, compared with an exact solver and with all combinations of restarts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.policies.reactions.restarts import cheapest_restarts
from tests.oracles.knapsack import Row, by_solver, by_trying
from tests.support.amount import few

# Three running jobs: number of nodes, planned end, and the end after a restart on fewer nodes.
RUNNING = [
    (8, 100, {4: 160, 6: 130}),
    (16, 200, {8: 290, 12: 230, 14: 215}),
    (4, 50, {2: 90, 3: 70}),
]
ROWS = [
    (end - promised, held - size, job)
    for job, (held, promised, ends) in enumerate(RUNNING)
    for size, end in ends.items()
]


def solved(rows: list[Row], need: int) -> tuple[int, list[int]] | None:
    """Return the kernel's answer; check that the choice is allowed and has the stated cost."""
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    found = cheapest_restarts(*(np.ascontiguousarray(column) for column in columns), need=need)
    if found is None:
        return None
    chosen = [rows[at] for at in found.rows]
    assert found.rows.tolist() == sorted(found.rows.tolist())
    assert len({job for _, _, job in chosen}) == len(chosen)
    assert sum(freed for _, freed, _ in chosen) >= need
    assert sum(cost for cost, _, _ in chosen) == found.total
    return found.total, found.rows.tolist()


# Computed by hand from equation (3). With 8 nodes two choices cost 90: that of one restart wins.
@pytest.mark.parametrize(
    ("need", "total"),
    [(1, 15), (2, 15), (4, 30), (5, 50), (6, 60), (8, 90), (14, 190), (15, None)],
)
def test_by_hand(need: int, total: int | None) -> None:
    found = solved(ROWS, need)
    assert (found and found[0]) == total
    assert found == by_trying(ROWS, need)
    assert by_solver(ROWS, need) == total


def test_of_equal_costs_the_fewest_then_the_lowest_rows() -> None:
    assert solved(ROWS, 8) == (90, [2])
    assert solved([(5, 1, 0), (5, 1, 0), (5, 1, 1), (5, 2, 2)], 1) == (5, [0])
    assert solved([(5, 1, 0), (5, 1, 1), (10, 2, 2), (10, 2, 3)], 2) == (10, [2])
    assert solved([(7, 1, 0), (0, 0, 1), (5, 1, 2), (5, 1, 3)], 1) == (5, [2])


def test_nothing_to_choose_from() -> None:
    assert solved([], 1) is None
    assert solved([], 0) == (0, [])
    assert solved(ROWS, 0) == (0, [])
    assert solved(ROWS, -3) == (0, [])
    assert solved(ROWS, 10**9) is None


def test_a_restart_that_pays_for_itself_is_taken() -> None:
    assert solved([(-5, 0, 0), (9, 2, 1), (-1, 1, 2)], 1) == (-6, [0, 2])


ROW_LISTS = st.lists(
    st.tuples(st.integers(-6, 12), st.integers(0, 5), st.integers(0, 5)), max_size=9
).map(lambda rows: sorted(rows, key=lambda row: row[2]))


@settings(max_examples=few(500))
@given(rows=ROW_LISTS, need=st.integers(0, 16))
def test_as_by_trying_all(rows: list[Row], need: int) -> None:
    assert solved(rows, need) == by_trying(rows, need)


def instance(rng: np.random.Generator, n_jobs: int, n_sizes: int) -> list[Row]:
    """Return jobs with several sizes each. Smaller sizes free more nodes and usually cost more."""
    rows = []
    for job in range(n_jobs):
        held = int(rng.integers(2, 65))
        for size in sorted(rng.integers(1, held, rng.integers(1, n_sizes + 1)).tolist()):
            cost = int(rng.integers(1, 10**6)) * (held - size)
            rows.append((cost, held - size, job))
    return rows


@pytest.mark.slow
def test_as_an_exact_solver() -> None:
    """Both agree on 2,000 random instances of up to 12 jobs with up to 5 sizes each."""
    rng = np.random.default_rng(7)
    impossible = 0
    for _ in range(2_000):
        rows = instance(rng, int(rng.integers(1, 13)), 5)
        need = int(rng.integers(1, 129))
        found = solved(rows, need)
        assert (found and found[0]) == by_solver(rows, need)
        impossible += found is None
    assert 0 < impossible < 1_000


def test_what_cannot_be_counted_is_refused() -> None:
    big, one = np.array([2**61, 2**61, 0]), np.array([1, 1, 1])
    with pytest.raises(OverflowError):
        cheapest_restarts(big, one, np.array([0, 1, 2]), 1)
    with pytest.raises(ValueError, match="ascend"):
        cheapest_restarts(one, one, np.array([0, 2, 1]), 1)
    with pytest.raises(ValueError, match="negative number"):
        cheapest_restarts(one, -one, np.array([0, 1, 2]), 1)
