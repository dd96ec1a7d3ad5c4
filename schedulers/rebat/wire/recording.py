# SPDX-License-Identifier: Apache-2.0
"""Recordings of conversations (a JSON line per message), and their check.

The check reports whether rebat can read each message and write it again. Recordings can have two
forms: lines of ``rebat serve --record``, or lines with ``from`` (``batsim`` or ``edc``), ``frame``,
``raw`` and ``message``, which decision components for Batsim 5 write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import msgspec

from rebat.core.errors import InputError
from rebat.core.events import Message, Notified
from rebat.core.files import open_text
from rebat.wire import batsim4, batsim5
from rebat.wire.batsim5 import decode_hello, decode_init, encode_hello, encode_init, is_init

TO_SCHEDULER, TO_SIMULATOR = "batsim->sched", "sched->batsim"


class _Line(msgspec.Struct, omit_defaults=True):
    """One message: its number, direction, and bytes as text.

    If the bytes are not UTF-8 text, ``hex`` contains them. Only the first frame of Batsim 5 can
    require this field.
    """

    seq: int
    dir: str
    raw: str
    hex: str = ""


class Recorder:
    """Appends messages to a file. After a crash, the file contains all earlier messages.

    A line is written before the next message is sent. If the file cannot be written, an InputError
    is raised.
    """

    def __init__(self, path: Path) -> None:
        self._seq = 0
        try:
            self._file: IO[bytes] = path.open("wb")
        except OSError as error:
            raise InputError(f"cannot write: {error.strerror}", str(path)) from None

    def __call__(self, direction: str, data: bytes) -> None:
        """Write one message."""
        text = data.decode(errors="replace")
        line = _Line(self._seq, direction, text, "" if text.encode() == data else data.hex())
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()
        self._seq += 1

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._file.close()


class Frame(msgspec.Struct, frozen=True):
    """A recorded frame: its line in the file, and whether the simulator sent it."""

    line: int
    of_simulator: bool
    data: bytes


def read_frames(path: Path) -> Iterator[Frame]:
    """Yield the frames of a recording in order.

    If a line has neither of the two forms, an InputError names file and line.
    """
    with open_text(path) as lines:
        for number, text in enumerate(lines, start=1):
            if text.strip():
                try:
                    yield _frame(number, msgspec.json.decode(text))
                except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                    where = f"{path}:{number}"
                    raise InputError(f"is not a recorded message: {error}", where) from None


def _frame(number: int, line: Any) -> Frame:
    if isinstance(line, dict) and line.get("from") in ("batsim", "edc"):
        return Frame(number, line["from"] == "batsim", _data_of(line))
    ours = msgspec.convert(line, _Line)
    if ours.dir not in (TO_SCHEDULER, TO_SIMULATOR):
        raise ValueError(f"dir is {ours.dir!r}")
    data = bytes.fromhex(ours.hex) if ours.hex else ours.raw.encode()
    return Frame(number, ours.dir == TO_SCHEDULER, data)


def _data_of(line: dict[str, Any]) -> bytes:
    """Return the bytes of a message in a line with ``from``."""
    if "hex" in line:
        rest = bytes.fromhex(line["hex"])
    elif "raw" in line or "text" in line:
        rest = str(line["text"] if "text" in line else line["raw"]).encode()
    else:
        rest = msgspec.json.encode(line.get("message"))
    first = bytes(line["u32"]) if "frame" in line and "u32" in line else b""
    return rest if len(rest) == line.get("bytes") else first + rest


# ---- checking


class Checked(msgspec.Struct, frozen=True):
    """The result of checking a frame."""

    line: int
    """Line in the file."""
    sender: str
    """``simulator`` or ``scheduler``."""
    content: str
    """Types of the events or decisions in the message, separated by commas."""
    understood: bool = True
    """Whether rebat can read the message."""
    repeated: bool = True
    """Whether rebat would also write it with the same meaning."""
    problem: str = ""
    """The reason if ``understood`` or ``repeated`` is False."""

    @property
    def passed(self) -> bool:
        """Whether rebat can read the message and would write it with the same meaning."""
        return self.understood and self.repeated


def check_frames(frames: Iterable[Frame], version: int | None = None) -> Iterator[Checked]:
    """Check each frame, and yield the result.

    By default, the first frame determines the ``version`` of Batsim.
    """
    senders = set()
    for frame in frames:
        if version is None:
            version = 5 if frame.of_simulator and is_init(frame.data) else 4
        opening = version == 5 and frame.of_simulator not in senders
        senders.add(frame.of_simulator)
        sender = "simulator" if frame.of_simulator else "scheduler"
        try:
            result = _opening(frame) if opening else _message(frame, version)
        except InputError as error:
            result = "", False, False, str(error)
        yield Checked(frame.line, sender, *result)


def _opening(frame: Frame) -> tuple[str, bool, bool, str]:
    """Check a frame of Batsim 5's handshake. Return the fields of the result after its sender."""
    if frame.of_simulator:
        repeated = encode_init(decode_init(frame.data)) == frame.data
        return "text of -s", True, repeated, "" if repeated else "its text is not UTF-8"
    decode_hello(encode_hello(decode_hello(frame.data)))
    return "EDCHelloEvent", True, True, ""


def _message(frame: Frame, version: int) -> tuple[str, bool, bool, str]:
    """Check a message or reply. Return the fields of the result after its sender."""
    codec: Any = batsim5 if version == 5 else batsim4
    read, write = codec.decode_reply, codec.encode_reply
    if frame.of_simulator:
        read, write = codec.decode_message, codec.encode_message
    decoded = read(frame.data)
    items = decoded.events if isinstance(decoded, Message) else decoded.decisions
    content = ", ".join(dict.fromkeys(type(item).__name__ for item in items))
    # events of unknown types, which rebat only forwards
    notices = [item for item in items if isinstance(item, Notified)]
    if version == 5:
        named = [n.kind for n in notices if n.data.get("event_type") == n.kind]
        unknown = [kind for kind in named if kind not in batsim5.POWER]
    else:
        unknown = [n.kind for n in notices if "type" not in n.data]
    if unknown:
        return content, False, True, f"unknown types: {', '.join(unknown)}"
    try:
        repeated = read(write(decoded)) == decoded
        return content, True, repeated, "" if repeated else "rebat would write another meaning"
    except InputError as error:
        return content, True, False, str(error)
