# SPDX-License-Identifier: Apache-2.0
"""Rectangular boxes of a torus: the sets of nodes on which jobs are placed.

A box has an extent along each dimension, and an origin. The origin is its lowest corner. From there
the box extends upwards and may wrap around. If an extent covers an entire dimension, boxes with
different origins along this dimension have the same nodes. In this dimension only origin 0 is used,
so no two boxes have the same nodes. The search for free boxes (`kernels.box_free`) uses sets of
nodes as bits.

On Mira, boxes consist of midplanes: blocks of 4x4x4x4x2 = 512 nodes that the machine allocates as a
whole. The blocks of a machine also form a torus.

Source: Vardas et al. 2022, section 2.2 (contiguous and rectangular partitions of a torus, and the
free box with the lowest failure probability, with the sign of equation (1) corrected).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError, unknown_name
from rebat.core.nodes import NodeSet
from rebat.core.numbers import exactly
from rebat.kernels.box_sums import COPY, least_box, run_sums
from rebat.models.failures.node_table import NodeTable
from rebat.models.topology import INTREPID, MIRA, Torus

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Extents = tuple[int, ...]

LISTS = ("16", "aligned", "all")
"""Names of lists of the boxes of one size.

``all``: all boxes. ``aligned``: boxes whose origins are multiples of the extents. ``16``: aligned
boxes with the smallest surface. For 256 nodes on 8x8x8x8 these are the 16 boxes of 4x4x4x4.
"""

TIE = 1e-12  # relative tolerance: sums of the same values in different orders can differ slightly


class Box(msgspec.Struct, frozen=True):
    """A box: its extent and its origin along each dimension."""

    shape: Extents
    origin: Extents

    def nodes(self, torus: Torus) -> Ints:
        """Return the nodes of the box, ascending. The array is cached and cannot be changed."""
        return _nodes(self, torus)


@lru_cache(maxsize=4096)
def _nodes(box: Box, torus: Torus) -> Ints:
    nodes = np.zeros(1, dtype=np.int64)
    for extent, start, size, stride in zip(
        box.shape, box.origin, torus.sizes, torus.strides, strict=True
    ):
        along = (start + np.arange(extent)) % size * stride
        nodes = (along[:, None] + nodes[None, :]).ravel()
    nodes.sort()
    nodes.flags.writeable = False
    return nodes


def shapes_of(sizes: Sequence[int], volume: int) -> list[Extents]:
    """Return all extents of boxes with ``volume`` nodes, in ascending order.

    >>> shapes_of((2, 4), 4)
    [(1, 4), (2, 2)]
    """
    if not sizes:
        return [()] if volume == 1 else []
    return [
        (extent, *others)
        for extent in range(1, min(sizes[0], volume) + 1)
        if volume % extent == 0
        for others in shapes_of(sizes[1:], volume // extent)
    ]


@lru_cache(maxsize=4096)
def volume_for(sizes: Extents, n_nodes: int) -> int:
    """Return the number of nodes of the smallest box with at least ``n_nodes`` nodes."""
    most = math.prod(sizes)
    if not 1 <= n_nodes <= most:
        raise InputError(f"no box of {n_nodes} nodes is possible", expected=f"1 to {most} nodes")
    volumes = _volumes(sizes)
    return int(volumes[np.searchsorted(volumes, n_nodes)])


@lru_cache(maxsize=4)
def _volumes(sizes: Extents) -> Ints:
    """Return the numbers of nodes of all boxes of a torus, ascending."""
    volumes = np.ones(1, dtype=np.int64)
    for size in sorted(sizes):
        is_volume = np.zeros(volumes[-1] * size + 1, dtype=np.bool_)
        for volume in volumes:
            is_volume[volume : volume * size + 1 : volume] = True
        volumes = np.flatnonzero(is_volume)
    return volumes


def surface(shape: Extents) -> int:
    """Return the surface of a box, as if the torus did not wrap around."""
    return 2 * sum(math.prod(shape) // extent for extent in shape)


class Boxes:
    """The boxes of one size on a torus.

    The boxes are sorted by the node numbers of their origins. At the same origin, the most cubic
    box is first.

    Parameters
    ----------
    torus : Torus
    volume : int
        Number of nodes of a box. Boxes of this size must exist (see ``volume_for``).
    which : str
        One of LISTS.
    """

    def __init__(self, torus: Torus, volume: int, which: str = "all") -> None:
        if which not in LISTS:
            raise unknown_name("list of boxes", which, LISTS)
        self.torus, self.volume = torus, volume
        self.shapes = sorted(shapes_of(torus.sizes, volume), key=lambda x: (surface(x), x))
        if not self.shapes:
            raise InputError(
                f"no box of {volume} nodes fits on {torus}", expected="a product of extents"
            )
        if which == "16":
            least = min(map(surface, self.shapes))
            self.shapes = [shape for shape in self.shapes if surface(shape) == least]
        self._aligned = which != "all"
        self.sums_of = BoxSums(torus.sizes, self.shapes)

    @cached_property
    def chosen(self) -> Ints:
        """For each box, the index of its sum in the result of `raw_sums`: shape (n,)."""
        places, corners = map(np.concatenate, zip(*self._parts, strict=True))
        chosen: Ints = places[np.argsort(corners, kind="stable")]
        return chosen

    @property
    def corners(self) -> list[Ints]:
        """For each shape, the node numbers of the origins of its boxes, ascending."""
        return [corners for _, corners in self._parts]

    @cached_property
    def _parts(self) -> list[tuple[Ints, Ints]]:
        return [self._of_shape(index, self._aligned) for index in range(len(self.shapes))]

    def _of_shape(self, index: int, aligned: bool) -> tuple[Ints, Ints]:
        """Return the sum index and the origin (node number) of each box of a shape."""
        corners, is_listed = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.bool_)
        axes = zip(self.shapes[index], self.torus.sizes, self.torus.strides, strict=True)
        for extent, size, stride in reversed([*axes]):
            along = np.arange(_length(extent, size))
            fits = (along % extent == 0) & (along + extent <= size) if aligned else along >= 0
            corners = (corners[:, None] + along * stride).ravel()
            is_listed = (is_listed[:, None] & fits).ravel()
        return self.sums_of.first[index] + np.flatnonzero(is_listed), corners[is_listed]

    def __len__(self) -> int:
        return len(self.chosen)

    def box(self, index: int) -> Box:
        """Return the box at an index."""
        place = self.chosen[index]
        shape_index = int(np.searchsorted(self.sums_of.first, place, side="right")) - 1
        shape, offset, origin = (
            self.shapes[shape_index],
            int(place - self.sums_of.first[shape_index]),
            [],
        )
        for length in map(_length, shape, self.torus.sizes):
            origin.append(offset % length)
            offset //= length
        return Box(shape, tuple(origin))

    def raw_sums(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Return the sums of node values over all boxes. The sum of box ``i`` is at ``chosen[i]``.

        The next call overwrites the array.
        """
        return self.sums_of.run(values)

    def sums(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Return the sum of node values over each box: shape (n,)."""
        return self.raw_sums(values)[self.chosen]

    def least(self, values: Floats) -> int:
        """Return the index of the first box with the smallest sum of values.

        Return -1 if all sums are infinite.
        """
        return int(least_box(self.raw_sums(values), self.chosen, TIE))

    @cached_property
    def per_shape(self) -> list[int]:
        """Number of boxes of each shape."""
        which = np.searchsorted(self.sums_of.first, self.chosen, side="right") - 1
        counts: list[int] = np.bincount(which, minlength=len(self.shapes)).tolist()
        return counts


class BoxSums:
    """Sums of node values over boxes of several shapes, at all origins of a torus.

    Sums that several shapes have in common are computed once. The last dimension, which has the
    largest strides, is summed first. A *window* consists of consecutive nodes along a dimension.
    The sum of a window of 2, 4, 8 ... nodes is the sum of its two halves. The sum of any other
    window is the sum of two smaller windows. No window is computed as a difference, because the
    difference of two infinite sums is not a number. The additions are the rows of a table, the
    *program*.
    """

    def __init__(self, sizes: Extents, shapes: Sequence[Extents]) -> None:
        self._sizes, self._shapes = sizes, shapes
        counts = [math.prod(map(_length, shape, sizes)) for shape in shapes]
        self.first: Ints = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        """Index of the first sum of each shape. The sums of a shape are in the order of origins."""
        self.n = int(self.first[-1])
        self._values_at = self.n
        self._end = self.n + math.prod(sizes)
        self._rows: list[tuple[int, ...]] = []
        self.ends: list[int] = []
        """For each row, the first later row whose windows do not contain the windows of this row.

        If no window of a row is free, a search for free boxes continues at this later row.
        """
        self._extend((), self._values_at, math.prod(sizes))
        self.program: Ints = np.array(self._rows, dtype=np.int64).reshape(-1, 8)
        self.work_size, self.values_at = self._end, self._values_at
        self._work: dict[np.dtype[np.generic], npt.NDArray[np.generic]] = {}

    def run(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Return the sums of node values over all boxes. ``first`` defines their order."""
        work = self._work.get(values.dtype)
        if work is None:
            work = self._work[values.dtype] = np.zeros(self.work_size, values.dtype)
        work[self.values_at : self.values_at + len(values)] = values
        run_sums(self.program, work)
        return work[: self.n]

    # ---- the program

    def _extend(self, tail: Extents, at: int, length: int) -> None:
        """Add the rows that sum along the next dimension.

        ``tail`` contains the extents along the dimensions that are already summed, and ``at`` the
        position of these sums.
        """
        axis = len(self._sizes) - len(tail) - 1
        size = self._sizes[axis]
        inner = math.prod(self._sizes[:axis])
        outer = length // (size * inner)
        wanted = sorted({shape[axis] for shape in self._shapes if shape[axis + 1 :] == tail})
        windows, begin = {1: at}, len(self._rows)
        for extent in wanted:
            here, target = (extent, *tail), None
            if axis == 0:
                target = int(self.first[self._shapes.index(here)])
            place = self._window(windows, extent, (outer, size, inner), target)
            if axis > 0:
                self._extend(here, place, outer * _length(extent, size) * inner)
        self.ends[begin:] = [end or len(self._rows) for end in self.ends[begin:]]

    def _window(
        self, windows: dict[int, int], extent: int, dims: tuple[int, int, int], target: int | None
    ) -> int:
        """Return the position of the sums over windows of length ``extent``. Add missing sums.

        ``windows`` maps each extent for which sums exist to the position of these sums.
        """
        _, size, _ = dims
        if extent == 1 or extent in windows:
            place = windows[extent]
            return place if target is None else self._row(place, COPY, 0, dims, size, target)
        half = 1 << (extent.bit_length() - 1)
        half = half // 2 if half == extent else half
        low = self._whole(windows, half, dims)
        high = self._whole(windows, extent - half, dims)
        place = self._row(low, high, half, dims, _length(extent, size), target)
        if extent < size:
            windows[extent] = place
        return place

    def _whole(self, windows: dict[int, int], extent: int, dims: tuple[int, int, int]) -> int:
        """Return the position of the sums over windows of length ``extent``, one for each node."""
        if extent not in windows:
            windows[extent] = self._window(windows, extent, dims, None)
        return windows[extent]

    def _row(
        self,
        first: int,
        second: int,
        shift: int,
        dims: tuple[int, int, int],
        length: int,
        target: int | None,
    ) -> int:
        outer, size, inner = dims
        place = self._end if target is None else target
        if target is None:
            self._end += outer * length * inner
        self._rows.append((first, second, shift, outer, size, inner, length, place))
        self.ends.append(0)
        return place


def _length(extent: int, size: int) -> int:
    """Return the number of different origins of boxes along a dimension."""
    return 1 if extent == size else size


class SafestBox(msgspec.Struct, frozen=True):
    """A box of nodes, and the probability that at least one of them fails."""

    shape: Extents
    origin: Extents
    nodes: NodeSet
    failure_probability: float


class BoxList:
    """The boxes that a job of a given size can get.

    Parameters
    ----------
    torus : Torus
    size : int
        Requested number of nodes. If no box has this size, the next larger size of a box is used.
    which : str
        One of `boxes.LISTS`.
    block : tuple of int, optional
        Extents of a block, the nodes that are allocated together (default: single nodes).
    """

    def __init__(
        self, torus: Torus, size: int, which: str = "all", block: Extents | None = None
    ) -> None:
        self.blocks, self.size = TorusBlocks(torus, block), size
        self.boxes = Boxes(self.blocks.torus, self.blocks.count_for(size), which)
        self.box_nodes = self.boxes.volume * self.blocks.size

    @property
    def waste(self) -> int:
        """Number of nodes of a box that the job leaves empty."""
        return self.box_nodes - self.size

    @property
    def shapes(self) -> list[tuple[Extents, int]]:
        """The extents (in nodes) of the boxes in the list, each with its number of boxes."""
        counts = zip(self.boxes.shapes, self.boxes.per_shape, strict=True)
        return [(self._in_nodes(shape), count) for shape, count in counts if count]

    def best(self, table: NodeTable, duration_s: float, busy: NodeSet) -> SafestBox:
        """Return the free box with the lowest failure probability.

        If several boxes have this probability, return the box with the lowest corner.
        """
        n_nodes = self.blocks.of_nodes.n_nodes
        if len(table) != n_nodes:
            raise InputError(
                f"contains laws for {exactly(len(table), 'node')}",
                expected=f"laws for {n_nodes} nodes",
            )
        if busy.size and int(busy.intervals[-1, 1]) >= n_nodes:
            problem = f"node {busy.intervals[-1, 1]} is not on the torus"
            raise InputError(problem, "busy nodes", f"0 to {n_nodes - 1}")
        hazard = table.laws.hazard(table.uptime_s, duration_s)
        free = np.ones(n_nodes, dtype=np.bool_)
        busy.put(free, False)
        cost = np.where(self.blocks.whole(free), self.blocks.sums(hazard), math.inf)
        index = self.boxes.least(cost)
        if index < 0:
            problem = f"no box of {exactly(self.box_nodes, 'node')} is free"
            raise InputError(problem, "busy nodes", "fewer busy nodes")
        box = self.boxes.box(index)
        nodes = self.blocks.nodes(box)
        node_box = self._box_in_nodes(box)
        probability = float(-np.expm1(-hazard[nodes].sum()))
        return SafestBox(node_box.shape, node_box.origin, NodeSet.of_sorted(nodes), probability)

    def _box_in_nodes(self, box: Box) -> Box:
        return Box(self._in_nodes(box.shape), self._in_nodes(box.origin))

    def _in_nodes(self, extents: Extents) -> Extents:
        return tuple(n * e for n, e in zip(extents, self.blocks.extents, strict=True))


Words = npt.NDArray[np.uint64]


class Steps:
    """Steps along the dimensions of a torus.

    ``inside`` contains, for each step, the set of blocks from which the step does not wrap around
    the torus: shape (steps, words).
    """

    def __init__(self, torus: Torus) -> None:
        self.everything = packed(np.ones((1, torus.n_nodes), dtype=np.bool_))[0]
        self._index: dict[tuple[int, int, int], int] = {}
        sets = [self.everything[None]]
        coordinates = torus.coordinate_table()
        for axis, (size, stride) in enumerate(zip(torus.sizes, torus.strides, strict=True)):
            for step in range(1, size):
                self._index[size, stride, step] = len(sets)
                sets.append(packed(coordinates[None, :, axis] + step < size))
        self.inside: Words = np.concatenate(sets)

    def row(self, size: int, stride: int, step: int) -> tuple[int, int, int]:
        """Return the index of a step in ``inside``, and its distances in block numbers.

        The first distance is for steps without wrap-around, the second for steps with wrap-around.
        """
        if step == 0:
            return 0, 0, 0
        return self._index[size, stride, step], step * stride, (size - step) * stride


class FreeBoxes(msgspec.Struct, frozen=True, eq=False):
    """The program and the tables of a search for a free box.

    Attributes
    ----------
    program : int array, shape (rows, 8)
        Rows (first, second, step, on, back, target, end, shape). The entries (step, on, back) are
        those of `Steps.row`. A row computes the set with the number ``target``. It contains the
        blocks of the set ``first`` from which the step leads into the set ``second``. Set 0
        contains the free blocks. If ``target`` is empty, the search skips the rows before ``end``.
        If ``shape`` is not -1, ``target`` contains the corners of free boxes of this shape.
    shapes : int array
        Extents of each shape.
    allowed : word array
        Set of the allowed corners of each shape.
    ranks : int32 array
        Position of each box in the order of boxes. The array is empty if the search does not use
        this order.
    """

    program: Ints
    shapes: Ints
    allowed: Words
    ranks: npt.NDArray[np.int32]

    @property
    def n_sets(self) -> int:
        """Number of sets that the search computes."""
        return len(self.program) + 1


def free_boxes(boxes: Boxes, steps: Steps, ranked: bool) -> FreeBoxes:
    """Return the tables of the search for a free box.

    If ``ranked`` is set, the tables include the position of each box in the order of boxes.
    """
    n_blocks, n_shapes = boxes.torus.n_nodes, len(boxes.shapes)
    is_corner = np.zeros((n_shapes, n_blocks), dtype=np.bool_)
    for shape, corners in enumerate(boxes.corners):
        is_corner[shape, corners] = True
    ranks = np.zeros((n_shapes, n_blocks if ranked else 0), dtype=np.int32)
    if ranked:
        ranks[:] = is_corner.T.cumsum().reshape(n_blocks, n_shapes).T - 1
    return FreeBoxes(_program(boxes, steps), np.array(boxes.shapes), packed(is_corner), ranks)


def _program(boxes: Boxes, steps: Steps) -> Ints:
    sums, rows = boxes.sums_of, []
    set_at = {sums.values_at: 0}
    for index, row in enumerate(sums.program.tolist()):
        first, second, shift, _, size, stride, _, target = row
        copied = second == COPY
        set_at[target] = set_at[first] if copied else index + 1
        shape = int(np.searchsorted(sums.first, target)) if target < sums.n else -1
        rows.append(
            (
                set_at[first],
                COPY if copied else set_at[second],
                *steps.row(size, stride, shift),
                set_at[target],
                sums.ends[index],
                shape,
            )
        )
    return np.array(rows, dtype=np.int64).reshape(-1, 8)


def packed(masks: npt.NDArray[np.bool_]) -> Words:
    """Return sets of blocks as bits of 64-bit words, from masks of shape (sets, blocks)."""
    padded = np.zeros((len(masks), -(-masks.shape[1] // 64) * 64), dtype=np.bool_)
    padded[:, : masks.shape[1]] = masks
    words: Words = np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)
    return words


Allotment = Callable[[int], int]
"""Function from the number of requested nodes to the number of allocated nodes."""


class TorusBlocks:
    """A torus divided into equal boxes, the blocks. The blocks form the smaller torus ``torus``.

    >>> blocks = TorusBlocks(MIRA, (4, 4, 4, 4, 2))
    >>> str(blocks.torus), blocks.size, blocks.count_for(600)
    ('2x3x4x4x1', 512, 2)
    """

    def __init__(self, of_nodes: Torus, extents: Extents | None = None) -> None:
        extents = extents or (1,) * len(of_nodes.sizes)
        if len(extents) != len(of_nodes.sizes) or any(
            e < 1 or s % e for e, s in zip(extents, of_nodes.sizes, strict=False)
        ):
            raise InputError(
                f"blocks of {'x'.join(map(str, extents))} do not divide {of_nodes}",
                expected=f"{len(of_nodes.sizes)} extents that divide those of the torus",
            )
        self.of_nodes, self.extents = of_nodes, extents
        self.torus = Torus(tuple(s // e for s, e in zip(of_nodes.sizes, extents, strict=True)))
        self.size = math.prod(extents)

    @cached_property
    def of_node(self) -> Ints:
        """The block of every node: shape (nodes,)."""
        coordinates = self.of_nodes.coordinate_table() // np.array(self.extents)
        blocks: Ints = coordinates @ np.array(self.torus.strides)
        return blocks

    @cached_property
    def members(self) -> Ints:
        """The nodes of every block, ascending: shape (blocks, nodes of a block)."""
        return np.argsort(self.of_node, kind="stable").reshape(self.torus.n_nodes, self.size)

    def in_line_for(self, n_nodes: int) -> int:
        """Return the minimum number of blocks that together have at least ``n_nodes`` nodes.

        The blocks need not form a box.
        """
        return -(-n_nodes // self.size)

    def count_for(self, n_nodes: int) -> int:
        """Return the number of blocks of the smallest box with at least ``n_nodes`` nodes."""
        try:
            return volume_for(self.torus.sizes, self.in_line_for(n_nodes))
        except InputError:
            most = self.of_nodes.n_nodes
            raise InputError(
                f"no box of {n_nodes} nodes is possible", expected=f"1 to {most} nodes"
            ) from None

    def whole(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return, for each block, whether the mask contains all its nodes: shape (blocks,)."""
        if self.size == 1:
            return mask
        inside: npt.NDArray[np.bool_] = np.logical_and.reduce(mask[self.members], axis=1)
        return inside

    def sums(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the sum of node values over each block: shape (blocks,)."""
        if self.size == 1:
            return values
        totals: npt.NDArray[np.float64] = values[self.members].sum(axis=1)
        return totals

    def nodes(self, box: Box) -> Ints:
        """Return the nodes of a box of blocks, ascending."""
        return np.sort(self.members[box.nodes(self.torus)].ravel())


MIDPLANES: dict[Torus, Extents] = {MIRA: (4, 4, 4, 4, 2), INTREPID: (8, 8, 8)}
"""Extents of the blocks of these machines. A block has 512 nodes (ALCF)."""
