# SPDX-License-Identifier: Apache-2.0
"""Properties in a job's JSON: memory, partition, dependency and others, and the shape of the job.

The shape states the numbers of nodes on which a job can run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rebat.core.declared import tagged
from rebat.core.dependencies import array_limit, conditions_of
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
    user, queue, account : str
        Owner of the job, queue to which it was submitted, and account (project) that is charged.
        Empty if unknown.
    priority_class : int
        Priority set by the user or the site. Higher classes come first.
    dependency : str
        Conditions on other jobs of the workload, like ``afterok:12:13`` (see `core.dependencies`).
        Empty if there are none.
    array : str
        Name of the job's array, and the maximum number of its tasks in the queue or running at the
        same time, like ``1234%2``. Empty if there is no limit.
    reservation : str
        Reservation of nodes that the job requested. Empty if it requested none.
    """

    memory_mb: float | None = None
    checkpointable: bool = True
    partition: str = ""
    eternal: bool = False
    user: str = ""
    queue: str = ""
    account: str = ""
    priority_class: int = 0
    dependency: str = ""
    array: str = ""
    reservation: str = ""


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


def _dependency(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"is {short(value)}", name, "a text")
    conditions_of(value)
    return value


def _array(value: Any, name: str) -> str:
    text = _word(value, name)
    array_limit(text)
    return text


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
    "dependency": _dependency,
    "array": _array,
    # any value is valid
    "user": lambda value, name: str(value),
    "queue": lambda value, name: str(value),
    "account": lambda value, name: str(value),
    "reservation": lambda value, name: str(value),
}


class Rigid(msgspec.Struct, frozen=True, tag_field="kind", tag="rigid"):
    """A job that runs only on the requested number of nodes."""

    def allows(self, n_nodes: int, request: int) -> bool:
        """Return whether a job that requests ``request`` nodes can continue on ``n_nodes``."""
        return n_nodes == request


class Moldable(msgspec.Struct, frozen=True, tag_field="kind", tag="moldable"):
    """A job that runs on one of several numbers of nodes. The number is chosen at the start."""

    sizes: tuple[int, ...]

    def with_request(self, request: int) -> list[int]:
        """Return the listed sizes and the requested size, in ascending order."""
        return sorted({request, *self.sizes})

    def allows(self, n_nodes: int, request: int) -> bool:
        """Return whether a job that requests ``request`` nodes can continue on ``n_nodes``."""
        return n_nodes == request or n_nodes in self.sizes


class Malleable(msgspec.Struct, frozen=True, tag_field="kind", tag="malleable"):
    """A job that runs on any number of nodes in a range, which may change during the run."""

    min: int
    max: int

    def allows(self, n_nodes: int, request: int) -> bool:
        """Return whether a job that requests ``request`` nodes can continue on ``n_nodes``."""
        return self.min <= n_nodes <= self.max


RIGID = Rigid()
Shape = Rigid | Moldable | Malleable
KINDS: dict[str, type[Shape]] = {"rigid": Rigid, "moldable": Moldable, "malleable": Malleable}


def shape_of(fields: Mapping[str, Any]) -> Shape:
    """Return the shape in the JSON of a job: ``{"kind": "malleable", "min": 2, "max": 31}``.

    >>> shape_of({"res": 4, "shape": {"kind": "moldable", "sizes": [4, 8]}})
    Moldable(sizes=(4, 8))
    """
    value = fields.get("shape")
    if value is None:
        return RIGID
    shape = tagged(value, "kind", KINDS, "shape")
    if not _possible(shape):
        raise InputError(f"invalid shape {short(value)}", expected=_EXPECTED[type(shape)])
    return shape


def fields_of(shape: Shape) -> dict[str, Any]:
    """Return the JSON fields of a shape (see `shape_of`). A rigid shape has no fields.

    >>> fields_of(Malleable(2, 31))
    {'shape': {'kind': 'malleable', 'min': 2, 'max': 31}}
    """
    if isinstance(shape, Rigid):
        return {}
    return {"shape": msgspec.json.decode(msgspec.json.encode(shape))}


def kind_of(shape: Shape) -> str:
    """Return the name of a shape's kind, for example ``malleable``."""
    return next(name for name, kind in KINDS.items() if kind is type(shape))


def check_shape(shape: Shape, request: int, n_nodes: int) -> None:
    """Raise InputError if a shape does not fit its job's request or the machine."""
    if isinstance(shape, Malleable):
        if not shape.min <= request <= shape.max:
            expected = f"{short(shape.min)} to {short(shape.max)}, the range of the shape"
            raise InputError(f"is {request}", "res", expected)
        largest, field = shape.max, "max"
    elif isinstance(shape, Moldable):
        largest, field = max(shape.sizes), "sizes"
    else:
        return
    if largest > n_nodes:
        expected = f"at most the machine's {n_nodes} nodes"
        raise InputError(f"contains {short(largest)}", f"shape: {field}", expected)


def extent(shape: Shape, request: int) -> tuple[int, int]:
    """Return the minimum and maximum number of nodes of a job that requests ``request``."""
    if isinstance(shape, Malleable):
        return shape.min, shape.max
    sizes = shape.with_request(request) if isinstance(shape, Moldable) else [request]
    return sizes[0], sizes[-1]


_EXPECTED: dict[type[Shape], str] = {
    Moldable: '"sizes": unique whole numbers of at least 1',
    Malleable: '"min" and "max": whole numbers, 1 <= min <= max',
}


def _possible(shape: Shape) -> bool:
    if isinstance(shape, Moldable):
        distinct = len(set(shape.sizes)) == len(shape.sizes)
        return bool(shape.sizes) and min(shape.sizes) >= 1 and distinct
    return isinstance(shape, Rigid) or 1 <= shape.min <= shape.max
