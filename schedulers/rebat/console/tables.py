# SPDX-License-Identifier: Apache-2.0
"""Tables as text, for terminals and files, and as HTML, for notebooks and pages."""

from __future__ import annotations

import io
from html import escape

import msgspec

WIDTH = 10_000
"""Maximum width of a table, in characters, if it is not printed on a terminal."""


class Sheet(msgspec.Struct, frozen=True):
    """A table of texts. The first ``words`` columns contain words, and the others numbers."""

    title: str
    caption: str
    columns: list[str]
    rows: list[list[str]]
    words: int = 1

    def text(self) -> str:
        """Return the table as text. On a terminal, it has colours and fits the terminal's width."""
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.markup import escape as plain
        from rich.table import Table

        table = Table(
            title=plain(self.title),
            caption=plain(self.caption),
            box=SIMPLE_HEAD,
            title_justify="left",
            caption_justify="left",
            pad_edge=False,
            collapse_padding=True,
        )
        for place, name in enumerate(self.columns):
            table.add_column(plain(name), justify="left" if place < self.words else "right")
        for row in self.rows:
            table.add_row(*map(plain, row))
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
        """Return the table as HTML, with all cells escaped."""
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(f"<tr>{''.join(self._cells(row))}</tr>" for row in self.rows)
        return (
            f"<table><caption>{escape(self.title)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table><p>{escape(self.caption)}</p>"
        )

    def _cells(self, row: list[str]) -> list[str]:
        sides = ["left" if place < self.words else "right" for place in range(len(row))]
        return [
            f'<td style="text-align:{side};white-space:pre">{escape(cell)}</td>'
            for side, cell in zip(sides, row, strict=True)
        ]
