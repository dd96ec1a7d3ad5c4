# SPDX-License-Identifier: Apache-2.0
"""The pages of the documentation, and their parts that can be run.

- ``sh`` blocks of a page are run in order in one folder, and each must succeed.
- ``console`` blocks are also run. A line with ``$`` is followed by its output; ``...`` replaces
  lines or the end of a line.
- A ``python`` or ``json`` block with a title is a file.
- A block after ``<!-- needs: X -->`` needs X, so the tests do not run it.
- ``<!-- files: A B -->`` lists inputs that a reader has, see `inputs`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_BLOCK = re.compile(
    r"(?:<!-- needs: (?P<needs>[^>]*?) -->\n)?"
    r'^```(?P<kind>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$',
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """A fenced block: its language, its file's name, what it needs, its text and line."""

    kind: str
    title: str
    needs: str
    text: str
    line: int


def pages() -> list[Path]:
    """Return the README and every page of the site that is not generated."""
    written = [p for p in sorted(DOCS.rglob("*.md")) if p.name != "report.md"]
    return [ROOT / "README.md", *written]


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = page.read_text()
    return [
        Block(
            found["kind"], found["title"] or "", found["needs"] or "", found["text"],
            text.count("\n", 0, found.start("text")),
        )
        for found in _BLOCK.finditer(text)
    ]  # fmt: skip


def files(page: Path) -> list[str]:
    """Return the names of the inputs that a page assumes."""
    return " ".join(re.findall(r"<!-- files: (.*?) -->", page.read_text())).split()


def console(text: str) -> list[tuple[str, str]]:
    """Return the commands of a console block, each with its output."""
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    return [(command, shown) for command, _, shown in (part.partition("\n") for part in parts)]


def pattern(shown: str) -> re.Pattern[str]:
    """Return a pattern for the output that a console block shows."""
    lines = []
    for line in shown.splitlines():
        if line.strip() == "...":
            lines.append(r"(?:.*\n)*?")
        elif line.endswith("..."):
            lines.append(re.escape(line.removesuffix("...")) + r".*\n")
        else:
            lines.append(re.escape(line.rstrip()) + r"[ ]*\n")
    return re.compile("".join(lines))
