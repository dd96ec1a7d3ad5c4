# SPDX-License-Identifier: Apache-2.0
"""Inputs that come along with the package, found by name: ``mira-like-june-2017``, ``toy``."""

from __future__ import annotations

from pathlib import Path

from rebat.core.errors import InputError, unknown_name

_PACKAGE = Path(__file__).parents[1]


def folder(kind: str) -> Path:
    """Where inputs of a kind are: ``workloads``, ``failure_events``, ``platforms``, ``campaigns``.

    Within the package where it was installed, beside it in a checkout.
    """
    installed = _PACKAGE / "shipped" / kind
    return installed if installed.is_dir() else _PACKAGE.parents[1] / kind


def names(kind: str, *endings: str) -> dict[str, Path]:
    """The inputs of a kind, by their names without endings; in folders below, ``folder/name``.

    >>> sorted(names("workloads", ".json"))
    ['mira-like-june-2017', 'synthetic-small', 'toy']
    """
    root = folder(kind)
    found = {}
    for path in sorted(root.rglob("*")):
        plain = path.name.removesuffix(".gz")
        for ending in endings:
            if path.is_file() and plain.endswith(ending):
                found[path.with_name(plain.removesuffix(ending)).relative_to(root).as_posix()] = (
                    path
                )
    return found


def located(path: Path, kind: str, *endings: str) -> Path:
    """A file of the user's, or else the shipped one of that name.

    Raises
    ------
    InputError
        For a name without an ending that is neither.
    """
    if path.suffix or path.is_absolute() or (path.exists() and not path.is_dir()):
        return path
    known = names(kind, *endings)
    if path.as_posix() not in known:
        error = unknown_name("file or shipped input", str(path), known)
        raise InputError(error.what, expected=f"a file, or {error.expected}")
    return known[path.as_posix()]
