# SPDX-License-Identifier: Apache-2.0
"""A reader of Perfetto traces: it decodes protobuf fields, then pairs begins and ends of slices."""

from __future__ import annotations

import struct
from collections import defaultdict
from typing import Any, NamedTuple

Fields = dict[int, list[Any]]


def fields(data: bytes) -> Fields:
    """Return the fields of a message by number; fields with a length are bytes."""
    out: Fields = defaultdict(list)
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        match key & 7:
            case 0:
                value: Any = varint()
            case 1:
                value, at = data[at : at + 8], at + 8
            case 2:
                length = varint()
                value, at = data[at : at + length], at + length
            case other:
                raise ValueError(f"wire type {other}")
        out[key >> 3].append(value)
    assert at == len(data)
    return out


class Slice(NamedTuple):
    """A slice as the viewer shows it; times are in nanoseconds."""

    track: int
    category: str
    name: str
    begin: int
    end: int
    depth: int
    arguments: dict[str, Any]
    flows: list[int]
    ended_flows: list[int]


class ReadTrace(NamedTuple):
    tracks: dict[int, Fields]
    slices: list[Slice]
    counts: dict[int, list[tuple[int, int]]]
    """By track: (time in nanoseconds, value)."""

    def title(self, track: int) -> str:
        return self.tracks[track][2][0].decode()


def read_trace(data: bytes) -> ReadTrace:
    """Read a trace: times never decrease, and each end closes the last open slice of its track."""
    first, *rest = (fields(packet) for packet in fields(data)[1])
    interned = fields(first[12][0])
    texts = {
        kind: {fields(e)[1][0]: fields(e)[2][0].decode() for e in interned[kind]}
        for kind in (1, 2, 3, 29)
    }
    tracks = {fields(p[60][0])[1][0]: fields(p[60][0]) for p in rest if 60 in p}
    opened: dict[int, list[tuple[int, Fields]]] = defaultdict(list)
    counts: dict[int, list[tuple[int, int]]] = defaultdict(list)
    slices, before = [], 0
    for packet in rest:
        if 11 not in packet:
            continue
        (at,), event = packet[8], fields(packet[11][0])
        assert at >= before and packet[10] == [1]
        before, (track,), (kind,) = at, event[11], event[9]
        assert track in tracks
        if kind == 1:
            assert packet[13] == [2]  # needed for the interned texts
            opened[track].append((at, event))
        elif kind == 2:
            begin, fields_of = opened[track].pop()
            slices.append(_slice(track, begin, at, len(opened[track]), fields_of, texts))
        else:
            assert kind == 4
            counts[track].append((at, event[30][0]))
    assert not any(opened.values())
    return ReadTrace(tracks, slices, counts)


def _slice(track: int, begin: int, end: int, depth: int, event: Fields, texts: Any) -> Slice:
    arguments = {}
    for entry in map(fields, event[4]):
        value = entry[3][0] if 3 in entry else None
        if 5 in entry:
            (value,) = struct.unpack("<d", entry[5][0])
        if 17 in entry:
            value = texts[29][entry[17][0]]
        arguments[texts[3][entry[1][0]]] = value
    flows = [[struct.unpack("<Q", flow)[0] for flow in event[number]] for number in (47, 48)]
    category, name = texts[1][event[3][0]], texts[2][event[10][0]]
    return Slice(track, category, name, begin, end, depth, arguments, *flows)
