# SPDX-License-Identifier: Apache-2.0
"""The results folder of a campaign.

- ``runs/KEY.json``: the result of a unit with its checksum; either complete or absent.
- ``results.parquet``, ``campaign.json``: tables of all results.
- ``folders/KEY/``: the files of a unit, if requested.
- ``timings.csv``: a log.

Equal results have equal bytes, except in the log. A folder belongs to the campaign named in
``campaign.json``. rebat removes only files of a campaign: results whose key is the hash of their
identity, and files that a unit writes.
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
"""Temporary names of files in this folder, see `core.files.atomic_path`."""


class Owner(msgspec.Struct, frozen=True):
    """The campaign of a folder: its name, and the name of its file without the folder."""

    name: str
    file: str


class UnitResult(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a result file: the metrics of a unit, or the error if it failed.

    ``sha256`` is the checksum of all other fields, see `checksum`.
    """

    key: str
    status: Literal["ok", "failed"]
    identity: dict[str, Any]
    error: str | None = None
    metrics: dict[str, Any] | None = None
    sha256: str = ""


def checksum(result: UnitResult) -> str:
    """Return the sha256 of a result as compact JSON with an empty checksum."""
    bare = msgspec.structs.replace(result, sha256="")
    return hashlib.sha256(msgspec.json.encode(bare)).hexdigest()


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a campaign in distinct units. ``stale`` results belong to no unit."""

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
        """The progress in words if results are missing or failed, otherwise empty."""
        return f"partial: {self.sentence}" if self.ok < self.total else ""


class Store:
    """The results in a folder. The folder may be missing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

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
        """Return the result of a unit; None if it is missing or damaged."""
        result = self._decoded(key)
        if result is None or result.key != key or result.sha256 != checksum(result):
            return None
        return msgspec.structs.replace(result, sha256="")

    def _decoded(self, key: str) -> UnitResult | None:
        """Return the content of a result file without checks."""
        try:
            return msgspec.json.decode(self.run_path(key).read_bytes(), type=UnitResult)
        except (OSError, msgspec.DecodeError, RecursionError):
            return None

    def damaged(self, units: Sequence[Unit]) -> list[Path]:
        """Return the damaged result files of these units, which count as missing."""
        keys = dict.fromkeys(unit.key for unit in units)
        return [self.run_path(k) for k in keys if self.run_path(k).exists() and not self.read(k)]

    def has_metrics(self, key: str) -> bool:
        """Return whether a unit was performed and succeeded."""
        result = self.read(key)
        return result is not None and result.status == "ok"

    def has_files(self, key: str, names: Sequence[str]) -> bool:
        """Return whether a unit has all its files: the last of ``names`` is written last."""
        return not names or (self.run_folder(key) / names[-1]).exists()

    def log_time(self, key: str, seconds: float) -> None:
        """Append the duration of a unit to the log."""
        with (self.folder / "timings.csv").open("a") as log:
            log.write(f"{key},{seconds:.3f}\n")

    def stale(self, units: Sequence[Unit]) -> list[str]:
        """Return the keys of a campaign's results that belong to other units."""
        needed = {unit.key for unit in units}
        keys = {path.stem for path in (self.folder / "runs").glob("[!.]*.json")}
        keys |= {path.name for path in (self.folder / "folders").glob("[!.]*")}
        return sorted(key for key in keys - needed if self._is_ours(key))

    def _is_ours(self, key: str) -> bool:
        """Return whether a campaign wrote the result or folder of this name."""
        result = self._decoded(key)
        if result is not None:
            return key_of(result.identity) == key
        files = [self.run_folder(key) / name for name in FILES]
        return bool(_KEY.fullmatch(key)) and any(file.is_file() for file in files)

    def status(self, units: Sequence[Unit]) -> Status:
        """Count the results of these units."""
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
        """Remove results of other units and temporary files; return the number of results."""
        stale = self.stale(units)
        for key in stale:
            self.run_path(key).unlink(missing_ok=True)
            for name in FILES:
                (self.run_folder(key) / name).unlink(missing_ok=True)
            with suppress(OSError):  # other files in the folder are kept
                self.run_folder(key).rmdir()
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
        """Lock the folder for this campaign. The lock of a killed process is released.

        Raises
        ------
        InputError
            If the folder belongs to another campaign or command, is locked, or cannot be created.
        """
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
        """Check that the folder does not belong to another campaign.

        Raises
        ------
        InputError
            If the folder belongs to another campaign; the error names this campaign.
        """
        try:
            present = msgspec.json.decode((self.folder / OVERVIEW).read_bytes(), type=Owner)
        except (OSError, msgspec.DecodeError):
            return
        if present != owner:
            raise InputError(
                f"contains the results of campaign {present.name!r} of {present.file}, not of "
                f"{owner.name!r} of {owner.file}",
                str(self.folder),
                f"another name in the file, another --results, or the new file name in {OVERVIEW}",
            )

    def write_overview(self, owner: Owner, facts: dict[str, Any]) -> None:
        """Write campaign.json with the owner of the results and facts about them."""
        overview = msgspec.structs.asdict(owner) | facts
        text = msgspec.json.format(msgspec.json.encode(overview), indent=1).decode()
        write_text(self.folder / OVERVIEW, text + "\n")
