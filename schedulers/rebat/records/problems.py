# SPDX-License-Identifier: Apache-2.0
"""Invalid rows of a file: dropped and counted in every format alike."""

from __future__ import annotations

from collections import Counter

from rebat.core.counted import counted
from rebat.core.errors import InputError

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

    def add(self, line: int, problem: str, expected: str | None = None, kind: str = "") -> None:
        """Count a row. Rows of the same ``kind`` are counted together.

        Raises
        ------
        InputError
            In strict mode.
        """
        if self.strict:
            raise InputError(problem, f"{self.where}:{line}", expected)
        kind = kind or problem
        self.counts[kind] += 1
        if kind not in self._first or line < self._first[kind][0]:
            self._first[kind] = line, problem, expected

    def check(self, n_valid: int) -> None:
        """Check the number of invalid rows after a file was read.

        Raises
        ------
        InputError
            If more than a tenth of the rows is invalid. The error names the first invalid row.
        """
        bad = self.counts.total()
        limit = max(1.0, MOST_INVALID * (n_valid + bad)) if n_valid else 0
        if bad <= limit:
            return
        line, problem, expected = min(self._first.values(), key=lambda first: first[0])
        if bad > 1:
            problem += f" ({bad} of {n_valid + bad} rows are invalid, more than a tenth)"
        raise InputError(problem, f"{self.where}:{line}", expected)

    def reasons(self) -> Counter[str]:
        """Return the number of rows by problem. Each problem names its first line."""
        return Counter(
            {f"{problem} (first: line {line})": n for n, line, problem, _ in self._by_line()}
        )

    def notes(self) -> list[str]:
        """Return a sentence for each kind of problem."""
        return [
            f"{counted(n, 'line')} dropped (first: line {line}): {problem}"
            + (f", expected {expected}" if expected else "")
            for n, line, problem, expected in self._by_line()
        ]

    def _by_line(self) -> list[tuple[int, int, str, str | None]]:
        """Return the number of rows of each kind, and the first of them, in order of the lines."""
        counts = [(self.counts[kind], *first) for kind, first in self._first.items()]
        return sorted(counts, key=lambda row: row[1])
