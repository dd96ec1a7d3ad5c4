# SPDX-License-Identifier: Apache-2.0
"""Recordings of conversations: a JSON line per message.

A line is written before the next message is sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import msgspec

from rebat.core.errors import InputError
from rebat.core.files import open_text

TO_SCHEDULER, TO_SIMULATOR = "batsim->sched", "sched->batsim"


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message: its number, direction, and bytes as text.

    If the bytes are not UTF-8 text, ``hex`` contains them. Only the first frame of Batsim 5 can
    require this field.
    """

    seq: int
    dir: str
    raw: str
    hex: str = ""

    @property
    def data(self) -> bytes:
        """The bytes of the message."""
        return bytes.fromhex(self.hex) if self.hex else self.raw.encode()


class Recorder:
    """Appends messages to a file. After a crash, the file contains all earlier messages.

    Raises
    ------
    InputError
        If the file cannot be written.
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
        line = Line(self._seq, direction, text, "" if text.encode() == data else data.hex())
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


def read_recording(path: Path) -> Iterator[Line]:
    """Yield the messages of a recording in order. An InputError names file and line."""
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Line)
    with open_text(path) as lines:
        for number, text in enumerate(lines, start=1):
            try:
                yield decoder.decode(text)
            except msgspec.MsgspecError as error:
                raise InputError(
                    f"is not a recorded message: {error}", f"{path}:{number}"
                ) from None
