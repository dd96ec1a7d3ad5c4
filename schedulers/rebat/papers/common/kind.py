# SPDX-License-Identifier: Apache-2.0
"""A kind of unit of work: how a campaign reads, runs, tabulates and reports its units."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rebat.runs.unit import Unit

if TYPE_CHECKING:
    from rebat.papers.common.parts import Report


class Document(msgspec.Struct, frozen=True):
    """A campaign file, for one kind of unit.

    Attributes
    ----------
    path
        The file.
    tables
        The entire content of the file.
    grids
        The grids of this kind, each with its place in the file.
    trace
        A trace that replaces every trace of the file.
    """

    path: Path
    tables: dict[str, Any]
    grids: list[tuple[str, dict[str, Any]]]
    trace: Path | None = None


class Expansion(msgspec.Struct, frozen=True):
    """The units of a file in its order, and ``notes`` on excluded units."""

    units: list[Unit]
    notes: list[str] = []


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of unit: the functions and names with which a campaign handles it.

    Attributes
    ----------
    name
        The name of the kind in a grid.
    mark
        A key that only grids of this kind have.
    tables
        Top-level keys of the file that belong to this kind.
    columns
        Columns of the results table for a unit's labels, with their types.
    details
        Columns of the results table that distinguish several values of one metric.
    files
        Files that `perform` can write into a folder; it writes the last one at the end.
    expand
        Checks a file and returns its units.
    perform
        (unit, folder or None) -> the metrics of the result. Runs in a worker.
    rows
        (unit, metrics) -> rows of the results table: ``metric``, ``value`` and details.
    check
        Checks before the first run that the inputs of units can be read and fit each other.
    warm_up
        Compiles the code that units need, before several workers compile it at the same time.
    extras
        The type that `gather` returns.
    gather
        (units) -> the data that the report needs in addition to the results table, stored as JSON.
    report
        (results table, gathered data, provenance) -> the report.
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
