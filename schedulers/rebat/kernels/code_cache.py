# SPDX-License-Identifier: Apache-2.0
"""Cache on disk for the machine code of the kernels, so that a machine compiles them only once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime import rtsys


class CacheFile(IndexDataCacheFile):  # type: ignore[misc]
    """numba's files of compiled code, with a checksum to detect damaged files."""

    def _save_data(self, name: str, data: Any) -> None:
        code = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(code + sha256(code).digest())  # numba ignores trailing bytes

    def _load_data(self, name: str) -> Any:
        content = Path(self._data_path(name)).read_bytes()
        if sha256(content[:-_DIGEST]).digest() != content[-_DIGEST:]:
            raise ValueError(f"{name} is damaged")
        return super()._load_data(name)


_DIGEST = 32
"""Length of a sha256 in bytes."""


class KernelCache(FunctionCache):  # type: ignore[misc]
    """numba's cache, with faster loading, and with a stamp that covers all kernel sources.

    numba's cache imports everything that compilation needs, including scipy, before it loads code.
    This takes longer than the simulation of a month. Cached code only needs its own modules and
    numba's runtime. If a function has to be compiled, numba imports the rest.

    To detect changes, numba only checks the file of the function. Kernels inline functions of other
    files. Therefore, the stamp covers all files.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        base = self._impl.filename_base
        self._cache_file = CacheFile(self._cache_path, base, sources_stamp())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code for a signature; None if there is none."""
        rtsys.initialize(target_context)
        try:
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except Exception:  # unpickling a damaged file or another version may raise any exception
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store compiled code. If the file cannot be written, each process compiles it again."""
        with suppress(OSError):
            super().save_overload(sig, data)


@cache
def sources_stamp() -> str:
    """Return the hash of the sources of all kernels."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def machine_code(function: Callable[..., Any], **options: Any) -> Any:
    """Return the function as a cached kernel; ``options`` are those of ``numba.njit``."""
    compiled = numba.njit(nogil=True, **options)(function)
    if not numba.config.DISABLE_JIT:
        compiled._cache = KernelCache(function)
    return compiled
