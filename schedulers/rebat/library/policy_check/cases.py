# SPDX-License-Identifier: Apache-2.0
"""The cases of a policy check: random jobs, failures and operations, or streams of jobs."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import msgspec

from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.units import to_s, to_us
from rebat.library.policy_check.random_inputs import operations, outages, workload
from rebat.models.failures.events import (
    GenericEvent,
    MachineEvent,
    event_line,
    in_order,
    read_event,
)
from rebat.models.operations import MIGRATE, UNDRAIN, operation_of
from rebat.workloads.batsim_json import to_json, workload_of

STREAM_LENGTH = 40
"""Number of jobs in a stream."""


class CheckCase(msgspec.Struct, frozen=True):
    """The input of a small simulation."""

    workload: Workload
    events: list[MachineEvent] = []
    operations: list[GenericEvent] = []
    cores_per_node: int = 1
    latency_us: int = 0
    """Delay in seconds between a decision and its effect."""
    split_instants: bool = False
    """Whether each event is sent in a separate message."""
    stream: bool = False
    """Whether `invariants.check_starts` must hold: jobs start within a bound."""

    @property
    def usual(self) -> bool:
        """Whether decisions have no delay and simultaneous events are in one message."""
        return not (self.latency_us or self.split_instants)


def random_case(seed: int) -> CheckCase:
    """Return a case with failures and drains.

    Some cases have latency, or report simultaneous events in several messages.
    """
    rng = random.Random(seed)
    n_nodes = rng.choice([2, 4, 10])
    jobs = workload(rng, n_nodes)
    cores = 1 if n_nodes == 2 else rng.choice([1, 1, 2])
    events = in_order(outages(rng, n_nodes))
    drains = operations(rng, n_nodes // cores, jobs)
    # Times are whole seconds, so no failure occurs within the latency.
    latency_us = rng.randint(1, 20) if seed % 4 == 1 else 0
    return CheckCase(jobs, events, drains, cores, latency_us, seed % 4 == 2)  # type: ignore[arg-type]


class JobStream(NamedTuple):
    """A stream of jobs for four nodes: equal jobs at equal intervals, except one different job."""

    size: int
    length_s: int
    interval_s: int
    other_size: int
    other_length_s: int


STREAMS = (
    JobStream(1, 8, 3, 4, 5),
    JobStream(2, 9, 5, 4, 6),
    JobStream(1, 8, 2, 3, 4),
    JobStream(4, 6, 6, 4, 6),
    JobStream(4, 5, 5, 1, 9),
    JobStream(2, 4, 2, 2, 12),
    JobStream(3, 7, 7, 2, 9),
)
"""Streams in which an unfair policy does not start the different job before the stream ends.

This job is large, small, long or early.
"""


def stream_case(seed: int) -> CheckCase:
    """Return a stream without failures, on four nodes."""
    rng = random.Random(f"stream {seed}")
    stream = STREAMS[seed % len(STREAMS)]
    place = rng.randint(1, 3)
    jobs = []
    for number in range(STREAM_LENGTH):
        jobs.append(_job(number, stream.size, stream.length_s, number * stream.interval_s))
        if number == place:
            submit_s = number * stream.interval_s + rng.randint(0, stream.interval_s - 1)
            jobs.append(_job("other", stream.other_size, stream.other_length_s, submit_s))
    lengths = {stream.length_s, stream.other_length_s}
    profiles = {f"d{length}": {"type": "delay", "delay": length} for length in sorted(lengths)}
    return CheckCase(Workload("stream", 4, tuple(jobs), profiles), stream=True)


def _job(name: object, size: int, length_s: int, submit_s: int) -> Job:
    return Job(str(name), size, to_us(submit_s), to_us(length_s + 1), f"d{length_s}")


# ---- parts of a case


class CasePart(NamedTuple):
    """Entries that can be removed together from a case."""

    kind: str
    """The list that contains the entries: 'jobs', 'events' or 'operations'."""
    places: tuple[int, ...]
    """The indices of the entries in this list."""


def parts_of(case: CheckCase) -> list[CasePart]:
    """Return the parts that can be removed: jobs, outages, drains (with their ends), migrations."""
    parts = [CasePart("jobs", (place,)) for place in range(len(case.workload.jobs))]
    parts += _pairs("events", [(n, e.available, e.nodes) for n, e in enumerate(case.events)])
    orders = []
    for place, event in enumerate(case.operations):
        operation = operation_of(event.data)
        if operation.kind == MIGRATE or operation.nodes is None:
            parts.append(CasePart("operations", (place,)))
        else:
            orders.append((place, operation.kind == UNDRAIN, operation.nodes))
    return parts + _pairs("operations", orders)


def _pairs(kind: str, rows: Iterable[tuple[int, bool, NodeSet]]) -> list[CasePart]:
    """Return a part for each failure and its repair, or for each drain and its undrain."""
    parts, begun = [], dict[int, int]()
    for place, ends, nodes in rows:
        if ends:
            places = {begun.pop(node) for node in nodes} | {place}
            parts.append(CasePart(kind, tuple(sorted(places))))
        else:
            begun.update(dict.fromkeys(nodes, place))
    return parts


def of_parts(case: CheckCase, parts: Collection[CasePart]) -> CheckCase:
    """Return a copy of the case that contains only these parts."""

    def chosen(kind: str, rows: Any) -> list[Any]:
        places = {place for part in parts if part.kind == kind for place in part.places}
        return [row for place, row in enumerate(rows) if place in places]

    jobs = chosen("jobs", case.workload.jobs)
    names = {job.id for job in jobs}
    orders = chosen("operations", case.operations)
    orders = [row for row in orders if row.data.get("job", "") in names | {""}]
    return msgspec.structs.replace(
        case,
        workload=msgspec.structs.replace(case.workload, jobs=tuple(jobs)),
        events=chosen("events", case.events),
        operations=orders,
    )


# ---- as JSON


def case_record(case: CheckCase) -> dict[str, Any]:
    """Convert a case to plain data that `case_of` reads."""
    jobs = {job.profile for job in case.workload.jobs}
    used = {n: p for n, p in case.workload.profiles.items() if n in jobs or p["type"] == "delay"}
    simple = all(used[name]["type"] == "delay" for name in jobs)
    if simple:
        used = {name: profile for name, profile in used.items() if name in jobs}
    document = to_json(msgspec.structs.replace(case.workload, profiles=used))
    return {
        "workload": document,
        "events": [msgspec.json.decode(event_line(event)) for event in case.events],
        "operations": [{**e.data, "timestamp": to_s(e.at_us)} for e in case.operations],
        "cores_per_node": case.cores_per_node,
        "latency_s": to_s(case.latency_us),
        "split_instants": case.split_instants,
        "stream": case.stream,
    }


def case_of(record: dict[str, Any]) -> CheckCase:
    """Return the case that `case_record` converted to plain data."""
    try:
        return CheckCase(
            workload_of("case", record["workload"]),
            [_machine_event(row) for row in record["events"]],
            [_operation(row) for row in record["operations"]],
            int(record["cores_per_node"]),
            to_us(record["latency_s"]),
            bool(record["split_instants"]),
            bool(record["stream"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"invalid case: {type(error).__name__}: {error}") from None


def _machine_event(row: dict[str, Any]) -> MachineEvent:
    event = read_event(msgspec.json.encode(row).decode(), "events")
    if not isinstance(event, MachineEvent):
        raise InputError("is not a machine event", "events")
    return event


def _operation(row: dict[str, Any]) -> GenericEvent:
    data = {key: value for key, value in row.items() if key != "timestamp"}
    return GenericEvent(to_us(row["timestamp"]), data)
