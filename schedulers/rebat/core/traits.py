# SPDX-License-Identifier: Apache-2.0
"""Properties in a job's JSON other than size and times: memory, partition and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rebat.core.errors import InputError, short

MAX_MEMORY_MB = 1e9
"""Maximum memory of a task in MB."""

MOST_CLASS = 1_000_000
"""Highest priority class."""


class Traits(msgspec.Struct, frozen=True, gc=False):
    """Properties of a job other than its size and times.

    Attributes
    ----------
    memory_mb : float or None
        Memory of each task in MB, or None if unknown.
    checkpointable : bool
        Whether the batch system can checkpoint and restart the job without help of the application.
    partition : str
        Requested partition. Empty if the job requests no partition.
    eternal : bool
        Whether the job has no end. rebat ends it when only eternal jobs are left.
    user, queue : str
        Owner of the job, and queue to which it was submitted. Empty if unknown.
    priority_class : int
        Priority set by the user or the site. Higher classes come first.
    """

    memory_mb: float | None = None
    checkpointable: bool = True
    partition: str = ""
    eternal: bool = False
    user: str = ""
    queue: str = ""
    priority_class: int = 0


OWNERS = ("user", "queue")
"""Fields by which metrics can group jobs."""

USUAL = Traits()
_NAMES = frozenset(Traits.__struct_fields__)


def traits_of(fields: Mapping[str, Any]) -> Traits:
    """Return the `Traits` that a job's JSON contains.

    >>> traits_of({"res": 4, "memory_mb": 250, "checkpointable": False}).memory_mb
    250.0
    """
    names = [name for name in _NAMES.intersection(fields) if fields[name] is not None]
    if not names:
        return USUAL
    values: dict[str, Any] = {name: _READ[name](fields[name], name) for name in names}
    return Traits(**values)


def _memory(value: Any, name: str) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and 0 <= value <= MAX_MEMORY_MB):
        raise InputError(
            f"is {short(value)}", name, f"memory per task in MB, 0 to {MAX_MEMORY_MB:g}"
        )
    return float(value)


def _truth(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"is {short(value)}", name, "true or false")
    return value


def _word(value: Any, name: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"is {short(value)}", name, "a name")
    return str(value)


def _class(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_CLASS:
        raise InputError(f"is {short(value)}", name, f"a whole number, 0 to {MOST_CLASS}")
    return value


_READ: dict[str, Callable[[Any, str], Any]] = {
    "memory_mb": _memory,
    "checkpointable": _truth,
    "partition": _word,
    "eternal": _truth,
    "priority_class": _class,
    # any value is valid
    "user": lambda value, name: str(value),
    "queue": lambda value, name: str(value),
}
