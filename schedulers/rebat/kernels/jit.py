"""How every kernel is compiled: cached on disk, so that each machine compiles it once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function to machine code (plain Python under ``NUMBA_DISABLE_JIT=1``)."""
    compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True)(function)
    return compiled


def step(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a small step of a kernel into its callers; it makes no array.

    Otherwise numba counts references to every array at every call (``_nrt`` is its run time, which
    does that), and that takes longer than the steps themselves.
    """
    compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True, forceinline=True, _nrt=False)(
        function
    )
    return compiled


def loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile what repeats steps, likewise without counting references; it makes no array."""
    compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True, _nrt=False)(function)
    return compiled


def is_compiled() -> bool:
    """Whether the planning kernels are in numba's cache already (or need no compiling)."""
    from rebat.kernels import counts

    path = getattr(getattr(counts.compress, "_cache", None), "cache_path", None)
    if numba.config.DISABLE_JIT or path is None:
        return True
    return any(Path(path).glob("counts.compress-*.nbi"))
