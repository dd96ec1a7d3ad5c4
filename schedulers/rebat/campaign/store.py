# SPDX-License-Identifier: Apache-2.0
"""The results folder of a campaign.

- ``runs/results.jsonl``: the results of all units, one per line, sorted by key.
- ``runs/NAME.jsonl``: the results that one process of a running or killed campaign wrote.
- ``results.parquet``, ``campaign.json``: tables of all results.
- ``folders/KEY/``: the files of a unit, if they were requested.
- ``timings.csv``: a log of the durations of units.

A line is compact JSON that ends with its checksum. A process only appends lines to its own file, so
that a killed process leaves at most one incomplete line. The unit of this line has no result. The
next start of the campaign, and its end, move all lines to ``results.jsonl``.

Equal results produce equal files, except for the log. A folder belongs to the campaign named in
``campaign.json``. rebat removes only files that a campaign wrote. It recognises results because
their key is the hash of their identity, and the other files of units by their names.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import weakref
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, Literal, NamedTuple
from uuid import uuid4

import msgspec

from rebat.core.errors import InputError
from rebat.core.files import atomic_path, write_text
from rebat.core.folders import check_no_result
from rebat.results.files.run_folder import OVERVIEW
from rebat.runs.runner import Outcome
from rebat.runs.single import RUN_FILES
from rebat.runs.unit import Unit, key_of

TABLE = "results.parquet"
RESULTS = "results.jsonl"

State = Literal["ok", "failed", "missing", "damaged"]
"""State of a unit's result. A damaged result counts as missing."""

_SEAL = 66
"""Length of the end of a line, which is the checksum, a quotation mark and a brace."""

_KEY = re.compile("[0-9a-f]{64}")
_LEFT_OVER = re.compile(
    rf"\.(?:{'|'.join(map(re.escape, (*RUN_FILES, TABLE, OVERVIEW, RESULTS)))})\.\w+"
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


def store_result(folder: Path, unit: Unit, outcome: Outcome) -> None:
    """Write the outcome of a unit to the results folder, in a worker."""
    result = UnitResult(
        key=unit.key,
        status="failed" if outcome.metrics is None else "ok",
        identity=unit.identity,
        error=outcome.error,
        metrics=outcome.metrics,
    )
    Store(folder).write(result)


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


class _OpenFile:
    """An open file of results. It stays readable after it is removed from the folder."""

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self.descriptor)


class Line(NamedTuple):
    """A result in a file: its status and its position."""

    status: Literal["ok", "failed"]
    file: _OpenFile
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


_KEY_OF = re.compile(rb'\{"key":"([0-9a-f]{64})"')
_HEAD = re.compile(_KEY_OF.pattern + rb',"status":"(ok|failed)",')


def _head(line: bytes) -> re.Match[bytes] | None:
    """Return key and status of a line, or None if the line does not match its checksum."""
    digest = hashlib.sha256(line[:-_SEAL])
    digest.update(b'"}')
    return _HEAD.match(line) if line[-_SEAL:] == b'%s"}' % digest.hexdigest().encode() else None


_WRITING = Lock()


@cache
def _own_file(folder: Path, process: int) -> Path:
    """Return the file to which a process appends its results."""
    return folder / f"{uuid4().hex}.jsonl"


class Store:
    """The results in a folder. The folder may be missing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.bad: list[DamagedLine] = []
        """The damaged lines as of the last `refresh`."""
        self._lines: dict[str, Line] | None = None
        self._stamp: list[tuple[str, int, int, int]] = []

    @property
    def lines(self) -> dict[str, Line]:
        """The results by key as of the last `refresh`."""
        if self._lines is None:
            self.refresh()
        return self._lines or {}

    def run_folder(self, key: str) -> Path:
        """Return the folder of a unit's files."""
        return self.folder / "folders" / key

    def write(self, result: UnitResult) -> None:
        """Append a result with its checksum to the file of this process."""
        text = msgspec.json.encode(msgspec.structs.replace(result, sha256=checksum(result)))
        folder = self.folder / "runs"
        folder.mkdir(parents=True, exist_ok=True)
        with _WRITING:
            try:
                with _own_file(folder, os.getpid()).open("ab") as file:
                    file.write(text + b"\n")
            except OSError:
                _own_file.cache_clear()  # this file may end with an incomplete line
                raise
        self._lines = None

    def read(self, key: str) -> UnitResult | None:
        """Return the result of a unit, or None if it is missing or damaged."""
        text = self.lines[key].text if key in self.lines else b""
        if not _head(text):
            return None
        return msgspec.structs.replace(msgspec.json.decode(text, type=UnitResult), sha256="")

    def refresh(self) -> None:
        """If files changed, read all files again.

        A line in the file of a process is newer than a line in ``results.jsonl``, which is read
        last: `merge` writes to this file before it removes the others, so that no result is missed.
        """
        files = self._files()
        stamp = [(path.name, *_version(path)) for path in files]
        if self._lines is not None and stamp == self._stamp:
            return
        self._lines, self.bad, self._stamp = {}, [], stamp
        for path in files:
            with suppress(FileNotFoundError):
                for key, line in self._indexed(path):
                    present = self._lines.get(key)
                    if present is None or (path.name != RESULTS and present.status == "failed"):
                        self._lines[key] = line

    def _files(self) -> list[Path]:
        files = (self.folder / "runs").glob("[!.]*.jsonl")
        return sorted(files, key=lambda path: (path.name == RESULTS, path.name))

    def _indexed(self, path: Path) -> Iterator[tuple[str, Line]]:
        """Yield the results of a file by key, and note damaged lines."""
        file, start = _OpenFile(path), 0
        with open(file.descriptor, "rb", closefd=False) as lines:
            for number, line in enumerate(lines, 1):
                text = line.removesuffix(b"\n")
                if head := _head(text):
                    status: Literal["ok", "failed"] = "ok" if head[2] == b"ok" else "failed"
                    yield head[1].decode(), Line(status, file, start, len(text))
                elif text != line:  # a process was not killed while it wrote this line
                    key = _KEY_OF.match(text)
                    self.bad.append(DamagedLine(key and key[1].decode(), f"{path}, line {number}"))
                start += len(line)

    def states(self, units: Sequence[Unit]) -> dict[str, State]:
        """Return the state of each distinct unit by its key."""
        self.refresh()
        states: dict[str | None, State] = {line.key: "damaged" for line in self.bad}
        states |= {key: line.status for key, line in self.lines.items()}
        return {unit.key: states.get(unit.key, "missing") for unit in units}

    def damaged(self, states: Mapping[str, State]) -> list[str]:
        """Return the positions of damaged results of these units, and of unreadable lines."""
        keys = {key for key, state in states.items() if state == "damaged"}
        return [line.place for line in self.bad if line.key is None or line.key in keys]

    def merge(self, removed: Set[str] = frozenset()) -> None:
        """Move all results to one file. Omit results with these keys, and damaged lines."""
        self.refresh()
        others = [path for path in self._files() if path.name != RESULTS]
        if not (others or self.bad or removed & self.lines.keys()):
            return
        with atomic_path(self.folder / "runs" / RESULTS) as temporary, temporary.open("wb") as file:
            keys = sorted(self.lines.keys() - removed)
            file.writelines(self.lines[key].text + b"\n" for key in keys)
            file.flush()
            os.fsync(file.fileno())  # then remove the other copies
        for path in others:
            path.unlink(missing_ok=True)
        self.refresh()

    def has_files(self, key: str, names: Sequence[str]) -> bool:
        """Return whether the last of a unit's files exists, which is written after all others."""
        return not names or (self.run_folder(key) / names[-1]).exists()

    def log_time(self, key: str, seconds: float) -> None:
        """Append the duration of a unit to the log."""
        with (self.folder / "timings.csv").open("a") as log:
            log.write(f"{key},{seconds:.3f}\n")

    def stale(self, units: Sequence[Unit]) -> list[str]:
        """Return the keys of all results that a campaign wrote and that belong to no unit here."""
        self.refresh()
        keys = self.lines.keys() | {path.name for path in (self.folder / "folders").glob("[!.]*")}
        return sorted(key for key in keys - {unit.key for unit in units} if self._is_ours(key))

    def _is_ours(self, key: str) -> bool:
        """Return whether a campaign wrote the result or folder with this name."""
        if result := self.read(key):
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
            for name in RUN_FILES:
                (self.run_folder(key) / name).unlink(missing_ok=True)
            with suppress(OSError):  # keep other files in the folder
                self.run_folder(key).rmdir()
        self.merge(removed=set(stale))
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


def _version(path: Path) -> tuple[int, int, int]:
    """Return numbers that change when a file is replaced, edited or longer."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return 0, 0, 0
    return status.st_ino, status.st_size, status.st_mtime_ns
