# SPDX-License-Identifier: Apache-2.0
"""The results folder of a campaign.

- ``runs/KEY.json``: the result of a unit with its checksum. The file is either complete or absent.
- ``runs/packed.jsonl``: a pack, the results of many units.
- ``results.parquet``, ``campaign.json``: tables of all results.
- ``folders/KEY/``: the files of a unit, if they were requested.
- ``timings.csv``: a log of the durations of units.

Equal results produce equal files, except for the log. A folder belongs to the campaign named in
``campaign.json``. rebat removes only files that a campaign wrote. It recognises results because
their key is the hash of their identity, and the other files of units by their names.

A *pack* is a file with one result per line, sorted by the key of the unit. A line is compact JSON
that ends with its checksum. A pack is either complete or absent. ``packed.jsonl`` contains the
results of earlier calls of the command. ``packed-KEY.jsonl`` contains results of the current call,
which are newer.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import weakref
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from rebat.core.errors import InputError
from rebat.core.files import atomic_path, write_text
from rebat.core.folders import check_no_result
from rebat.runs.single import RUN_FILES
from rebat.runs.unit import Unit, key_of

TABLE = "results.parquet"
OVERVIEW = "campaign.json"
MANY = 1000
"""Minimum number of results for which packs are used."""

State = Literal["ok", "failed", "missing", "damaged"]
"""State of a unit's result. A damaged result counts as missing."""

PACK_NAME = r"packed(?:-[0-9a-f]{64})?\.jsonl"

_SEAL = 66
"""Length of the end of a line, which is the checksum, a quotation mark and a brace."""

_KEY = re.compile("[0-9a-f]{64}")
_LEFT_OVER = re.compile(
    rf"\.(?:{_KEY.pattern}\.json|{PACK_NAME}|"
    rf"{'|'.join(map(re.escape, (*RUN_FILES, TABLE, OVERVIEW)))})\.\w+"
)
"""Pattern of temporary file names in this folder (see `core.files.atomic_path`)."""


class Owner(msgspec.Struct, frozen=True):
    """The campaign that owns a folder: its name, and the name of its file without the path."""

    name: str
    file: str


class UnitResult(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a result file: the metrics of a unit, or the error if the unit failed.

    ``sha256`` is the checksum of all other fields (see `checksum`).
    """

    key: str
    status: Literal["ok", "failed"]
    identity: dict[str, Any]
    error: str | None = None
    metrics: dict[str, Any] | None = None
    sha256: str = ""


def checksum(result: UnitResult) -> str:
    """Return the sha256 of the compact JSON of a result in which the checksum is empty."""
    bare = msgspec.structs.replace(result, sha256="")
    return hashlib.sha256(msgspec.json.encode(bare)).hexdigest()


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a campaign. All fields are numbers of distinct units.

    ``stale`` is the number of results that belong to no unit.
    """

    total: int
    ok: int
    failed: int
    missing: int
    stale: int

    @property
    def sentence(self) -> str:
        """The progress in words."""
        return f"{self.ok} of {self.total} runs done, {self.failed} failed, {self.missing} left"

    @property
    def unfinished(self) -> str:
        """The progress in words if results are missing or failed, otherwise an empty text."""
        return f"partial: {self.sentence}" if self.ok < self.total else ""


class Store:
    """The results in a folder. The folder may be missing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    @cached_property
    def packs(self) -> Packs:
        """The packed results."""
        return Packs(self.folder / "runs")

    def run_path(self, key: str) -> Path:
        """Return the file of a unit's result."""
        return self.folder / "runs" / f"{key}.json"

    def run_folder(self, key: str) -> Path:
        """Return the folder of a unit's files."""
        return self.folder / "folders" / key

    def write(self, result: UnitResult) -> None:
        """Write a result with its checksum, atomically."""
        result = msgspec.structs.replace(result, sha256=checksum(result))
        text = msgspec.json.format(msgspec.json.encode(result), indent=1).decode()
        write_text(self.run_path(result.key), text + "\n")

    def read(self, key: str) -> UnitResult | None:
        """Return the result of a unit, or None if it is missing or damaged."""
        result = self._single(key)
        if result is None and key in self.packs.lines:
            text = self.packs.lines[key].text
            result = msgspec.json.decode(text, type=UnitResult) if checked(text) else None
        return result and msgspec.structs.replace(result, sha256="")

    def _single(self, key: str) -> UnitResult | None:
        """Return the result of a unit from its own file, or None if it is missing or damaged."""
        result = self._decoded(key)
        valid = result and result.key == key and result.sha256 == checksum(result)
        return result if valid else None

    def _decoded(self, key: str) -> UnitResult | None:
        """Return the content of a result file without checking it."""
        try:
            return msgspec.json.decode(self.run_path(key).read_bytes(), type=UnitResult)
        except (OSError, msgspec.DecodeError, RecursionError):
            return None

    def states(self, units: Sequence[Unit]) -> dict[str, State]:
        """Return the state of each distinct unit by its key."""
        alone = self._alone()
        states: dict[str, State] = {}
        for key in dict.fromkeys(unit.key for unit in units):
            result = self._single(key) if key in alone else None
            states[key] = result.status if result else "damaged" if key in alone else "missing"
        self.packs.refresh()  # after the single files: a running campaign moves them to packs
        bad = {line.key for line in self.packs.bad}
        for key in [key for key, state in states.items() if state in ("missing", "damaged")]:
            if key in self.packs.lines:
                states[key] = self.packs.lines[key].status
            elif key in bad:
                states[key] = "damaged"
        return states

    def damaged(self, states: Mapping[str, State]) -> list[str]:
        """Return the positions of damaged results of these units, and of unreadable lines."""
        keys = [key for key, state in states.items() if state == "damaged"]
        files = [path for path in map(self.run_path, keys) if path.exists()]
        bad = [line for line in self.packs.bad if line.key is None or line.key in keys]
        return [*map(str, files), *(line.place for line in bad)]

    def _alone(self) -> set[str]:
        """Return the names of the results that are in their own files."""
        return {path.stem for path in (self.folder / "runs").glob("[!.]*.json")}

    def pack(self, keys: Iterable[str]) -> None:
        """Move new results of these units to a pack."""
        results = self._texts(keys)
        self.packs.add(results)
        self._remove_single(results)

    def merge(self, units: Sequence[Unit]) -> None:
        """If there are many results of these units, move all of them to one pack."""
        self.packs.refresh()
        keys = {unit.key for unit in units}
        alone = keys & self._alone()
        n_packed = len(keys & self.packs.lines.keys())
        if self.packs.scattered or (alone and n_packed + len(alone) >= MANY):
            results = self._texts(alone)
            self.packs.merge(results)
            self._remove_single(results)

    def _texts(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return results that are in single files, as lines of a pack. Omit damaged results."""
        results = ((key, self._single(key)) for key in keys)
        return {key: msgspec.json.encode(result) for key, result in results if result}

    def _remove_single(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.run_path(key).unlink(missing_ok=True)

    def has_files(self, key: str, names: Sequence[str]) -> bool:
        """Return whether the last of a unit's files exists, which is written after all others."""
        return not names or (self.run_folder(key) / names[-1]).exists()

    def log_time(self, key: str, seconds: float) -> None:
        """Append the duration of a unit to the log."""
        with (self.folder / "timings.csv").open("a") as log:
            log.write(f"{key},{seconds:.3f}\n")

    def stale(self, units: Sequence[Unit]) -> list[str]:
        """Return the keys of all results that a campaign wrote and that belong to no unit here."""
        needed = {unit.key for unit in units}
        self.packs.refresh()
        keys = self._alone() | self.packs.lines.keys()
        keys |= {path.name for path in (self.folder / "folders").glob("[!.]*")}
        return sorted(key for key in keys - needed if self._is_ours(key))

    def _is_ours(self, key: str) -> bool:
        """Return whether a campaign wrote the result or folder with this name."""
        result = self._decoded(key) or self.read(key)
        if result is not None:
            return key_of(result.identity) == key
        files = [self.run_folder(key) / name for name in RUN_FILES]
        return bool(_KEY.fullmatch(key)) and any(file.is_file() for file in files)

    def status(self, units: Sequence[Unit]) -> Status:
        """Count the results of these units."""
        states = list(self.states(units).values())
        ok, failed = states.count("ok"), states.count("failed")
        return Status(
            total=len(states),
            ok=ok,
            failed=failed,
            missing=len(states) - ok - failed,
            stale=len(self.stale(units)),
        )

    def clean(self, units: Sequence[Unit]) -> int:
        """Remove other units' results and temporary files. Return how many results were removed."""
        stale = self.stale(units)
        for key in stale:
            self.run_path(key).unlink(missing_ok=True)
            for name in RUN_FILES:
                (self.run_folder(key) / name).unlink(missing_ok=True)
            with suppress(OSError):  # keep other files in the folder
                self.run_folder(key).rmdir()
        if self.packs.lines.keys() & set(stale):
            self.packs.merge({}, removed=set(stale))
        self.sweep()
        return len(stale)

    def sweep(self) -> None:
        """Remove temporary files of killed processes."""
        for pattern in (".*", "runs/.*", "folders/*/.*"):
            for path in self.folder.glob(pattern):
                if _LEFT_OVER.fullmatch(path.name):
                    path.unlink(missing_ok=True)

    @contextmanager
    def locked(self, owner: Owner) -> Iterator[None]:
        """Lock the folder for this campaign. If a process is killed, its lock is released."""
        check_no_result(self.folder)
        try:
            (self.folder / "runs").mkdir(parents=True, exist_ok=True)
            handle = (self.folder / ".lock").open("w")
        except OSError as error:
            raise InputError(f"cannot write: {error.strerror}", str(self.folder)) from None
        with handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError(
                    "another campaign is running in this folder", str(self.folder)
                ) from None
            self.check_owner(owner)
            if not (self.folder / OVERVIEW).exists():
                self.write_overview(owner, {})
            yield

    def check_owner(self, owner: Owner) -> None:
        """Check that the folder does not belong to another campaign."""
        try:
            present = msgspec.json.decode((self.folder / OVERVIEW).read_bytes(), type=Owner)
        except (OSError, msgspec.DecodeError):
            return
        if present != owner:
            raise InputError(
                f"contains the results of campaign {present.name!r} of {present.file}, not of "
                f"{owner.name!r} of {owner.file}",
                str(self.folder),
                f"another name in {owner.file}; or another --results folder; or, if you renamed "
                f"the campaign file, its new name in {self.folder / OVERVIEW}",
            )

    def write_overview(self, owner: Owner, facts: dict[str, Any]) -> None:
        """Write campaign.json with the owner of the results and facts about them."""
        overview = msgspec.structs.asdict(owner) | facts
        text = msgspec.json.format(msgspec.json.encode(overview), indent=1).decode()
        write_text(self.folder / OVERVIEW, text + "\n")


PACK = "packed.jsonl"
PACKS = "packed*.jsonl"
_PACK_KEY = re.compile(rb'\{"key":"([0-9a-f]{64})"')
_HEAD = re.compile(_PACK_KEY.pattern + rb',"status":"(ok|failed)",')


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
                    key = _PACK_KEY.match(text)
                    self.bad.append(DamagedLine(key and key[1].decode(), f"{path}, line {number}"))
                start += len(line)


def _version(path: Path) -> tuple[int, int]:
    """Return numbers that change when a pack is replaced or edited."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return 0, 0
    return status.st_ino, status.st_mtime_ns
