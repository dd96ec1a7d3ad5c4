# SPDX-License-Identifier: Apache-2.0
"""Whether the kernels have been compiled on this machine."""

from __future__ import annotations

from pathlib import Path

import numba

from rebat.kernels import counts


def is_compiled() -> bool:
    """Return whether the planning kernels are in numba's cache, or do not need compilation."""
    path = getattr(getattr(counts.compress, "_cache", None), "cache_path", None)
    if numba.config.DISABLE_JIT or path is None:
        return True
    return any(Path(path).glob("counts.compress-*.nbi"))
