# SPDX-License-Identifier: Apache-2.0
"""No page, help text, message, docstring or name uses a word that rebat avoids."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pages import DOCS, ROOT
from tests.support.plain_words import files, findings

PACKAGE = ROOT / "schedulers/rebat"
PLACES = [
    DOCS,
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "scripts")),
    *(ROOT / name for name in ("campaigns", "workloads", "platforms", "failure_events")),
    *sorted(path for path in PACKAGE.iterdir() if path.name not in ("__pycache__", "py.typed")),
]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_only_plain_words(place: Path) -> None:
    lines = [str(finding) for path in files([place]) for finding in findings(path)]
    assert not lines, "\n".join(lines)


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("page.md", "The table is made anew.\n", "anew"),
        ("page.md", "`anew` is code, and so is\n\n```sh\nanew\n```\n", None),
        ("module.py", '"""Tells nobody."""\n', "Tells"),
        ("module.py", "found = 1\n", "found"),
        ("module.py", "box = 1  # so many\n", "so many"),
        ("module.py", "raise ValueError('comes twice')\n", "comes twice"),
        ("module.py", "as_many = 'whatever'\n", None),
    ],
)
def test_the_reader_finds_words(tmp_path: Path, name: str, text: str, word: str | None) -> None:
    (tmp_path / name).write_text(text)
    first = next(findings(tmp_path / name), None)
    assert (first.word if first else None) == word
