# SPDX-License-Identifier: Apache-2.0
"""Where recorded data lie: ``tests/data``, or the folder of larger ones beside the project."""

from __future__ import annotations

from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"
SHARED = Path(__file__).parents[2] / "shared"


def folder_of(name: str) -> Path:
    """The folder with a recorded conversation; the test is skipped where it is not at hand."""
    for folder in (DATA / "transcripts", SHARED / "transcripts"):
        if (folder / f"{name}.workload.json").exists():
            return folder
    pytest.skip(f"needs the recording {name}, which lies in a folder beside the project")


def conversations() -> list[Path]:
    """Every conversation at hand, each once."""
    found = {
        path.name: path
        for folder in (SHARED, DATA)
        for path in sorted((folder / "transcripts").glob("*.jsonl"))
    }
    return [found[name] for name in sorted(found)]


def job_sets() -> list[Path]:
    """The sixteen job sets with reference makespans of R-LIST and R-SHELF."""
    return sorted((DATA / "rlist").glob("g*.json"))
