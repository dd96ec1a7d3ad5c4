# SPDX-License-Identifier: Apache-2.0
"""Files: atomic writing, opening of compressed texts and Parquet, and inputs by name.

Each file is written under a temporary name and then renamed. Inputs that the package contains have
names, for example ``mira-like-june-2017`` or ``toy``. The package pyarrow is optional.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import shutil
import stat
import tempfile
import uuid
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

import msgspec

from rebat.core.errors import InputError, not_installed, unknown_name

OPENERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}

_LINES = 1024
"""Number of lines that are written in one step."""


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path. If the block succeeds, the file at this path replaces ``path``.

    Symbolic links are followed. An existing file keeps its mode. If ``path`` is a special file
    (device, pipe), the content is copied into this file after the block.
    """
    with write_errors(path), _through(path) if _is_special(path) else _sibling(path) as temporary:
        yield temporary


@contextmanager
def _sibling(path: Path) -> Iterator[Path]:
    """Yield a temporary file in the folder of ``path``, and rename it to ``path`` after the block.

    If ``path`` is a symbolic link, the linked file is replaced.
    """
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary_name(target, target.parent)
    try:
        temporary.open("xb").close()  # the user's umask determines the mode
        yield temporary
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _through(path: Path) -> Iterator[Path]:
    """Yield a temporary file. After the block, copy its content into the special file ``path``."""
    with tempfile.TemporaryDirectory() as folder:
        temporary = Path(folder) / path.name
        temporary.touch()
        yield temporary
        with temporary.open("rb") as source, path.open("wb") as sink:
            shutil.copyfileobj(source, sink)


def _is_special(path: Path) -> bool:
    with write_errors(path):
        try:
            return not stat.S_ISREG(path.stat().st_mode)
        except FileNotFoundError:
            return False


def _temporary_name(path: Path, folder: Path) -> Path:
    return folder / f".{path.name}.{uuid.uuid4().hex[:12]}"


@contextmanager
def write_errors(path: Path, temporary: Path | None = None) -> Iterator[None]:
    """Convert write errors to InputErrors that name ``path`` instead of the temporary file."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write: {error.strerror or error}", str(path)) from None
    except InputError as error:
        if temporary is None or error.where is None:
            raise
        where = error.where.replace(str(temporary), str(path))
        raise InputError(error.problem, where, error.expected) from None


def write_text(path: Path, text: str) -> None:
    """Write a text file (see `write_parts`)."""
    write_parts(path, (text,))


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a text file line by line (see `write_parts`)."""
    rest = iter(lines)
    write_parts(path, iter(lambda: "".join([f"{line}\n" for line in islice(rest, _LINES)]), ""))


def write_json(path: Path, record: Any) -> None:
    """Write a value as JSON, indented by 2, with a final newline."""
    write_text(path, msgspec.json.format(msgspec.json.encode(record), indent=2).decode() + "\n")


def write_parts(path: Path, parts: Iterable[str]) -> None:
    """Write a text file in parts, which saves memory (see `write_bytes`)."""
    write_bytes(path, (part.encode() for part in parts))


def write_bytes(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file in parts.

    If the name ends in .gz, the file is compressed. It contains no time stamp.
    """
    with _written(path, parts):
        pass


@contextmanager
def text_if_successful(path: Path, text: str) -> Iterator[None]:
    """Write a text file (see `write_parts`) before the block, and keep it if the block succeeds."""
    with _written(path, (text.encode(),)):
        yield


@contextmanager
def _written(path: Path, parts: Iterable[bytes]) -> Iterator[None]:
    with atomic_path(path) as temporary:
        with temporary.open("wb") as file:
            file.writelines(_compressed(parts) if path.suffix == ".gz" else parts)
        yield


def _compressed(parts: Iterable[bytes]) -> Iterator[bytes]:
    compressor = zlib.compressobj(level=9, wbits=31)  # bytes as of gzip.compress(mtime=0)
    for part in parts:
        yield compressor.compress(part)
    yield compressor.flush()


def file_hash(path: Path) -> str:
    """Return the sha256 of a file's content. If the file cannot be read, raise InputError."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot read the file: {error.strerror}", str(path)) from None


def read_text(path: Path, errors: str = "strict") -> str:
    """Return the content of a text file, plain or .gz. If this fails, raise InputError."""
    with open_text(path, errors=errors) as lines:
        return lines.read()


@contextmanager
def open_text(path: Path, newline: str | None = None, errors: str = "strict") -> Iterator[IO[str]]:
    """Open a text file, plain, .gz or .xz, for reading. If this fails, raise InputError.

    The encoding is UTF-8, with or without a byte order mark. For ``newline`` and ``errors`` see
    `open`.
    """
    try:
        opener = OPENERS.get(path.suffix, open)
        with opener(path, "rt", encoding="utf-8-sig", newline=newline, errors=errors) as lines:
            yield lines
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise InputError(f"cannot read the file: {reason}", str(path)) from None
    except UnicodeDecodeError:
        raise InputError("is not a text file", str(path), "UTF-8 text, .gz or .xz") from None


_PACKAGE = Path(__file__).parents[1]


def folder(kind: str) -> Path:
    """Return the folder of a kind of inputs.

    The kinds are ``workloads``, ``failure_events``, ``platforms``, ``campaigns`` and
    ``workloads/mappings``. The folder is in the installed package, or next to the package in a
    checkout.
    """
    installed = _PACKAGE / "shipped" / kind
    return installed if installed.is_dir() else _PACKAGE.parents[1] / kind


def names(kind: str, *endings: str) -> dict[str, Path]:
    """Return the path of each input of a kind, by name without file extension.

    Inputs in subfolders are named ``folder/name``.

    >>> sorted(names("workloads", ".json"))
    ['llama3-16k', 'mira-like-june-2017', 'synthetic-small', 'toy']
    """
    root = folder(kind)
    paths = {}
    for path in sorted(root.rglob("*")):
        plain = path.name.removesuffix(".gz")
        for ending in endings:
            if path.is_file() and plain.endswith(ending):
                paths[path.with_name(plain.removesuffix(ending)).relative_to(root).as_posix()] = (
                    path
                )
    return paths


def located(path: Path, kind: str, *endings: str) -> Path:
    """Return the path of a user's file. If it does not exist, return the included input's path."""
    if path.suffix or path.is_absolute() or (path.exists() and not path.is_dir()):
        return path
    paths = names(kind, *endings)
    if path.as_posix() not in paths:
        error = unknown_name("file or shipped input", str(path), paths)
        expected = f"a file, or {error.expected}" if paths else "a file"
        raise InputError(error.problem, expected=expected)
    return paths[path.as_posix()]


def arrow(path: Path) -> tuple[Any, Any]:
    """Return pyarrow and pyarrow.parquet. If they are not installed, raise InputError."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise not_installed("pyarrow", str(path)) from None
    return pa, pq


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Open a file as a ``pyarrow.parquet.ParquetFile``."""
    pa, pq = arrow(path)
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"broken Parquet: {reason}", str(path)) from None
