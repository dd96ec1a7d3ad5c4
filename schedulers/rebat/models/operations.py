# SPDX-License-Identifier: Apache-2.0
"""Operations: requests of an administrator to the scheduler while jobs run.

Each line of an operations file is a JSON object; lines are sorted by time. Example: ``{"timestamp":
3600, "type": "drain", "nodes": "0-3"}``. Other types are ``undrain``, ``migrate`` with a ``job``,
and ``announce`` with ``begin`` and ``end`` of a maintenance. A drain with the field ``announced``
(a time) is announced at this time, until the next undrain of its nodes. For Batsim, operations are
generic external events. Batsim forwards them with the option ``--forward-unknown-events``. Numbers
are always node numbers, even if nodes have several cores. Source: smigrate, section 3.3.1 of
Rodríguez-Pascual et al., "Job migration in HPC clusters by means of checkpoint/restart", 2019.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rebat.core.errors import InputError, short
from rebat.core.files import open_text, write_text
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US, to_s, to_us
from rebat.models.failures.events import MAX_NODE, GenericEvent, read_event

DRAIN, UNDRAIN, MIGRATE, ANNOUNCE = "drain", "undrain", "migrate", "announce"
KINDS = (DRAIN, UNDRAIN, MIGRATE, ANNOUNCE)

APART_S = 1.0
"""Seconds between two operations of rolling maintenance.

Operations are never at the same time, because Batsim could report them in two messages, and a
scheduler could decide between the two.
"""


class Operation(msgspec.Struct, frozen=True):
    """A request of the administrator or a user.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    nodes : NodeSet, optional
        Nodes to drain or undrain. For ``migrate``: the nodes to which the job moves, or None to
        requeue the job at the head of the queue.
    job : str
        The job to migrate.
    user : str
        User who requests the operation, or an empty text if the administrator requests it.
    spanning : bool
        Whether the operation may move jobs on several nodes.
    begin_us, end_us : int
        Begin and end of an announced maintenance in microseconds.
    """

    kind: str
    nodes: NodeSet | None = None
    job: str = ""
    user: str = ""
    spanning: bool = True
    begin_us: int = 0
    end_us: int = FOREVER_US


def operation_of(data: dict[str, Any]) -> Operation:
    """Return the operation in an event. Fields that are not part of an operation are ignored.

    >>> operation_of({"type": "drain", "nodes": "0-3", "timestamp": 9}).nodes
    NodeSet('0-3')
    """
    kind = data.get("type")
    if kind not in KINDS:
        raise InputError(f"type is {short(kind)}", expected=", ".join(KINDS))
    nodes = _nodes(data["nodes"]) if "nodes" in data else None
    if nodes is None and kind != MIGRATE:
        raise InputError("nodes is missing", expected="a set of nodes, like '0-3 5'")
    job = data.get("job", "")
    if isinstance(job, bool) or not isinstance(job, str | int) or (job == "") == (kind == MIGRATE):
        if kind != MIGRATE:
            raise InputError(f"the operation {kind} has the field job", expected="no field job")
        problem = f"job is {short(job)}" if "job" in data else "job is missing"
        raise InputError(problem, expected="the id of a job")
    user, spanning = data.get("user", ""), data.get("spanning", True)
    if not isinstance(user, str):
        raise InputError(f"user is {short(user)}", expected="a name")
    if not isinstance(spanning, bool):
        raise InputError(f"spanning is {short(spanning)}", expected="true or false")
    begin_us, end_us = _interval(data) if kind == ANNOUNCE else (0, FOREVER_US)
    return Operation(kind, nodes, str(job), user, spanning, begin_us, end_us)


def _interval(data: dict[str, Any]) -> tuple[int, int]:
    """Return begin and end of an announced maintenance. Without an end, it does not end."""
    begin_us = _time_us(data, "begin")
    end_us = _time_us(data, "end") if "end" in data else FOREVER_US
    if end_us <= begin_us:
        raise InputError(f"end is {short(data.get('end'))}", expected="a time after begin")
    return begin_us, end_us


def _time_us(data: dict[str, Any], name: str) -> int:
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e12:
        raise InputError(f"{name} is {short(value)}", expected="a time in seconds, at least 0")
    return to_us(value)


def _nodes(value: Any) -> NodeSet:
    if not isinstance(value, str):
        raise InputError(f"nodes is {short(value)}", expected="a string like '0-3 5'")
    nodes = NodeSet.parse(value)
    if not nodes.size:
        raise InputError("nodes is empty", expected="at least one node, like '0-3 5'")
    if int(nodes.intervals[-1, 1]) > MAX_NODE:
        raise InputError(f"nodes is {short(value)}", expected=f"nodes up to {MAX_NODE}")
    return nodes


def read_operations(path: Path) -> list[GenericEvent]:
    """Read an operations file, plain or .gz.

    To check that the nodes and jobs exist, call `check_operations`.
    """
    located: list[tuple[GenericEvent, str]] = []
    with open_text(Path(path)) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                where = f"{path}:{number}"
                located.append((_operation(line, where), where))
    _check_order(located)
    return with_announcements([event for event, _ in located])


def with_announcements(events: Sequence[GenericEvent]) -> list[GenericEvent]:
    """Return operations, and an announcement for each drain that has the field ``announced``.

    An announced maintenance ends at the next undrain of one of its nodes.
    """
    rows = list(events)
    for at, event in enumerate(events):
        if event.data.get("type") != DRAIN or "announced" not in event.data:
            continue
        nodes = _nodes(event.data["nodes"])
        ends = (
            to_s(other.at_us)
            for other in events[at + 1 :]
            if other.data.get("type") == UNDRAIN and nodes.meets(_nodes(other.data["nodes"]))
        )
        data = {"type": ANNOUNCE, "nodes": event.data["nodes"], "begin": to_s(event.at_us)}
        if (end_s := next(ends, None)) is not None:
            data["end"] = end_s
        rows.append(GenericEvent(_time_us(event.data, "announced"), data))
    return sorted(rows, key=lambda row: row.at_us)


def announces(events: Iterable[GenericEvent]) -> bool:
    """Return whether operations announce maintenance."""
    return any(event.data.get("type") == ANNOUNCE for event in events)


def _operation(line: str, where: str) -> GenericEvent:
    event = read_event(line, where)
    try:
        if not isinstance(event, GenericEvent):
            raise InputError("is a machine event", expected=f"{', '.join(KINDS)}; see --failures")
        operation = operation_of(event.data)
        if "announced" in event.data:
            late = _time_us(event.data, "announced") > event.at_us
            if late or operation.kind != DRAIN:
                problem = f"announced is {short(event.data['announced'])}"
                raise InputError(problem, expected="in a drain, a time before it")
    except InputError as error:
        raise error.at(where) from None
    return event


def _check_order(located: Iterable[tuple[GenericEvent, str]]) -> None:
    last_us, drained = 0, set[int]()
    for event, where in located:
        if event.at_us < last_us:
            raise InputError(
                "is earlier than the previous operation", where, "operations in order of time"
            )
        last_us, operation = event.at_us, operation_of(event.data)
        if operation.kind in (MIGRATE, ANNOUNCE) or operation.nodes is None:
            continue
        nodes, drains = set(operation.nodes), operation.kind == DRAIN
        wrong = nodes & drained if drains else nodes - drained
        if wrong:
            problem = "already drained" if drains else "not drained"
            expected = f"{DRAIN} and {UNDRAIN} alternating for each node"
            raise InputError(f"node {min(wrong)} is {problem}", where, expected)
        drained = drained | nodes if drains else drained - nodes


def check_operations(
    events: Sequence[GenericEvent], n_nodes: int, jobs: Collection[str] | None = None
) -> None:
    """Check that the nodes and jobs of operations exist."""
    for event in events:
        operation = operation_of(event.data)
        where = f"{operation.kind} at {to_s(event.at_us):g} s"
        if operation.nodes is not None and int(operation.nodes.intervals[-1, 1]) >= n_nodes:
            node = int(operation.nodes.intervals[-1, 1])
            raise InputError(f"node {node} is not on the machine", where, f"0 to {n_nodes - 1}")
        if operation.job and jobs is not None and operation.job not in jobs:
            raise InputError(f"there is no job {operation.job!r}", where, "a job of the workload")


def coincident(events: Iterable[GenericEvent]) -> list[int]:
    """Return the times (us, ascending) at which more than one operation takes place."""
    counts = Counter(event.at_us for event in events)
    return sorted(at_us for at_us, count in counts.items() if count > 1)


def rolling_maintenance(
    n_nodes: int,
    length_s: float,
    nodes_at_once: int,
    begin_s: float = 0.0,
    announced_s: float | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield operations that drain all nodes in groups, one group after another.

    The drain of a group begins `APART_S` seconds (1 s) after the end of the previous drain. If
    ``announced_s`` is set, it is announced this number of seconds before.

    Yields
    ------
    dict
        The lines of an operations file.
    """
    if not 1 <= nodes_at_once <= n_nodes:
        raise InputError(
            f"{nodes_at_once} nodes cannot be drained at the same time", expected=f"1 to {n_nodes}"
        )
    if length_s <= 0:
        raise InputError(f"the duration of the maintenance is {length_s:g} s", expected="above 0")
    for turn, first in enumerate(range(0, n_nodes, nodes_at_once)):
        nodes = str(NodeSet.from_intervals([(first, min(first + nodes_at_once, n_nodes) - 1)]))
        at_s = begin_s + turn * (length_s + APART_S)
        drain = {"timestamp": at_s, "type": DRAIN, "nodes": nodes}
        if announced_s is not None:
            drain["announced"] = max(0.0, at_s - announced_s)
        yield drain
        yield {"timestamp": at_s + length_s, "type": UNDRAIN, "nodes": nodes}


def write_operations(lines: Iterable[dict[str, Any]], path: Path) -> None:
    """Write an operations file, compressed if the name ends in .gz."""
    text = "".join(msgspec.json.encode(line).decode() + "\n" for line in lines)
    write_text(Path(path), text)
