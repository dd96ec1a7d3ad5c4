# SPDX-License-Identifier: Apache-2.0
"""Columns of accounting records: a row per attempt of a job."""

from __future__ import annotations

from array import array
from collections import Counter

import numpy as np
import numpy.typing as npt

NUMBERS = (
    "submit_s",
    "start_s",
    "end_s",
    "elapsed_s",
    "suspended_s",
    "limit_s",
    "nodes",
    "cpus",
    "memory_mb",
)
TEXTS = ("job", "raw", "state", "user", "account", "partition", "qos", "hosts")

_REPEATED = frozenset(TEXTS) - {"job", "raw"}


class AttemptTable:
    """Attempts of jobs, column by column.

    Attributes
    ----------
    numbers : dict of array
        Times in seconds since the Unix epoch, durations in seconds, counts and MB. Unset values are
        NaN.
    texts : dict of list
        ``raw`` is the unique id of the job in the batch system, ``job`` is the id that users see,
        and ``hosts`` is the list of nodes.
    lines : array
        Line of each row in the file.
    dropped : Counter
        Records that are not attempts, by reason.
    notes : list of str
        Sentences about lines that cannot be read.
    where : str
        Path of the file.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self.numbers = {name: array("d") for name in NUMBERS}
        self.texts: dict[str, list[str]] = {name: [] for name in TEXTS}
        self.lines = array("q")
        self.dropped: Counter[str] = Counter()
        self.notes: list[str] = []
        self._shared: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self.lines)

    def add(self, line: int, numbers: dict[str, float], texts: dict[str, str]) -> None:
        """Append a row. Missing numbers become NaN, and missing texts become empty."""
        for name, column in self.numbers.items():
            column.append(numbers.get(name, np.nan))
        job = texts.get("job", "")
        for name, values in self.texts.items():
            text = texts.get(name, "")
            values.append(self._share(text) if name in _REPEATED else job if text == job else text)
        self.lines.append(line)

    def _share(self, text: str) -> str:
        """Return the same object for equal texts, to save memory."""
        return self._shared.setdefault(text, text)

    def column(self, name: str) -> npt.NDArray[np.float64]:
        """Return a column of numbers."""
        return np.frombuffer(self.numbers[name], dtype=np.float64) if len(self) else np.empty(0)
