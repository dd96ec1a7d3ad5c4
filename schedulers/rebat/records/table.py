# SPDX-License-Identifier: Apache-2.0
"""The rows of a record as columns."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from rebat.records.clock import Clock, Floats
from rebat.records.host_lists import HostLists
from rebat.records.problems import Problems

Objects = npt.NDArray[np.object_]
Bools = npt.NDArray[np.bool_]


@dataclass
class Rows:
    """Rows of a record: jobs, or attempts of jobs.

    Attributes
    ----------
    where : str
        Path of the file.
    lines : int64 array
        Line of each row in the file.
    numbers : dict of float64 array
        Times in seconds since the Unix epoch or since the start of the record, durations in
        seconds, counts, and MB. Unknown values are NaN.
    texts : dict of array of str
        ``raw`` is the unique id of a job in the batch system, ``id`` is the id that users see, and
        ``hosts`` is a list of node names.
    clock : Clock
        The clock of the file.
    problems : Problems
        Invalid rows.
    dropped : Counter
        Rows that are not attempts, by reason.
    notes : list of str
    """

    where: str
    lines: npt.NDArray[np.int64]
    numbers: dict[str, Floats]
    texts: dict[str, Objects]
    clock: Clock
    problems: Problems
    dropped: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    """Facts about the machine that the format states, such as ``n_nodes``."""

    def __len__(self) -> int:
        return len(self.lines)

    def column(self, name: str) -> Floats:
        """Return a column of numbers. If the record does not have it, all values are NaN."""
        column = self.numbers.get(name)
        return np.full(len(self), np.nan) if column is None else column

    def text(self, name: str) -> Objects:
        """Return a column of texts. If the record does not have it, all texts are empty."""
        column = self.texts.get(name)
        return np.full(len(self), "", dtype=object) if column is None else column

    @cached_property
    def host_lists(self) -> HostLists:
        """The nodes of each row."""
        return HostLists(self.text("hosts"))

    def taken(self, mask: npt.NDArray[np.bool_]) -> Rows:
        """Return the rows that a mask selects."""
        return Rows(
            self.where,
            self.lines[mask],
            {name: column[mask] for name, column in self.numbers.items()},
            {name: column[mask] for name, column in self.texts.items()},
            self.clock,
            self.problems,
            self.dropped,
            self.notes,
            self.facts,
        )
