# SPDX-License-Identifier: Apache-2.0
"""The list of a results folder's files with their hashes, as ``sha256sum`` writes and checks it.

It is the sign that a folder is ours: what it lists, unchanged, may be replaced; nothing else may.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from rebat.core.errors import InputError

MANIFEST = "SHA256SUMS"


def write_manifest(folder: Path) -> None:
    """List every file below a folder that holds results and nothing else."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{_sha256(path)}  {path.relative_to(folder).as_posix()}\n" for path in files]
    (folder / MANIFEST).write_text("".join(lines))


def listed(folder: Path) -> dict[str, str]:
    """Names and hashes that a folder's list holds; none where there is no list."""
    try:
        lines = (folder / MANIFEST).read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = (line.partition("  ") for line in lines)
    return {name: digest for digest, _, name in pairs if name}


def not_ours(folder: Path, apart: str | None = None) -> str | None:
    """The first thing in a folder that its list does not name, or that was changed since.

    What is in the folder ``apart`` does not count.
    """
    known = listed(folder)
    places = {str(parent) for name in known for parent in Path(name).parents}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.partition("/")[0] == apart:
            continue
        if path.is_dir() and not path.is_symlink():
            if name not in places:
                return f"{name}/, which is not of that result"
        elif name != MANIFEST and name not in known:
            return f"{name}, which is not of that result"
        elif name in known and (path.is_symlink() or _sha256(path) != known[name]):
            return f"{name}, which was changed since"
    return None


def check_no_result(folder: Path) -> None:
    """Refuse a folder that holds a result as a whole: no file may be put beside it.

    Raises
    ------
    InputError
        With the folder.
    """
    if (folder / MANIFEST).exists():
        what = "holds the result of another command"
        raise InputError(what, str(folder), "a new folder, or one of this campaign")


def remove_listed(folder: Path) -> None:
    """Remove the files that a folder's list names, the list last, and folders left empty."""
    names = [*listed(folder), MANIFEST]
    for name in names:
        (folder / name).unlink(missing_ok=True)
    places = {parent for name in names for parent in Path(name).parents} - {Path()}
    for place in sorted(places, reverse=True):
        if (folder / place).is_dir() and not any((folder / place).iterdir()):
            (folder / place).rmdir()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
