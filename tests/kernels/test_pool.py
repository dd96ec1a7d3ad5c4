# SPDX-License-Identifier: Apache-2.0
"""Either all requested nodes are taken, or none. Searches equal those in sorted lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.core.nodes import NodeSet
from rebat.kernels import pool
from rebat.kernels.pool import BLOCK, FREE
from rebat.models.node_pool import NodePool


@pytest.mark.parametrize(("asked", "obstacle"), [("0-5", 3), ("140-299", 200), ("290-310", 300)])
def test_what_cannot_be_taken_whole_leaves_all_as_it_was(asked: str, obstacle: int) -> None:
    """Of 300 nodes, node 3 is held and node 200 is down."""
    nodes = NodePool(300)
    assert nodes.take(NodeSet.parse("3"), 7) == -1
    nodes.fail(NodeSet.parse("200"))
    before = nodes.owner.copy(), nodes.n_free
    assert nodes.take(NodeSet.parse(asked), 8) == obstacle
    assert np.array_equal(nodes.owner, before[0]) and nodes.n_free == before[1] == 298
    assert nodes.lowest(298) == NodeSet.parse("0-2 4-199 201-299")


def intervals(nodes: Iterable[int], n: int) -> tuple[Any, int]:
    """Return an array with the intervals of nodes, and their number."""
    of_nodes, out = NodeSet.of(nodes).intervals, np.zeros((n + 1, 2), dtype=np.int64)
    out[: len(of_nodes)] = of_nodes
    return out, len(of_nodes)


def nodes_of(out: Any, k: int) -> list[int]:
    """Return the nodes of intervals, which must not overlap or touch."""
    nodes = [node for low, high in out[:k].tolist() for node in range(low, high + 1)]
    assert NodeSet.of(nodes).intervals.tolist() == out[:k].tolist()
    return nodes


@given(st.integers(1, 400), st.integers(0, 2**32), st.integers(1, 400))
def test_the_highest_free_nodes_are_those_of_a_sorted_list(n: int, seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    owner = np.where(rng.random(n) < rng.random(), FREE, 5).astype(np.int32)
    down, out = rng.random(n) < rng.random(), np.zeros((n + 1, 2), dtype=np.int64)
    is_free = (owner == FREE) & ~down
    free = np.bincount(np.arange(n) // BLOCK, is_free).astype(np.int64)
    k = pool.highest_free(owner, down, free, count, out)
    assert nodes_of(out, k) == np.flatnonzero(is_free)[-count:].tolist()


@given(st.integers(1, 60), st.integers(0, 2**32), st.integers(0, 60), st.integers(0, 60))
def test_spare_nodes_that_are_up_are_those_of_a_sorted_list(n, seed, first, count) -> None:
    drained, failed = np.random.default_rng(seed).random((2, n)) < 0.5
    out = np.zeros((n + 1, 2), dtype=np.int64)
    expected = [node for node in np.flatnonzero(drained & ~failed).tolist() if node >= first]
    k, size = pool.standby(drained, failed, first, count, out)
    assert nodes_of(out, k) == expected[:count]
    assert size == len(expected[:count])


@given(st.sets(st.integers(0, 12)), st.sets(st.integers(0, 12)))
def test_inserted_nodes_join_their_neighbours(before: set[int], others: set[int]) -> None:
    out, k = intervals(before, 14)
    for node in others - before:
        k = pool.insert(out, k, node)
    assert nodes_of(out, k) == sorted(before | others)
