# SPDX-License-Identifier: Apache-2.0
"""Boxes of the requested sizes, as arrays for the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rebat.kernels.box_free import LINEAR, RANDOM, Catalogue
from rebat.models.free_boxes import Steps, free_boxes
from rebat.policies.placement.boxes import Division

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]

REMEMBERED = 16
"""Number of cached sets of busy blocks per volume.

A cached set leaves no box of the volume free.
"""


class VolumeTable:
    """An array that grows when rows are added. Only the first ``n`` rows are valid.

    Parameters
    ----------
    shape : sequence of int
        Shape of a row.
    dtype : numpy type
    """

    def __init__(self, *shape: int, dtype: npt.DTypeLike = np.int64) -> None:
        self.n = 0
        self.array: Array = np.zeros((4, *shape), dtype)

    def add(self, rows: npt.ArrayLike) -> None:
        """Append rows."""
        added = np.asarray(rows)
        n = self.n + len(added)
        if n > len(self.array):
            more = np.zeros((2 * n, *self.array.shape[1:]), self.array.dtype)
            more[: self.n] = self.array[: self.n]
            self.array = more
        self.array[self.n : n] = added
        self.n = n


class Volumes:
    """The box volume (in blocks) for each requested number of nodes, and a catalogue of boxes.

    Parameters
    ----------
    division : Division
    rule : int
        A rule of `kernels.box_free`.
    """

    def __init__(self, division: Division, rule: int) -> None:
        self._division, self._rule = division, rule
        self._index: Ints = np.full(division.blocks.of_nodes.n_nodes + 1, -1, dtype=np.int64)
        self._indices: dict[int, int] = {}
        torus = division.blocks.torus
        self._steps, words, axes = Steps(torus), -(-torus.n_nodes // 64), len(torus.sizes)
        self._tables: dict[str, VolumeTable] = {
            "volume": VolumeTable(),
            "program_of": VolumeTable(),
            "program": VolumeTable(8),
            "shapes_of": VolumeTable(),
            "shapes": VolumeTable(axes),
            "allowed": VolumeTable(words, dtype=np.uint64),
            "ranks": VolumeTable(torus.n_nodes if rule == RANDOM else 0, dtype=np.int32),
            "full": VolumeTable(REMEMBERED, words, dtype=np.uint64),
            "next_full": VolumeTable(),
        }
        for name in ("program_of", "shapes_of"):
            self._tables[name].add([0])
        self._scratch: dict[str, Array] = {
            "sets": np.zeros((1, 3 * words + 1), dtype=np.uint64),
            "busy": np.zeros(torus.n_nodes, dtype=np.uint8),
            "taken": np.zeros(torus.n_nodes, dtype=np.uint8),
            "words": np.zeros(words, dtype=np.uint64),
        }
        self.catalogue = self._made()

    def of(self, sizes: Ints) -> Ints:
        """Return, for each size, the index of its volume in the catalogue.

        Missing volumes are added.
        """
        indices: Ints = self._index[sizes]
        if (indices < 0).any():
            before = len(self._indices)
            for size in np.unique(sizes[indices < 0]).tolist():
                self._index[size] = self._place(size)
            if len(self._indices) > before:
                self.catalogue = self._made()
            indices = self._index[sizes]
        return indices

    def _place(self, size: int) -> int:
        blocks = self._division.blocks
        linear = self._rule == LINEAR
        volume = blocks.in_line_for(size) if linear else blocks.count_for(size)
        if volume not in self._indices:
            self._indices[volume] = len(self._indices)
            self._add(volume)
        return self._indices[volume]

    def _add(self, volume: int) -> None:
        """Add a volume, and its boxes, to the tables."""
        tables, words = self._tables, len(self._steps.everything)
        tables["volume"].add([volume])
        tables["full"].add(np.full((1, REMEMBERED, words), ~np.uint64(0)))
        tables["next_full"].add([0])
        if self._rule == LINEAR:
            return
        search = free_boxes(self._division.boxes(volume), self._steps, self._rule == RANDOM)
        for name in ("program", "shapes", "allowed", "ranks"):
            tables[name].add(getattr(search, name))
        for name in ("program", "shapes"):
            tables[f"{name}_of"].add([tables[name].n])
        if search.n_sets > len(self._scratch["sets"]):
            self._scratch["sets"] = np.zeros((search.n_sets, 3 * words + 1), dtype=np.uint64)

    def _made(self) -> Catalogue:
        return Catalogue(
            **{name: table.array for name, table in self._tables.items()},
            **self._scratch,
            inside=self._steps.inside,
            everything=self._steps.everything,
            sizes=np.array(self._division.blocks.torus.sizes),
        )
