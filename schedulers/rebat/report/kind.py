# SPDX-License-Identifier: Apache-2.0
"""Interface of a kind of unit: how a campaign reads, runs, tabulates and reports its units."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rebat.runs.unit import Unit

if TYPE_CHECKING:
    from rebat.report.parts import Report


class Document(msgspec.Struct, frozen=True):
    """The part of a campaign file that one kind of unit reads.

    Attributes
    ----------
    path
        The file.
    tables
        The entire content of the file.
    grids
        The grids of this kind: pairs of position in the file (for errors) and content.
    trace
        A trace that replaces all traces that the file names.
    """

    path: Path
    tables: dict[str, Any]
    grids: list[tuple[str, dict[str, Any]]]
    trace: Path | None = None


class Expansion(msgspec.Struct, frozen=True):
    """The units of a file, in its order. ``notes`` are texts about units that are left out."""

    units: list[Unit]
    notes: list[str] = []


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of unit: the names and functions that a campaign uses for its units.

    Attributes
    ----------
    name
        The name of the kind in a grid.
    mark
        A key by which a grid of this kind is recognised.
    tables
        Top-level keys of the file that belong to this kind.
    columns
        Columns of the results table for the labels of a unit, with their types.
    details
        Columns of the results table that distinguish several values of one metric.
    files
        Files that `perform` can write into a folder. It writes the last file at the end. Only
        simulations write files.
    expand
        Function that checks a file and returns its units.
    perform
        Function that runs a unit and returns its metrics. Its arguments are the unit, and a folder
        or None. A worker process calls it.
    rows
        Function that returns rows of the results table: ``metric``, ``value`` and details. Its
        arguments are a unit and its metrics.
    takes_trace
        Function that returns whether a trace of the option ``--trace`` replaces one of the file.
    check
        Function that checks, before the first run, that the inputs of units are readable and
        consistent.
    in_threads
        Function that returns the keys of the units that threads of one process perform. Its
        arguments are the units and the number of threads.
    extras
        The type that `gather` returns.
    gather
        Function that gets the units and returns the data that the report needs in addition to the
        results table. The campaign stores these data as JSON.
    report
        Function that returns the report. Its arguments are the results table, the gathered data and
        the provenance.
    code
        The Python file that defines the kind or its report: ``FOLDER/FILE.py`` in the campaigns
        that rebat includes, ``./FILE.py`` relative to another campaign, or an empty text.
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
    extras: type
    gather: Callable[[Sequence[Unit]], Any]
    report: Callable[[Path, Any, Sequence[str]], Report]
    takes_trace: Callable[[Document], bool] = lambda document: False
    check: Callable[[Sequence[Unit]], None] = lambda units: None
    in_threads: Callable[[Sequence[Unit], int], set[str]] = lambda units, workers: set()
    code: str = ""
