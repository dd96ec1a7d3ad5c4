# SPDX-License-Identifier: Apache-2.0
"""Tables with named fields, row first: ``attempts[a].start``.

One declaration, a struct of whole numbers, has two forms. Machine code uses structured arrays.
Plain Python uses lists of structs, whose fields it reads ten times faster than those of arrays.
"""

from __future__ import annotations

from functools import cache
from operator import attrgetter
from typing import Annotated, Any, get_type_hints

import numpy as np

Short = Annotated[int, np.int32]
"""A number of 32 bits in structured arrays: a row, a number of nodes or attempts, or a code."""


@cache
def dtype_of(kind: Any) -> Any:
    """Return the type of such rows in a structured array."""
    kinds = get_type_hints(kind, include_extras=True)
    types = {int: np.int64, Short: np.int32}
    return np.dtype([(name, types[kinds[name]]) for name in kind.__struct_fields__], align=True)


def zeros(kind: Any, *shape: int) -> Any:
    """Return a structured array of zeros."""
    return np.zeros(shape, dtype=dtype_of(kind))


def new_rows(kind: Any, n: int, compiled: bool) -> Any:
    """Return ``n`` rows of zeros for the rules."""
    return zeros(kind, n) if compiled else [kind() for _ in range(n)]


def rows_of(kind: Any, array: Any, compiled: bool) -> Any:
    """Return the rows of a structured array for the rules: a copy of the array, or objects."""
    return array.copy() if compiled else [kind(*values) for values in array.tolist()]


def array_of(kind: Any, rows: Any) -> Any:
    """Return the structured array of rows."""
    if isinstance(rows, list):
        values = attrgetter(*kind.__struct_fields__)
        return np.array([*map(values, rows)], dtype=dtype_of(kind))
    return rows
