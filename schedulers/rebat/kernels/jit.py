"""How every kernel is compiled: cached on disk, so that each machine compiles it once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function to machine code (plain Python under ``NUMBA_DISABLE_JIT=1``)."""
    compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True)(function)
    return compiled
