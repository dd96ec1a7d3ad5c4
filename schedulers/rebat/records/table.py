# SPDX-License-Identifier: Apache-2.0
"""The rows of a record as columns, and its invalid rows: dropped and counted in every format."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.core.numbers import exactly, node_hours
from rebat.records.clock import Clock, Floats
from rebat.records.hosts import HostLists

Objects = npt.NDArray[np.object_]


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


MOST_INVALID = 0.1
"""Largest share of invalid rows. A single invalid row never refuses a file with valid rows."""


class Problems:
    """Counts of invalid rows by kind, each with its first line.

    Parameters
    ----------
    where : str
        Path of the file.
    strict : bool
        Whether the first invalid row is an error.
    """

    def __init__(self, where: str, strict: bool = False) -> None:
        self.where, self.strict = where, strict
        self.counts: Counter[str] = Counter()
        self._first: dict[str, tuple[int, str, str | None]] = {}
        self._node_s: dict[str, float] = {}

    def add(
        self,
        line: int,
        problem: str,
        expected: str | None = None,
        kind: str = "",
        node_s: float = 0.0,
    ) -> None:
        """Count a row. Rows of the same ``kind`` are counted together, with their node time."""
        if self.strict:
            raise InputError(problem, f"{self.where}:{line}", expected)
        kind = kind or problem
        self.counts[kind] += 1
        self._node_s[kind] = self._node_s.get(kind, 0.0) + node_s
        if kind not in self._first or line < self._first[kind][0]:
            self._first[kind] = line, problem, expected

    def check(self, n_valid: int) -> None:
        """Check the number of invalid rows after a file was read."""
        bad = self.counts.total()
        limit = max(1.0, MOST_INVALID * (n_valid + bad)) if n_valid else 0
        if bad <= limit:
            return
        kind, (line, problem, expected) = self._by_line()[0]
        if bad > 1:
            others = bad - self.counts[kind]
            more = f"; {others} of them for other reasons" if others else ""
            problem += f" ({bad} of {n_valid + bad} rows are invalid, more than a tenth{more})"
        raise InputError(problem, f"{self.where}:{line}", expected)

    def reasons(self) -> Counter[str]:
        """Return the number of rows by problem. Each problem names its first line."""
        return Counter(
            {
                f"{problem} (first: line {line})": self.counts[kind]
                for kind, (line, problem, _) in self._by_line()
            }
        )

    def notes(self) -> list[str]:
        """Return a sentence for each kind of problem."""
        return [
            f"{exactly(self.counts[kind], 'line')} dropped (first: line {line}): {problem}"
            + (f", expected {expected}" if expected else "")
            + (f" ({node_hours(self._node_s[kind])})" if self._node_s[kind] else "")
            for kind, (line, problem, expected) in self._by_line()
        ]

    def _by_line(self) -> list[tuple[str, tuple[int, str, str | None]]]:
        """Return each kind of problem with its first row, in order of the lines."""
        return sorted(self._first.items(), key=lambda row: row[1][0])
