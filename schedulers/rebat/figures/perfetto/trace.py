# SPDX-License-Identifier: Apache-2.0
"""A Perfetto trace: tracks, slices on tracks, flows between slices, and counters.

Source: protos/perfetto/trace in the repository of Perfetto (TracePacket, TrackEvent,
TrackDescriptor, InternedData). Each text is written once, and events refer to it by number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter

from rebat.figures.perfetto.encoding import double, fixed64, message, number, text

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
