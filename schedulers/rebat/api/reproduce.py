# SPDX-License-Identifier: Apache-2.0
"""Repetition of a run from its provenance, with a comparison of all files.

Files are compared byte by byte, then cell by cell. Other versions of Python and numpy add numbers
in another order. The last digits of a sum can then differ, although the schedules are equal.
"""

from __future__ import annotations

import csv
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

import rebat
from rebat.api.provenance import (
    PROVENANCE,
    WORKLOAD,
    InputFile,
    RecordedOrigin,
    read_origin,
    versions,
)
from rebat.core.errors import InputError
from rebat.core.files import file_hash, located
from rebat.core.folders import MANIFEST, listed
from rebat.workloads.load import workload_hash

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
        if path is not None and _hash_of(path) == row.sha256:
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


def _hash_of(path: Path) -> str:
    """Return the hash of a file, or of a site with all its files."""
    try:
        return workload_hash(path)
    except InputError:
        return file_hash(path)


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
    return {_hash_of(path): path for path in sorted(folder.rglob("*")) if path.is_file()}


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


BOUND = 1e-9
"""Largest relative difference between two numbers that are equal up to rounding."""

EQUAL: Final = "equal"
ROUNDED: Final = "equal up to rounding"
DIFFERS: Final = "differs"

_LONGEST = 120
"""Maximum number of characters of a line that are shown."""


class ComparedFile(msgspec.Struct, frozen=True):
    """A file of the result.

    Attributes
    ----------
    file : str
        Path of the file in the folder.
    verdict : str
        ``equal``, ``equal up to rounding``, ``differs``, ``missing`` (not in the new result), or
        ``new`` (not in the earlier one).
    line : int, optional
        The number of the first line that differs by more than rounding. If the file is equal up to
        rounding, the line with the largest difference. None for a binary file.
    before : str
        This line in the earlier result, or an empty text if the line does not exist. If the file is
        equal up to rounding, the number.
    now : str
        The same for the new result.
    field : str
        If the file is equal up to rounding, the column or the keys of the number.
    difference : float
        If the file is equal up to rounding, the relative difference.
    """

    file: str
    verdict: Literal["equal", "equal up to rounding", "differs", "missing", "new"]
    line: int | None = None
    before: str = ""
    now: str = ""
    field: str = ""
    difference: float = 0.0


def compared(earlier: Path, new: Path) -> Iterator[ComparedFile]:
    """Yield a row per file of two results, except the provenance."""
    in_earlier, in_new = listed(earlier).keys(), listed(new).keys()
    for name in sorted((in_earlier | in_new) - {PROVENANCE}):
        if name not in in_new:
            yield ComparedFile(name, "missing")
        elif name not in in_earlier:
            yield ComparedFile(name, "new")
        else:
            yield _compared(name, earlier / name, new / name)


def _compared(name: str, before: Path, now: Path) -> ComparedFile:
    if file_hash(before) == file_hash(now):  # do not read large files into memory
        return ComparedFile(name, EQUAL)
    try:
        texts = _lines(before), _lines(now)
    except ValueError:  # not a text, or not a table
        return ComparedFile(name, DIFFERS)
    kind, largest = before.suffix, ComparedFile(name, EQUAL)
    for line, (old, new) in enumerate(zip_longest(*texts, fillvalue=""), 1):
        if old == new:
            continue
        pairs = zip_longest(_cells(old, kind), _cells(new, kind), fillvalue="")
        unequal = {cell: pair for cell, pair in enumerate(pairs) if pair[0] != pair[1]}
        apart = {cell: relative_difference(*pair) for cell, pair in unequal.items()}
        cell = max(apart, key=lambda at: apart[at], default=-1)
        if apart.get(cell, math.inf) > BOUND:
            return ComparedFile(name, DIFFERS, line, old[:_LONGEST], new[:_LONGEST])
        if largest.line is None or apart[cell] > largest.difference:
            field = _field(texts[0], line, cell, kind)
            largest = ComparedFile(name, ROUNDED, line, *unequal[cell], field, apart[cell])
    return largest


def _lines(path: Path) -> list[str]:
    """Return the lines of a text file, or of the table in a Parquet file."""
    if path.suffix == ".parquet":
        import pandas as pd

        return str(pd.read_parquet(path).to_csv(index=False)).split("\n")
    return path.read_bytes().decode().split("\n")


_JSON_LINE = re.compile(r'\s*(?:"(?P<key>.*?)": )?(?P<value>.*?),?')
"""Pattern of a line of JSON with one key or value per line, as rebat writes it."""


def _cells(line: str, kind: str) -> list[str]:
    """Return the values of a line, or no values if the file is not a table."""
    if kind in (".csv", ".parquet"):
        return next(csv.reader([line]), [])
    if kind == ".json" and (parts := _JSON_LINE.fullmatch(line)):
        return [parts["key"] or "", parts["value"]]
    return []


def _field(lines: Sequence[str], number: int, cell: int, kind: str) -> str:
    """Return the column of a cell, or the keys of a value of JSON, joined by dots."""
    if kind != ".json":
        return _cells(lines[0], kind)[cell]
    keys: list[str] = []
    depth = math.inf
    for line in reversed(lines[:number]):
        indent = len(line) - len(line.lstrip())
        if indent < depth:
            depth = indent
            keys += filter(None, _cells(line, kind)[:1])
    return ".".join(reversed(keys))


def relative_difference(before: str, now: str) -> float:
    """Return the relative difference of two numbers, or infinity if a text is no finite number.

    Two different integers are counts or names of jobs, which rounding does not change.

    >>> relative_difference("5749.2543198799995", "5749.25431988") < 1e-15
    True
    >>> relative_difference("10000000001", "10000000002")
    inf
    """
    try:
        first, second = float(before), float(now)
    except ValueError:
        return math.inf
    integers = all(text.lstrip("-").isdigit() for text in (before, now))
    if integers or not (math.isfinite(first) and math.isfinite(second)):
        return math.inf
    return abs(first - second) / (max(abs(first), abs(second)) or 1.0)
