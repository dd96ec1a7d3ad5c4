"""The boxes of the sizes that jobs ask for, as the kernels want them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rebat.kernels.box_plan import Catalogue
from rebat.policies.placement.boxes import Division

Ints = npt.NDArray[np.int64]

REMEMBERED = 16
"""How many sets of units are remembered for a volume, beside which nothing of it fits."""


class Volumes:
    """The units that requests for nodes come to, and their boxes in one catalogue."""

    def __init__(self, division: Division, linear: bool) -> None:
        self._division, self._linear = division, linear
        self._index: Ints = np.full(division.units.of_nodes.n_nodes + 1, -1, dtype=np.int64)
        self._known: list[int] = []
        self.catalogue = self._made()

    def of(self, sizes: Ints) -> Ints:
        """The place of each size's volume in the catalogue, which has all of them then."""
        found: Ints = self._index[sizes]
        if (found < 0).any():
            known = len(self._known)
            for size in np.unique(sizes[found < 0]).tolist():
                self._index[size] = self._place(size)
            if len(self._known) > known:
                self.catalogue = self._made()
            found = self._index[sizes]
        return found

    def _place(self, size: int) -> int:
        units = self._division.units
        volume = units.in_line_for(size) if self._linear else units.count_for(size)
        if volume not in self._known:
            self._known.append(volume)
        return self._known.index(volume)

    def _made(self) -> Catalogue:
        torus = self._division.units.torus
        lists = [] if self._linear else [self._division.boxes(v) for v in self._known]
        words = -(-torus.n_nodes // 64)
        none = np.zeros((0, len(torus.sizes)), dtype=np.int64)
        return Catalogue(
            volume=np.array(self._known, dtype=np.int64),
            program_of=_offsets([len(boxes.sums_of.program) for boxes in lists]),
            program=np.concatenate([_NO_SUMS, *(boxes.sums_of.program for boxes in lists)]),
            chosen_of=_offsets([len(boxes) for boxes in lists]),
            chosen=np.concatenate([none[:, 0], *(boxes.chosen for boxes in lists)]),
            shapes_of=_offsets([len(boxes.shapes) for boxes in lists]),
            shapes=np.concatenate([none, *(np.array(boxes.shapes) for boxes in lists)]),
            begins=np.concatenate([none[:, 0], *(boxes.sums_of.first[:-1] for boxes in lists)]),
            values_at=np.array([boxes.sums_of.values_at for boxes in lists], dtype=np.int64),
            sizes=np.array(torus.sizes),
            coordinates=torus.coordinate_table(),
            work=np.zeros(max([1, *(b.sums_of.work_size for b in lists)]), dtype=np.int32),
            busy=np.zeros(torus.n_nodes, dtype=np.uint8),
            taken=np.zeros(torus.n_nodes, dtype=np.uint8),
            words=np.zeros(words, dtype=np.uint64),
            full=np.full((len(self._known), REMEMBERED, words), ~np.uint64(0)),
            next_full=np.zeros(len(self._known), dtype=np.int64),
        )


_NO_SUMS: Ints = np.zeros((0, 8), dtype=np.int64)


def _offsets(counts: list[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
