# SPDX-License-Identifier: Apache-2.0
"""A test run without the folder ``shared`` ends with a line that counts the skipped tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import recordings

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_skipped_evidence_is_counted_aloud(workers: list[str], tmp_path: Path) -> None:
    """Skips by the fixture, the function and the mark are counted, also with several workers."""
    chosen = ["tests/models/test_lanl.py", "tests/workloads/test_traces.py", "-k", "real"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *workers, *chosen],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=300,
        env=os.environ | {"REBAT_SHARED": str(tmp_path / "absent"), "REBAT_TESTS": "all"},
    )  # fmt: skip
    skipped = int(re.search(r"(\d+) skipped", done.stdout).group(1))
    assert skipped > 10
    told = f"! {skipped} SKIPPED: they need recordings and traces that are not part of the"
    assert told in done.stdout


def test_there_is_one_way_to_look_for_the_folder() -> None:
    """All skips for an absent folder are counted: only `recordings` looks for the folder."""
    for path in ROOT.glob("tests/**/*.py"):
        if path not in (Path(recordings.__file__), Path(__file__)):
            text = path.read_text()
            assert "REBAT_TRACES" not in text, path
            assert not re.search(r"""["'/]shared["'/]""", text), path
