# SPDX-License-Identifier: Apache-2.0
"""Failure laws, and the machine events that follow from a law."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, ClassVar, NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from rebat.core.cores import groups_of, processors_of
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US, MAX_SECONDS, parse_duration, to_us
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.per_node import NodeLaws

Ints = npt.NDArray[np.int64]
Row = tuple[int, int, int]
"""The time of a failure, the time of its repair (us), and the node."""

AnyOutage = TypeVar("AnyOutage", bound=tuple[Any, ...])

FIRST_BLOCK, LARGEST_BLOCK = 64, 4096
"""Number of outages that are drawn together: a run that ends early draws few."""


class NodeChanges(NamedTuple):
    """Failures and repairs of single nodes, sorted by time, as arrays of shape (n,).

    Node k has the processors k * cores_per_node to (k + 1) * cores_per_node - 1.
    """

    at_us: Ints
    up: npt.NDArray[np.bool_]
    node: Ints
    cores_per_node: int


class Outage(NamedTuple):
    """Nodes that fail together at one time and are repaired together later, or never."""

    down_us: int
    up_us: int
    nodes: NodeSet
    cause: str | None = None
    """Cause of the failure, if the law has causes."""


class Law(msgspec.Struct, frozen=True):
    """Base class of laws of node failures. The fields of a law are its parameters.

    The names of fields that are durations end in ``_s``. To add a law, write a module with a
    subclass and add the subclass to `laws.LAWS`. The command line prints the docstring of the
    subclass, which names the source and explains each parameter.
    """

    drawn: ClassVar[bool] = True
    """Whether the failures depend on the seed and the horizon."""

    paths: ClassVar[tuple[str, ...]] = ()
    """The parameters that are files."""

    later: ClassVar[tuple[str, ...]] = ()
    """Parameters added after the first release of the law. At their defaults they do not change the
    keys of stored results.
    """

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if name.endswith("_s"):
                check_span(getattr(self, name), name.removesuffix("_s"), least_s(name))

    def mtbf_on(self, n_nodes: int | None) -> float | None:
        """Return the MTBF (s) of a machine with ``n_nodes``.

        Return None if the law does not state it.
        """
        mtbf_s: float | None = getattr(self, "mtbf_s", None)
        return mtbf_s

    @property
    def seeded(self) -> bool:
        """Whether different seeds draw different failures."""
        return self.drawn

    def rows(self, n_nodes: int, seed: int) -> Iterator[Row] | None:
        """Return outages of single nodes, sorted by the time of failure and drawn lazily.

        A node that is down does not fail. The loop reads rows in blocks, which is several times
        faster than `Outage` objects. Return None if outages have several nodes, overlap, or have
        causes. The law then defines `outages`.
        """
        return None

    def outages(self, n_nodes: int, seed: int) -> Iterator[Outage]:
        """Yield outages of nodes, sorted by the time of failure and drawn lazily.

        A node that is down does not fail.
        """
        rows = self.rows(n_nodes, seed)
        if rows is None:
            raise NotImplementedError
        return (Outage(down_us, up_us, NodeSet.of([node])) for down_us, up_us, node in rows)

    def survival(self, uptime_s: float, duration_s: float, n_nodes: int) -> float:
        """Return the probability that a node with this uptime survives another ``duration_s``."""
        raise NotImplementedError

    def nodes(self, n_nodes: int, seed: int) -> NodeLaws | None:
        """Return the law of each node, for policies with foresight.

        Return None if the nodes have no separate laws.
        """
        return None

    def until(self, outages: Iterator[AnyOutage], horizon_s: float) -> Iterator[AnyOutage]:
        """Yield the outages that begin before the horizon. Each begins with this time."""
        horizon_us = to_us(horizon_s)
        return itertools.takewhile(lambda outage: outage[0] < horizon_us, outages)

    def machine_events(self, outages: Iterable[Outage]) -> Iterator[MachineEvent]:
        """Yield the failures and repairs of outages, sorted by time."""
        return events_of(outages)

    def events(
        self,
        n_nodes: int,
        seed: int = 0,
        horizon_s: float | None = None,
        cores_per_node: int = 1,
    ) -> Iterable[MachineEvent]:
        """Return the failures and repairs of a machine.

        Without a horizon, the events continue forever.

        If ``cores_per_node`` is above 1, ``n_nodes`` is the number of processors. The law then
        applies to the nodes that the processors form, and the events contain the processors of
        these nodes.

        Raises
        ------
        InputError
            If a number is out of range.
        """
        n_groups = groups_of(n_nodes, cores_per_node)
        return DrawnEvents(self, n_groups, seed, horizon_s, cores_per_node)

    def identity(self) -> dict[str, Any]:
        """Return everything that determines the failures, except the seed, as plain JSON values."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return {name: value for name, value in plain.items() if name not in self._unset}

    def label(self) -> str | None:
        """Return the parameters in command-line syntax, without MTBF and downtime.

        Return None if there are no other parameters.
        """
        texts = []
        for name in self.__struct_fields__:
            if name in self._unset:
                continue
            if name.endswith("_s") and name not in ("mtbf_s", "downtime_s"):
                texts.append(f"{name.removesuffix('_s')}={_duration(getattr(self, name))}")
            elif not name.endswith("_s"):
                texts.append(f"{name}={getattr(self, name)}")
        return ",".join(texts) or None

    @property
    def _unset(self) -> set[str]:
        """The parameters in ``later`` that have their default value."""
        defaults = _defaults(type(self))
        return {name for name in self.later if getattr(self, name) == defaults[name]}


@cache
def _defaults(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the defaults of a law's parameters.

    They are cached, because resolving annotations is slow.
    """
    return {field.name: field.default for field in msgspec.structs.fields(kind)}


def _duration(seconds: float) -> str:
    """Return a duration as command-line text, in the unit that makes it shortest.

    >>> _duration(20_880_000), _duration(10_080), _duration(90), _duration(0.5)
    ('5800h', '2.8h', '90s', '0.5s')
    """
    units = (("h", 3600), ("min", 60), ("s", 1))
    texts = [f"{seconds / length:.12g}{unit}" for unit, length in units]
    exact = [text for text in texts if parse_duration(text) == seconds]
    return min(exact, key=len, default=texts[-1])


class DrawnEvents(msgspec.Struct, frozen=True):
    """The failures and repairs of a law, drawn lazily. The events contain processors of the nodes.

    Every iteration yields the same events from the beginning.
    """

    law: Law
    n_nodes: int
    seed: int = 0
    horizon_s: float | None = None
    cores_per_node: int = 1

    def __post_init__(self) -> None:
        if self.horizon_s is not None:
            check_span(self.horizon_s, "horizon")
        for name, number, least in (("number of nodes", self.n_nodes, 1), ("seed", self.seed, 0)):
            if number < least:
                raise InputError(f"{name} is {number}", expected=f"at least {least}")

    def __iter__(self) -> Iterator[MachineEvent]:
        outages = self.law.outages(self.n_nodes, self.seed)
        if self.horizon_s is not None:
            outages = self.law.until(outages, self.horizon_s)
        events, cores = self.law.machine_events(outages), self.cores_per_node
        if cores == 1:
            return events
        return (replace(each, nodes=processors_of(each.nodes, cores)) for each in events)

    def blocks(self) -> Iterator[NodeChanges] | None:
        """Return the same events in blocks, or None if the law has no rows."""
        rows = self.law.rows(self.n_nodes, self.seed)
        if rows is None:
            return None
        if self.horizon_s is not None:
            rows = self.law.until(rows, self.horizon_s)
        return changes_of(rows, self.cores_per_node)


def check_span(seconds: float, name: str, least: float = 1e-6) -> None:
    """Raise InputError if a duration is below the minimum or above `MAX_SECONDS`."""
    if not (math.isfinite(seconds) and least <= seconds <= MAX_SECONDS):
        raise InputError(f"is {seconds:g} s", name, f"{least:g} to {MAX_SECONDS:.0e} s")


def least_s(field: str) -> float:
    """Return the minimum value of a parameter in seconds.

    The minimum is 0 for standard deviations and ages, and 1e-6 for other durations.
    """
    return 0.0 if field.endswith("_sigma_s") or field == "age_s" else 1e-6


def generate_events(
    law: Law, n_nodes: int, *, horizon_s: float = 5e6, seed: int = 0, cores_per_node: int = 1
) -> list[MachineEvent]:
    """Return the failures of a law up to a horizon and their repairs, for an event file."""
    return list(law.events(n_nodes, seed, horizon_s, cores_per_node))


def events_of(outages: Iterable[Outage]) -> Iterator[MachineEvent]:
    """Yield the failure and, if there is one, the repair of each outage, sorted by time.

    At equal times, repairs come before failures.
    """
    repairs: list[tuple[int, int, NodeSet]] = []
    for number, outage in enumerate(outages):
        yield from _pop_repairs(repairs, outage.down_us)
        yield MachineEvent(outage.down_us, False, outage.nodes, outage.cause)
        if outage.up_us < FOREVER_US:
            heapq.heappush(repairs, (outage.up_us, number, outage.nodes))
    yield from _pop_repairs(repairs, None)


def _pop_repairs(
    repairs: list[tuple[int, int, NodeSet]], until_us: int | None
) -> Iterator[MachineEvent]:
    """Remove and yield the repairs up to a time.

    Repairs at equal times have the order of their failures.
    """
    while repairs and (until_us is None or repairs[0][0] <= until_us):
        at_us, _, nodes = heapq.heappop(repairs)
        yield MachineEvent(at_us, True, nodes)


def changes_of(rows: Iterator[Row], cores_per_node: int) -> Iterator[NodeChanges]:
    """Yield the failures and repairs of rows in blocks, in the order of `events_of`.

    If drawing a row raises an error, the earlier rows come first, so that a run that ends before
    the error has a result.
    """
    later = np.zeros((0, 2), dtype=np.int64)  # repairs after the last failure so far, and nodes
    for drawn in _in_blocks(rows):
        down_us, node = drawn[:, 0], drawn[:, 2]
        repairs = np.concatenate([later, drawn[:, 1:]])
        repairs = repairs[repairs[:, 0] < FOREVER_US]
        ends = repairs[:, 0] <= down_us[-1]
        repaired, later = repairs[ends], repairs[~ends]
        up = np.repeat([True, False], [len(repaired), len(node)])
        at_us = np.concatenate([repaired[:, 0], down_us])
        order = np.lexsort((~up, at_us))  # stable: repairs first, then in the order of the rows
        nodes = np.concatenate([repaired[:, 1], node])
        yield NodeChanges(at_us[order], up[order], nodes[order], cores_per_node)
    if len(later):
        later = later[np.argsort(later[:, 0], kind="stable")]
        up = np.ones(len(later), dtype=np.bool_)
        yield NodeChanges(later[:, 0], up, later[:, 1], cores_per_node)


def _in_blocks(rows: Iterator[Row]) -> Iterator[Ints]:
    """Yield rows as arrays of shape (k, 3). Times are at most FOREVER_US."""
    size, block = FIRST_BLOCK, list[Row]()
    try:
        for row in rows:
            block.append(row)
            if len(block) == size:
                yield _array(block)
                size, block = min(2 * size, LARGEST_BLOCK), []
    except InputError:
        if block:
            yield _array(block)
        raise
    if block:
        yield _array(block)


def _array(block: list[Row]) -> Ints:
    if block[-1][0] > FOREVER_US // 2:  # the sums of times of very long gaps need more bits
        block = [(min(a, FOREVER_US), min(b, FOREVER_US), node) for a, b, node in block]
    return np.array(block, dtype=np.int64)
