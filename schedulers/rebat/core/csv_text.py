# SPDX-License-Identifier: Apache-2.0
"""Text fields of CSV files, protected from evaluation by spreadsheets.

A spreadsheet evaluates a field that begins with ``=``, ``+``, ``-`` or ``@``, possibly after a tab
or a carriage return. An apostrophe at the beginning (a *guard*) prevents the evaluation. Numbers
are not changed.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable

_SPECIAL = re.compile(r'[",\r\n]')
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_PLAIN = re.compile(r"""[^'=+\-@\t\r\n",][^\r\n",]*""")


def csv_field(text: str) -> str:
    """Return text as a field of a CSV file, in quotes only if necessary."""
    if not _SPECIAL.search(text):
        return text
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow((text, ""))
    return line.getvalue().removesuffix(",\r\n")


def guarded(text: str) -> str:
    """Return text that no spreadsheet evaluates: if necessary, with an apostrophe at the beginning.

    >>> guarded("=1+1"), guarded("alice"), guarded("-1.5"), guarded("-a")
    ("'=1+1", 'alice', '-1.5', "'-a")
    """
    return f"'{text}" if _FORMULA.match(text) and not _is_number(text) else text


def original(text: str) -> str:
    """Return the original text. This is the inverse of `guarded`.

    >>> original("'=1+1"), original("alice"), original("''-a")
    ('=1+1', 'alice', "'-a")
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def name_field(text: str) -> str:
    """Return a name from an external source as a field of a CSV file."""
    if text.isalnum() or _PLAIN.fullmatch(text):
        return text
    return csv_field(guarded(text))


def csv_line(values: Iterable[object]) -> str:
    """Return a line of a CSV file. Texts are guarded, and None becomes an empty field."""
    cells = (name_field(v) if isinstance(v, str) else "" if v is None else str(v) for v in values)
    return ",".join(cells) + "\n"


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", text) is not None
