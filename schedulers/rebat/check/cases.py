# SPDX-License-Identifier: Apache-2.0
"""The cases of a policy check: random jobs, failures and operations, or streams of jobs.

All times are small whole numbers of seconds, so that many events happen at the same time. A clock
that the check controls replaces the clock of the system.
"""

from __future__ import annotations

import datetime
import random
import time
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import msgspec

from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.units import to_s, to_us
from rebat.models.checkpoint import add_perfect, add_young_daly
from rebat.models.failures.events import (
    GenericEvent,
    MachineEvent,
    event_line,
    in_order,
    read_event,
)
from rebat.models.operations import MIGRATE, UNDRAIN, operation_of
from rebat.models.tiers import add_tiers, parse_tiers
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


def busy_case(seed: int) -> CheckCase:
    """Return a case in which most nodes are busy while failures hit several jobs at a time.

    Some busy nodes are drained. Few nodes are free for jobs that lost nodes.
    """
    rng = random.Random(f"busy {seed}")
    n_nodes = rng.choice([5, 6, 8])
    lengths = range(6, 13)
    jobs = []
    for number in range(rng.randint(3, 7)):
        size, length_s = rng.randint(1, 3), rng.choice(lengths)
        job = _job(number, size, length_s, rng.choice([0, 0, 0, 1, rng.randint(2, 12)]))
        stays = {"checkpointable": False} if rng.random() < 0.5 else {}  # also on a drained node
        jobs.append(msgspec.structs.replace(job, extra=stays))
    profiles = {f"d{length}": {"type": "delay", "delay": length} for length in lengths}
    made = Workload("busy", n_nodes, tuple(jobs), profiles)
    if rng.random() < 0.5:
        made = add_perfect(made)
    events: list[MachineEvent] = []
    drains: list[GenericEvent] = []
    at, drained = 0, sorted(rng.sample(range(4), rng.choice([0, 1, 2, 2])))
    for node in drained:
        begin, until = rng.randint(1, 4), rng.randint(8, 30)
        nodes = str(node)
        drains.append(
            GenericEvent(
                to_us(begin), {"type": "drain", "nodes": nodes, "spanning": rng.random() < 0.3}
            )
        )
        drains.append(GenericEvent(to_us(until), {"type": "undrain", "nodes": nodes}))
    for _ in range(rng.randint(1, 3)):
        at += rng.randint(3, 6)
        for node in rng.sample(range(n_nodes), rng.randint(2, 3)):
            events.append(MachineEvent(to_us(at), False, NodeSet.of([node])))
            events.append(MachineEvent(to_us(at + 2), True, NodeSet.of([node])))
    drains.sort(key=lambda event: event.at_us)
    return CheckCase(made, in_order(events), drains)  # type: ignore[arg-type]


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


TIERS = (
    "peer=1/1@2+remote=1/2@4", "memory=1/0@1+remote=2/1@3", "memory=0/1@1+peer=1/1@2+remote=1/2@4",
)  # fmt: skip
"""Storage tiers of checkpoints, from which a workload chooses."""


def workload(rng: random.Random, n_nodes: int) -> Workload:
    """Return random jobs. Often several jobs have the same times.

    Some jobs are composed of two delays, and some exceed their walltime.
    """
    profiles = {f"d{length}": {"type": "delay", "delay": length} for length in range(1, 13)}
    profiles |= {
        f"c{a}{b}": {"type": "composed", "seq": [f"d{a}", f"d{b}"]} for a in (1, 4) for b in (2, 6)
    }
    composed = rng.random() < 0.3
    names = list(profiles) if composed else [name for name in profiles if name[0] == "d"]
    rigid = rng.random() < 0.5
    jobs: list[Job] = []
    for number in range(rng.randint(1, 12)):
        size = rng.randint(1, n_nodes)
        jobs.append(
            Job(
                str(number),
                size,
                to_us(rng.randint(0, 20)),
                rng.choice([None, to_us(rng.randint(1, 20))]),
                rng.choice(names),
                {} if rigid else shape(rng, size, n_nodes),
            )
        )
    made = Workload("random", n_nodes, tuple(jobs), profiles)
    if composed or rng.random() < 0.5:
        return made
    if rng.random() < 0.5:
        return add_perfect(made)
    if rng.random() < 0.5:
        tiers = parse_tiers(rng.choice(TIERS))
        shares = (0.3, 0.6)[: len(tiers.lights)] if tiers.lights[1:] else 0.6
        return add_tiers(made, tiers, n_nodes=n_nodes, mtbf_s=8, light_share=shares, software="gpu")
    return add_young_daly(made, n_nodes=n_nodes, mtbf_s=8, cost_s=1.0, recovery_s=2.0)


def shape(rng: random.Random, size: int, n_nodes: int) -> dict[str, Any]:
    """Choose at random fields that make a job of this size rigid, moldable or malleable."""
    sizes = sorted(rng.sample(range(1, n_nodes + 1), rng.randint(1, min(3, n_nodes))))
    ends = {"min": rng.randint(1, size), "max": rng.randint(size, n_nodes)}
    return rng.choice(
        [
            {},
            {"shape": {"kind": "moldable", "sizes": sizes}},
            {"shape": {"kind": "malleable"} | ends},
        ]
    )


def outages(rng: random.Random, n_nodes: int) -> list[MachineEvent]:
    """Return failures and repairs of nodes, often at equal times.

    Every node is repaired in the end.
    """
    events: list[MachineEvent] = []
    group = rng.choice([1, 1, 2])
    for node in range(0, n_nodes, group):
        at = 0
        for _ in range(rng.randint(0, 3)):
            down = at + rng.choice([0, rng.randint(0, 25)]) + (at == 0)
            at = down + rng.randint(1, 12)
            nodes = NodeSet.of(range(node, node + group))
            cause = rng.choice([None, None, "gpu", "nic"])
            events.append(MachineEvent(to_us(down), False, nodes, cause))
            events.append(MachineEvent(to_us(at), True, nodes))
    rng.shuffle(events)
    return events


def operations(rng: random.Random, n_nodes: int, jobs: Workload) -> list[GenericEvent]:
    """Return drains, undrains and migrations. No node stays drained in the end."""
    rows: list[GenericEvent] = []
    drained, at = set[int](), 0
    for _ in range(rng.choice([0, 0, 6])):
        at += rng.randint(0, 6)
        node = rng.randrange(n_nodes)
        data: dict[str, Any] = {
            "type": "undrain" if node in drained else "drain",
            "nodes": str(node),
        }
        if rng.random() < 0.3:
            data = {"type": "migrate", "job": rng.choice(jobs.jobs).id}
            if rng.random() < 0.5:
                data["nodes"] = str(node)
        elif node in drained:
            drained.remove(node)
        else:
            drained.add(node)
            data["spanning"] = rng.random() < 0.7
        rows.append(GenericEvent(to_us(at), data))
    if drained:
        nodes = str(NodeSet.of(drained))
        rows.append(GenericEvent(to_us(at + 5), {"type": "undrain", "nodes": nodes}))
    return rows


NAMES = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
"""Functions of the module ``time`` that return seconds. ``NAME_ns`` returns nanoseconds."""


class SteppedClock:
    """A clock that advances by a fixed step whenever it is read.

    Parameters
    ----------
    start_ns : int
        Time of the first reading, in nanoseconds since the Unix epoch.
    step_ns : int
        Time by which each reading advances the clock, in nanoseconds.
    """

    def __init__(self, start_ns: int, step_ns: int) -> None:
        self._now_ns, self._step_ns = start_ns, step_ns

    def nanoseconds(self) -> int:
        """Read the clock, in nanoseconds."""
        self._now_ns += self._step_ns
        return self._now_ns

    def seconds(self) -> float:
        """Read the clock, in seconds."""
        return self.nanoseconds() / 1e9

    def install(self) -> None:
        """Replace the clocks of ``time`` and ``datetime`` in this process.

        Modules that imported a function before the call still use the clock of the system.
        """
        for name in NAMES:
            setattr(time, name, self.seconds)
            setattr(time, f"{name}_ns", self.nanoseconds)
        clock, local = self, time.localtime

        class DateTime(datetime.datetime):
            @classmethod
            def now(cls, tz: datetime.tzinfo | None = None) -> Any:
                return cls.fromtimestamp(clock.seconds(), tz)

            @classmethod
            def utcnow(cls) -> Any:
                return cls.now(datetime.UTC).replace(tzinfo=None)

            @classmethod
            def today(cls) -> Any:
                return cls.now()

        class Date(datetime.date):
            @classmethod
            def today(cls) -> Any:
                return cls.fromtimestamp(clock.seconds())

        def localtime(seconds: Any = None) -> time.struct_time:
            return local(clock.seconds() if seconds is None else seconds)

        setattr(datetime, "datetime", DateTime)  # noqa: B010  (mypy: not to a type)
        setattr(datetime, "date", Date)  # noqa: B010
        time.localtime = localtime
