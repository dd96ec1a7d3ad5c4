# SPDX-License-Identifier: Apache-2.0
"""Columns of a run as one compressed text that the page unpacks into typed arrays.

A JSON head says what each array is; the arrays follow, each with the first bytes of all its numbers
first, then the second ones: alike bytes lie together, and gzip makes less of them.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

_KINDS = {"float64": "Float64Array", "int32": "Int32Array", "uint8": "Uint8Array"}


def packed(value: Any) -> str:
    """Base64 of the gzipped head and arrays; arrays stand anywhere in lists and mappings."""
    arrays: list[npt.NDArray[Any]] = []
    head = msgspec.json.encode(_without_arrays(value, arrays))
    parts = [len(head).to_bytes(4, "little"), head, *map(_shuffled, arrays)]
    return base64.b64encode(gzip.compress(b"".join(parts), 6, mtime=0)).decode()


def _without_arrays(value: Any, arrays: list[npt.NDArray[Any]]) -> Any:
    """The value with each array replaced by its type and length, in the order of ``arrays``."""
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"array": _KINDS[str(value.dtype)], "length": len(value)}
    if isinstance(value, Mapping):
        return {key: _without_arrays(one, arrays) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_arrays(one, arrays) for one in value]
    return value


def _shuffled(array: npt.NDArray[Any]) -> bytes:
    """Byte by byte: the lowest of every number, then the next, little-endian."""
    plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return plain.view(np.uint8).reshape(len(array), plain.itemsize).T.tobytes()
