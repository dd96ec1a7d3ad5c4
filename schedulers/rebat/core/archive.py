# SPDX-License-Identifier: Apache-2.0
"""Zip archives: written with the same bytes for the same files, and read as foreign data.

An archive from elsewhere can contain names that lead out of a folder, links, encrypted members,
names that a file system cannot distinguish, or members that fill the disk. `unpack` checks all
names and sizes before it writes the first file.
"""

from __future__ import annotations

import shutil
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from rebat.core.errors import InputError, short
from rebat.core.files import atomic_path
from rebat.core.numbers import file_size

MOST_FILES = 10_000
"""Maximum number of files in an archive."""

MOST_BYTES = 2 * 1024**3
"""Maximum size of all files in an archive together, uncompressed."""

_MOST_CONTENTS = 8 * 1024**2
"""Maximum size of the table of contents of an archive, in bytes."""

_LONGEST = 255
"""Maximum number of bytes of each part of a name."""

_END = struct.Struct("<4s4H2LH")
"""The end of an archive without a comment: the last two numbers are a size and an offset."""

_END_MARK, _END64_MARK = b"PK\5\6", b"PK\6\7"
_END64_SIZE = 20

_STEP = 1024**2

_EPOCH = (1980, 1, 1, 0, 0, 0)

_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)
"""Errors of `zipfile` for damaged and for unsupported archives."""


def write_archive(path: Path, members: Mapping[str, Path | bytes]) -> None:
    """Write an archive of files, sorted by name, without their times and permissions.

    Parameters
    ----------
    path : Path
        The archive.
    members : dict
        For each name in the archive, a file or the content.

    Raises
    ------
    InputError
        If `unpack` would refuse the archive.
    """
    check_names(members, str(path))
    sizes = [row.stat().st_size if isinstance(row, Path) else len(row) for row in members.values()]
    _check_size(len(members), sum(sizes), str(path))
    with (
        atomic_path(path) as temporary,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, allowZip64=False) as archive,
    ):
        for name, content in sorted(members.items()):
            member = zipfile.ZipInfo(name, _EPOCH)
            member.create_system = 3  # Unix, also elsewhere
            member.external_attr = (stat.S_IFREG | 0o644) << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(member, "w") as sink:
                if isinstance(content, bytes):
                    sink.write(content)
                else:
                    with content.open("rb") as source:
                        shutil.copyfileobj(source, sink, _STEP)


def unpack(path: Path, folder: Path) -> list[str]:
    """Extract an archive into an empty folder. Return the names of the files.

    Raises
    ------
    InputError
        If the archive is damaged, too large, encrypted, or contains a name that is not a plain
        relative path. In this case, no file is written outside of the folder.
    """
    with _read_errors(path), path.open("rb") as file:
        _check_end(file, path)
        with zipfile.ZipFile(file) as archive:
            members = [_checked(member, path) for member in archive.infolist()]
            files = [member for member in members if not member.is_dir()]
            check_names([member.filename for member in files], str(path))
            total = sum(member.file_size for member in files)
            _check_size(len(members), total, str(path))
            _check_space(folder, total, path)
            for member in files:
                _extract(archive, member, folder / member.filename)
    return [member.filename for member in files]


@contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except _BROKEN as error:
        problem = f"is not a readable archive: {str(error) or type(error).__name__}"
        raise InputError(problem, str(path), "a zip file of rebat bundle") from None
    except OSError as error:
        raise InputError(f"cannot be unpacked: {error.strerror or error}", str(path)) from None


def _check_end(file: IO[bytes], path: Path) -> None:
    """Check the size of the table of contents, which `zipfile` reads into memory."""
    size = file.seek(0, 2)
    file.seek(max(size - _END.size - _END64_SIZE, 0))
    tail = file.read()
    mark, *_, contents, _, comment = _END.unpack(tail[-_END.size :].rjust(_END.size, b"\0"))
    if mark != _END_MARK or comment or tail.startswith(_END64_MARK):
        raise InputError("is not a zip file", str(path), "a zip file of rebat bundle")
    if contents > _MOST_CONTENTS:
        raise InputError("has too many files", str(path), f"at most {MOST_FILES} files")
    file.seek(0)


def _checked(member: zipfile.ZipInfo, path: Path) -> zipfile.ZipInfo:
    """Return a member if it is a plain file or a folder that `zipfile` can read."""
    mode = member.external_attr >> 16
    kind = stat.S_IFMT(mode)
    if member.filename != member.orig_filename or kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        problem = f"contains {short(member.orig_filename)}, which is not a plain file"
        raise InputError(problem, str(path), "only plain files and folders")
    if member.is_dir():
        check_names([member.filename.removesuffix("/")], str(path))
    if member.flag_bits & 0x1:
        problem = f"contains {short(member.filename)}, which is encrypted"
        raise InputError(problem, str(path), "files without a password")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        problem = f"contains {short(member.filename)}, whose compression is not supported"
        raise InputError(problem, str(path), "stored or deflated files")
    return member


def check_names(names: Iterable[str], where: str) -> None:
    """Raise InputError unless all names are plain relative paths that all file systems distinguish.

    Parameters
    ----------
    names : iterable of str
        Names of files, with slashes between folders.
    where : str
        The place of the names, for errors.
    """
    seen: dict[str, str] = {}
    folders: dict[str, str] = {}
    for name in names:
        if not is_plain(name):
            raise InputError(
                f"contains {short(name)}", where, "relative paths without '..' and backslashes"
            )
        path = PurePosixPath(_folded(name))
        other = seen.get(str(path)) or folders.get(str(path))
        other = other or next((seen[str(p)] for p in path.parents if str(p) in seen), None)
        if other is not None:
            problem = f"contains {short(name)} and {short(other)}, which can be the same file"
            raise InputError(problem, where, "different names")
        seen[str(path)] = name
        folders |= {str(parent): name for parent in path.parents if parent.name}


def is_plain(name: str) -> bool:
    """Return whether a name is a relative path that stays below its folder.

    >>> is_plain("result/jobs.csv"), is_plain("../jobs.csv"), is_plain("/jobs.csv")
    (True, False, False)
    """
    try:
        parts = [part.encode() for part in name.split("/")]
    except UnicodeEncodeError:
        return False
    return (
        name.isprintable()
        and "\\" not in name
        and all(0 < len(part) <= _LONGEST and part not in (b".", b"..") for part in parts)
    )


def _folded(name: str) -> str:
    """Return the same text for names that some file systems do not distinguish."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", name).casefold())


def _check_size(n_files: int, n_bytes: int, where: str) -> None:
    if n_files > MOST_FILES:
        raise InputError(f"has {n_files} files", where, f"at most {MOST_FILES} files")
    if n_bytes > MOST_BYTES:
        problem = f"has {file_size(n_bytes)} of files"
        raise InputError(problem, where, f"at most {file_size(MOST_BYTES)}, uncompressed")


def _check_space(folder: Path, n_bytes: int, path: Path) -> None:
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        problem = f"needs {file_size(n_bytes)}, but {folder} has {file_size(free)} of free space"
        raise InputError(problem, str(path), "free space, or another folder in TMPDIR")


def _extract(archive: zipfile.ZipFile, member: zipfile.ZipInfo, place: Path) -> None:
    """Write a member. `zipfile` reads at most its stated size, and checks its checksum."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(member) as source, place.open("xb") as sink:
        shutil.copyfileobj(source, sink, _STEP)
