# SPDX-License-Identifier: Apache-2.0
"""What a job's JSON says beside its size and times: its memory, its partition, and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rebat.core.errors import InputError, short

MAX_MEMORY_MB = 1e9
"""More memory of a task is taken for a mistake."""


class Traits(msgspec.Struct, frozen=True, gc=False):
    """Beside its size and times.

    Attributes
    ----------
    memory_mb : float or None
        Memory of each task, in MB; None: not told.
    checkpointable : bool
        Whether a checkpointer can save and restart it without its help.
    partition : str
        The partition that it asks for; empty: none in particular.
    eternal : bool
        It has no length: it runs on until nothing else is left.
    user, queue : str
        Whose it is, and in which queue it was submitted; empty: not told.
    """

    memory_mb: float | None = None
    checkpointable: bool = True
    partition: str = ""
    eternal: bool = False
    user: str = ""
    queue: str = ""


OWNERS = ("user", "queue")
"""What jobs are grouped by in the metrics."""

USUAL = Traits()
_NAMES = frozenset(Traits.__struct_fields__)


def traits_of(fields: Mapping[str, Any]) -> Traits:
    """The traits that a job's JSON gives.

    >>> traits_of({"res": 4, "memory_mb": 250, "checkpointable": False}).memory_mb
    250.0

    Raises
    ------
    InputError
        For a field that holds something else, with its name.
    """
    told = [name for name in _NAMES.intersection(fields) if fields[name] is not None]
    if not told:
        return USUAL
    read: dict[str, Any] = {name: _READ[name](fields[name], name) for name in told}
    return Traits(**read)


def _memory(value: Any, name: str) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and 0 <= value <= MAX_MEMORY_MB):
        raise InputError(f"is {short(value)}", name, f"MB of a task, 0 to {MAX_MEMORY_MB:g}")
    return float(value)


def _truth(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"is {short(value)}", name, "true or false")
    return value


def _word(value: Any, name: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"is {short(value)}", name, "a name")
    return str(value)


_READ: dict[str, Callable[[Any, str], Any]] = {
    "memory_mb": _memory,
    "checkpointable": _truth,
    "partition": _word,
    "eternal": _truth,
    # nothing hangs on what others put there
    "user": lambda value, name: str(value),
    "queue": lambda value, name: str(value),
}
