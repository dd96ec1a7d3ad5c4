# SPDX-License-Identifier: Apache-2.0
"""Tables with named fields, row first: ``attempts[a].start``.

One declaration has two forms. Compiled rules use structured arrays. Plain Python uses lists of
objects with slots, whose fields it reads ten times faster than those of arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

import numpy as np

Declared = TypeVar("Declared")


@dataclass_transform()
def row(declared: type[Declared]) -> type[Declared]:
    """Make a class with slots from its annotations. All fields are whole numbers, by default 0.

    Its attribute ``dtype`` is the type of such rows in an array. ``values`` returns the values of
    all fields.
    """
    names = (*declared.__annotations__,)
    for name in names:
        setattr(declared, name, 0)
    made: Any = dataclass(slots=True)(declared)
    made.dtype = np.dtype([(name, np.int64) for name in names])
    made.values = attrgetter(*names)
    return made  # type: ignore[no-any-return]


def rows_of(kind: Any, array: Any, compiled: bool) -> Any:
    """Return the rows of a structured array for the rules: a copy of the array, or objects."""
    return array.copy() if compiled else [kind(*values) for values in array.tolist()]


def new_rows(kind: Any, n: int, compiled: bool) -> Any:
    """Return ``n`` rows of zeros for the rules."""
    return np.zeros(n, dtype=kind.dtype) if compiled else [kind() for _ in range(n)]


def array_of(kind: Any, rows: Any) -> Any:
    """Return the structured array of rows."""
    if isinstance(rows, list):
        return np.array([*map(kind.values, rows)], dtype=kind.dtype)
    return rows
