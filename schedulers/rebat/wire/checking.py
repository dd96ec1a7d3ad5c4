# SPDX-License-Identifier: Apache-2.0
"""Check of recorded conversations: whether rebat can read each message and write it again.

Recordings can have two forms: lines of ``rebat serve --record``, or lines with ``from`` (``batsim``
or ``edc``), ``frame``, ``raw`` and ``message``, which decision components for Batsim 5 write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from rebat.core.errors import InputError
from rebat.core.events import Message, Notified
from rebat.core.files import open_text
from rebat.wire import batsim4, batsim5
from rebat.wire.batsim5 import decode_hello, decode_init, encode_hello, encode_init, is_init
from rebat.wire.recording import TO_SCHEDULER, TO_SIMULATOR, Line


class Frame(msgspec.Struct, frozen=True):
    """A recorded frame: its line in the file, and whether the simulator sent it."""

    line: int
    of_simulator: bool
    data: bytes


class Checked(msgspec.Struct, frozen=True):
    """The result of checking a frame.

    Attributes
    ----------
    line : int
        Line in the file.
    sender : str
        ``simulator`` or ``scheduler``.
    content : str
        Types of the events or decisions in the message, separated by commas.
    understood, repeated : bool
        ``understood`` is True if rebat can read the message. ``repeated`` is True if rebat would
        also write it with the same meaning.
    problem : str
        The reason if ``understood`` or ``repeated`` is False.
    """

    line: int
    sender: str
    content: str
    understood: bool = True
    repeated: bool = True
    problem: str = ""

    @property
    def passed(self) -> bool:
        """Whether rebat can read the message and would write it with the same meaning."""
        return self.understood and self.repeated


# ---- reading


def read_frames(path: Path) -> Iterator[Frame]:
    """Yield the frames of a recording in order.

    Raises
    ------
    InputError
        If a line has neither of the two forms. The error names file and line.
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
    ours = msgspec.convert(line, Line)
    if ours.dir not in (TO_SCHEDULER, TO_SIMULATOR):
        raise ValueError(f"dir is {ours.dir!r}")
    return Frame(number, ours.dir == TO_SCHEDULER, ours.data)


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


def check_frames(frames: Iterable[Frame], version: int | None = None) -> Iterator[Checked]:
    """Check each frame, and yield the result.

    By default, the first frame determines the ``version`` of Batsim.
    """
    places = {True: 0, False: 0}
    for frame in frames:
        if version is None:
            version = 5 if frame.of_simulator and is_init(frame.data) else 4
        opening = version == 5 and places[frame.of_simulator] == 0
        places[frame.of_simulator] += 1
        yield _checked(frame, version, opening)


def _checked(frame: Frame, version: int, opening: bool) -> Checked:
    sender = "simulator" if frame.of_simulator else "scheduler"
    try:
        if opening:
            return _opening(frame, sender)
        codec: Any = batsim5 if version == 5 else batsim4
        if frame.of_simulator:
            read, write = codec.decode_message, codec.encode_message
        else:
            read, write = codec.decode_reply, codec.encode_reply
        decoded = read(frame.data)
    except InputError as error:
        return Checked(frame.line, sender, "", False, False, str(error))
    content = _content(decoded)
    unknown = _unknown(decoded, version)
    if unknown:
        problem = f"unknown types: {', '.join(unknown)}"
        return Checked(frame.line, sender, content, False, True, problem)
    try:
        repeated = read(write(decoded)) == decoded
        problem = "" if repeated else "rebat would write another meaning"
    except InputError as error:
        repeated, problem = False, str(error)
    return Checked(frame.line, sender, content, True, repeated, problem)


def _opening(frame: Frame, sender: str) -> Checked:
    """Check a frame of Batsim 5's handshake."""
    if frame.of_simulator:
        repeated = encode_init(decode_init(frame.data)) == frame.data
        problem = "" if repeated else "its text is not UTF-8"
        return Checked(frame.line, sender, "text of -s", True, repeated, problem)
    decode_hello(encode_hello(decode_hello(frame.data)))
    return Checked(frame.line, sender, "EDCHelloEvent")


def _content(decoded: Any) -> str:
    items = decoded.events if isinstance(decoded, Message) else decoded.decisions
    return ", ".join(dict.fromkeys(type(item).__name__ for item in items))


def _unknown(decoded: Any, version: int) -> list[str]:
    """Return the types of events that rebat does not know. It only forwards them."""
    if not isinstance(decoded, Message):
        return []
    notices = [event for event in decoded.events if isinstance(event, Notified)]
    if version == 5:
        kinds = [n.kind for n in notices if n.data.get("event_type") == n.kind]
        return [kind for kind in kinds if kind not in batsim5.POWER]
    return [n.kind for n in notices if "type" not in n.data]
