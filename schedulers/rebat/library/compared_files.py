# SPDX-License-Identifier: Apache-2.0
"""Comparison of the files of two results: byte by byte, then cell by cell.

Other versions of Python and numpy add numbers in another order. The last digits of a sum can then
differ, although the schedules are equal.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Final, Literal

import msgspec

from rebat.core.files import file_hash
from rebat.core.folders import listed
from rebat.library.provenance import PROVENANCE

BOUND = 1e-9
"""Largest relative difference between two numbers that are equal up to rounding."""

EQUAL: Final = "equal"
ROUNDED: Final = "equal up to rounding"
DIFFERS: Final = "differs"

_LONGEST = 120
"""Maximum number of characters of a line that are shown."""


class ComparedFile(msgspec.Struct, frozen=True):
    """A file of the result.

    Attributes
    ----------
    file : str
        Path of the file in the folder.
    verdict : str
        ``equal``, ``equal up to rounding``, ``differs``, ``missing`` (not in the new result), or
        ``new`` (not in the earlier one).
    line : int, optional
        The number of the first line that differs by more than rounding. If the file is equal up to
        rounding, the line with the largest difference. None for a binary file.
    before : str
        This line in the earlier result, or an empty text if the line does not exist. If the file is
        equal up to rounding, the number.
    now : str
        The same for the new result.
    field : str
        If the file is equal up to rounding, the column or the keys of the number.
    difference : float
        If the file is equal up to rounding, the relative difference.
    """

    file: str
    verdict: Literal["equal", "equal up to rounding", "differs", "missing", "new"]
    line: int | None = None
    before: str = ""
    now: str = ""
    field: str = ""
    difference: float = 0.0


def compared(earlier: Path, new: Path) -> Iterator[ComparedFile]:
    """Yield a row per file of two results, except the provenance."""
    in_earlier, in_new = listed(earlier).keys(), listed(new).keys()
    for name in sorted((in_earlier | in_new) - {PROVENANCE}):
        if name not in in_new:
            yield ComparedFile(name, "missing")
        elif name not in in_earlier:
            yield ComparedFile(name, "new")
        else:
            yield _compared(name, earlier / name, new / name)


def _compared(name: str, before: Path, now: Path) -> ComparedFile:
    if file_hash(before) == file_hash(now):  # do not read large files into memory
        return ComparedFile(name, EQUAL)
    try:
        texts = _lines(before), _lines(now)
    except ValueError:  # not a text, or not a table
        return ComparedFile(name, DIFFERS)
    kind, largest = before.suffix, ComparedFile(name, EQUAL)
    for line, (old, new) in enumerate(zip_longest(*texts, fillvalue=""), 1):
        if old == new:
            continue
        pairs = zip_longest(_cells(old, kind), _cells(new, kind), fillvalue="")
        unequal = {cell: pair for cell, pair in enumerate(pairs) if pair[0] != pair[1]}
        apart = {cell: relative_difference(*pair) for cell, pair in unequal.items()}
        cell = max(apart, key=lambda at: apart[at], default=-1)
        if apart.get(cell, math.inf) > BOUND:
            return ComparedFile(name, DIFFERS, line, old[:_LONGEST], new[:_LONGEST])
        if largest.line is None or apart[cell] > largest.difference:
            field = _field(texts[0], line, cell, kind)
            largest = ComparedFile(name, ROUNDED, line, *unequal[cell], field, apart[cell])
    return largest


def _lines(path: Path) -> list[str]:
    """Return the lines of a text file, or of the table in a Parquet file."""
    if path.suffix == ".parquet":
        import pandas as pd

        return str(pd.read_parquet(path).to_csv(index=False)).split("\n")
    return path.read_bytes().decode().split("\n")


_JSON_LINE = re.compile(r'\s*(?:"(?P<key>.*?)": )?(?P<value>.*?),?')
"""Pattern of a line of JSON with one key or value per line, as rebat writes it."""


def _cells(line: str, kind: str) -> list[str]:
    """Return the values of a line, or no values if the file is not a table."""
    if kind in (".csv", ".parquet"):
        return next(csv.reader([line]), [])
    if kind == ".json" and (parts := _JSON_LINE.fullmatch(line)):
        return [parts["key"] or "", parts["value"]]
    return []


def _field(lines: Sequence[str], number: int, cell: int, kind: str) -> str:
    """Return the column of a cell, or the keys of a value of JSON, joined by dots."""
    if kind != ".json":
        return _cells(lines[0], kind)[cell]
    keys: list[str] = []
    depth = math.inf
    for line in reversed(lines[:number]):
        indent = len(line) - len(line.lstrip())
        if indent < depth:
            depth = indent
            keys += filter(None, _cells(line, kind)[:1])
    return ".".join(reversed(keys))


def relative_difference(before: str, now: str) -> float:
    """Return the relative difference of two numbers, or infinity if a text is no finite number.

    Two different integers are counts or names of jobs, which rounding does not change.

    >>> relative_difference("5749.2543198799995", "5749.25431988") < 1e-15
    True
    >>> relative_difference("10000000001", "10000000002")
    inf
    """
    try:
        first, second = float(before), float(now)
    except ValueError:
        return math.inf
    integers = all(text.lstrip("-").isdigit() for text in (before, now))
    if integers or not (math.isfinite(first) and math.isfinite(second)):
        return math.inf
    return abs(first - second) / (max(abs(first), abs(second)) or 1.0)
