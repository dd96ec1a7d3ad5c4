# SPDX-License-Identifier: Apache-2.0
"""Texts of files and pages: text fields of CSV, and the style of pages.

A spreadsheet evaluates a field that begins with ``=``, ``+``, ``-`` or ``@``, possibly after a tab
or a carriage return. An apostrophe at the beginning (a *guard*) prevents the evaluation. Numbers
are not changed.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import Literal

from rebat.core.errors import unknown_name

TableForm = Literal["latex", "md", "csv"]
"""A format of a table."""

ENDINGS: dict[TableForm, str] = {"latex": "tex", "md": "md", "csv": "csv"}
"""The ending of the name of a file in each format."""


def check_form(form: str, where: str) -> TableForm:
    """Return a format of tables. Raise InputError if it is unknown."""
    for name in ENDINGS:
        if form == name:
            return name
    raise unknown_name("format", form, ENDINGS).at(where)


def printable(text: str) -> str:
    """Return text in which characters that control a terminal are visible, except line feeds.

    >>> printable("red" + chr(27))
    'red\\\\x1b'
    """
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode()
        for char in text
    )


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


PAGE_STYLE = """body { font: 15px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 0 auto;
  padding: 0 1rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
.wide, .figure { overflow-x: auto; background:
  linear-gradient(90deg, Canvas 30%, transparent) local 0 0 / 3rem 100% no-repeat,
  linear-gradient(270deg, Canvas 30%, transparent) local 100% 0 / 3rem 100% no-repeat,
  linear-gradient(90deg, #8888, transparent) 0 0 / 1rem 100% no-repeat,
  linear-gradient(270deg, #8888, transparent) 100% 0 / 1rem 100% no-repeat }"""
"""Style of body and tables. A shadow at the side of a table or figure shows that it can scroll."""
