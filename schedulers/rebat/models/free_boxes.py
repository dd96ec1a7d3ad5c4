# SPDX-License-Identifier: Apache-2.0
"""Tables for the search for free boxes (`kernels.box_free`), with sets of nodes as bits."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.kernels.box_sums import COPY
from rebat.models.boxes import Boxes, Ints
from rebat.models.topology import Torus

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
