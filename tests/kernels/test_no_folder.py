# SPDX-License-Identifier: Apache-2.0
"""Machine code without a folder in which it can be stored."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled"
)

KERNEL = """
import sys
from rebat.kernels import code_cache, jit
from rebat.kernels.compiling import compiling
from rebat.kernels.jit import is_ready
if "no folder" in sys.argv:
    code_cache._Folders._locator_classes = []
jit.INTERPRETED_S = 0
begun = []
compiling.on_begin = begun.append
import mine
print(is_ready(mine.double, (4,)), mine.double(4), is_ready(mine.double, (4,)), begun)
"""


def said(folder: Path, *arguments: str, **environment: str) -> str:
    (folder / "mine.py").write_text(
        "from rebat.kernels.jit import kernel\n\n@kernel\ndef double(x):\n    return 2 * x\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", KERNEL, *arguments],
        cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.mark.slow
def test_without_a_folder_every_process_compiles(tmp_path: Path) -> None:
    for _ in range(2):
        assert said(tmp_path, "no folder") == "False 8 True [False]"


@pytest.mark.slow
def test_the_notice_comes_only_if_something_is_compiled(tmp_path: Path) -> None:
    assert said(tmp_path) == "False 8 True [True]"
    assert said(tmp_path) == "True 8 True []"


def test_without_a_home_no_folder_called_tilde_is_used() -> None:
    code = (
        "from rebat.kernels.code_cache import _Folders; "
        "print([each.__name__ for each in _Folders._locator_classes])"
    )
    for home, expected in (("~", False), ("/tmp", True)):
        environment = {**os.environ, "HOME": home}
        environment.pop("XDG_CACHE_HOME", None)
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert ("UserWide" in done.stdout) == expected
