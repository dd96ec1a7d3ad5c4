# SPDX-License-Identifier: Apache-2.0
"""Where recorded data lie: ``tests/data``, or the folder of larger ones beside the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"
SHARED = Path(os.environ.get("REBAT_SHARED", Path(__file__).parents[2] / "shared"))
"""Other people's traces, and what was recorded on them: not part of the project."""

ABSENT = "needs recordings that are not part of the project"
"""Why a test is skipped for want of that folder; `tests.conftest` counts these skips."""


def beside(name: str = ".") -> Path:
    """A file or folder of the folder ``shared``; the test is skipped where it is absent."""
    if not (SHARED / name).exists():
        pytest.skip(f"{ABSENT}: {SHARED / name}")
    return SHARED / name


def needs(name: str) -> pytest.MarkDecorator:
    """A mark for tests that need a file or folder of the folder ``shared``."""
    return pytest.mark.skipif(not (SHARED / name).exists(), reason=f"{ABSENT}: {SHARED / name}")


def folder_of(name: str) -> Path:
    """The folder with a recorded conversation; the test is skipped where it is not at hand."""
    own = DATA / "transcripts"
    if (own / f"{name}.workload.json").exists():
        return own
    return beside(f"transcripts/{name}.workload.json").parent


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
