# SPDX-License-Identifier: Apache-2.0
"""The notebooks of the documentation and of the README run from the first to the last cell."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    shown = [kinds(cell) for cell in notebook.cells]
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert [kinds(cell) for cell in notebook.cells] == shown


def kinds(cell: nbformat.NotebookNode) -> set[str]:
    """Return the kinds of output of a cell (tables, pictures, text), except for streams."""
    return {
        kind
        for output in cell.get("outputs", [])
        if output.output_type != "stream"
        for kind in output.get("data", {})
    }


def test_all_notebooks_are_there() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["agent", "first-steps", "your-own-policy"]


@pytest.mark.slow
def test_the_notebook_of_the_readme_runs_as_printed() -> None:
    text = (ROOT / "README.md").read_text()
    (code,) = re.findall(r"```python\n(import rebat\n.*?)```", text, re.S)
    *lines, last = filter(None, code.splitlines())
    assert len(lines) == 4
    scope: dict = {}
    for line in lines:
        exec(line, scope)
    assert repr(eval(last, scope)).startswith("sfsj against baseline: useful utilisation")
