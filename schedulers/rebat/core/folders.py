# SPDX-License-Identifier: Apache-2.0
"""Results folders, which are written under a temporary name and moved into place at the end.

A temporary folder is locked while its process runs, so that other commands do not remove it. Each
command removes the temporary folders of killed commands. If another command writes a result to the
same place in the meantime, its result is not changed.

A folder contains a list of its files with their hashes, in the format of ``sha256sum``. rebat
replaces only files that are in the list and unchanged.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rebat.core.errors import InputError
from rebat.core.files import file_hash, write_errors

_TEMPORARY = re.compile(r"\.(?P<name>.*)\.rebat-[0-9a-f]{12}")
_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


@contextmanager
def atomic_folder(path: Path, force: bool = False) -> Iterator[Path]:
    """Yield a temporary folder. If the block succeeds, this folder replaces ``path``.

    A list of the files is added to the folder (`core.manifest`). ``path`` must be new or an empty
    folder. If ``force`` is set, ``path`` may also contain an earlier result, which is then
    replaced. A result whose files have changed, or a folder with other files, is never replaced.

    Raises
    ------
    InputError
        Before the block: if the folder cannot be replaced or created, or another command is writing
        to it. After the block: if another command created ``path`` in the meantime. In this case,
        the new result has another name, which the error states.
    """
    target = Path(os.path.realpath(path))
    with write_errors(path, target):
        with write_errors(target), _prepared(target):
            before = _taken(target, force)
            temporary = _temporary_name(target)
            temporary.mkdir()
            lock = _locked(temporary)
        try:
            with write_errors(target, temporary):
                yield temporary
                write_manifest(temporary)
                with _guarded(target.parent), _undisturbed():
                    place = _put(temporary, target, before)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            if lock is not None:
                os.close(lock)
        if place != target:
            error = (
                f"another result was written there in the meantime; the new result is in {place}"
            )
            raise InputError(error, str(target))


@contextmanager
def _prepared(path: Path) -> Iterator[None]:
    """Create and lock the parent of a folder. Remove temporary folders of killed commands."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _guarded(path.parent):
        _sweep(path)
        yield


def _put(temporary: Path, path: Path, before: str) -> Path:
    """Move a result to ``path``, or to another name if ``path`` exists. Return its new path."""
    if _manifest(path) != before or not _replaceable(path, temporary):
        return _put_under_new_name(temporary, path)
    if path.exists():
        remove_listed(path)
        _move_files(temporary, path)
    else:
        temporary.rename(path)
    return path


def _put_under_new_name(temporary: Path, path: Path) -> Path:
    number = 2
    while (place := path.with_name(f"{path.name}-{number}")).exists():
        number += 1
    temporary.rename(place)
    return place


def _replaceable(path: Path, temporary: Path) -> bool:
    """Return whether a folder contains only listed files, all of them unchanged."""
    if not path.exists():
        return True
    return path.is_dir() and not_ours(path, apart=temporary.name) is None


def _taken(path: Path, force: bool) -> str:
    """Return the list of files in a folder. Raise InputError if the folder must be kept."""
    if path.exists() and not path.is_dir():
        raise InputError("is a file", str(path), "a new or empty folder")
    if not path.exists() or not any(path.iterdir()):
        return ""
    if not (path / MANIFEST).exists():
        error = "exists and contains no earlier result"
        raise InputError(error, str(path), "a new or empty folder")
    if not force:
        raise InputError(
            "contains an earlier result", str(path), "a new folder, or --force to replace it"
        )
    foreign = not_ours(path)
    if foreign:
        raise InputError(
            f"is not replaced, because it contains {foreign}",
            str(path),
            "an unchanged earlier result",
        )
    return _manifest(path)


def _manifest(path: Path) -> str:
    """Return the text of the list of files in a folder, or an empty text if there is no list."""
    try:
        return (path / MANIFEST).read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def _move_files(source: Path, target: Path) -> None:
    """Move all files from one folder to another. The list of files is moved last."""
    for file in sorted(
        (path for path in source.rglob("*") if path.is_file()), key=lambda p: p.name == MANIFEST
    ):
        place = target / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        file.replace(place)


# ---- temporary folders


def _temporary_name(path: Path) -> Path:
    """Return a temporary name in an existing folder (perhaps a mount) or next to a new folder."""
    folder = path if path.exists() else path.parent
    return folder / f".{path.name}.rebat-{uuid.uuid4().hex[:12]}"


def _sweep(path: Path) -> None:
    """Remove temporary folders of ended processes, from a folder and its parent.

    Raises
    ------
    InputError
        If a running process is writing to the same folder.
    """
    for place in (path.parent, path):
        for folder in place.glob(".*.rebat-*") if place.is_dir() else ():
            match = _TEMPORARY.fullmatch(folder.name)
            if not match or not _is_own(folder):
                continue
            lock = _locked(folder)
            if lock is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)
            elif match["name"] == path.name:
                error = "another command is writing its result there"
                raise InputError(error, str(path), f"another folder (or remove {folder})")


def _is_own(folder: Path) -> bool:
    """Return whether this user created the folder."""
    try:
        return not folder.is_symlink() and folder.is_dir() and folder.stat().st_uid == os.getuid()
    except OSError:
        return False


def _locked(folder: Path) -> int | None:
    """Lock a folder. Return a file descriptor that holds the lock, or None if the lock failed."""
    handle = None
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        if handle is not None:
            os.close(handle)
        return None
    return handle


@contextmanager
def _guarded(folder: Path) -> Iterator[None]:
    """Lock a folder against other commands during the block."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # some file systems do not support locks of folders
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Until the end of the block, delay signals that would end the command.

    A signal mask of the main thread is not sufficient: another thread may receive a signal, and its
    handler then runs in the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    before = {n: signal.signal(n, lambda number, _: received.append(number)) for n in _SIGNALS}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler or signal.SIG_DFL)  # None: not a Python handler
        for number in received:
            signal.raise_signal(number)


MANIFEST = "SHA256SUMS"


def write_manifest(folder: Path) -> None:
    """List every file below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{file_hash(path)}  {path.relative_to(folder).as_posix()}\n" for path in files]
    (folder / MANIFEST).write_text("".join(lines))


def listed(folder: Path) -> dict[str, str]:
    """Return the names and hashes in a folder's list of files. Without a list, return no names."""
    try:
        lines = (folder / MANIFEST).read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = (line.partition("  ") for line in lines)
    return {name: digest for digest, _, name in pairs if name}


def not_ours(folder: Path, apart: str | None = None) -> str | None:
    """Return the first file or folder that is not listed or has changed, or None if there is none.

    The content of the subfolder ``apart`` is ignored.
    """
    hashes = listed(folder)
    places = {str(parent) for name in hashes for parent in Path(name).parents}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.partition("/")[0] == apart:
            continue
        if path.is_dir() and not path.is_symlink():
            if name not in places:
                return f"{name}/, which is not part of that result"
        elif name != MANIFEST and name not in hashes:
            return f"{name}, which is not part of that result"
        elif name in hashes and (path.is_symlink() or file_hash(path) != hashes[name]):
            return f"{name}, which has changed"
    return None


def check_no_result(folder: Path) -> None:
    """Raise InputError if a folder contains a result."""
    if (folder / MANIFEST).exists():
        error = "contains the result of another command"
        raise InputError(error, str(folder), "a new folder, or a folder of this campaign")


def remove_listed(folder: Path) -> None:
    """Remove the listed files of a folder, the list, and the folders that become empty."""
    names = [*listed(folder), MANIFEST]
    for name in names:
        (folder / name).unlink(missing_ok=True)
    places = {parent for name in names for parent in Path(name).parents} - {Path()}
    for place in sorted(places, reverse=True):
        if (folder / place).is_dir() and not any((folder / place).iterdir()):
            (folder / place).rmdir()
