# SPDX-License-Identifier: Apache-2.0
"""Machine events: Batsim's ``--events`` files, their checks, and a summary of them.

A line of such a file is a JSON object, ``{"type": "machine_unavailable", "resources": "0-4 6",
"timestamp": 10}`` or ``machine_available``. Per machine the two must alternate, beginning with
``machine_unavailable``, or Batsim dies. Other types are Batsim's generic events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rebat.core.cores import nodes_of
from rebat.core.errors import InputError
from rebat.core.files import open_text, write_text
from rebat.core.nodes import NodeSet
from rebat.core.units import MAX_SECONDS, to_s, to_us
from rebat.models.failures.batsim_order import batsim_order

UNAVAILABLE, AVAILABLE = "machine_unavailable", "machine_available"

MAX_NODE = 10_000_000
"""Node ids above this are taken for mistakes: no machine is so large."""


class MachineEvent(msgspec.Struct, frozen=True):
    """Nodes become available (repaired) or unavailable (failed) at a date in microseconds."""

    at_us: int
    available: bool
    nodes: NodeSet


class GenericEvent(msgspec.Struct, frozen=True):
    """An event of any other type: Batsim hands its JSON on to the scheduler, if it is asked to."""

    at_us: int
    data: dict[str, Any]


ExternalEvent = MachineEvent | GenericEvent


class EventFile(msgspec.Struct, frozen=True):
    """What a file holds, in Batsim's order."""

    events: list[ExternalEvent]

    @property
    def machine_events(self) -> list[MachineEvent]:
        """Failures and repairs."""
        return [event for event in self.events if isinstance(event, MachineEvent)]

    @property
    def generic_types(self) -> Counter[str]:
        """How many events there are of each type that Batsim does not know."""
        generic = (event for event in self.events if isinstance(event, GenericEvent))
        return Counter(str(event.data["type"]) for event in generic)


def in_order(events: Iterable[ExternalEvent]) -> list[ExternalEvent]:
    """Events by date; at equal dates repairs, then failures, then generic events."""
    return sorted(events, key=_key)


def _key(event: ExternalEvent) -> tuple[int, int]:
    kind = 2 if isinstance(event, GenericEvent) else int(not event.available)
    return event.at_us, kind


def read_events(path: Path, cores_per_node: int = 1) -> list[MachineEvent]:
    """Read the machine events of an event file, plain or .gz; see `read_event_file`."""
    return read_event_file(path, cores_per_node).machine_events


def read_event_file(path: Path, cores_per_node: int = 1) -> EventFile:
    """Read an event file, plain or .gz.

    The lines need not be sorted (the node-stealing authors write each repair after its failure):
    like Batsim, the reader sorts them. Events of other types are kept as they are. The processors
    that make up a node must come together.

    Raises
    ------
    InputError
        With file and line: broken JSON, missing fields, bad node sets or dates, a part of a node,
        and a machine that fails while it is down or is repaired while it is up.
    """
    read: list[tuple[ExternalEvent, str]] = []
    with open_text(Path(path)) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                where = f"{path}:{number}"
                event = read_event(line, where)
                _check_whole(event, where, cores_per_node)
                read.append((event, where))
    placed = batsim_order(read, [_key(event) for event, _ in read])
    machine = [(event, where) for event, where in placed if isinstance(event, MachineEvent)]
    _check([event for event, _ in machine], [where for _, where in machine], MAX_NODE + 1)
    return EventFile([event for event, _ in placed])


def read_event(line: str, where: str) -> ExternalEvent:
    """A line of such a file; ``where`` is what errors call it."""
    try:
        raw = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"broken JSON: {error}", where, "one JSON object per line") from None
    if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
        raise InputError("not an event", where, "an object with type, resources, timestamp")
    at_us = to_us(_timestamp(raw, where))
    if raw["type"] not in (UNAVAILABLE, AVAILABLE):
        return GenericEvent(at_us, raw)
    return MachineEvent(at_us, raw["type"] == AVAILABLE, _nodes(raw, where))


def _check_whole(event: ExternalEvent, where: str, cores_per_node: int) -> None:
    if isinstance(event, MachineEvent) and cores_per_node > 1:
        try:
            nodes_of(event.nodes, cores_per_node)
        except InputError as error:
            raise error.at(where) from None


def _timestamp(raw: dict[str, Any], where: str) -> float:
    expected = f"seconds, from 0 to {MAX_SECONDS:.0e}"
    value = raw.get("timestamp")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is None or not (number and 0 <= value <= MAX_SECONDS):
        what = repr(value)[:60] if "timestamp" in raw else "missing"
        raise InputError(f"timestamp is {what}", where, expected)
    return float(value)


def _nodes(raw: dict[str, Any], where: str) -> NodeSet:
    text = raw.get("resources")
    if not isinstance(text, str):
        what = repr(text)[:60] if "resources" in raw else "missing"
        raise InputError(f"resources is {what}", where, "a string like '0-3 5'")
    try:
        nodes = NodeSet.parse(text)
    except InputError as error:
        raise error.at(where) from None
    if not len(nodes):
        raise InputError("resources is empty", where, "at least one node, like '0-3 5'")
    return nodes


def check_alternation(events: Sequence[MachineEvent], n_nodes: int) -> None:
    """Check a list in memory as Batsim would: sorted, on the machine, alternating per node.

    Raises
    ------
    InputError
        Naming the first event that is wrong, by its position in the list and its date.
    """
    _check(events, [f"event {n} at {to_s(e.at_us):g} s" for n, e in enumerate(events)], n_nodes)


def _check(events: Sequence[MachineEvent], places: Sequence[str], n_nodes: int) -> None:
    down: set[int] = set()
    last_us = 0
    for event, where in zip(events, places, strict=True):
        if event.at_us < last_us:
            raise InputError("is earlier than the event before it", where, "ascending dates")
        last_us = event.at_us
        _check_on_machine(event, where, n_nodes)
        _alternate(event, where, down)


def _check_on_machine(event: MachineEvent, where: str, n_nodes: int) -> None:
    largest = int(event.nodes.intervals[-1, 1]) if len(event.nodes) else 0
    if largest >= n_nodes:
        raise InputError(f"node {largest} is not on the machine", where, f"0 to {n_nodes - 1}")


def _alternate(event: MachineEvent, where: str, down: set[int]) -> None:
    """Apply one event to the set of nodes that are down, or say why that cannot be."""
    nodes = set(event.nodes)
    wrong = nodes - down if event.available else nodes & down
    if wrong:
        state = "available while it is up" if event.available else "unavailable while it is down"
        expected = f"{UNAVAILABLE} and {AVAILABLE} in turn for each node"
        raise InputError(f"node {min(wrong)} becomes {state}", where, expected)
    if event.available:
        down -= nodes
    else:
        down |= nodes


def write_events(events: Iterable[MachineEvent], path: Path, decimals: int = 6) -> None:
    """Write an event file, a line per event in the order given; .gz by its name.

    Parameters
    ----------
    events : iterable of MachineEvent
    path : Path
    decimals : int
        Timestamps (s) are rounded to so many decimals, trailing zeros cut; the node-stealing
        authors use 2, Batsim's own resolution is 6.
    """
    write_text(Path(path), "".join(_line(event, decimals) for event in events))


def _line(event: MachineEvent, decimals: int) -> str:
    kind = AVAILABLE if event.available else UNAVAILABLE
    at_s = round(to_s(event.at_us), decimals)
    return f'{{"type": "{kind}", "resources": "{event.nodes}", "timestamp": {at_s!r}}}\n'


def machine_mtbf_s(events: Sequence[MachineEvent]) -> float | None:
    """Mean time between failures of the machine: all that fails at one time is one failure.

    From date 0 to the last event; None where nothing fails.
    """
    dates = {event.at_us for event in events if not event.available}
    return to_s(events[-1].at_us) / len(dates) if dates else None


def describe_events(
    events: Sequence[MachineEvent],
    n_nodes: int,
    window_s: tuple[float, float] | None = None,
    n_busiest: int = 5,
) -> dict[str, Any]:
    """What a failure scenario amounts to, in plain numbers.

    Parameters
    ----------
    events : sequence of MachineEvent
        Sorted and alternating.
    n_nodes : int
        Size of the machine.
    window_s : (float, float), optional
        First and last date to look at, in seconds; down intervals are clipped to it. Default:
        from 0 to the last event.
    n_busiest : int
        How many of the most often failing nodes to list.

    Returns
    -------
    dict
        ``failures`` (failures of single nodes in the window), ``node_mtbf_s`` (window / failures),
        ``dates`` (times at which something fails), ``mtbf_s`` (window / dates: of the machine),
        ``mean_downtime_s`` (of the failures in the window that are repaired at all),
        ``downtime_share`` (of the node-seconds of the window), ``nodes_hit``,
        ``busiest_nodes`` (pairs of node and count), ``window_s``.
    """
    check_alternation(events, n_nodes)
    end_us = events[-1].at_us if events else 0
    low, high = (to_us(window_s[0]), to_us(window_s[1])) if window_s else (0, end_us)
    intervals = down_intervals(events)
    last = high - 1 if window_s else high  # half open, but the default holds the last event
    hits = [(node, a, b) for node, a, b in intervals if low <= a <= last]
    repaired = [b - a for _, a, b in hits if b is not None]
    down_us = sum(
        max(0, min(high if b is None else b, high) - max(a, low)) for _, a, b in intervals
    )
    counts = Counter(node for node, _, _ in hits)
    dates = len({a for _, a, _ in hits})
    return {
        "failures": len(hits),
        "dates": dates,
        "mtbf_s": to_s(high - low) / dates if hits else None,
        "node_mtbf_s": to_s(high - low) / len(hits) if hits else None,
        "mean_downtime_s": to_s(sum(repaired)) / len(repaired) if repaired else None,
        "downtime_share": down_us / (n_nodes * (high - low)) if high > low else 0.0,
        "nodes_hit": len(counts),
        "busiest_nodes": sorted(counts.items(), key=lambda c: (-c[1], c[0]))[:n_busiest],
        "window_s": (to_s(low), to_s(high)),
    }


def events_of_nodes(events: Sequence[MachineEvent], cores_per_node: int) -> list[MachineEvent]:
    """Events of processors as those of the nodes that they make up; see `groups.nodes_of`."""
    return [
        MachineEvent(event.at_us, event.available, nodes_of(event.nodes, cores_per_node))
        for event in events
    ]


def down_intervals(events: Sequence[MachineEvent]) -> list[tuple[int, int, int | None]]:
    """(node, from, to) of every failure, ``to`` None when the node never comes back."""
    since: dict[int, int] = {}
    closed: list[tuple[int, int, int | None]] = []
    for event in events:
        for node in event.nodes:
            if event.available:
                closed.append((node, since.pop(node), event.at_us))
            else:
                since[node] = event.at_us
    return closed + [(node, at_us, None) for node, at_us in since.items()]
