# SPDX-License-Identifier: Apache-2.0
"""The lists of node names in a column. Each distinct list is expanded once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rebat.records.hosts import expanded

Ints = npt.NDArray[np.int64]


class HostLists:
    """The node names of each row of a column.

    Parameters
    ----------
    hosts : array of str
        A list of node names per row. Empty texts are rows without nodes.

    Attributes
    ----------
    names : list of str
        All names, in order of first use. A node is a position in this list.
    codes : array
        The distinct list of each row.
    sizes : array
        Number of names of each distinct list.
    nodes : array
        The nodes of all distinct lists, one list after the other.
    """

    def __init__(self, hosts: npt.NDArray[Any]) -> None:
        distinct: dict[str, int] = {}
        number = distinct.setdefault
        self.codes = np.fromiter(
            (number(text, len(distinct)) for text in hosts.tolist()), np.int64, len(hosts)
        )
        numbers: dict[str, int] = {}
        number_of = numbers.setdefault
        flat: list[int] = []
        sizes = []
        for text in distinct:
            names = expanded(text)
            flat.extend([number_of(name, len(numbers)) for name in names])
            sizes.append(len(names))
        self.names = list(numbers)
        self.sizes = np.array(sizes, dtype=np.int64)
        self.nodes = np.array(flat, dtype=np.int64)

    @property
    def owners(self) -> Ints:
        """The distinct list of each element of ``nodes``."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def names_in(self, rows: npt.NDArray[Any]) -> list[str]:
        """Return the distinct names in some rows."""
        used = np.zeros(len(self.sizes), dtype=np.bool_)
        used[self.codes[rows]] = True
        return [self.names[node] for node in np.unique(self.nodes[used[self.owners]]).tolist()]
