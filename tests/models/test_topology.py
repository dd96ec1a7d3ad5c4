# SPDX-License-Identifier: Apache-2.0
"""Tori: numbering, wrap-around, and distances in hops, compared with searches of the graph."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.core.errors import InputError
from rebat.models.topology import INTREPID, MIRA, TORI, Torus, parse_sizes

small_tori = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(lambda s: Torus(tuple(s)))


def walk(torus: Torus, start: int) -> list[int]:
    """Return distances by breadth-first search over the links in the definition of a torus."""
    distance = {start: 0}
    todo = deque([start])
    while todo:
        node = todo.popleft()
        stride = 1
        for size in torus.sizes:
            place = node // stride % size
            for step in (1, size - 1):
                other = node + ((place + step) % size - place) * stride
                if other not in distance:
                    distance[other] = distance[node] + 1
                    todo.append(other)
            stride *= size
    return [distance[node] for node in range(len(distance))]


def test_the_machines_have_their_nodes() -> None:
    assert MIRA.n_nodes == 49_152
    assert INTREPID.n_nodes == 40_960
    assert set(TORI) == {"mira", "intrepid"}


def test_the_first_dimension_varies_fastest() -> None:
    assert [Torus((3, 2, 2)).coordinates(node) for node in (0, 1, 2, 3, 6)] == [
        (0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 1, 0), (0, 0, 1),
    ]  # fmt: skip


@given(small_tori, st.data())
def test_coordinates_and_node_numbers_are_inverse(torus: Torus, data) -> None:
    node = data.draw(st.integers(0, torus.n_nodes - 1))
    assert torus.node(torus.coordinates(node)) == node
    assert tuple(torus.coordinate_table()[node]) == torus.coordinates(node)


@given(small_tori, st.data())
def test_the_diameter_and_the_neighbours_are_those_of_a_walk(torus: Torus, data) -> None:
    start = data.draw(st.integers(0, torus.n_nodes - 1))
    walked = walk(torus, start)
    assert torus.diameter == max(walked)
    assert torus.neighbours(start) == [n for n, hops in enumerate(walked) if hops == 1]


def test_every_dimension_wraps_around() -> None:
    torus = Torus((8, 8, 8, 8))
    corner = torus.node((-1, -1, -1, -1))
    assert corner == 4095
    assert walk(torus, 0)[corner] == 4


def test_the_table_of_mira_is_a_permutation_of_places() -> None:
    table = MIRA.coordinate_table()
    assert table.shape == (49_152, 5)
    assert len(np.unique(table, axis=0)) == 49_152


@pytest.mark.parametrize(
    "text", ["", "8,", "8,x", "8,-1", "0,8", "8;8", "1e3", "99999999,99999999"]
)
def test_bad_sizes_are_told(text: str) -> None:
    with pytest.raises(InputError, match="here"):
        parse_sizes(text, "here")


def test_nodes_outside_and_short_coordinates_are_told() -> None:
    with pytest.raises(InputError, match="node 4"):
        Torus((2, 2)).coordinates(4)
    with pytest.raises(InputError, match="1 coordinates"):
        Torus((2, 2)).node((1,))
