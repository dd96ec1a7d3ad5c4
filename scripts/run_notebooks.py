# SPDX-License-Identifier: Apache-2.0
"""Run the notebooks of the documentation again and save their outputs.

Usage: python scripts/run_notebooks.py [FOLDER]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"


def executed(path: Path) -> nbformat.NotebookNode:
    """Return a notebook with its output. Delete the files that it writes."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": folder}})
        client.execute()
    for cell in notebook.cells:
        cell.metadata.clear()  # remove the times of the execution
    return notebook


def main(folder: Path) -> None:
    """Run every notebook of a folder."""
    for path in sorted(folder.glob("*.ipynb")):
        nbformat.write(executed(path), path)
        print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
