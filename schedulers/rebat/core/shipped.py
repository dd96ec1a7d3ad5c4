# SPDX-License-Identifier: Apache-2.0
"""Inputs that the package contains, by name, for example ``mira-like-june-2017`` or ``toy``."""

from __future__ import annotations

from pathlib import Path

from rebat.core.errors import InputError, unknown_name

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
        raise InputError(error.problem, expected=f"a file, or {error.expected}")
    return paths[path.as_posix()]
