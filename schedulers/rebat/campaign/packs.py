# SPDX-License-Identifier: Apache-2.0
"""Results of many units in few files.

A *pack* is a file with one result per line, sorted by the key of the unit. A line is compact JSON
that ends with its checksum. A pack is either complete or absent. ``packed.jsonl`` contains the
results of earlier calls of the command. ``packed-KEY.jsonl`` contains results of the current call,
which are newer.
"""

from __future__ import annotations

import hashlib
import os
import re
import weakref
from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from rebat.core.files import atomic_path

PACK = "packed.jsonl"
PACKS = "packed*.jsonl"
PACK_NAME = r"packed(?:-[0-9a-f]{64})?\.jsonl"

_SEAL = 66
"""Length of the end of a line, which is the checksum, a quotation mark and a brace."""
_KEY = re.compile(rb'\{"key":"([0-9a-f]{64})"')
_HEAD = re.compile(_KEY.pattern + rb',"status":"(ok|failed)",')


class ResultHead(NamedTuple):
    """The fields of a result that are decoded to count results."""

    key: str
    status: Literal["ok", "failed"]


class _OpenPack:
    """An open pack. It stays readable when another pack replaces it in the folder."""

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self.descriptor)


class PackedLine(NamedTuple):
    """A result in a pack: its status and its position."""

    status: Literal["ok", "failed"]
    file: _OpenPack
    start: int
    length: int

    @property
    def text(self) -> bytes:
        """The result as compact JSON with its checksum."""
        return os.pread(self.file.descriptor, self.length, self.start)


class DamagedLine(NamedTuple):
    """A damaged line: the key of its result (None if it is unreadable) and its position."""

    key: str | None
    place: str


def checked(line: bytes) -> ResultHead | None:
    """Return key and status of a line, or None if the line does not match its checksum."""
    digest = hashlib.sha256(line[:-_SEAL])
    digest.update(b'"}')
    if line[-_SEAL:] != b'%s"}' % digest.hexdigest().encode():
        return None
    head = _HEAD.match(line)
    return head and ResultHead(head[1].decode(), "ok" if head[2] == b"ok" else "failed")


class Packs:
    """The packs of a folder as of the last `refresh`. The folder may be missing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: dict[str, PackedLine] = {}
        """The results by key."""
        self.bad: list[DamagedLine] = []
        """The damaged lines."""
        self._stamp: list[tuple[str, int, int]] | None = None
        self.refresh()

    def refresh(self) -> None:
        """If files changed, read the packs again.

        The oldest pack is read last. A running campaign writes a result to this pack before it
        removes the other copy, so that no result is missed.
        """
        stamp = [(path.name, *_version(path)) for path in self._files()]
        if stamp == self._stamp:
            return
        self.lines, self.bad, self._stamp = {}, [], stamp
        for path in self._files():
            with suppress(FileNotFoundError):
                self._index(path)

    @property
    def scattered(self) -> bool:
        """Whether `merge` would change the packs even if there are no newer results."""
        return bool(self.bad) or any(path.name != PACK for path in self._files())

    def add(self, results: dict[str, bytes]) -> None:
        """Write results to a new pack."""
        if results:
            self._write(f"packed-{min(results)}.jsonl", results, results.__getitem__)

    def merge(self, results: dict[str, bytes], removed: Container[str] = ()) -> None:
        """Write all packs and these newer results to one pack. Omit removed or damaged results."""
        self.refresh()
        keys = {key for key in (*self.lines, *results) if key not in removed}
        old = self._files()
        self._write(PACK, keys, lambda key: results.get(key) or self.lines[key].text)
        for path in old:
            if path.name != PACK:
                path.unlink(missing_ok=True)
        self.refresh()

    def _write(self, name: str, keys: Iterable[str], text: Callable[[str], bytes]) -> None:
        with atomic_path(self.folder / name) as temporary, temporary.open("wb") as file:
            file.writelines(text(key) + b"\n" for key in sorted(keys))
            file.flush()
            os.fsync(file.fileno())  # then remove other copies of these results

    def _files(self) -> list[Path]:
        """Return the packs. The pack of earlier calls is last."""
        return sorted(self.folder.glob(PACKS), key=lambda path: (path.name == PACK, path.name))

    def _index(self, path: Path) -> None:
        file, start = _OpenPack(path), 0
        with open(file.descriptor, "rb", closefd=False) as lines:
            for number, line in enumerate(lines, 1):
                text = line.removesuffix(b"\n")
                head = checked(text)
                if head is not None:
                    self.lines.setdefault(head.key, PackedLine(head.status, file, start, len(text)))
                else:
                    key = _KEY.match(text)
                    self.bad.append(DamagedLine(key and key[1].decode(), f"{path}, line {number}"))
                start += len(line)


def _version(path: Path) -> tuple[int, int]:
    """Return numbers that change when a pack is replaced or edited."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return 0, 0
    return status.st_ino, status.st_mtime_ns
