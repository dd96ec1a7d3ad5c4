# SPDX-License-Identifier: Apache-2.0
"""Rectangular boxes of a torus: the sets of nodes on which jobs are placed.

A box has an extent along each dimension, and an origin. The origin is its lowest corner. From there
the box extends upwards and may wrap around. If an extent covers an entire dimension, boxes with
different origins along this dimension have the same nodes. In this dimension only origin 0 is used,
so no two boxes have the same nodes.

Source: Vardas et al. 2022, section 2.2 (contiguous and rectangular partitions of a torus).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, lru_cache

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError, unknown_name
from rebat.kernels.box_sums import COPY, least_box, run_sums
from rebat.models.topology import Torus

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
