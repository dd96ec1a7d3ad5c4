# SPDX-License-Identifier: Apache-2.0
"""Kernels in the cache are loaded without numba's compiler, or compiled again."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numba
import pytest

LOADS = """
import sys
import numpy as np
from rebat.kernels import counts, deep

t, f = np.zeros(400, np.int64), np.zeros(400, np.int64)
f[0] = 8
size, duration, start = (np.full(4, value, np.int64) for value in (3, 10, counts.NEVER))
scratch = np.zeros(2000, np.int64)
print(deep.place(t, f, 1, size, duration, start, 0, 4, scratch), start.tolist())
"""
TELLS = 'print(sorted({"scipy.linalg", "numba.np.linalg"} & set(sys.modules)))\n'
COMPILES = """
import numba

@numba.njit
def largest(values):
    return np.dot(values, values).max()

print(largest(np.ones((2, 2))))
"""


def told(code: str, *arguments: str) -> list[str]:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_what_is_cached_is_loaded_without_scipy_and_the_rest_compiled_as_ever() -> None:
    told(LOADS)  # compiles the kernels unless they are cached
    plan, modules, other = told(LOADS + TELLS + COMPILES)
    assert plan == "2 [0, 0, 10, 10]"
    assert modules == "[]"
    assert other == "2.0"


KERNEL = """
from rebat.kernels.jit import kernel

@kernel
def double(n):
    return n + n
"""


def asks_of(folder: Path) -> str:
    """Return a program that prints the result of a kernel and the number of loads from the
    cache."""
    return f"""
import sys
from rebat.kernels import jit
jit.INTERPRETED_S = 0
sys.path.insert(0, {str(folder)!r})
import mine
print(mine.double(4), sum(mine.double.stats.cache_hits.values()))
"""


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a module and its compiled kernel."""
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "mine.py").write_text(KERNEL)
    assert told(asks_of(folder)) == ["8 0"]
    return folder


@pytest.fixture
def cached(compiled_once: Path, tmp_path: Path) -> Path:
    """A copy of the folder with the compiled kernel. Tests may damage it."""
    return shutil.copytree(compiled_once, tmp_path / "copy")


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_what_was_compiled_is_found_in_a_copy_too(cached: Path) -> None:
    """Therefore the tests below compile again because of the damage, not because of the copy."""
    assert told(asks_of(cached)) == ["8 1"]


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_a_cache_of_another_version_is_written_anew(cached: Path) -> None:
    """The cache names a class that no longer exists, on which numba would stop with a traceback."""
    asks = asks_of(cached)
    (index,) = (cached / "__pycache__").glob("mine.double-*.nbi")
    gone = pickle.dumps(Path).replace(b"Path", b"Hath")
    index.write_bytes(pickle.dumps(numba.__version__) + gone)
    with pytest.raises(AttributeError):
        pickle.loads(gone)
    assert told(asks) == ["8 0"]
    assert gone not in index.read_bytes()


def no_pickle(data: bytes) -> bytes:
    return b"nonsense"


def cut_off(data: bytes) -> bytes:
    return data[: len(data) // 2]


def one_bit(data: bytes) -> bytes:
    """Change one bit in the middle, so that machine code would do something else or crash."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def nothing(data: bytes) -> bytes:
    return b""


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
@pytest.mark.parametrize("damage", [no_pickle, cut_off, one_bit, nothing])
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_what_is_damaged_in_the_cache_is_compiled_anew(
    damage: Callable[[bytes], bytes], ending: str, cached: Path
) -> None:
    asks = asks_of(cached)
    (file,) = (cached / "__pycache__").glob(f"mine.double-*.{ending}")
    file.write_bytes(damage(file.read_bytes()))
    found = told(asks)
    if (damage, ending) != (one_bit, "nbi"):  # numba may not read the changed byte
        assert found == ["8 0"]
    assert told(asks) == ["8 1"]


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_what_is_cached_goes_by_the_sources_of_all_kernels(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(KERNEL)
    asks = f"""
import sys
from rebat.kernels import code_cache, jit
jit.INTERPRETED_S = 0
sys.path.insert(0, {str(tmp_path)!r})
code_cache.sources_stamp = lambda: sys.argv[1]
import mine
mine.double(4)
print(sum(mine.double.stats.cache_hits.values()), sum(mine.double.stats.cache_misses.values()))
"""
    assert told(asks, "old") == ["0 1"]
    assert told(asks, "old") == ["1 0"]
    assert told(asks, "new") == ["0 1"]


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_a_kernel_is_compiled_once_for_constants_and_variables(tmp_path: Path) -> None:
    """Otherwise the loop would take twice the time to compile."""
    code = f"""
import os
os.environ["NUMBA_CACHE_DIR"] = {str(tmp_path)!r}
import numpy as np
from rebat.kernels import counts, jit
jit.INTERPRETED_S = 0

t, f = np.zeros(400, np.int64), np.full(400, 8)
size, duration, start = (np.full(4, value, np.int64) for value in (3, 10, counts.NEVER))
counts.place(t, f, 1, size, duration, start, 0, 4)
print([len(vars(counts)[name].overloads) for name in ("earlier_fit", "change", "split")])
"""
    assert told(code) == ["[1, 1, 1]"]
