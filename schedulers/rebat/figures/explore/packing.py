# SPDX-License-Identifier: Apache-2.0
"""Columns of a run as one compressed text that the page unpacks into typed arrays.

A JSON head contains the type and length of each array. The arrays follow. An array is stored as the
first bytes of all its numbers, then the second bytes, and so on. This order improves the
compression, because similar bytes are adjacent.
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
    """Return lists, mappings and arrays as a text: a gzipped head and the arrays in base 64."""
    arrays: list[npt.NDArray[Any]] = []
    head = msgspec.json.encode(_without_arrays(value, arrays))
    parts = [len(head).to_bytes(4, "little"), head, *map(_shuffled, arrays)]
    return base64.b64encode(gzip.compress(b"".join(parts), 6, mtime=0)).decode()


def _without_arrays(value: Any, arrays: list[npt.NDArray[Any]]) -> Any:
    """Replace each array by its type and length, and append it to ``arrays``."""
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"array": _KINDS[str(value.dtype)], "length": len(value)}
    if isinstance(value, Mapping):
        return {key: _without_arrays(item, arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_arrays(item, arrays) for item in value]
    return value


def _shuffled(array: npt.NDArray[Any]) -> bytes:
    """Return the lowest bytes of all numbers, then the next bytes, and so on."""
    plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return plain.view(np.uint8).reshape(len(array), plain.itemsize).T.tobytes()
