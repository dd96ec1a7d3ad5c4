# SPDX-License-Identifier: Apache-2.0
"""The files that rebat includes, and the Python code of campaigns.

In a checkout, the files are in folders next to the package. The Python files next to a campaign
file are modules of one package, so they can import each other (``from .claims import judgements``):

- ``rebat.shipped.campaigns.torus`` is the code of the included folder ``campaigns/torus``;
- ``rebat.shipped.at_HASH_FOLDER`` is the code of any other folder. Worker processes can import it,
  because the name contains the folder. The hash is that of its files, so changed files are
  imported again.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType

from rebat.core.errors import InputError
from rebat.core.files import folder
from rebat.policies.own import Fresh

CAMPAIGNS = folder("campaigns")

__path__ = [str(CAMPAIGNS.parent)]

_MARK = f"{__name__}.at_"


class _Folders:
    """Finder of the packages whose names contain a folder, and of their files."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification of a package or file, or None for other modules."""
        if not name.startswith(_MARK):
            return None
        package, _, stem = name.removeprefix(_MARK).partition(".")
        place = Path(bytes.fromhex(package.rpartition("_")[2]).decode())
        if stem:
            file = place / f"{stem}.py"
            return spec_from_loader(name, Fresh(name, str(file))) if file.is_file() else None
        if name != _package(place):
            raise ImportError(f"the Python files in {place} have changed", name=name)
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = []
        return spec


def _package(place: Path) -> str:
    """Return the name of the package of the Python files in a folder."""
    files = hashlib.sha256()
    for file in sorted(place.glob("*.py")):
        files.update(f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}".encode())
    return f"{_MARK}{files.hexdigest()[:16]}_{str(place).encode().hex()}"


def included(file: Path) -> Path | None:
    """Return the path of a file inside the campaigns that rebat includes, or None elsewhere."""
    path, root = file.resolve(), CAMPAIGNS.resolve()
    return path.relative_to(root) if path.is_relative_to(root) else None


def module(file: Path) -> ModuleType:
    """Import a Python file of a campaign.

    Raises
    ------
    InputError
        If the file does not exist or cannot be imported.
    """
    path = file.resolve()
    if not path.is_file():
        raise InputError("no such file", str(file), "a Python file")
    if inside := included(path):
        name = ".".join((__name__, CAMPAIGNS.name, *inside.with_suffix("").parts))
    else:
        name = f"{_package(path.parent)}.{path.stem}"
    try:
        return import_module(name)
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"cannot be imported: {reason}", str(file)) from error


sys.meta_path.insert(0, _Folders)
