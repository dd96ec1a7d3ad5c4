# SPDX-License-Identifier: Apache-2.0
"""Recorded failures, from event files of Batsim or records, mapped onto a machine of any size.

There are three ways to map a record. None of them is exact.

rank
    Node i of the M recorded nodes becomes node i * N // M of the N nodes of the machine. The number
    of failures of the machine is the same, and neighbours stay neighbours. If several recorded
    nodes become one node, it is down while any of them is down.
share
    Like rank, but a failure of node i takes down all nodes from i * N // M to (i + 1) * N // M, so
    the same share of the machine is down. On a smaller machine, the result is the same as that of
    rank.
rate
    A node has the same failure rate as in the record, so the failure rate of the machine is N / M
    times as large. A smaller machine consists of randomly drawn nodes. A larger machine consists of
    copies of the record. If the last copy is incomplete, its nodes are drawn at random.
    Every copy after the first is rotated in time: it starts at a random time of the record. After
    the end of the record, it continues at the beginning of the record. Therefore, copies do not
    fail at the same times. Each copy keeps the differences between nodes, the repair times and the
    failures that nodes have in common. (Compressing time instead would shorten repairs and daily
    cycles.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import numpy as np

from rebat.core.cores import groups_of
from rebat.core.durations import stream
from rebat.core.errors import InputError, unknown_name
from rebat.core.files import file_hash
from rebat.core.node_events import Outages
from rebat.core.nodes import NodeSet
from rebat.core.units import to_s
from rebat.models.failures.events import (
    MachineEvent,
    Numbers,
    check_alternation,
    machine_mtbf_s,
    read_events,
)
from rebat.models.failures.law import Law, Outage, check_span, events_of
from rebat.models.failures.outages import events_of_outages, grouped, merged_events, outages_of
from rebat.records.forms import AUTO, EVENTS
from rebat.records.options import MAINTAINED, Maintained

if TYPE_CHECKING:
    from rebat.models.failures.records.formats import ReaderOptions


class Recorded(Law, frozen=True):
    """A record of real failures, mapped onto the machine. No node fails after the end of the
    record.

    Parameters
    ----------
    file : str
        The record, in a format of 'rebat failures import', or an event file.
    format : str
        events, lanl, mira-ras, fta or csv. With auto, the first lines determine the format.
    map : str
        How to map the record onto a machine of another size: rank, share or rate; see 'rebat
        failures map'.
    size : int
        Number of nodes of the recorded machine. If 0, use the number that the record states, or
        else the largest number of a failed node, plus 1.
    turn : bool
        If true, each seed starts at another time of the record, and continues at the beginning of
        the record after its end. If false, the seed only affects the random choices of map=rate.
    system : int
        For lanl: number of the system in the record. If 0, use the only system.
    platform : int
        For fta: number of the platform in the record. If -1, use the only platform.
    downtime_s : float
        For mira-ras: minimum length of an outage (default: 1h).
    maintenance : str
        For mira-ras: file of maintenance periods, with lines START,END.
    maintained : str
        For mira-ras: leave-out drops failures during maintenance. With down, the entire machine is
        down during maintenance.
    """

    file: str
    format: str = AUTO
    map: str = "rank"
    size: int = 0
    turn: bool = False
    system: int = 0
    platform: int = -1
    downtime_s: float | None = None
    maintenance: str = ""
    maintained: str = ""

    paths: ClassVar[tuple[str, ...]] = ("file", "maintenance")

    def __post_init__(self) -> None:
        from rebat.models.failures.records.formats import FORMATS  # most laws read no record

        formats = (AUTO, EVENTS, *FORMATS)
        tables = {"format": formats, "map": WAYS, "maintained": ("", *MAINTAINED)}
        for name, choices in tables.items():
            if getattr(self, name) not in choices:
                raise unknown_name(name, getattr(self, name), list(filter(None, choices)))
        if self.downtime_s is not None:
            check_span(self.downtime_s, "downtime")
        if self.size < 0:
            raise InputError(f"is {self.size}", "size", "0 or more")

    @property
    def seeded(self) -> bool:
        """Whether failures depend on the seed. They do if ``turn`` is set or ``map`` is rate."""
        return self.turn or self.map == "rate"

    def outages(self, n_nodes: int, seed: int) -> Iterator[Outage]:
        """Yield the outages of the mapped record, sorted by time."""
        return iter(_outages(self, self._key, n_nodes, seed))

    def machine_events(self, outages: Iterable[Outage]) -> Iterator[MachineEvent]:
        """Yield the events that 'rebat failures import' would write."""
        return merged_events(events_of(outages))

    def mtbf_on(self, n_nodes: int | None) -> float:
        """Return the MTBF (s) of a machine with ``n_nodes`` nodes.

        If ``n_nodes`` is None, return the MTBF of the recorded machine. Failures at the same time
        count as one failure. The mean is over the time from 0 to the last event of the record. With
        map=rate, a machine with twice the nodes fails twice as often. The other ways keep the
        number of failures of the record.
        """
        source = _source(self, self._key)
        mtbf_s = machine_mtbf_s(source.events)
        if not mtbf_s:
            problem = "contains no failure after its beginning, so its MTBF is unknown"
            raise InputError(problem, self.file, "--mtbf as well")
        scales = self.map == "rate" and n_nodes is not None
        return mtbf_s * source.n_nodes / n_nodes if scales and n_nodes else mtbf_s

    @property
    def length_s(self) -> float:
        """Time of the last event of the record, in seconds."""
        return to_s(_source(self, self._key).length_us)

    def survival(self, uptime_s: float, duration_s: float, n_nodes: int) -> float:
        """Raise InputError: recorded failures have no survival probability."""
        expected = "a law that draws failures"
        raise InputError("recorded failures have no failure probability", self.file, expected)

    def identity(self) -> dict[str, Any]:
        """Return the hashes of the files and the parameters that differ from their defaults."""
        parameters = {
            name: value for name, value in self._non_defaults().items() if name not in self.paths
        }
        return {**parameters, **self._content()}

    def label(self) -> str | None:
        """Return the parameters that differ from their defaults, with file names for paths."""
        parameters = {
            name: value for name, value in self._non_defaults().items() if not name.endswith("_s")
        }
        files = {name: Path(parameters[name]).name for name in self.paths if name in parameters}
        return ",".join(f"{name}={_text(value)}" for name, value in (parameters | files).items())

    def read(self) -> tuple[list[MachineEvent], int | None]:
        """Return the events of the record, and its number of nodes.

        The number of nodes is None if the record does not state it.
        """
        from rebat.models.failures.records.formats import ReaderOptions, read_record

        path, options, form = Path(self.file), self._reader_options(), self.form
        if form != EVENTS:
            record = read_record(form, path, options)
            return record.events, record.n_nodes
        if options != ReaderOptions():
            raise InputError(
                "is an event file, for which options of records have no effect",
                str(path),
                "no options",
            )
        return read_events(path), None

    @property
    def form(self) -> str:
        """The format of the record."""
        from rebat.models.failures.records.formats import detected

        return detected(Path(self.file)) if self.format == AUTO else self.format

    @property
    def _key(self) -> tuple[str, ...]:
        return tuple(self._content().values())

    def _non_defaults(self) -> dict[str, Any]:
        defaults = Recorded("")
        return {
            name: getattr(self, name)
            for name in self.__struct_fields__
            if getattr(self, name) != getattr(defaults, name)
        }

    def _content(self) -> dict[str, str]:
        return {
            {"file": "sha256"}.get(name, f"{name}_sha256"): file_hash(Path(getattr(self, name)))
            for name in self.paths
            if getattr(self, name)
        }

    def _reader_options(self) -> ReaderOptions:
        from rebat.models.failures.records.formats import ReaderOptions

        return ReaderOptions(
            system=self.system or None,
            platform=None if self.platform < 0 else self.platform,
            downtime_s=self.downtime_s,
            maintenance=Path(self.maintenance) if self.maintenance else None,
            maintained=cast("Maintained | None", self.maintained or None),
        )


@lru_cache(maxsize=2)
def _source(law: Recorded, content: tuple[str, ...]) -> MappedRecord:
    """Return the record of a law. Each process reads a record only once."""
    events, n_nodes = law.read()
    try:
        return source_of(events, law.size or n_nodes)
    except InputError as error:
        raise error.at(law.file) from None


@lru_cache(maxsize=4)
def _outages(
    law: Recorded, content: tuple[str, ...], n_nodes: int, seed: int
) -> tuple[Outage, ...]:
    """Return the outages of a record on a machine, cached for all policies of a seed."""
    events = mapped(_source(law, content), n_nodes, law.map, seed, law.turn)
    return tuple(grouped(events))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read_events(
    path: Path, cores_per_node: int | None = None, numbers: Numbers = "cores"
) -> list[MachineEvent]:
    """Read an event file. If it is a record, the error says so."""
    try:
        return read_events(path, cores_per_node, numbers)
    except InputError as error:
        from rebat.models.failures.records.formats import rejecting_records

        with rejecting_records(path):
            raise error


class Trace(Law, frozen=True):
    """All failures of an event file (Batsim's --events). The seed has no effect.

    Parameters
    ----------
    file : str
        The event file, plain or .gz.
    numbers : str
        cores or nodes: whether the numbers in the file are core numbers or node numbers. This
        parameter only matters if nodes have several cores.
    """

    drawn: ClassVar[bool] = False
    paths: ClassVar[tuple[str, ...]] = ("file",)

    file: str
    numbers: Numbers = "cores"

    def events(
        self,
        n_nodes: int,
        seed: int = 0,
        horizon_s: float | None = None,
        cores_per_node: int = 1,
    ) -> Iterable[MachineEvent]:
        """Return the events of the file as a list, so that a simulation includes the last event.

        If ``cores_per_node`` is above 1, ``numbers`` states whether the file contains core numbers
        or node numbers. If it contains core numbers, each event must contain all cores of a node or
        none.
        """
        if horizon_s is not None:
            raise InputError(
                "a horizon has no effect on recorded failures", self.file, "no horizon"
            )
        groups_of(n_nodes, cores_per_node)
        events = _read_events(Path(self.file), cores_per_node, self.numbers)
        try:
            check_alternation(events, n_nodes)
        except InputError as error:
            raise error.at(self.file) from None
        return events

    def mtbf_on(self, n_nodes: int | None) -> float:
        """Return the mean time between the failures of the file, from time 0 to its last event."""
        mtbf_s = machine_mtbf_s(self._lines)
        if not mtbf_s:
            problem = "contains no failure after time 0, so its MTBF is unknown"
            raise InputError(problem, self.file, "--mtbf as well")
        return mtbf_s

    @property
    def length_s(self) -> float:
        """Time of the last event, in seconds."""
        return to_s(max((event.at_us for event in self._lines), default=0))

    @property
    def _lines(self) -> list[MachineEvent]:
        return _read_events(Path(self.file))

    def outages(self, n_nodes: int, seed: int) -> Iterator[Outage]:
        """Yield outages of single nodes. A node that is never repaired stays down forever."""
        rows = outages_of(self.events(n_nodes)).rows()
        for node, down_us, up_us in sorted(rows, key=lambda outage: outage[1]):
            yield Outage(down_us, up_us, NodeSet.of([node]))

    def survival(self, uptime_s: float, duration_s: float, n_nodes: int) -> float:
        """Raise InputError: recorded failures have no survival probability."""
        expected = "a law that draws failures"
        raise InputError("recorded failures have no failure probability", self.file, expected)

    def identity(self) -> dict[str, Any]:
        """Return the hash of the file's content, and ``numbers`` unless it is the default."""
        numbers = {} if self.numbers == "cores" else {"numbers": self.numbers}
        return {"sha256": file_hash(Path(self.file)), **numbers}

    def label(self) -> str | None:
        """Return the name of the file, and the parameter ``numbers`` unless it is the default."""
        numbers = "" if self.numbers == "cores" else f",numbers={self.numbers}"
        return f"file={self.file}{numbers}"


WAYS = ("rank", "share", "rate")


class MappedRecord(NamedTuple):
    """A record to map.

    Attributes
    ----------
    events : sequence of MachineEvent
        Failures and repairs.
    outages : Outages
        The same events as outages of single nodes.
    n_nodes : int
        Size of the recorded machine.
    length_us : int
        Length of the record.
    """

    events: Sequence[MachineEvent]
    outages: Outages
    n_nodes: int
    length_us: int


def source_of(events: Sequence[MachineEvent], n_nodes: int | None = None) -> MappedRecord:
    """Return the record with these events.

    By default, ``n_nodes`` is the largest number of a failed node, plus 1.
    """
    outages = outages_of(events)
    if not len(outages.node):
        raise InputError("contains no failures", expected="a record with failures")
    largest = int(outages.node.max())
    if n_nodes is not None and largest >= n_nodes:
        raise InputError(
            f"node {largest} is not on the machine", expected=f"nodes 0 to {n_nodes - 1}"
        )
    return MappedRecord(events, outages, n_nodes or largest + 1, max(events[-1].at_us, 1))


def mapped(
    source: MappedRecord, n_nodes: int, way: str = "rank", seed: int = 0, turn: bool = False
) -> list[MachineEvent]:
    """Return the record mapped onto ``n_nodes`` nodes. Afterwards, no node fails while it is down.

    Parameters
    ----------
    n_nodes : int
        Size of the target machine.
    way : {'rank', 'share', 'rate'}
        See the docstring of the module. If the target machine has the size of the recorded machine,
        the record is not changed.
    seed : int
        Seed of the draws of 'rate' and of the rotation.
    turn : bool
        Whether to rotate the record in time, so that each seed starts at another time of the
        record. With 'rate', the first copy is then rotated too.
    """
    if way not in WAYS:
        raise unknown_name("way to map", way, WAYS)
    if n_nodes < 1:
        raise InputError(f"number of nodes is {n_nodes}", expected="at least 1")
    if n_nodes == source.n_nodes and not turn:
        return list(source.events)
    if way == "rate":
        return events_of_outages(_copies(source, n_nodes, seed, turn).joined())
    outages = _rotated(source, _offset_us(source, seed, 0)) if turn else source.outages
    return events_of_outages(_placed(outages, source.n_nodes, n_nodes, way).joined())


def _placed(outages: Outages, n_from: int, n_to: int, way: str) -> Outages:
    first = outages.node * n_to // n_from
    after = (outages.node + 1) * n_to // n_from if way == "share" else first
    counts = np.maximum(after - first, 1)
    rows = np.repeat(np.arange(len(first)), counts)
    shift = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return Outages(first[rows] + shift, outages.down_us[rows], outages.up_us[rows])


def _copies(source: MappedRecord, n_nodes: int, seed: int, turn: bool) -> Outages:
    """Return the outages of all copies of the record. The last copy may have fewer nodes."""
    n_complete, n_left = divmod(n_nodes, source.n_nodes)
    copies = []
    for number in range(n_complete + (n_left > 0)):
        rotated = number > 0 or turn
        outages = source.outages
        if rotated:
            outages = _rotated(source, _offset_us(source, seed, number))
        place = number * source.n_nodes + np.arange(source.n_nodes)
        if number == n_complete:
            rng = stream(seed, "failures", "mapping", "nodes")
            nodes = np.sort(rng.choice(source.n_nodes, n_left, replace=False))
            place = np.full(source.n_nodes, -1)
            place[nodes] = number * source.n_nodes + np.arange(n_left)
        chosen = outages.at(place[outages.node] >= 0)
        copies.append(chosen._replace(node=place[chosen.node]))
    return Outages(*map(np.concatenate, zip(*copies, strict=True)))


def _offset_us(source: MappedRecord, seed: int, number: int) -> int:
    rng = stream(seed, "failures", "mapping", "turn", number)
    return int(rng.integers(source.length_us))


def _rotated(source: MappedRecord, offset_us: int) -> Outages:
    """Return the record delayed by an offset. The part beyond its end moves to its beginning.

    An outage without an end is assumed to last to the end of the record.
    """
    node, down_us, up_us = source.outages
    length_us = source.length_us
    lasts_us = np.minimum(up_us, np.maximum(length_us, down_us + 1)) - down_us
    down_us = (down_us + offset_us) % length_us
    over_us = np.maximum(down_us + lasts_us - length_us, 0)
    over = over_us > 0
    return Outages(
        np.concatenate([node, node[over]]),
        np.concatenate([down_us, np.zeros(int(over.sum()), dtype=np.int64)]),
        np.concatenate([down_us + lasts_us - over_us, over_us[over]]),
    )
