# SPDX-License-Identifier: Apache-2.0
"""The results folder of a campaign.

``runs/KEY.json`` holds one unit each with its checksum, and is there whole or not at all;
``results.parquet`` and ``campaign.json`` are made of them; ``folders/KEY/`` holds a unit's files
where they were asked for;
``timings.csv`` is a log. All but the log are the same bytes whenever the results are the same.
A folder belongs to one campaign, which ``campaign.json`` names. Only what a campaign made is ever
removed: results whose key is the hash of what they say they are, and the files that a unit writes.
"""

from __future__ import annotations

import fcntl
import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from rebat.campaign.kinds import FILES
from rebat.core.errors import InputError
from rebat.core.files import write_text
from rebat.core.manifest import check_no_result
from rebat.runs.unit import Unit, key_of

TABLE = "results.parquet"
OVERVIEW = "campaign.json"


_KEY = re.compile("[0-9a-f]{64}")
_LEFT_OVER = re.compile(
    rf"\.(?:{_KEY.pattern}\.json|{'|'.join(map(re.escape, (*FILES, TABLE, OVERVIEW)))})\.\w+"
)
"""Temporary names of files that are written here, see `core.files.atomic_path`."""


class Owner(msgspec.Struct, frozen=True):
    """The campaign to which a folder belongs: its name, and its file's without the folder."""

    name: str
    file: str


class UnitResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a result file says: the metrics of a unit, or why it failed.

    ``sha256`` is the checksum of all the rest, see `checksum`.
    """

    key: str
    status: Literal["ok", "failed"]
    identity: dict[str, Any]
    error: str | None = None
    metrics: dict[str, Any] | None = None
    sha256: str = ""


def checksum(result: UnitResult) -> str:
    """The sha256 of a result as JSON without spaces, its own checksum left empty."""
    bare = msgspec.structs.replace(result, sha256="")
    return hashlib.sha256(msgspec.json.encode(bare)).hexdigest()


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """How far a campaign is, in distinct units; ``stale`` results belong to none of them."""

    total: int
    ok: int
    failed: int
    missing: int
    stale: int

    @property
    def sentence(self) -> str:
        """For people."""
        return f"{self.ok} of {self.total} runs done, {self.failed} failed, {self.missing} left"

    @property
    def unfinished(self) -> str:
        """The same of a campaign that has not all its results; nothing of one that has."""
        return f"partial: {self.sentence}" if self.ok < self.total else ""


class Store:
    """The results in a folder, which need not exist yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    def run_path(self, key: str) -> Path:
        """The file of a unit's result."""
        return self.folder / "runs" / f"{key}.json"

    def run_folder(self, key: str) -> Path:
        """The folder of a unit's own files."""
        return self.folder / "folders" / key

    def write(self, result: UnitResult) -> None:
        """Write a result in one piece, with its checksum."""
        result = msgspec.structs.replace(result, sha256=checksum(result))
        text = msgspec.json.format(msgspec.json.encode(result), indent=1).decode()
        write_text(self.run_path(result.key), text + "\n")

    def read(self, key: str) -> UnitResult | None:
        """A unit's result; None where there is none, or not the one that was written."""
        result = self._decoded(key)
        if result is None or result.key != key or result.sha256 != checksum(result):
            return None
        return msgspec.structs.replace(result, sha256="")

    def _decoded(self, key: str) -> UnitResult | None:
        """What a result file says, right or wrong."""
        try:
            return msgspec.json.decode(self.run_path(key).read_bytes(), type=UnitResult)
        except (OSError, msgspec.DecodeError, RecursionError):
            return None

    def damaged(self, units: Sequence[Unit]) -> list[Path]:
        """Files of these units that are not as they were written: they count as missing."""
        keys = dict.fromkeys(unit.key for unit in units)
        return [self.run_path(k) for k in keys if self.run_path(k).exists() and not self.read(k)]

    def has_metrics(self, key: str) -> bool:
        """Whether a unit was performed and did not fail."""
        result = self.read(key)
        return result is not None and result.status == "ok"

    def has_files(self, key: str, names: Sequence[str]) -> bool:
        """Whether a unit's own files are all there; the last one is the last to be written."""
        return not names or (self.run_folder(key) / names[-1]).exists()

    def log_time(self, key: str, seconds: float) -> None:
        """Append how long a unit took to the log."""
        with (self.folder / "timings.csv").open("a") as log:
            log.write(f"{key},{seconds:.3f}\n")

    def stale(self, units: Sequence[Unit]) -> list[str]:
        """Keys of results that belong to none of these units, but to some campaign's."""
        known = {unit.key for unit in units}
        found = {path.stem for path in (self.folder / "runs").glob("[!.]*.json")}
        found |= {path.name for path in (self.folder / "folders").glob("[!.]*")}
        return sorted(key for key in found - known if self._is_ours(key))

    def _is_ours(self, key: str) -> bool:
        """Whether a campaign made the result or the folder of that name."""
        result = self._decoded(key)
        if result is not None:
            return key_of(result.identity) == key
        files = [self.run_folder(key) / name for name in FILES]
        return bool(_KEY.fullmatch(key)) and any(file.is_file() for file in files)

    def status(self, units: Sequence[Unit]) -> Status:
        """Count what is there."""
        keys = list(dict.fromkeys(unit.key for unit in units))
        states = [result.status if (result := self.read(key)) else None for key in keys]
        return Status(
            total=len(keys),
            ok=states.count("ok"),
            failed=states.count("failed"),
            missing=states.count(None),
            stale=len(self.stale(units)),
        )

    def clean(self, units: Sequence[Unit]) -> int:
        """Remove the results that belong to none of these units, and left-overs; how many."""
        stale = self.stale(units)
        for key in stale:
            self.run_path(key).unlink(missing_ok=True)
            for name in FILES:
                (self.run_folder(key) / name).unlink(missing_ok=True)
            with suppress(OSError):  # what others put there stays
                self.run_folder(key).rmdir()
        self.sweep()
        return len(stale)

    def sweep(self) -> None:
        """Remove what killed writers left under temporary names."""
        for pattern in (".*", "runs/.*", "folders/*/.*"):
            for path in self.folder.glob(pattern):
                if _LEFT_OVER.fullmatch(path.name):
                    path.unlink(missing_ok=True)

    @contextmanager
    def locked(self, owner: Owner) -> Iterator[None]:
        """Keep other campaigns out of the folder; a killed one holds no lock.

        Raises
        ------
        InputError
            When another campaign runs here or ran here, another command's result is here, or the
            folder cannot be made.
        """
        check_no_result(self.folder)
        try:
            (self.folder / "runs").mkdir(parents=True, exist_ok=True)
            handle = (self.folder / ".lock").open("w")
        except OSError as error:
            raise InputError(f"cannot write there: {error.strerror}", str(self.folder)) from None
        with handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError("another campaign is running there", str(self.folder)) from None
            self.check_owner(owner)
            if not (self.folder / OVERVIEW).exists():
                self.write_overview(owner, {})
            yield

    def check_owner(self, owner: Owner) -> None:
        """Refuse a folder with the results of another campaign.

        Raises
        ------
        InputError
            With whose they are.
        """
        try:
            found = msgspec.json.decode((self.folder / OVERVIEW).read_bytes(), type=Owner)
        except (OSError, msgspec.DecodeError):
            return
        if found != owner:
            raise InputError(
                f"holds the results of campaign {found.name!r} of {found.file}, not of "
                f"{owner.name!r} of {owner.file}",
                str(self.folder),
                f"another name in the file, or --results; a renamed file's name in {OVERVIEW}",
            )

    def write_overview(self, owner: Owner, facts: dict[str, Any]) -> None:
        """Write campaign.json: whose results these are, and what there is to say of them."""
        overview = msgspec.structs.asdict(owner) | facts
        text = msgspec.json.format(msgspec.json.encode(overview), indent=1).decode()
        write_text(self.folder / OVERVIEW, text + "\n")
