# SPDX-License-Identifier: Apache-2.0
"""Opening of Parquet files. The package pyarrow is optional."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rebat.core.errors import InputError, not_installed


def arrow(path: Path) -> tuple[Any, Any]:
    """Return pyarrow and pyarrow.parquet. If they are not installed, raise InputError."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise not_installed("pyarrow", str(path)) from None
    return pa, pq


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open a file as a ``pyarrow.parquet.ParquetFile``."""
    pa, pq = arrow(path)
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"broken Parquet: {reason}", str(path)) from None
