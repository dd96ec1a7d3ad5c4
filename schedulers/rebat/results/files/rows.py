# SPDX-License-Identifier: Apache-2.0
"""Reader of the tables of a run, by column."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError, short
from rebat.core.formatting import original
from rebat.core.units import MAX_SECONDS, US_PER_S
from rebat.results.files.tables import is_parquet, row_reader

Int = npt.NDArray[np.int64]


class Rows:
    """The rows of a CSV or Parquet file, read by column. Errors name file and line."""

    def __init__(self, path: Path, required: Sequence[str]) -> None:
        self.path = path
        header, rows, self._lines = _fields(path)
        missing = [name for name in required if name not in header]
        if missing:
            raise InputError(
                f"has no column {', '.join(missing)}", f"{path}:1", "a file of rebat run"
            )
        columns = zip(*rows, strict=True) if rows else ((),) * len(header)
        self._columns = dict(zip(header, map(list, columns), strict=False))

    def __len__(self) -> int:
        return len(self._lines)

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def texts(self, name: str) -> list[str]:
        """Return the unchanged texts of a column."""
        return self._columns[name]

    def names(self, name: str) -> list[str]:
        """Return a column of names, without the prefix that protects texts in spreadsheets."""
        texts = self._columns[name]
        return texts if is_parquet(self.path) else list(map(original, texts))

    def place(self, at: int) -> str:
        """Return file and line of a row."""
        return f"{self.path}:{self._lines[at]}"

    def refuse(
        self, wrong: npt.NDArray[np.bool_], problem: str, expected: str | None = None
    ) -> None:
        """If ``wrong`` is True for a row, raise InputError for the first of these rows."""
        if wrong.any():
            raise InputError(problem, self.place(int(wrong.argmax())), expected)

    def times(self, name: str, empty: int | None = None) -> Int:
        """Read a column of times in seconds, and return it in microseconds.

        ``empty`` is the value of empty fields. If it is None, an empty field is an error.
        """
        texts = self.texts(name)
        if empty is None:
            return np.rint(self._numbers(name, texts) * US_PER_S).astype(np.int64)
        there = np.array([text != "" for text in texts], dtype=np.bool_)
        values = self._numbers(name, [text or "0" for text in texts])
        return np.where(there, np.rint(values * US_PER_S), empty).astype(np.int64)

    def counts(self, name: str) -> Int:
        """Return a column of whole numbers of at least 0."""
        values = self._numbers(name, self.texts(name))
        self.refuse(values != np.floor(values), f"{name} is not a whole number")
        return values.astype(np.int64)

    def _numbers(self, name: str, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        try:
            values = np.array(texts, dtype=float)
        except ValueError:
            values = np.array([_number(text) for text in texts])
        wrong = ~((values >= 0) & (values <= MAX_SECONDS))
        if wrong.any():
            at = int(wrong.argmax())
            problem = f"{name} is {short(texts[at])}"
            raise InputError(problem, self.place(at), "a number of at least 0")
        return values


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _fields(path: Path) -> tuple[list[str], list[list[str]], list[int]]:
    """Return the header, the rows, and the line number at which each row ends."""
    with row_reader(path) as reader:
        try:
            header, rows, lines = next(reader, []), [], []
            for fields in reader:
                if len(fields) != len(header):
                    expected = f"{len(header)} fields, as in the header"
                    place = f"{path}:{reader.line_num}"
                    raise InputError(f"has {len(fields)} fields", place, expected)
                rows.append(fields)
                lines.append(reader.line_num)
        except csv.Error as error:
            raise InputError(f"invalid CSV: {error}", f"{path}:{reader.line_num}") from None
    return header, rows, lines
