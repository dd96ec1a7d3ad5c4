# SPDX-License-Identifier: Apache-2.0
"""Another paper is one folder: the files of the documentation's example are enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebat.cli.main import main
from tests.support.pages import ROOT, blocks


@pytest.mark.slow
def test_another_paper_is_one_folder(tmp_path: Path, capsys) -> None:
    """A campaign file and a Python file give a report with two figures and three claims."""
    paper, results = tmp_path / "paper", tmp_path / "results"
    paper.mkdir()
    for block in blocks(ROOT / "docs/how-to/paper.md"):
        if block.title:
            (paper / block.title).write_text(block.text)
    assert sorted(path.name for path in paper.iterdir()) == ["backfilling.toml", "report.py"]
    file = str(paper / "backfilling.toml")
    main(["campaign", "run", file, "--results", str(results)])
    main(["campaign", "report", file, "--results", str(results)])
    page = (results / "report/report.html").read_text()
    text = (results / "report/report.md").read_text()
    assert page.count("<svg") == 2
    rows = [line for line in text.splitlines() if line.startswith("| days")]
    assert len({line.split(" | ")[1] for line in rows}) == 3
    assert len(rows) == 9
    assert "EASY shortens the mean flow | 0.69 [0.54, 0.84] | holds | inside" in text
    capsys.readouterr()
