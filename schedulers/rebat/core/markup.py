# SPDX-License-Identifier: Apache-2.0
"""Tables of texts as LaTeX (for the package booktabs), Markdown and CSV."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from rebat.core.errors import unknown_name
from rebat.core.formatting import csv_line

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


_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{MINUS SIGN}": "$-$",
    "\N{GREATER-THAN OR EQUAL TO}": r"$\geq$",
    "\N{LESS-THAN OR EQUAL TO}": r"$\leq$",
    "\N{RIGHTWARDS ARROW}": r"$\rightarrow$",
    "\N{LEFTWARDS ARROW}": r"$\leftarrow$",
    "\N{NO-BREAK SPACE}": "~",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
_SIGNED = re.compile(r"(?<![\w.)\]])([+-])(?=\d)")


def latex(text: str) -> str:
    r"""Return a text for LaTeX. Special characters are escaped, and signs of numbers are in math.

    >>> latex("my_policy: -3.2 % & more")
    'my\\_policy: $-$3.2 \\% \\& more'
    """
    signs = _SIGNED.split(text)
    return "".join(
        f"${part}$"
        if place % 2
        else "".join(_SPECIAL.get(letter, letter) for letter in _flat(part))
        for place, part in enumerate(signs)
    )


def latex_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    note: str = "",
    groups: Sequence[tuple[str, int]] = (),
) -> str:
    r"""Return a tabular environment with rules of booktabs.

    Parameters
    ----------
    columns : sequence of str
        Headings. The first column is aligned left, the others right.
    note : str
        Text below the table.
    groups : sequence of (str, int)
        Headings above the columns, with their numbers of columns. They include the first column.
    """
    lines = [rf"\begin{{tabular}}{{l{'r' * (len(columns) - 1)}}}", r"\toprule"]
    if groups:
        heads = [
            rf"\multicolumn{{{n}}}{{c}}{{{latex(text)}}}" if text else "" for text, n in groups
        ]
        lines.append(_latex_row(heads))
        first = 1
        for text, n in groups:
            lines += [rf"\cmidrule(lr){{{first}-{first + n - 1}}}"] if text else []
            first += n
    lines += [_latex_row(map(latex, columns)), r"\midrule"]
    lines += [_latex_row(map(latex, row)) for row in rows]
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\smallskip{{\footnotesize {latex(note)}\par}}"] if note else []
    return "\n".join(lines) + "\n"


def _latex_row(cells: Iterable[str]) -> str:
    """Return a row. A bracket at its beginning would be an argument of the previous line break."""
    text = " & ".join(cells)
    return f"{{}}{text} \\\\" if text.lstrip().startswith(("[", "*")) else f"{text} \\\\"


def markdown_lines(columns: Sequence[Any], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table as lines of Markdown (as on GitHub)."""

    def line(cells: Sequence[Any]) -> str:
        return "| " + " | ".join(_flat(str(cell)).replace("|", "/") for cell in cells) + " |"

    return [line(columns), line(["---"] * len(columns)), *(line(row) for row in rows)]


def _flat(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")


def table_text(
    form: TableForm, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = ""
) -> str:
    """Return a table in a format. A CSV table has no note."""
    if form == "latex":
        return latex_table(columns, rows, note)
    if form == "csv":
        return "".join(map(csv_line, (columns, *rows)))
    return "\n".join([*markdown_lines(columns, rows), *(["", note] if note else [])]) + "\n"
