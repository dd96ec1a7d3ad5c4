# SPDX-License-Identifier: Apache-2.0
"""How every kernel is compiled: cached on disk, so that each machine compiles it once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime import rtsys

Function = TypeVar("Function", bound=Callable[..., Any])


class CacheFile(IndexDataCacheFile):  # type: ignore[misc]
    """numba's files of compiled code, with a checksum: what is damaged is not loaded."""

    def _save_data(self, name: str, data: Any) -> None:
        code = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(code + sha256(code).digest())  # numba passes over what comes at the end

    def _load_data(self, name: str) -> Any:
        found = Path(self._data_path(name)).read_bytes()
        if sha256(found[:-_DIGEST]).digest() != found[-_DIGEST:]:
            raise ValueError(f"{name} is damaged")
        return super()._load_data(name)


_DIGEST = 32
"""Bytes of a sha256."""


class KernelCache(FunctionCache):  # type: ignore[misc]
    """numba's own cache, but for what it does before it loads, and for what it goes by.

    It first imports all that it could compile, and scipy with it, which takes longer than the
    simulation of a month. What is in the cache is compiled: it brings the modules that it calls,
    and needs nothing else but numba's run time. Whatever is compiled after all has numba import the
    rest by itself.

    And it goes by a function's own file, where kernels compile functions of others into themselves.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        base = self._impl.filename_base
        self._cache_file = CacheFile(self._cache_path, base, sources_stamp())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is compiled for a signature; None: nothing yet."""
        rtsys.initialize(target_context)
        try:
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except Exception:  # another version, or damaged: unpickling raises errors of any type
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, unless it cannot be written: then it is compiled every time."""
        with suppress(OSError):
            super().save_overload(sig, data)


@cache
def sources_stamp() -> str:
    """The hash of the sources of all kernels."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _compiled(function: Function, **options: Any) -> Function:
    compiled: Function = numba.njit(nogil=True, **options)(function)
    if not numba.config.DISABLE_JIT:
        compiled._cache = KernelCache(function)  # type: ignore[attr-defined]
    return compiled


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function to machine code (plain Python under ``NUMBA_DISABLE_JIT=1``)."""
    return _compiled(function)


def inlined(function: Function) -> Function:
    """Compile a small step of a kernel into its callers.

    Called as functions they would count references to every array, which costs more than they do.
    """
    return _compiled(function, forceinline=True)


def step(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a small step of a kernel that makes no array into its callers.

    Otherwise numba counts references to every array at every call (``_nrt`` is its run time, which
    does that), and that takes longer than the steps themselves.
    """
    return _compiled(function, forceinline=True, _nrt=False)


def loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile what repeats steps, likewise without counting references; it makes no array."""
    return _compiled(function, _nrt=False)
