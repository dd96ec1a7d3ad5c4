# SPDX-License-Identifier: Apache-2.0
"""Machine events: Batsim's ``--events`` files, their checks, and a summary of them.

A line of a file is a JSON object, ``{"type": "machine_unavailable", "resources": "0-4 6",
"timestamp": 10}`` or ``machine_available``. For each node the two types must alternate, starting
with ``machine_unavailable``; otherwise Batsim crashes. Other types are Batsim's generic events.
If ``resources`` contains core numbers, rebat also writes, for example, ``"cores_per_node": 4``.
Batsim ignores this field. The lines of Batsim 5 (`rebat.models.failures.events`) are read too.

The order in which Batsim simulates the events of a file: by time, repairs before failures.

Batsim sorts by time and type with C++'s ``std::sort``, which does not keep the order of equal
elements. Two failures at the same time may therefore be in another order than in the file, as
recorded messages show. This module reproduces the sort of GNU's standard library step by step:
median-of-three quicksort down to 16 elements, then an insertion sort (introsort, Musser 1997).
Introsort falls back to a heap sort after ``2 log2 n`` bad partitions. This module does not
reproduce the fallback: equal elements then keep the order that they have after the last partition.

Event files of Batsim 5: each line has a time and a text that Batsim forwards to the scheduler.

rebat writes the JSON line of Batsim 4, without the time, as this text: ``{"type": "generic",
"timestamp": 10, "data": "{\"type\":\"machine_unavailable\",\"resources\":\"0-4\"}"}``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from rebat.core.batsim5 import GENERIC, line_of_five, line_to_five
from rebat.core.cores import nodes_of, processors_of
from rebat.core.errors import InputError, short
from rebat.core.files import open_text, write_lines, write_text
from rebat.core.jobs import batsim_number
from rebat.core.nodes import NodeSet
from rebat.core.units import MAX_SECONDS, to_s, to_us

UNAVAILABLE, AVAILABLE = "machine_unavailable", "machine_available"

Numbers = Literal["cores", "nodes"]
"""Whether the numbers in an event file are nodes or cores, if nodes have several cores."""

MAX_NODE = 10_000_000
"""Largest valid node number in a file."""


class MachineEvent(msgspec.Struct, frozen=True):
    """Nodes become available (repaired) or unavailable (failed) at a time in microseconds.

    Attributes
    ----------
    cause : str, optional
        The cause of a failure, if it is known. Batsim ignores it.
    cores_per_node : int, optional
        Cores per node as stated in the line of the event file. The reader compares this number with
        that of the run.
    """

    at_us: int
    available: bool
    nodes: NodeSet
    cause: str | None = None
    cores_per_node: int | None = None


class GenericEvent(msgspec.Struct, frozen=True):
    """An event that is not a machine event. Batsim can forward its JSON to the scheduler."""

    at_us: int
    data: dict[str, Any]


ExternalEvent = MachineEvent | GenericEvent


class EventFile(msgspec.Struct, frozen=True):
    """The contents of an event file, in Batsim's order."""

    events: list[ExternalEvent]

    @property
    def machine_events(self) -> list[MachineEvent]:
        """Failures and repairs."""
        return [event for event in self.events if isinstance(event, MachineEvent)]

    @property
    def generic_types(self) -> Counter[str]:
        """Number of events of each type other than machine events."""
        generic = (event for event in self.events if isinstance(event, GenericEvent))
        return Counter(str(event.data["type"]) for event in generic)


def in_order(events: Iterable[ExternalEvent]) -> list[ExternalEvent]:
    """Return events sorted by time.

    At equal times, repairs are first, then failures, then generic events.
    """
    return sorted(events, key=_key)


def _key(event: ExternalEvent) -> tuple[int, int]:
    kind = 2 if isinstance(event, GenericEvent) else int(not event.available)
    return event.at_us, kind


def read_events(
    path: Path, cores_per_node: int | None = None, numbers: Numbers = "cores"
) -> list[MachineEvent]:
    """Read the machine events of an event file, plain or .gz; see `read_event_file`."""
    return read_event_file(path, cores_per_node, numbers).machine_events


def read_event_file(
    path: Path, cores_per_node: int | None = None, numbers: Numbers = "cores"
) -> EventFile:
    """Read an event file, plain or .gz.

    The lines need not be sorted: the node-stealing authors write each repair after its failure.
    Like Batsim, the reader sorts them. Events of other types are not changed.

    If ``cores_per_node`` is 1, the numbers are not changed. Otherwise, the result contains core
    numbers. If the file contains node numbers, each is replaced by the core numbers of the node. If
    the file contains core numbers, an event must contain all cores of a node or none.
    """
    located: list[tuple[ExternalEvent, str]] = []
    with open_text(Path(path)) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                where = f"{path}:{number}"
                event = read_event(line, where)
                if isinstance(event, MachineEvent) and cores_per_node is not None:
                    event = _in_run(event, where, cores_per_node, numbers)
                located.append((event, where))
    ordered = batsim_order(located, [_key(event) for event, _ in located])
    machine = [(event, where) for event, where in ordered if isinstance(event, MachineEvent)]
    _check([event for event, _ in machine], [where for _, where in machine], MAX_NODE + 1)
    return EventFile([event for event, _ in ordered])


def read_event(line: str, where: str) -> ExternalEvent:
    """Return the event in a line of an event file.

    ``where`` is the file and line for error messages.
    """
    try:
        raw = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"broken JSON: {error}", where, "one JSON object per line") from None
    if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
        raise InputError("is not an event", where, "an object with type, resources, timestamp")
    at_us = to_us(_timestamp(raw, where))
    raw = line_of_five(raw)
    if raw["type"] not in (UNAVAILABLE, AVAILABLE):
        return GenericEvent(at_us, raw)
    cores = raw.get("cores_per_node")
    return MachineEvent(
        at_us,
        raw["type"] == AVAILABLE,
        _nodes(raw, where),
        _cause(raw, where),
        cores if isinstance(cores, int) else None,
    )


def _cause(raw: dict[str, Any], where: str) -> str | None:
    cause = raw.get("cause")
    if cause is not None and not isinstance(cause, str):
        raise InputError(f"cause is {short(cause)}", where, "a text")
    return cause if raw["type"] == UNAVAILABLE else None


def _in_run(event: MachineEvent, where: str, cores_per_node: int, numbers: Numbers) -> MachineEvent:
    """Return an event with the numbers that the run uses: nodes, or the cores of nodes."""
    stated = event.cores_per_node
    if stated is not None:
        event = msgspec.structs.replace(event, cores_per_node=None)
    if cores_per_node == 1:
        return event
    if stated is not None and (stated != cores_per_node or numbers != "cores"):
        problem = f"contains numbers of cores, with {stated} cores per node"
        raise InputError(problem, where, f"--cores-per-node {stated}")
    if numbers == "nodes":
        return msgspec.structs.replace(event, nodes=processors_of(event.nodes, cores_per_node))
    try:
        nodes_of(event.nodes, cores_per_node)
    except InputError as error:
        law = f"--law trace:file={where.rpartition(':')[0]},numbers=nodes"
        expected = f"{error.expected}; if the file contains numbers of nodes: {law}"
        raise InputError(error.problem, where, expected) from None
    return event


def _timestamp(raw: dict[str, Any], where: str) -> float:
    expected = f"seconds, from 0 to {MAX_SECONDS:.0e}"
    value = raw.get("timestamp")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is None or not (number and 0 <= value <= MAX_SECONDS):
        text = repr(value)[:60] if "timestamp" in raw else "missing"
        raise InputError(f"timestamp is {text}", where, expected)
    return float(value)


def _nodes(raw: dict[str, Any], where: str) -> NodeSet:
    text = raw.get("resources")
    if not isinstance(text, str):
        shown = repr(text)[:60] if "resources" in raw else "missing"
        raise InputError(f"resources is {shown}", where, "a string like '0-3 5'")
    try:
        nodes = NodeSet.parse(text)
    except InputError as error:
        raise error.at(where) from None
    if not len(nodes):
        raise InputError("resources is empty", where, "at least one node, like '0-3 5'")
    return nodes


def check_alternation(events: Sequence[MachineEvent], n_nodes: int) -> None:
    """Check events as Batsim does: order in time, existing nodes, alternation for each node."""
    _check(events, [f"event {n} at {to_s(e.at_us):g} s" for n, e in enumerate(events)], n_nodes)


def _check(events: Sequence[MachineEvent], places: Sequence[str], n_nodes: int) -> None:
    down: set[int] = set()
    last_us = 0
    for at, (event, where) in enumerate(zip(events, places, strict=True)):
        if event.at_us < last_us:
            raise InputError("is earlier than the previous event", where, "events in order of time")
        last_us = event.at_us
        _check_on_machine(event, where, n_nodes)
        _alternate(events, at, where, down)


def _check_on_machine(event: MachineEvent, where: str, n_nodes: int) -> None:
    largest = int(event.nodes.intervals[-1, 1]) if len(event.nodes) else 0
    if largest >= n_nodes:
        raise InputError(f"node {largest} is not on the machine", where, f"0 to {n_nodes - 1}")


def _alternate(events: Sequence[MachineEvent], at: int, where: str, down: set[int]) -> None:
    """Apply an event to the set of nodes that are down. Raise InputError if it is invalid."""
    event = events[at]
    nodes = set(event.nodes)
    wrong = nodes - down if event.available else nodes & down
    if wrong:
        # repairs are sorted before the failures of the same time
        same = (other for other in events[at + 1 :] if other.at_us == event.at_us)
        failing = {node for other in same if not other.available for node in other.nodes}
        if event.available and wrong & failing:
            problem = f"node {min(wrong & failing)} fails and becomes available at the same time"
            raise InputError(problem, where, "outages with a duration of at least 1 us")
        state = "available while it is up" if event.available else "unavailable while it is down"
        expected = f"{UNAVAILABLE} and {AVAILABLE} alternating for each node"
        raise InputError(f"node {min(wrong)} becomes {state}", where, expected)
    if event.available:
        down -= nodes
    else:
        down |= nodes


def write_events(
    events: Iterable[MachineEvent], path: Path, decimals: int = 6, cores_per_node: int = 1
) -> None:
    """Write an event file: a line per event, in this order, compressed if the name ends in .gz.

    Parameters
    ----------
    decimals : int
        Maximum number of decimals of the timestamps (s). The node-stealing authors use 2 decimals,
        Batsim uses 6.
    cores_per_node : int
        If above 1, the events contain core numbers, and each line states the cores per node.
    """
    stated = f', "cores_per_node": {cores_per_node}' if cores_per_node > 1 else ""
    write_text(Path(path), "".join(event_line(event, decimals, stated) for event in events))


def event_line(event: MachineEvent, decimals: int = 6, stated: str = "") -> str:
    """Return the line of an event in an event file.

    ``stated`` is the JSON text of further fields.
    """
    kind = AVAILABLE if event.available else UNAVAILABLE
    at_s = round(to_s(event.at_us), decimals)
    cause = f', "cause": {json.dumps(event.cause)}' if event.cause else ""
    fields = f'"resources": "{event.nodes}", "timestamp": {at_s!r}{stated}{cause}'
    return f'{{"type": "{kind}", {fields}}}\n'


def machine_mtbf_s(events: Sequence[MachineEvent]) -> float | None:
    """Return the mean time between failures of the machine in seconds.

    Failures at the same time count as one failure. The mean is over the time from 0 to the last
    event. Return None if no node fails.
    """
    times_us = {event.at_us for event in events if not event.available}
    return to_s(events[-1].at_us) / len(times_us) if times_us else None


def events_of_nodes(events: Sequence[MachineEvent], cores_per_node: int) -> list[MachineEvent]:
    """Return events of processors as events of their nodes; see `groups.nodes_of`."""
    return [
        MachineEvent(
            event.at_us, event.available, nodes_of(event.nodes, cores_per_node), event.cause
        )
        for event in events
    ]


T = TypeVar("T")
Key = tuple[int, int]

SMALL = 16
"""Maximum length of ranges that only the insertion sort sorts."""


def batsim_order(items: Sequence[T], keys: Sequence[Key]) -> list[T]:
    """Return the items sorted by their keys.

    Items with equal keys have the order that Batsim uses.
    """
    if len(set(keys)) == len(keys):  # without equal keys every sort has the same result
        order = sorted(range(len(keys)), key=keys.__getitem__)
        return [items[i] for i in order]
    pairs = [(key, i) for i, key in enumerate(keys)]
    _quicksort(pairs, 0, len(pairs), 2 * max(len(pairs).bit_length() - 1, 0))
    pairs.sort(key=lambda pair: pair[0])  # stable, like the final insertion sort
    return [items[i] for _, i in pairs]


Pairs = list[tuple[Key, int]]


def _quicksort(pairs: Pairs, first: int, last: int, depth: int) -> None:
    while last - first > SMALL:
        if depth == 0:
            return
        depth -= 1
        cut = _partition(pairs, first, last)
        _quicksort(pairs, cut, last, depth)
        last = cut


def _partition(pairs: Pairs, first: int, last: int) -> int:
    """Partition by the median of three. Return the start of the upper part."""
    _median_first(pairs, first, first + 1, first + (last - first) // 2, last - 1)
    pivot, low, high = pairs[first][0], first + 1, last
    while True:
        while pairs[low][0] < pivot:
            low += 1
        high -= 1
        while pivot < pairs[high][0]:
            high -= 1
        if low >= high:
            return low
        _swap(pairs, low, high)
        low += 1


def _median_first(pairs: Pairs, to: int, a: int, b: int, c: int) -> None:
    low, middle, high = (pairs[i][0] for i in (a, b, c))
    if low < middle:
        median = b if middle < high else c if low < high else a
    else:
        median = a if low < high else c if middle < high else b
    _swap(pairs, to, median)


def _swap(pairs: list[Any], i: int, j: int) -> None:
    pairs[i], pairs[j] = pairs[j], pairs[i]


def write_events5(events: Iterable[ExternalEvent], path: Path) -> None:
    """Write an event file for Batsim 5, a line per event in the given order."""
    write_lines(path, (msgspec.json.encode(_five(event)).decode() for event in events))


def write_events4(events: Iterable[ExternalEvent], path: Path) -> None:
    """Write an event file for Batsim 4, a line per event in the given order."""
    write_lines(path, (msgspec.json.encode(_four(event)).decode() for event in events))


def _four(event: ExternalEvent) -> dict[str, Any]:
    """Return the JSON object of an event in Batsim 4's form."""
    if isinstance(event, GenericEvent):
        return {**event.data, "timestamp": batsim_number(event.at_us)}
    kind = AVAILABLE if event.available else UNAVAILABLE
    at_s = batsim_number(event.at_us)
    cores = {"cores_per_node": event.cores_per_node} if event.cores_per_node else {}
    cause = {"cause": event.cause} if event.cause else {}
    return {"type": kind, "resources": str(event.nodes), "timestamp": at_s, **cores, **cause}


def _five(event: ExternalEvent) -> dict[str, Any]:
    return line_to_five(_four(event))


def read_texts(path: Path, number: int) -> list[GenericEvent]:
    """Read an event file for the engine, in the form of Batsim 4 or of Batsim 5.

    Parameters
    ----------
    path : Path
        The file, plain or .gz.
    number : int
        Number of the file among Batsim's event files. It is part of the ids of the events.

    Returns
    -------
    list of GenericEvent
        Events in Batsim's order: sorted only by time. The fields of an event are ``id`` (like
        ``ee0!3``) and the text ``data``.
    """
    events: list[ExternalEvent] = []
    with open_text(Path(path)) as lines:
        for place, line in enumerate(lines, 1):
            if line.strip():
                events.append(read_event(line, f"{path}:{place}"))
    texts = texts_of(events, number)
    return batsim_order(texts, [(text.at_us, 0) for text in texts])


def texts_of(events: Iterable[ExternalEvent], number: int) -> list[GenericEvent]:
    """Return the events of a file for the engine as in `read_texts`, in the given order."""
    return [
        GenericEvent(event.at_us, {"type": GENERIC, "id": f"ee{number}!{place}"} | _text(event))
        for place, event in enumerate(events)
    ]


def _text(event: ExternalEvent) -> dict[str, Any]:
    return {"data": _five(event)["data"]}


def machine_events_in(files: Iterable[Sequence[ExternalEvent]]) -> list[MachineEvent]:
    """Return the failures and repairs of several files, in order of time."""
    events = [event for file in files for event in file if isinstance(event, MachineEvent)]
    return sorted(events, key=lambda event: event.at_us)
