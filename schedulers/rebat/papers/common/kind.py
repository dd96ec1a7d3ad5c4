# SPDX-License-Identifier: Apache-2.0
"""A kind of unit: how a campaign reads, runs, tabulates and reports units of this kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rebat.runs.unit import Unit

if TYPE_CHECKING:
    from rebat.papers.common.parts import Report


class Document(msgspec.Struct, frozen=True):
    """A campaign file as one kind of unit reads it.

    Attributes
    ----------
    path
        The file.
    tables
        The entire content of the file.
    grids
        The grids of this kind: pairs of place in the file and content.
    trace
        A trace that replaces all traces that the file names.
    """

    path: Path
    tables: dict[str, Any]
    grids: list[tuple[str, dict[str, Any]]]
    trace: Path | None = None


class Expansion(msgspec.Struct, frozen=True):
    """The units of a file, in the order of the file, and ``notes`` on units that are left out."""

    units: list[Unit]
    notes: list[str] = []


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of unit: the names and functions that a campaign uses for its units.

    Attributes
    ----------
    name
        The name of the kind in a grid.
    mark
        A key that only grids of this kind have.
    tables
        Top-level keys of the file that belong to this kind.
    columns
        Columns of the results table for the labels of a unit, with their types.
    details
        Columns of the results table that distinguish several values of one metric.
    files
        Files that `perform` can write into a folder. The last of these is written at the end.
    expand
        Checks a file and returns its units.
    perform
        (unit, folder or None) -> the metrics of the result. Called in a worker process.
    rows
        (unit, metrics) -> rows of the results table: ``metric``, ``value`` and details.
    check
        Checks before the first run that the inputs of units can be read and are consistent.
    warm_up
        Compiles the code that units need, so that workers do not compile it at the same time.
    extras
        The type that `gather` returns.
    gather
        (units) -> the data that the report needs in addition to the results table. The campaign
        stores these data as JSON.
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
