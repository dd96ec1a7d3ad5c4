# SPDX-License-Identifier: Apache-2.0
"""The inputs of a recorded run: where they are now, and where their copies are placed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from rebat.api.provenance import SITE, WORKLOAD, InputFile
from rebat.core.archive import is_plain
from rebat.core.errors import InputError
from rebat.core.files import file_hash, located, names
from rebat.workloads.load import SITE_ENDING, workload_hash
from rebat.workloads.site import read_site

_SHIPPED = {
    WORKLOAD: ("workloads", ".json"),
    "--failures": ("failure_events", ".events"),
}
"""For each option, the kind and the file extensions of the inputs that rebat includes."""


class FoundInput(msgspec.Struct, frozen=True):
    """An input of the recorded run, and the file that the new run reads.

    ``moved`` states whether the path of the file differs from the recorded path.
    """

    recorded: InputFile
    path: Path
    moved: bool
    change: str = ""

    @property
    def included(self) -> bool:
        """Whether the input is part of rebat, so that its argument is a name."""
        return not self.moved and self.path != Path(self.recorded.file)


def find_inputs(recorded: Sequence[InputFile], folder: Path | None) -> Iterator[FoundInput]:
    """Yield the inputs at their recorded paths, or from ``folder``, where they can have any name.

    Raises
    ------
    InputError
        If an input does not exist.
    """
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
            yield FoundInput(row, path, False, _changed(row))


def find_unpacked(recorded: Sequence[InputFile], folder: Path) -> Iterator[FoundInput]:
    """Yield the inputs from a folder in which they have the paths of `places`.

    Raises
    ------
    InputError
        If an input is missing or has changed, or if a site names a file that is not an input.
    """
    where = places(recorded)
    for row in recorded:
        path = folder / where[row]
        if path.is_file():
            if path.suffix.lower() == SITE_ENDING and row.option == WORKLOAD:
                _check_site(path, row, recorded)
            if _hash_of(path) != row.sha256:
                raise InputError("has changed", row.file, f"sha256 {row.sha256}")
            yield FoundInput(row, path, True)
        elif row.option in _SHIPPED and row.file in names(*_SHIPPED[row.option]):
            path = names(*_SHIPPED[row.option])[row.file]
            same = file_hash(path) == row.sha256
            yield FoundInput(row, path, False, "" if same else _changed(row))
        else:
            raise InputError("is missing", row.file, f"sha256 {row.sha256}")


def _check_site(path: Path, row: InputFile, recorded: Sequence[InputFile]) -> None:
    """Raise InputError if a site reads a file that is not an input."""
    site, folder = read_site(path), Path(row.file).parent
    inputs = {other.file for other in recorded if other.option == SITE}
    for text in (site.jobs, site.checkpoints, site.failures):
        if text and isinstance(text, str) and (folder / text).as_posix() not in inputs:
            problem = f"names {text!r}, which is not among the inputs"
            raise InputError(problem, row.file, "a site whose files are inputs")


def _changed(row: InputFile) -> str:
    return f"input {row.file} has changed"


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


# ---- copies


def places(rows: Iterable[InputFile]) -> dict[InputFile, str]:
    """Return the relative path of the copy of each input, in a folder of all copies.

    It is the recorded path if this path is relative and stays below its folder. Hidden files and
    files without an ending are never directly in the folder: the run starts there, and libraries
    read their settings from files like ``matplotlibrc``.

    Raises
    ------
    InputError
        If the file of a site is not below the folder of the site.
    """
    where: dict[InputFile, str] = {}
    site = WORKLOAD, ""
    for row in rows:
        if row.option == SITE:
            where[row] = _next_to(row, *site)
            continue
        path = Path(row.file).as_posix()
        hidden = any(part.startswith(".") for part in path.split("/"))
        if hidden or not Path(path).suffix or not is_plain(path):
            path = f"input-{row.sha256[:12]}/{Path(path).name}"
        where[row] = path
        if row.option == WORKLOAD:
            site = row.file, path
    return where


def _next_to(row: InputFile, recorded: str, place: str) -> str:
    """Return the place of a file of a site.

    ``recorded`` and ``place`` are the recorded path and the place of the site.
    """
    try:
        text = Path(row.file).relative_to(Path(recorded).parent).as_posix()
    except ValueError:
        text = ""
    if not is_plain(text):
        expected = "a path below the folder of the site file"
        raise InputError("is a file of the site in another folder", row.file, expected)
    return (PurePosixPath(place).parent / text).as_posix()


def redirected(arguments: Sequence[str], where: Mapping[InputFile, str]) -> list[str]:
    """Return a recorded command whose arguments name the copies of the inputs."""
    new = list(arguments)
    for number in range(1, len(new)):
        option = WORKLOAD if number == 1 else new[number - 1]
        for row, place in where.items():
            if row.option == option and is_redirected(row, place):
                new[number] = new[number].replace(row.file, place)
    return new


def is_redirected(row: InputFile, place: str) -> bool:
    """Return whether the copy of an input has another path than the input."""
    return Path(row.file) != Path(place)
