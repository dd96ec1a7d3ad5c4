# SPDX-License-Identifier: Apache-2.0
"""Every source file names its licence."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ("*.py", "*.sh", "*.toml", "*.js", "Makefile", "Dockerfile", "docker-compose.yml")
LINE = "SPDX-License-Identifier: Apache-2.0"


def test_every_source_file_names_its_licence() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("which files belong to the project is asked of git, and this is no checkout")
    listed = subprocess.run(
        ["git", "ls-files", *SOURCES], cwd=ROOT, capture_output=True, text=True, check=True
    )
    texts = {name: (ROOT / name).read_text() for name in listed.stdout.split()}
    lacking = [
        name
        for name, text in texts.items()
        if text.strip() and not any(LINE in line for line in text.splitlines()[:2])
    ]
    assert lacking == []
