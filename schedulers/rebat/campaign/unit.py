# SPDX-License-Identifier: Apache-2.0
"""What a campaign is made of: units of work, and what there is to know of each kind of them.

A unit is one simulation, say, or one job set under all its failure scenarios. Its key is the hash
of all that determines its result, and of nothing else: names of grids and files do not count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from rebat.papers.common.parts import Report


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """A unit of work.

    ``kind`` is a key of `kinds.KINDS`, ``grid`` the name of its grid; ``spec`` is what its kind
    works on, ``labels`` what the results table says it is about, ``about`` the same for people;
    ``identity`` is what the key was made of, as plain JSON values; those of two kinds differ.
    """

    kind: str
    grid: str
    about: str
    spec: Any
    labels: dict[str, Any]
    identity: dict[str, Any]
    key: str


class Document(msgspec.Struct, frozen=True):
    """A campaign file as one kind sees it: its ``grids``, each with its place in the file.

    ``tables`` is the whole file; ``trace`` takes the place of every trace that it names.
    """

    path: Path
    tables: dict[str, Any]
    grids: list[tuple[str, dict[str, Any]]]
    trace: Path | None = None


class Expansion(msgspec.Struct, frozen=True):
    """The units of a file, in its order; ``notes`` say what was left out."""

    units: list[Unit]
    notes: list[str] = []


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of unit: all that the rest of a campaign needs to know of it.

    Attributes
    ----------
    name, mark, tables
        What a grid may call it; a key that only its grids have; the file's keys that are its own.
    columns, details
        Columns of the results table with their types: a unit's labels, and what tells apart
        several values of one metric.
    files
        What `perform` can leave in a folder, the last one written at the end.
    expand
        The units of a file, which it checks.
    perform
        (unit, folder or None) -> the metrics of its result; runs in a worker.
    rows
        (unit, metrics) -> rows of the results table: ``metric``, ``value`` and details.
    check
        Sees before anything runs that the inputs of these units can be read and fit each other.
    warm_up
        Compiles what these units need, before workers do so at the same time.
    beside, gather
        A type, and (units) -> one of it: what the report needs beside the results table. It is
        kept as JSON.
    report
        (results table, what was gathered, provenance) -> the report.
    """

    name: str
    mark: str
    tables: tuple[str, ...]
    columns: Mapping[str, type]
    details: Mapping[str, type]
    files: tuple[str, ...] = ()
    expand: Callable[[Document], Expansion]
    perform: Callable[[Unit, Path | None], dict[str, Any]]
    rows: Callable[[Unit, dict[str, Any]], Iterable[dict[str, Any]]]
    warm_up: Callable[[Sequence[Unit]], None]
    beside: type
    gather: Callable[[Sequence[Unit]], Any]
    report: Callable[[Path, Any, Sequence[str]], Report]
    check: Callable[[Sequence[Unit]], None] = lambda units: None


def key_of(identity: Any) -> str:
    """The key of a unit that is determined by these plain values."""
    return hashlib.sha256(canonical(identity).encode()).hexdigest()


def canonical(value: Any) -> str:
    """JSON with one spelling per value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
