# SPDX-License-Identifier: Apache-2.0
"""Repetition of a run from its provenance, with a comparison of all files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

import rebat
from rebat.core.errors import InputError
from rebat.core.files import file_hash, located
from rebat.core.folders import MANIFEST
from rebat.library.compared_files import BOUND, EQUAL, ROUNDED, ComparedFile, compared
from rebat.library.provenance import (
    PROVENANCE,
    WORKLOAD,
    InputFile,
    RecordedOrigin,
    read_origin,
    versions,
)

_SHIPPED = {
    WORKLOAD: ("workloads", ".json"),
    "--failures": ("failure_events", ".events"),
}
"""For each option, the kind and the file extensions of the inputs that rebat includes."""


class Reproduction(msgspec.Struct, frozen=True):
    """The comparison of a result with its repetition.

    ``changes`` lists the versions and inputs that differ from the record.
    """

    changes: list[str]
    files: list[ComparedFile]

    @property
    def rounded(self) -> list[ComparedFile]:
        """The files that are equal up to rounding."""
        return [row for row in self.files if row.verdict == ROUNDED]

    @property
    def reproduced(self) -> bool:
        """Whether all files are equal, or equal up to rounding."""
        return all(row.verdict in (EQUAL, ROUNDED) for row in self.files)

    @property
    def verdict(self) -> str:
        """The result in one line."""
        n_unequal = sum(row.verdict not in (EQUAL, ROUNDED) for row in self.files)
        if n_unequal:
            return f"not reproduced: {n_unequal} of {len(self.files)} files differ"
        if not self.rounded:
            return f"reproduced: all {len(self.files)} files are equal"
        largest = max(self.rounded, key=lambda row: row.difference)
        return (
            f"{ROUNDED}: numbers in {len(self.rounded)} of {len(self.files)} files differ by at "
            f"most {largest.difference:.2g} (relative; limit: {BOUND:g}). The largest difference "
            f"is in {largest.file}, line {largest.line}: {largest.field}"
        )

    @property
    def record(self) -> dict[str, Any]:
        """The comparison as plain data, for ``--json``."""
        return {
            "verdict": self.verdict,
            "reproduced": self.reproduced,
            "changes": self.changes,
            "files": msgspec.to_builtins(self.files),
        }


class FoundInput(msgspec.Struct, frozen=True):
    """An input of the recorded run, and the file that the new run reads.

    ``moved`` states whether the path of the file differs from the recorded path.
    """

    recorded: InputFile
    path: Path
    moved: bool
    change: str = ""


class Repetition(msgspec.Struct, frozen=True):
    """A recorded run that is ready to run again."""

    folder: Path
    origin: RecordedOrigin
    inputs: list[FoundInput]

    @property
    def changes(self) -> list[str]:
        """A sentence for each version or input that differs from the record."""
        return [*_changed_versions(self.origin), *(row.change for row in self.inputs if row.change)]

    def run(self, out: Path | None) -> Reproduction:
        """Run the recorded command again and compare the files.

        Parameters
        ----------
        out : Path, optional
            Folder in which the new result is kept (default: it is deleted).
        """
        with tempfile.TemporaryDirectory() as scratch:
            folder = (out or Path(scratch) / "out").absolute()
            arguments, place = self.origin.command, None
            if any(row.moved for row in self.inputs):
                place = Path(scratch) / "inputs"
                arguments = _staged(arguments, self.inputs, place)
            _run(arguments, folder, place)
            return Reproduction(self.changes, list(compared(self.folder, folder)))


def repetition(out: Path, inputs: Path | None = None) -> Repetition:
    """Read the provenance of a result and find its inputs.

    Parameters
    ----------
    out : Path
        Folder of the result.
    inputs : Path, optional
        Folder with inputs, which can have any names. If an input is missing or changed at its
        recorded path, rebat searches this folder for a file with the recorded hash.
    """
    origin = read_origin(out)
    return Repetition(out, origin, list(_located(origin.inputs, inputs)))


def _located(recorded: Sequence[InputFile], folder: Path | None) -> Iterator[FoundInput]:
    by_hash: dict[str, Path] | None = None
    for row in recorded:
        path = _at_recorded_path(row)
        if path is not None and file_hash(path) == row.sha256:
            yield FoundInput(row, path, False)
            continue
        if folder is not None and by_hash is None:
            by_hash = _hashes(folder)
        if moved := (by_hash or {}).get(row.sha256):
            yield FoundInput(row, moved, True)
        elif path is None:
            expected = f"the file with sha256 {row.sha256}, or --inputs DIR with this file"
            raise InputError("no such file", row.file, expected)
        else:
            yield FoundInput(row, path, False, f"input {row.file} has changed")


def _at_recorded_path(row: InputFile) -> Path | None:
    """Return the file at the recorded path, or the included input.

    Return None if neither exists.
    """
    path = Path(row.file)
    if row.option in _SHIPPED:
        try:
            path = located(path, *_SHIPPED[row.option])
        except InputError:
            return None
    return path if path.is_file() else None


def _hashes(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        raise InputError("is not a folder", str(folder), "a folder with the inputs")
    return {file_hash(path): path for path in sorted(folder.rglob("*")) if path.is_file()}


def _changed_versions(origin: RecordedOrigin) -> Iterator[str]:
    present = versions()
    for name, recorded in origin.versions.items():
        if present.get(name) != recorded:
            yield f"{name} is {present.get(name, 'not installed')}, the result is of {recorded}"


def _staged(arguments: list[str], inputs: Sequence[FoundInput], place: Path) -> list[str]:
    """Copy the inputs to their recorded paths below ``place``. Return the new arguments.

    Inputs with absolute paths, or with paths that lead out of the folder, get new paths.
    """
    place.mkdir()
    for number, row in enumerate(inputs):
        file = Path(row.recorded.file)
        if not row.moved and row.path != file:
            continue  # the argument is the name of an included input
        if file.is_absolute() or ".." in file.parts:
            file = Path(f"input-{number}") / file.name
            arguments = [text.replace(row.recorded.file, str(file)) for text in arguments]
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(row.path, place / file)
    return arguments


def _run(arguments: Sequence[str], folder: Path, place: Path | None) -> None:
    """Run a command of rebat in a process, in the current folder or in ``place``.

    The exit status is ignored: even if a policy fails, there is a result.
    """
    before = (folder / MANIFEST).exists()
    command = [sys.executable, "-P", "-m", "rebat", *arguments, "--out", str(folder)]
    paths = [str(Path(rebat.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = subprocess.run(
        command, stdout=subprocess.DEVNULL, cwd=place, env=environment, check=False
    )
    if before or not (folder / MANIFEST).exists():
        problem = f"the command ended with status {done.returncode} and wrote no result"
        raise InputError(problem, PROVENANCE, "the command of a result: " + " ".join(arguments))
