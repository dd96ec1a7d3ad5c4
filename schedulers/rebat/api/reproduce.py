# SPDX-License-Identifier: Apache-2.0
"""Repetition of a run from its provenance, with a comparison of all files.

Files are compared byte by byte, then cell by cell. Other versions of Python and numpy add numbers
in another order. The last digits of a sum can then differ, although the schedules are equal.
"""

from __future__ import annotations

import csv
import hashlib
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from rebat.api.allowed import check_command, is_code
from rebat.api.bundle import RESULT, read_bundle
from rebat.api.inputs import FoundInput, find_inputs, places, redirected
from rebat.api.provenance import PROVENANCE, RecordedOrigin, read_origin, versions
from rebat.core.errors import InputError
from rebat.core.files import file_hash
from rebat.core.folders import MANIFEST, listed
from rebat.core.numbers import probability
from rebat.policies.own import ALLOWED


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
            f"most {probability(largest.difference)} (relative; limit: {probability(BOUND)}). The "
            f"largest difference is in {largest.file}, line {largest.line}: {largest.field}"
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


class CodeFile(msgspec.Struct, frozen=True):
    """A Python file that a recorded run executes.

    Attributes
    ----------
    file : str
        The recorded path.
    path : Path
        The file.
    lines : int
        Number of lines.
    sha256 : str
        Hash of the present content.
    """

    file: str
    path: Path
    lines: int
    sha256: str


def _code_in(inputs: Iterable[FoundInput]) -> list[CodeFile]:
    files = []
    for row in inputs:
        if is_code(row.recorded):
            content = row.path.read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            files.append(CodeFile(row.recorded.file, row.path, len(content.splitlines()), digest))
    return files


class Repetition(msgspec.Struct, frozen=True):
    """A recorded run that is ready to run again.

    Attributes
    ----------
    folder : Path
        The result.
    origin : RecordedOrigin
    inputs : list of FoundInput
    code : list of CodeFile
        The Python files that the run executes. They are not part of rebat.
    bundled : bool
        Whether the result is from a bundle. If it is, the run reads only ``inputs`` and the inputs
        that rebat includes.
    """

    folder: Path
    origin: RecordedOrigin
    inputs: list[FoundInput]
    code: list[CodeFile]
    bundled: bool = False

    @property
    def changes(self) -> list[str]:
        """A sentence for each version or input that differs from the record."""
        return [*_changed_versions(self.origin), *(row.change for row in self.inputs if row.change)]

    def run(self, out: Path | None, run_code: bool = False) -> Reproduction:
        """Run the recorded command again and compare the files.

        Parameters
        ----------
        out : Path, optional
            Folder in which the new result is kept (default: it is deleted).
        run_code : bool
            Whether the run may execute the Python files in `code`. Read them first.

        Raises
        ------
        InputError
            If the result needs Python code and ``run_code`` is not set, or if the command writes no
            result.
        """
        if self.code and not run_code:
            files = ", ".join(row.file for row in self.code)
            raise InputError("is Python code that was not confirmed", files, "run_code=True")
        with tempfile.TemporaryDirectory() as scratch:
            folder = (out or Path(scratch) / "out").absolute()
            arguments, place = self.origin.command, None
            if self.bundled or any(row.moved for row in self.inputs):
                place = Path(scratch) / "inputs"
                arguments = _staged(arguments, self.inputs, place)
            _run(arguments, folder, place, [row.sha256 for row in self.code])
            return Reproduction(self.changes, list(compared(self.folder, folder)))


@contextmanager
def repetition(result: Path, inputs: Path | None = None) -> Iterator[Repetition]:
    """Read the provenance of a result, find its inputs, and yield the recorded run.

    Parameters
    ----------
    result : Path
        Folder of the result, or a bundle. A bundle is unpacked for the duration of the block.
    inputs : Path, optional
        Folder with inputs, which can have any names. If an input is missing or changed at its
        recorded path, rebat searches this folder for a file with the recorded hash.
    """
    if not result.is_file():
        origin = read_origin(result)
        check_command(origin, str(result / PROVENANCE))
        rows = list(find_inputs(origin.inputs, inputs))
        yield Repetition(result, origin, rows, _code_in(rows))
        return
    if inputs is not None:
        raise InputError("has no effect", "--inputs", "a folder; a bundle contains its inputs")
    with tempfile.TemporaryDirectory(prefix="rebat-bundle-") as place:
        origin, rows = read_bundle(result, Path(place))
        yield Repetition(Path(place) / RESULT, origin, rows, _code_in(rows), bundled=True)


def _changed_versions(origin: RecordedOrigin) -> Iterator[str]:
    present = versions()
    for name, recorded in origin.versions.items():
        if present.get(name) != recorded:
            yield f"{name} is {present.get(name, 'not installed')}, the result is of {recorded}"


def _staged(arguments: list[str], inputs: Sequence[FoundInput], place: Path) -> list[str]:
    """Copy the inputs to their places in a folder. Return the new arguments.

    An input that rebat includes is not copied, because its argument is a name.
    """
    place.mkdir()
    rows = [row for row in inputs if not row.included]
    where = places(row.recorded for row in rows)
    for row in rows:
        file = place / where[row.recorded]
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(row.path, file)
    return redirected(arguments, where)


def _run(
    arguments: Sequence[str], folder: Path, place: Path | None, allowed: Sequence[str]
) -> None:
    """Run a command of rebat in a process, in the current folder or in ``place``.

    The process imports nothing from its folder, which can contain foreign files. It executes only
    Python files of the user whose hashes are ``allowed``. The exit status is ignored: even if a
    policy fails, there is a result.
    """
    before = (folder / MANIFEST).exists()
    command = [sys.executable, "-P", "-m", "rebat", *arguments, "--out", str(folder)]
    paths = [Path(__file__).parents[2], *_python_path()]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        ALLOWED: ",".join(allowed),
    }
    done = subprocess.run(
        command, stdout=subprocess.DEVNULL, cwd=place, env=environment, check=False
    )
    if before or not (folder / MANIFEST).exists():
        problem = f"the command ended with status {done.returncode} and wrote no result"
        raise InputError(problem, PROVENANCE, "the command of a result: " + " ".join(arguments))


def _python_path() -> Iterator[Path]:
    """Yield the folders of PYTHONPATH. Relative folders start at the present folder."""
    if path := os.environ.get("PYTHONPATH"):
        yield from (Path(folder).absolute() for folder in path.split(os.pathsep))


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
