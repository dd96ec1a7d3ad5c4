# SPDX-License-Identifier: Apache-2.0
"""Results folders: written under a temporary name, and put in place as a whole at the end.

A temporary folder is locked while its process lives. So others see that somebody writes there, and
the next command removes what killed ones left. A result that was put in the same place meanwhile
is never touched.
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
from rebat.core.files import failures_told
from rebat.core.manifest import MANIFEST, not_ours, remove_listed, write_manifest

_TEMPORARY = re.compile(r"\.(?P<name>.*)\.rebat-[0-9a-f]{12}")
_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


@contextmanager
def atomic_folder(path: Path, force: bool = False) -> Iterator[Path]:
    """A temporary folder that takes the place of ``path`` when the block ends well.

    A list of its files (`core.manifest`) is put beside them. A folder that holds anything already
    is refused; with ``force`` an earlier result is replaced as a whole, provided that it is there
    as it was written and nothing was put beside it.

    Raises
    ------
    InputError
        Before the block: when something else stands there, another command is writing there, or
        the folder cannot be made. After it: when the place was taken during the block; the new
        result is then kept under another name, which the error says.
    """
    target = Path(os.path.realpath(path))
    with failures_told(path, target):
        with failures_told(target), _prepared(target):
            before = _taken(target, force)
            temporary = _temporary_name(target)
            temporary.mkdir()
            lock = _locked(temporary)
        try:
            with failures_told(target, temporary):
                yield temporary
                write_manifest(temporary)
                with _guarded(target.parent), _undisturbed():
                    place = _put(temporary, target, before)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            if lock is not None:
                os.close(lock)
        if place != target:
            what = f"another result was put there meanwhile; this one is in {place}"
            raise InputError(what, str(target))


@contextmanager
def _prepared(path: Path) -> Iterator[None]:
    """The folder in which a folder is to be, free of what killed commands left, and guarded."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _guarded(path.parent):
        _sweep(path)
        yield


def _put(temporary: Path, path: Path, before: str) -> Path:
    """Put a result in its place, or under another name if the place was taken; return where."""
    if _manifest(path) != before or not _replaceable(path, temporary):
        return _put_beside(temporary, path)
    if path.exists():
        remove_listed(path)
        _move_files(temporary, path)
    else:
        temporary.rename(path)
    return path


def _put_beside(temporary: Path, path: Path) -> Path:
    number = 2
    while (place := path.with_name(f"{path.name}-{number}")).exists():
        number += 1
    temporary.rename(place)
    return place


def _replaceable(path: Path, temporary: Path) -> bool:
    """Whether a folder holds its listed files, unchanged, and nothing else."""
    if not path.exists():
        return True
    return path.is_dir() and not_ours(path, apart=temporary.name) is None


def _taken(path: Path, force: bool) -> str:
    """Refuse a folder that holds an earlier result, or what is none; the list of its files."""
    if path.exists() and not path.is_dir():
        raise InputError("is a file", str(path), "a new or empty folder")
    if not path.exists() or not any(path.iterdir()):
        return ""
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
    return _manifest(path)


def _manifest(path: Path) -> str:
    """The text of a folder's list of files; nothing where there is none."""
    try:
        return (path / MANIFEST).read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def _move_files(source: Path, target: Path) -> None:
    """Move every file below one folder to the same place below another; the list of them last."""
    for file in sorted(
        (path for path in source.rglob("*") if path.is_file()), key=lambda p: p.name == MANIFEST
    ):
        place = target / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        file.replace(place)


# ---- temporary folders


def _temporary_name(path: Path) -> Path:
    """In the folder if it exists (it may be the root of a file system), else in its parent."""
    folder = path if path.exists() else path.parent
    return folder / f".{path.name}.rebat-{uuid.uuid4().hex[:12]}"


def _sweep(path: Path) -> None:
    """Remove temporary folders of processes that are gone, from a folder and its parent.

    Raises
    ------
    InputError
        When a process that lives is writing to the same folder.
    """
    for place in (path.parent, path):
        for folder in place.glob(".*.rebat-*") if place.is_dir() else ():
            found = _TEMPORARY.fullmatch(folder.name)
            if not found or not _is_own(folder):
                continue
            lock = _locked(folder)
            if lock is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)
            elif found["name"] == path.name:
                what = "another command is writing its result there"
                raise InputError(what, str(path), f"another folder (or remove {folder})")


def _is_own(folder: Path) -> bool:
    """Whether it is a folder that this user made."""
    try:
        return not folder.is_symlink() and folder.is_dir() and folder.stat().st_uid == os.getuid()
    except OSError:
        return False


def _locked(folder: Path) -> int | None:
    """A descriptor that locks a folder until it is closed; None when that is not possible."""
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
    """Let no other command look at a folder and change it within the block."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # not every file system locks folders
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Signals that end a command wait for the end of the block.

    A mask would not do: any thread of the process may take a signal, and the main thread then runs
    its handler. Other threads are not interrupted anyway.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {one: signal.signal(one, lambda number, _: came.append(number)) for one in _SIGNALS}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler or signal.SIG_DFL)  # None: it was not set from Python
        for number in came:
            signal.raise_signal(number)
