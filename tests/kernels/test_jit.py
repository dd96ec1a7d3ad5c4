"""Kernels that are in the cache are loaded without all that numba could compile."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

LOADS = """
import sys
import numpy as np
from rebat.kernels import counts, deep

t, f = np.zeros(400, np.int64), np.zeros(400, np.int64)
f[0] = 8
size, duration, start = (np.full(4, value, np.int64) for value in (3, 10, counts.NEVER))
print(deep.place(t, f, 1, size, duration, start, 0, 4), start.tolist())
"""
TELLS = 'print(sorted({"scipy.linalg", "numba.np.linalg"} & set(sys.modules)))\n'
COMPILES = """
import numba

@numba.njit
def largest(values):
    return np.dot(values, values).max()

print(largest(np.ones((2, 2))))
"""


def told(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_what_is_cached_is_loaded_without_scipy_and_the_rest_compiled_as_ever() -> None:
    told(LOADS)  # compiled now, if it was not before
    plan, modules, other = told(LOADS + TELLS + COMPILES)
    assert plan == "2 [0, 0, 10, 10]"
    assert modules == "[]"
    assert other == "2.0"
