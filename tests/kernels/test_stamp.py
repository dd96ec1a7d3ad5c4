# SPDX-License-Identifier: Apache-2.0
"""Machine code is renewed if a compiled function, or a constant that it uses, changes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import rebat
from rebat.kernels import code_cache

PACKAGE = Path(rebat.__file__).parent
MARKS = "kernel|inlined|step|inner|loop|rule|inlined_rule|whole_rule"
DECORATED = re.compile(rf"^@({MARKS})\b", re.MULTILINE)


def test_the_stamp_covers_every_file_with_compiled_functions() -> None:
    compiled = {file for file in PACKAGE.rglob("*.py") if DECORATED.search(file.read_text())}
    sources = code_cache.sources_of_kernels(PACKAGE)
    assert compiled <= set(sources)
    names = {str(file.relative_to(PACKAGE)) for file in sources}
    assert {"rules/plan.py", "rules/links.py", "rules/predict.py", "drive/embedded.py"} <= names
    assert {"core/units.py", "state/codes.py", "models/formula.py"} <= names  # constants


def test_a_change_of_each_of_these_files_changes_the_stamp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "rebat"
    for file in code_cache.sources_of_kernels(PACKAGE):
        target = copy / file.relative_to(PACKAGE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    monkeypatch.setattr(code_cache, "__file__", str(copy / "kernels" / "code_cache.py"))

    def stamp() -> str:
        code_cache.sources_stamp.cache_clear()
        return code_cache.sources_stamp()

    stamps = {stamp()}
    files = sorted(copy.rglob("*.py"))
    for file in files:
        file.write_text(file.read_text() + "\nCHANGED = 1\n")
        stamps.add(stamp())
    assert len(stamps) == len(files) + 1
    monkeypatch.undo()
    code_cache.sources_stamp.cache_clear()
