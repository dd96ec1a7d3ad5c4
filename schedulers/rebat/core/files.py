"""Files are written under a temporary name and then renamed: there whole, or not at all."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from rebat.core.errors import InputError
from rebat.core.manifest import MANIFEST, not_ours, remove_listed, write_manifest


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its name when the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file in one piece; compressed without a date when its name ends in .gz."""
    data = text.encode()
    with atomic_path(path) as temporary:
        temporary.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def read_text(path: Path) -> str:
    """Read a whole text file, plain or .gz; every failure is an InputError that names it."""
    with open_text(path) as lines:
        return lines.read()


@contextmanager
def open_text(path: Path) -> Iterator[IO[str]]:
    """Open a text file, plain or .gz, for reading; every failure is an InputError."""
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8") as lines:
            yield lines
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise InputError(f"cannot read the file: {reason}", str(path)) from None
    except UnicodeDecodeError:
        raise InputError("is not a text file", str(path), "UTF-8 text, plain or .gz") from None


@contextmanager
def atomic_folder(path: Path, force: bool = False) -> Iterator[Path]:
    """A temporary folder that takes the place of ``path`` when the block ends well.

    A list of its files (`core.manifest`) is put beside them. A folder that holds anything already
    is refused; with ``force`` an earlier result is replaced as a whole, provided that it is there
    as it was written and nothing was put beside it.

    Raises
    ------
    InputError
        Before the block: when something else stands there, or the folder cannot be made.
    """
    _check_free(path, force)
    home = path if path.exists() else path.parent
    try:
        home.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=home))
    except OSError as error:
        raise InputError(f"cannot make the folder: {error.strerror}", str(path)) from None
    try:
        yield temporary
        write_manifest(temporary)
        temporary.chmod(0o755)
        if path.exists():
            remove_listed(path)
            _move_files(temporary, path)
        else:
            temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _check_free(path: Path, force: bool) -> None:
    """Refuse a folder that holds an earlier result, or what is none."""
    if not path.exists() or not any(path.iterdir()):
        return
    if not (path / MANIFEST).exists():
        raise InputError("exists and holds no earlier result", str(path), "a new or empty folder")
    if not force:
        raise InputError(
            "holds an earlier result", str(path), "a new folder, or --force to replace it"
        )
    foreign = not_ours(path)
    if foreign:
        raise InputError(
            f"is not replaced: it holds {foreign}", str(path), "an earlier result as it was written"
        )


def _move_files(source: Path, target: Path) -> None:
    """Move every file below one folder to the same place below another; the list of them last."""
    for file in sorted(
        (path for path in source.rglob("*") if path.is_file()), key=lambda p: p.name == MANIFEST
    ):
        place = target / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        file.replace(place)
