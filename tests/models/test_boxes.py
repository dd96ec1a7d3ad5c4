# SPDX-License-Identifier: Apache-2.0
"""Boxes of tori: each box is listed once, and its sums are sums over its nodes.

The counts for 256 nodes on 8x8x8x8 are check items 1 and 2 of the notes on Vardas et al. 2022.
"""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.core.errors import InputError
from rebat.models.boxes import LISTS, Boxes, TorusBlocks, shapes_of, volume_for
from rebat.models.topology import MIRA, Torus, parse_torus
from tests.oracles.boxes import aligned_boxes, all_boxes

PAPER = Torus((8, 8, 8, 8))


def node_sets(boxes: Boxes) -> list[frozenset[int]]:
    return [frozenset(boxes.box(i).nodes(boxes.torus).tolist()) for i in range(len(boxes))]


def test_the_papers_torus() -> None:
    boxes = Boxes(PAPER, 256)
    assert len(boxes.shapes) == 31
    kinds = Counter(tuple(sorted(shape)) for shape in boxes.shapes)
    assert kinds == {(1, 4, 8, 8): 12, (2, 2, 8, 8): 6, (2, 4, 4, 8): 12, (4, 4, 4, 4): 1}
    assert [len(Boxes(PAPER, 256, which)) for which in LISTS] == [16, 496, 11392]
    by_kind = Counter[tuple[int, ...]]()
    for shape, count in zip(boxes.shapes, boxes.per_shape, strict=True):
        by_kind[tuple(sorted(shape))] += count
    assert sorted(by_kind.values()) == [384, 768, 4096, 6144]


def test_sums_of_the_papers_torus() -> None:
    boxes, rng = Boxes(PAPER, 256), np.random.default_rng(1)
    values = rng.random(4096)
    sums = boxes.sums(values)
    for index in rng.integers(0, len(boxes), 200):
        nodes = boxes.box(int(index)).nodes(PAPER)
        assert len(set(nodes.tolist())) == 256
        assert sums[index] == pytest.approx(values[nodes].sum(), abs=1e-9)


@pytest.mark.parametrize(
    ("sizes", "volume"),
    [((5, 4, 4), 8), ((2, 3, 4, 4, 1), 16), ((2, 2, 3, 2, 2, 3), 12), ((7,), 3), ((6, 4), 12)],
)
def test_counts_against_brute_force(sizes: tuple[int, ...], volume: int) -> None:
    boxes, expected = Boxes(Torus(sizes), volume), all_boxes(sizes, volume)
    found = node_sets(boxes)
    assert len(set(found)) == len(found) and set(found) == set(expected)
    assert [expected[nodes] for nodes in found] == [boxes.box(i).shape for i in range(len(boxes))]
    assert set(node_sets(Boxes(Torus(sizes), volume, "aligned"))) == aligned_boxes(sizes, volume)


@pytest.mark.parametrize("sizes", [(5, 4, 4), (2, 3, 1, 4), (7,), (1,), (6, 11), (2, 2, 2, 2, 3)])
def test_the_smallest_box_against_every_product(sizes: tuple[int, ...]) -> None:
    volumes = {math.prod(one) for one in itertools.product(*(range(1, n + 1) for n in sizes))}
    for n_nodes in range(1, math.prod(sizes) + 1):
        assert volume_for(sizes, n_nodes) == min(v for v in volumes if v >= n_nodes)


def test_the_smallest_box_of_many_dimensions_is_found_at_once() -> None:
    """A search that tries every volume and every dimension would not end."""
    started_s = time.process_time()
    assert volume_for((2,) * 23, 2**22 + 1) == 2**23
    products = {2**a * 3**b for a in range(15) for b in range(15 - a)}
    assert volume_for((3,) * 14, 3**13 + 1) == min(v for v in products if v > 3**13)
    assert volume_for((10_000_000,), 9_999_991) == 9_999_991
    assert time.process_time() - started_s < 10


@given(st.data())
def test_sums_are_those_of_the_nodes(data: st.DataObject) -> None:
    """This holds for any torus, box size and values, including integers and infinity."""
    sizes = tuple(data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    volume = volume_for(sizes, data.draw(st.integers(1, math.prod(sizes))))
    boxes = Boxes(Torus(sizes), volume, data.draw(st.sampled_from(LISTS)))
    values = np.array(
        data.draw(
            st.lists(
                st.sampled_from([0.0, 1.0, 0.125, 3.0, math.inf]),
                min_size=math.prod(sizes), max_size=math.prod(sizes),
            )
        )
    )  # fmt: skip
    expected = [values[sorted(nodes)].sum() for nodes in node_sets(boxes)]
    assert boxes.sums(values).tolist() == expected
    busy = np.isinf(values).astype(np.int32)
    assert boxes.sums(busy).tolist() == [busy[sorted(nodes)].sum() for nodes in node_sets(boxes)]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(1, 625))
def test_the_smallest_box(sizes: list[int], n_nodes: int) -> None:
    most = math.prod(sizes)
    if n_nodes > most:
        with pytest.raises(InputError, match="no box of"):
            volume_for(tuple(sizes), n_nodes)
        return
    volume = volume_for(tuple(sizes), n_nodes)
    assert n_nodes <= volume and shapes_of(sizes, volume)
    assert not any(shapes_of(sizes, v) for v in range(n_nodes, volume))


def test_boxes_stand_in_the_order_of_their_corners() -> None:
    boxes = Boxes(Torus((4, 4)), 4)
    corners = [Torus((4, 4)).node(boxes.box(i).origin) for i in range(len(boxes))]
    assert corners == sorted(corners)


def test_units_are_boxes_of_nodes() -> None:
    blocks = TorusBlocks(MIRA, (4, 4, 4, 4, 2))
    assert blocks.torus.sizes == (2, 3, 4, 4, 1) and blocks.size == 512
    for block in (0, 1, 95):
        table = MIRA.coordinate_table()[blocks.members[block]]
        assert (np.ptp(table, axis=0) + 1).tolist() == [4, 4, 4, 4, 2]
    assert sorted(blocks.members.ravel().tolist()) == list(range(MIRA.n_nodes))
    mask = np.ones(MIRA.n_nodes, dtype=np.bool_)
    mask[blocks.members[7][3]] = False
    assert np.flatnonzero(~blocks.whole(mask)).tolist() == [7]
    assert blocks.sums(np.ones(MIRA.n_nodes)).tolist() == [512.0] * 96
    box = Boxes(blocks.torus, 8).box(5)
    assert len(set(blocks.nodes(box).tolist())) == 8 * 512


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Boxes(PAPER, 4097), "no box of 4097 nodes fits on 8x8x8x8"),
        (lambda: Boxes(PAPER, 256, "some"), "list of boxes"),
        (lambda: volume_for((8, 8), 65), "no box of 65 nodes"),
        (lambda: volume_for((8, 8), 0), "no box of 0 nodes"),
        (lambda: TorusBlocks(PAPER, (3, 1, 1, 1)), "do not divide"),
        (lambda: TorusBlocks(PAPER, (2, 2)), "do not divide"),
        (lambda: TorusBlocks(PAPER, (0, 1, 1, 1)), "do not divide"),
        (lambda: parse_torus("8x0"), "invalid torus"),
        (lambda: parse_torus("8y8"), "dimensions"),
    ],
)
def test_what_is_no_box(make: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        make()  # type: ignore[operator]
