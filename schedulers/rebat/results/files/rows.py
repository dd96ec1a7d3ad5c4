# SPDX-License-Identifier: Apache-2.0
"""Reading the CSV files of a run by column; an error names the file and line."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rebat.core.csv_text import original
from rebat.core.errors import InputError, short
from rebat.core.files import open_text
from rebat.core.units import MAX_SECONDS, US_PER_S
from rebat.results.files.batsim_files import LONGEST_FIELD

Int = npt.NDArray[np.int64]


class Rows:
    """The rows of a CSV file by column, and columns as numbers; says where one is broken."""

    def __init__(self, path: Path, required: Sequence[str]) -> None:
        self.path = path
        header, rows, self._lines = _fields(path)
        missing = [name for name in required if name not in header]
        if missing:
            raise InputError(f"no column {', '.join(missing)}", f"{path}:1", "a file of rebat run")
        columns = zip(*rows, strict=True) if rows else ((),) * len(header)
        self._columns = dict(zip(header, map(list, columns), strict=False))

    def __len__(self) -> int:
        return len(self._lines)

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def texts(self, name: str) -> list[str]:
        """A column as it stands."""
        return self._columns[name]

    def names(self, name: str) -> list[str]:
        """A column of names of one of rebat's own files, without what guards them."""
        return list(map(original, self._columns[name]))

    def place(self, at: int) -> str:
        """File and line of a row."""
        return f"{self.path}:{self._lines[at]}"

    def refuse(self, wrong: npt.NDArray[np.bool_], what: str, expected: str | None = None) -> None:
        """InputError for the first row that is wrong, if one is."""
        if wrong.any():
            raise InputError(what, self.place(int(wrong.argmax())), expected)

    def times(self, name: str, empty: int | None = None) -> Int:
        """Seconds as microseconds; ``empty`` for an empty field, where that is allowed."""
        texts = self.texts(name)
        if empty is None:
            return np.rint(self._numbers(name, texts) * US_PER_S).astype(np.int64)
        there = np.array([text != "" for text in texts], dtype=np.bool_)
        values = self._numbers(name, [text or "0" for text in texts])
        return np.where(there, np.rint(values * US_PER_S), empty).astype(np.int64)

    def counts(self, name: str) -> Int:
        """Whole numbers, 0 or more."""
        values = self._numbers(name, self.texts(name))
        self.refuse(values != np.floor(values), f"{name} is no whole number")
        return values.astype(np.int64)

    def _numbers(self, name: str, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        try:
            values = np.array(texts, dtype=float)
        except ValueError:
            values = np.array([_number(text) for text in texts])
        wrong = ~((values >= 0) & (values <= MAX_SECONDS))
        if wrong.any():
            at = int(wrong.argmax())
            raise InputError(f"{name} is {short(texts[at])}", self.place(at), "a number, 0 or more")
        return values


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _fields(path: Path) -> tuple[list[str], list[list[str]], list[int]]:
    """The header, the rows, and the line at which each ends."""
    csv.field_size_limit(LONGEST_FIELD)
    with open_text(path, newline="") as text:
        reader = csv.reader(text, strict=True)
        try:
            header, rows, lines = next(reader, []), [], []
            for fields in reader:
                if len(fields) != len(header):
                    place, like = f"{path}:{reader.line_num}", f"{len(header)} as in the header"
                    raise InputError(f"{len(fields)} fields", place, like)
                rows.append(fields)
                lines.append(reader.line_num)
        except csv.Error as error:
            raise InputError(f"broken CSV: {error}", f"{path}:{reader.line_num}") from None
    return header, rows, lines
