# SPDX-License-Identifier: Apache-2.0
"""Tables for readers: on the terminal, and as HTML, Markdown, LaTeX (booktabs) and CSV."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

import msgspec

from rebat.core.formatting import TableForm, csv_line, printable
from rebat.core.numbers import MINUS, plain

if TYPE_CHECKING:
    from pandas import DataFrame

WIDTH = 10_000
"""Maximum width of a table, in characters, if it is not printed on a terminal."""

LONG = 40
"""Cells with more characters are broken into lines in HTML."""


class Table(msgspec.Struct, frozen=True, omit_defaults=True):
    """A table of texts. Numbers are texts of `rebat.core.numbers`.

    Attributes
    ----------
    paper : str
        The corresponding table of the paper, or another remark on the title.
    title : str
    columns : list of str
        The headings.
    rows : list of list of str
    note : str
        The unit, the number of seeds, and the meaning of marks.
    words : int
        Number of columns with words, which are aligned left. The other columns contain numbers and
        are aligned right.
    groups : list of (str, list of str)
        Headings above the columns, with short headings of their columns, for LaTeX. They include
        the first column.
    """

    paper: str
    title: str
    columns: list[str]
    rows: list[list[str]]
    note: str = msgspec.field(default_factory=str)  # files of reports contain it also if empty
    words: int = 1
    groups: list[tuple[str, list[str]]] = []

    def text(self) -> str:
        """Return the table as text. On a terminal, it has colours and fits the terminal's width."""
        from rich import table as rich_table
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.markup import escape as unstyled

        def cell(text: str) -> str:
            return unstyled(printable(text))

        table = rich_table.Table(
            title=cell(self.title),
            caption=cell(self.note),
            box=SIMPLE_HEAD,
            title_justify="left",
            caption_justify="left",
            pad_edge=False,
            collapse_padding=True,
        )
        for place, name in enumerate(self.columns):
            table.add_column(cell(name), justify="left" if place < self.words else "right")
        for row in self.rows:
            table.add_row(*map(cell, row))
        out, text = Console(force_jupyter=False), io.StringIO()
        console = Console(
            file=text,
            force_terminal=out.is_terminal,
            force_jupyter=False,
            width=out.width if out.is_terminal else WIDTH,
            emoji=False,
        )
        console.print(table)
        return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())

    def html(self) -> str:
        """Return the table as HTML, with its title and note. All cells are escaped."""
        return (
            f"<table><caption>{escape(self.title)}</caption>{self._rows_html()}</table>"
            f"<p>{escape(self.note)}</p>"
        )

    def grid(self) -> str:
        """Return the table as HTML without title and note. All cells are escaped."""
        return f"<table>{self._rows_html()}</table>"

    def _rows_html(self) -> str:
        head = "".join(self._cells_html("th", self.columns))
        body = "\n".join(f"<tr>{''.join(self._cells_html('td', row))}</tr>" for row in self.rows)
        return f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody>"

    def _cells_html(self, tag: str, row: Sequence[str]) -> Iterator[str]:
        for place, cell in enumerate(row):
            side = "left" if place < self.words else "right"
            space = "pre" if len(cell) <= LONG else "normal;min-width:14rem"
            style = f"text-align:{side}" + (f";white-space:{space}" if tag == "td" else "")
            yield f'<{tag} style="{style}">{escape(cell)}</{tag}>'

    def markdown(self) -> str:
        """Return the table as Markdown (as on GitHub), and its note."""
        note = ["", self.note.replace("*", r"\*")] if self.note else []
        return "\n".join([*self.markdown_lines(), *note]) + "\n"

    def markdown_lines(self) -> list[str]:
        """Return the lines of the table as Markdown, without title and note."""

        def line(cells: Sequence[str]) -> str:
            return "| " + " | ".join(_flat(cell).replace("|", "/") for cell in cells) + " |"

        return [line(self.columns), line(["---"] * len(self.columns)), *map(line, self.rows)]

    def latex(self) -> str:
        r"""Return a tabular environment with rules of booktabs, and the note below it."""
        n_columns = len(self.columns)
        sides = "l" * min(self.words, n_columns) + "r" * (n_columns - self.words)
        lines = [rf"\begin{{tabular}}{{{sides}}}", r"\toprule"]
        if self.groups:
            heads = [
                rf"\multicolumn{{{len(names)}}}{{c}}{{{latex_text(title)}}}" if title else ""
                for title, names in self.groups
            ]
            lines.append(_latex_row(heads))
            first = 1
            for title, names in self.groups:
                last = first + len(names) - 1
                lines += [rf"\cmidrule(lr){{{first}-{last}}}"] if title else []
                first = last + 1
        columns = [name for _, names in self.groups for name in names] or self.columns
        lines += [_latex_row(map(latex_text, columns)), r"\midrule"]
        lines += [_latex_row(map(latex_text, row)) for row in self.rows]
        lines += [r"\bottomrule", r"\end{tabular}"]
        if self.note:
            lines += [rf"\par\smallskip{{\footnotesize {latex_text(self.note)}\par}}"]
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """Return the table as CSV with ASCII signs, without title and note."""
        lines = (self.columns, *self.rows)
        return "".join(csv_line(map(plain, cells)) for cells in lines)

    def frame(self) -> DataFrame:
        """Return the texts as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.rows, columns=self.columns)

    def written(self, form: TableForm) -> str:
        """Return the table in a format."""
        return {"latex": self.latex, "md": self.markdown, "csv": self.csv}[form]()


def bracketed(rows: Iterable[Sequence[str]]) -> bool:
    """Return whether rows of a table contain an interval, in any column except the first."""
    return any("[" in cell for _, *cells in rows for cell in cells)


_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    MINUS: "$-$",
    "\N{GREATER-THAN OR EQUAL TO}": r"$\geq$",
    "\N{LESS-THAN OR EQUAL TO}": r"$\leq$",
    "\N{RIGHTWARDS ARROW}": r"$\rightarrow$",
    "\N{LEFTWARDS ARROW}": r"$\leftarrow$",
    "\N{NO-BREAK SPACE}": "~",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
_SIGNED = re.compile(r"(?<![\w.)\]])([+-])(?=\d)")


def latex_text(text: str) -> str:
    r"""Return a text for LaTeX. Special characters are escaped, and signs of numbers are in math.

    >>> latex_text("my_policy: -3.2 % & more")
    'my\\_policy: $-$3.2 \\% \\& more'
    """
    signs = _SIGNED.split(text)
    return "".join(
        f"${part}$"
        if place % 2
        else "".join(_SPECIAL.get(letter, letter) for letter in _flat(part))
        for place, part in enumerate(signs)
    )


def _latex_row(cells: Iterable[str]) -> str:
    """Return a row. A bracket at its beginning would be an argument of the previous line break."""
    text = " & ".join(cells)
    return f"{{}}{text} \\\\" if text.lstrip().startswith(("[", "*")) else f"{text} \\\\"


def _flat(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")
