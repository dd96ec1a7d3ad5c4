# SPDX-License-Identifier: Apache-2.0
"""The table "Adding a rule" of CONTRIBUTING.md: its files and tables exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "schedulers" / "rebat"


def rows() -> list[list[str]]:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    table = text.partition("| to add | where | how |")[2].partition("\n\n")[0]
    return [line.strip("|").split("|") for line in table.splitlines()[2:]]


def content(path: Path) -> str:
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return "\n".join(file.read_text() for file in files)


def test_the_files_and_tables_exist() -> None:
    """Each row names the files to change, and the table that gets a new row."""
    assert len(rows()) >= 20
    for thing, where, how in rows():
        names = re.findall(r"`([a-z_/0-9]+(?:/|\.py))`", where + how)
        folders = [ROOT, PACKAGE, *((PACKAGE / name).parent for name in names)]
        found = [
            [folder / name for folder in folders if (folder / name).exists()] for name in names
        ]
        assert all(found), thing
        text = "\n".join(content(paths[0]) for paths in found)
        for table in re.findall(r"`(?:[a-z]+\.)?([A-Z][A-Z_]+)`", how):
            assert re.search(rf"\b{table}\b", text), (thing, table)
