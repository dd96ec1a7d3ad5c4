# SPDX-License-Identifier: Apache-2.0
"""The trace of a run: a track per node or per group of nodes, and curves of the entire machine.

If several jobs use a group of nodes at the same time, they are in different rows of its track. A
trace consists of tracks, slices on tracks, flows between slices, and counters.

Source: protos/perfetto/trace in the repository of Perfetto (TracePacket, TrackEvent,
TrackDescriptor, InternedData). Each text is written once, and events refer to it by number.
rebat does not use the library protobuf, because its versions may write different bytes.
"""

from __future__ import annotations

import heapq
import struct
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from rebat.core.attempts import job_name
from rebat.core.nodes import NodeSet
from rebat.core.units import to_s
from rebat.results.measures.timeline import CAUSES, Blocks, Int, Timeline, series_of

_VARINT, _FIXED64, _LENGTH = 0, 1, 2


def varint(value: int) -> bytes:
    """Return a number of at least 0 in groups of 7 bits, the lowest first.

    >>> varint(1).hex(), varint(300).hex()
    ('01', 'ac02')
    """
    if value < 0x80:
        return value.to_bytes(1, "little")
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """Return a field with a number of at least 0."""
    return varint(field << 3 | _VARINT) + varint(value)


def message(field: int, content: bytes) -> bytes:
    """Return a field with a message or with bytes."""
    return varint(field << 3 | _LENGTH) + varint(len(content)) + content


def text(field: int, value: str) -> bytes:
    """Return a field with a text. Surrogates, which UTF-8 does not have, become ``?``."""
    return message(field, value.encode(errors="replace"))


def double(field: int, value: float) -> bytes:
    """Return a field with a floating-point number."""
    return varint(field << 3 | _FIXED64) + struct.pack("<d", value)


def fixed64(field: int, value: int) -> bytes:
    """Return a field with a number of 8 bytes."""
    return varint(field << 3 | _FIXED64) + struct.pack("<Q", value)


MOST_TRACKS = 256
"""Default maximum number of node tracks."""

CAUSED_BY_A_JOB = "for "
"""Beginning of a reason of a stop that names the job that gets the nodes."""


class Piece(NamedTuple):
    """The part of an attempt, outage or hold that uses the nodes of one track."""

    begin_us: int
    end_us: int
    kind: str
    row: int
    group: int
    nodes: str


class StealFlow(NamedTuple):
    """The row of an attempt that was stopped for a job, and the row of this job's next attempt."""

    victim: int
    successor: int


def nodes_per_track(n_nodes: int, most_tracks: int = MOST_TRACKS) -> int:
    """Return the smallest power of 2 such that the machine needs at most ``most_tracks`` tracks.

    >>> nodes_per_track(256), nodes_per_track(257), nodes_per_track(49152)
    (1, 2, 256)
    """
    size = 1
    while -(-n_nodes // size) > most_tracks:
        size *= 2
    return size


def run_trace(
    timeline: Timeline, names: Sequence[str] = (), most_tracks: int = MOST_TRACKS
) -> PerfettoTrace:
    """Return the trace of a run.

    Parameters
    ----------
    timeline : Timeline
        The run.
    names : list of str
        Names of the nodes. Empty if they have no names.
    most_tracks : int
        The maximum number of node tracks (see `nodes_per_track`).
    """
    trace = PerfettoTrace()
    root = trace.track(f"rebat: {timeline.name}")
    _add_curves(trace, root, timeline)
    size = nodes_per_track(timeline.n_nodes, most_tracks)
    pieces = _pieces(timeline, size)
    slices = _Slices(timeline, trace, pieces)
    by_group: dict[int, list[Piece]] = defaultdict(list)
    for piece in sorted(pieces):
        by_group[piece.group].append(piece)
    for group in range(-(-timeline.n_nodes // size)):
        first, last = group * size, min((group + 1) * size, timeline.n_nodes) - 1
        title = _title(first, last, names)
        lanes = [trace.track(title, root, group + 10)]
        for piece, lane in in_lanes(by_group[group]):
            if lane == len(lanes):
                lanes.append(trace.track(title, root, group + 10))
            slices.add(lanes[lane], piece)
    return trace


def steals_of(timeline: Timeline) -> list[StealFlow]:
    """Return each attempt that was stopped for a job, with the next attempt of this job."""
    starts: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in np.flatnonzero(timeline.ran).tolist():
        starts[timeline.job_id[row]].append((int(timeline.start_us[row]), row))
    for attempts in starts.values():
        attempts.sort()
    steals = []
    for victim in np.flatnonzero(timeline.ran).tolist():
        attempts = starts.get(_beneficiary(timeline.why[victim], starts), [])
        at = bisect_left(attempts, (int(timeline.end_us[victim]), -1))
        if at < len(attempts):
            steals.append(StealFlow(victim, attempts[at][1]))
    return steals


def _beneficiary(why: str, jobs: Iterable[str]) -> str:
    """Return the job for which an attempt was stopped. It is empty if the reason names no job."""
    if not why.startswith(CAUSED_BY_A_JOB):
        return ""
    name = why.removeprefix(CAUSED_BY_A_JOB)
    return name if name in jobs else job_name(name)


def in_lanes(pieces: Iterable[Piece]) -> Iterator[tuple[Piece, int]]:
    """Yield each piece with its row on the track. Pieces in the same row do not overlap.

    ``pieces`` must be sorted by begin. Each piece gets the lowest free row.
    """
    free: list[int] = []
    used: list[tuple[int, int]] = []
    for piece in pieces:
        while used and used[0][0] <= piece.begin_us:
            heapq.heappush(free, heapq.heappop(used)[1])
        lane = heapq.heappop(free) if free else len(used)
        heapq.heappush(used, (piece.end_us, lane))
        yield piece, lane


class _Slices:
    """Converts pieces to slices of a trace."""

    def __init__(self, timeline: Timeline, trace: PerfettoTrace, pieces: Iterable[Piece]) -> None:
        self._timeline, self._trace = timeline, trace
        self._sizes = timeline.sizes
        self._groups: dict[int, list[int]] = defaultdict(list)
        for piece in pieces:
            if piece.kind == "attempt":
                self._groups[piece.row].append(piece.group)
        self._flows: dict[tuple[int, int], list[int]] = defaultdict(list)
        self._ended_flows: dict[tuple[int, int], list[int]] = defaultdict(list)
        for number, steal in enumerate(steals_of(timeline), 1):
            groups = self._ends_of(steal)
            self._flows[steal.victim, groups[0]].append(number)
            self._ended_flows[steal.successor, groups[1]].append(number)

    def add(self, track: int, piece: Piece) -> None:
        """Add a piece to a track."""
        span_us = piece.begin_us, piece.end_us
        if piece.kind == "attempt":
            self._add_attempt(track, piece)
        else:
            of = f" for {self._timeline.held_for[piece.row]}" if piece.kind == "held" else ""
            nodes = {"nodes": piece.nodes}
            self._trace.slice(track, piece.kind, piece.kind + of, *span_us, nodes)

    def _add_attempt(self, track: int, piece: Piece) -> None:
        row, place = piece.row, (piece.row, piece.group)
        is_first = piece.group == self._groups[row][0]
        arguments = {**self._names(row), **(self._figures(row) if is_first else {})}
        self._trace.slice(
            track,
            piece.kind,
            f"job {self._timeline.job_id[row]}",
            piece.begin_us,
            piece.end_us,
            {**arguments, "nodes": piece.nodes},
            inner_slices(self._timeline, row) if is_first else (),
            self._flows.get(place, ()),
            self._ended_flows.get(place, ()),
        )

    def _ends_of(self, steal: StealFlow) -> tuple[int, int]:
        """Return the tracks on which the arrow of a steal begins and ends.

        If both attempts share tracks, both are the first common track. Otherwise, they are the
        first track of each attempt.
        """
        of_victim, of_successor = self._groups[steal.victim], self._groups[steal.successor]
        common = sorted(set(of_victim) & set(of_successor))
        return (common[0], common[0]) if common else (of_victim[0], of_successor[0])

    def _names(self, row: int) -> Arguments:
        """Return the arguments that an attempt has on all its tracks."""
        run = self._timeline
        return {
            "attempt": int(run.number[row]),
            "cause": str(CAUSES[run.cause[row]]),
            **({"why": run.why[row]} if run.why[row] else {}),
        }

    def _figures(self, row: int) -> Arguments:
        """Return the arguments that an attempt has only on its first track, to save space."""
        run = self._timeline
        return {
            "job_id": run.job_id[row],
            "size": int(self._sizes[row]),
            "submission_time": to_s(int(run.submit_us[row])),
            "queued_time": to_s(int(run.queued_us[row])),
            "kept_seconds": to_s(int(run.kept_us[row])),
            "lost_later_seconds": to_s(int(run.lost_us[row])),
        }


def inner_slices(timeline: Timeline, row: int) -> Iterator[tuple[str, int, int]]:
    """Yield the recovery and the checkpoints of an attempt as tuples (name, begin, end)."""
    pattern, end_us = timeline.pattern, int(timeline.end_us[row])
    begin_us = int(timeline.start_us[row])
    recovery_us = int(pattern.recovery_us[row])
    if recovery_us > 0:
        yield "recovery", begin_us, min(begin_us + recovery_us, end_us)
    first_us, period_us = int(pattern.first_us[row]), int(pattern.period_us[row])
    cost_us = int(pattern.cost_us[row])
    if first_us < 0:
        return
    begins = range(begin_us + recovery_us + first_us, end_us, max(period_us + cost_us, 1))
    for at_us in begins:
        yield "checkpoint", at_us, min(at_us + cost_us, end_us)


def _pieces(timeline: Timeline, size: int) -> list[Piece]:
    down, held = timeline.outages, timeline.held
    spans = (
        ("attempt", timeline.start_us, timeline.end_us, timeline.blocks),
        ("down", down.begin_us, down.end_us, _one_block_each(down.first, down.last)),
        ("held", held.begin_us, held.end_us, _one_block_each(held.first, held.last)),
    )
    return [
        Piece(int(begin_us[row]), int(end_us[row]), kind, row, group, str(NodeSet(nodes)))
        for kind, begin_us, end_us, blocks in spans
        for row, group, nodes in _by_group(blocks, size)
        if begin_us[row] >= 0
    ]


def _one_block_each(first: Int, last: Int) -> Blocks:
    return Blocks(np.arange(len(first)), first, last)


def _by_group(blocks: Blocks, size: int) -> Iterator[tuple[int, int, Int]]:
    """Divide blocks of nodes at the bounds of groups. Yield owner, group and intervals of nodes."""
    counts = blocks.last // size - blocks.first // size + 1
    block = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(block)) - np.repeat(np.cumsum(counts) - counts, counts)
    group = blocks.first[block] // size + number
    first = np.maximum(blocks.first[block], group * size)
    last = np.minimum(blocks.last[block], (group + 1) * size - 1)
    owner = blocks.owner[block]
    apart = np.flatnonzero((np.diff(owner) != 0) | (np.diff(group) != 0)) + 1
    intervals = np.stack([first, last], axis=1)
    for at, nodes in zip([0, *apart.tolist()], np.split(intervals, apart), strict=True):
        if len(nodes):
            yield int(owner[at]), int(group[at]), nodes


def _add_curves(trace: PerfettoTrace, root: int, timeline: Timeline) -> None:
    """Add curves of nodes in use, of the queue and of free nodes, above the tracks of nodes."""
    titles = ("nodes in use", "attempts in the queue", "free nodes")
    for rank, (title, steps) in enumerate(zip(titles, series_of(timeline), strict=True)):
        track = trace.track(title, root, rank, counter=True)
        for at_us, value in zip(steps[0].tolist(), steps[1].tolist(), strict=True):
            trace.count(track, at_us, value)


def _title(first: int, last: int, names: Sequence[str]) -> str:
    if first == last:
        return names[first] if names else f"node {first}"
    return f"{names[first]} to {names[last]}" if names else f"nodes {first}-{last}"


NS_PER_US = 1000

# Field numbers.
_PACKET = 1
_TIMESTAMP, _SEQUENCE, _EVENT, _INTERNED, _FLAGS, _TRACK = 8, 10, 11, 12, 13, 60
_CATEGORY, _ARGUMENT, _TYPE, _NAME, _OF_TRACK, _COUNT, _FLOW, _FLOW_END = (
    3,
    4,
    9,
    10,
    11,
    30,
    47,
    48,
)
_ARGUMENT_NAME, _INTEGER, _DOUBLE, _STRING = 1, 3, 5, 17
_CATEGORIES, _NAMES, _ARGUMENT_NAMES, _STRINGS = 1, 2, 3, 29
_UUID, _TITLE, _PARENT, _COUNTER, _ORDERING, _RANK = 1, 2, 5, 8, 11, 12

_BEGIN, _END, _VALUE = 1, 2, 4
_FIRST, _USES_INTERNED = 1, 2
_EXPLICIT = 3
_ONE_SEQUENCE = number(_SEQUENCE, 1)

Arguments = Mapping[str, str | int | float]


class PerfettoTrace:
    """The content of a trace. `parts` returns its bytes.

    Add the events of each track in the order of their times. Slices on a track must be nested or
    disjoint.
    """

    def __init__(self) -> None:
        self._tracks: list[bytes] = []
        self._events: list[tuple[int, bytes]] = []
        kinds = (_CATEGORIES, _NAMES, _ARGUMENT_NAMES, _STRINGS)
        self._numbers: dict[int, dict[str, int]] = {kind: {} for kind in kinds}

    def track(self, title: str, parent: int = 0, rank: int = 0, counter: bool = False) -> int:
        """Add a track and return its number.

        Children of a track are shown in the order of ``rank``. The viewer merges siblings with the
        same title.
        """
        uuid = len(self._tracks) + 1
        fields = [number(_UUID, uuid), text(_TITLE, title), number(_RANK, rank)]
        if parent:
            fields.append(number(_PARENT, parent))
        fields.append(message(_COUNTER, b"") if counter else number(_ORDERING, _EXPLICIT))
        self._tracks.append(b"".join(fields))
        return uuid

    def slice(
        self,
        track: int,
        category: str,
        name: str,
        begin_us: int,
        end_us: int,
        arguments: Arguments,
        inner: Iterable[tuple[str, int, int]] = (),
        flows: Iterable[int] = (),
        ended_flows: Iterable[int] = (),
    ) -> None:
        """Add a slice to a track, and the slices (name, begin, end) that it contains.

        ``flows`` are the numbers of the flows that begin at the slice. ``ended_flows`` are those
        that end at it.
        """
        fields = [self._argument(key, value) for key, value in arguments.items()]
        fields += [fixed64(_FLOW, flow) for flow in flows]
        fields += [fixed64(_FLOW_END, flow) for flow in ended_flows]
        self._begin(track, category, name, begin_us, b"".join(fields))
        for inner_name, inner_begin_us, inner_end_us in inner:
            self._begin(track, inner_name, inner_name, inner_begin_us, b"")
            self._add(track, inner_end_us, _END, b"")
        self._add(track, end_us, _END, b"")

    def count(self, track: int, at_us: int, value: int) -> None:
        """Set the value of a counter at a time. The value is valid until the next one."""
        self._add(track, at_us, _VALUE, number(_COUNT, value % 2**64))

    def parts(self) -> Iterator[bytes]:
        """Yield the packets of the trace, with the events in the order of their times."""
        texts = b"".join(
            message(kind, number(1, at) + text(2, name))
            for kind, names in self._numbers.items()
            for name, at in names.items()
        )
        yield _packet(number(_FLAGS, _FIRST) + message(_INTERNED, texts))
        for track in self._tracks:
            yield _packet(message(_TRACK, track))
        for at_us, event in sorted(self._events, key=itemgetter(0)):
            yield _packet(number(_TIMESTAMP, at_us * NS_PER_US) + event)

    def _begin(self, track: int, category: str, name: str, at_us: int, fields: bytes) -> None:
        words = number(_CATEGORY, self._number(_CATEGORIES, category))
        words += number(_NAME, self._number(_NAMES, name))
        self._add(track, at_us, _BEGIN, words + fields, number(_FLAGS, _USES_INTERNED))

    def _add(self, track: int, at_us: int, kind: int, fields: bytes, flags: bytes = b"") -> None:
        event = number(_TYPE, kind) + number(_OF_TRACK, track) + fields
        self._events.append((at_us, flags + message(_EVENT, event)))

    def _argument(self, key: str, value: str | float) -> bytes:
        name = number(_ARGUMENT_NAME, self._number(_ARGUMENT_NAMES, key))
        if isinstance(value, str):
            content = number(_STRING, self._number(_STRINGS, value))
        elif isinstance(value, int):
            content = number(_INTEGER, value)
        else:
            content = double(_DOUBLE, value)
        return message(_ARGUMENT, name + content)

    def _number(self, kind: int, name: str) -> int:
        """Return the number that represents a text. Numbers begin at 1."""
        names = self._numbers[kind]
        return names.setdefault(name, len(names) + 1)


def _packet(fields: bytes) -> bytes:
    return message(_PACKET, _ONE_SEQUENCE + fields)
