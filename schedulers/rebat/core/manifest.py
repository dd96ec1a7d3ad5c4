# SPDX-License-Identifier: Apache-2.0
"""List of the files of a results folder with their hashes, in the format of ``sha256sum``.

rebat replaces only files that are in the list and unchanged.
"""

from __future__ import annotations

from pathlib import Path

from rebat.core.errors import InputError
from rebat.core.files import file_hash

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
