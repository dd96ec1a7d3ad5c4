# SPDX-License-Identifier: Apache-2.0
"""Texts as fields of CSV files, also names from elsewhere that a spreadsheet would compute.

A spreadsheet takes a field that begins with ``=``, ``+``, ``-`` or ``@``, or with a tab or a
carriage return before them, for a formula. An apostrophe in front makes it a text. Numbers stay
numbers.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable

_SPECIAL = re.compile(r'[",\r\n]')
_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def csv_field(text: str) -> str:
    """A text as a field of a CSV file, in quotes only where it has to be."""
    if not _SPECIAL.search(text):
        return text
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow((text, ""))
    return line.getvalue().removesuffix(",\r\n")


def guarded(text: str) -> str:
    """A text that no spreadsheet takes for a formula.

    >>> guarded("=1+1"), guarded("alice"), guarded("-1.5"), guarded("-a")
    ("'=1+1", 'alice', '-1.5', "'-a")
    """
    return f"'{text}" if _FORMULA.match(text) and not _is_number(text) else text


def original(text: str) -> str:
    """The text that was guarded.

    >>> original("'=1+1"), original("alice"), original("''-a")
    ('=1+1', 'alice', "'-a")
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def name_field(text: str) -> str:
    """A name from elsewhere as a field of a CSV file."""
    return csv_field(guarded(text))


def csv_line(values: Iterable[object]) -> str:
    """A line of a CSV file; texts are names from elsewhere, None is empty."""
    cells = (name_field(v) if isinstance(v, str) else "" if v is None else str(v) for v in values)
    return ",".join(cells) + "\n"


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", text) is not None
