# SPDX-License-Identifier: Apache-2.0
"""A kind of units of work: how a campaign reads, performs, tabulates and reports them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rebat.runs.unit import Unit

if TYPE_CHECKING:
    from rebat.papers.common.parts import Report


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
    extras, gather
        A type, and (units) -> one of it: what the report needs in addition to the results table,
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
    extras: type
    gather: Callable[[Sequence[Unit]], Any]
    report: Callable[[Path, Any, Sequence[str]], Report]
    check: Callable[[Sequence[Unit]], None] = lambda units: None
