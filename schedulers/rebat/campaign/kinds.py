# SPDX-License-Identifier: Apache-2.0
"""The table of the kinds of units. A unit is one task of a campaign, for example a simulation."""

from __future__ import annotations

from typing import Any

from rebat.campaign import simulations
from rebat.core.errors import InputError, unknown_name
from rebat.papers import simulations as reports
from rebat.papers.common.kind import Kind
from rebat.papers.silent_errors import units as silent_errors
from rebat.papers.torus import units as torus

KINDS: dict[str, Kind] = {
    kind.name: kind for kind in (simulations.KIND, silent_errors.KIND, torus.KIND)
}

REPORTS: dict[str, str] = {
    **dict.fromkeys(reports.REPORTS, simulations.KIND.name),
    "silent-errors": silent_errors.NAME,
    "torus": torus.NAME,
}
"""Kind of unit of each report that a campaign file can select."""

FILES = tuple(dict.fromkeys(name for kind in KINDS.values() for name in kind.files))
"""Names of the files that units of any kind can write to a folder."""


def kind_of(grid: dict[str, Any], where: str, tables: dict[str, Any]) -> Kind:
    """Return the kind of the units of a grid.

    The key ``kind`` determines it. Without this key, other keys of the grid or tables of the file
    determine it.
    """
    name = grid.get("kind")
    if name is not None:
        if name not in KINDS:
            raise unknown_name("kind", name, KINDS).at(where)
        return KINDS[name]
    for kind in KINDS.values():
        if kind.mark in grid:
            return kind
    for kind in KINDS.values():
        if any(key in tables for key in kind.tables):
            return kind
    marks = " or ".join(kind.mark for kind in KINDS.values())
    raise InputError("has no runs", where, marks)
