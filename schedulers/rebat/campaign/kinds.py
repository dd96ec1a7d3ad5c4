# SPDX-License-Identifier: Apache-2.0
"""The kinds of units of a campaign. A unit is one task of a campaign, for example a simulation.

Every campaign can have simulations. The key ``report`` of its file names a Python file with their
`REPORT`. The key ``units`` names a Python file with a `KIND` of the campaign's own. Both files are
next to the campaign file, or in a folder of the campaigns that rebat includes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from rebat.campaign import simulations
from rebat.core.errors import InputError, unknown_name
from rebat.report.kind import Kind
from rebat.report.parts import ReportMaker
from rebat.shipped import CAMPAIGNS, included
from rebat.shipped import module as module_of

CODE = {"report": ("REPORT", ReportMaker), "units": ("KIND", Kind)}
"""For each key of a campaign file that names a Python file: the name to import, and its type."""


def kinds_of(tables: Mapping[str, Any], folder: Path | None) -> dict[str, Kind]:
    """Return the kinds of units of a campaign by name.

    Parameters
    ----------
    tables : mapping
        The content of the file, or a mapping with its keys ``report`` and ``units``.
    folder : Path, optional
        The folder of the file. Without it, only the campaigns that rebat includes have code.
    """
    kinds = [simulations.KIND]
    for key in CODE:
        if key not in tables:
            continue
        place, value = _imported(key, tables[key], folder)
        if isinstance(value, Kind):
            kinds.append(_own(value, place))
        else:
            kinds[0] = simulations.reported(value, place)
    return {kind.name: kind for kind in kinds}


def code_of(kinds: Mapping[str, Kind]) -> dict[str, str]:
    """Return the keys of a campaign file that name the code of these kinds (see `kinds_of`)."""
    return {
        "report" if kind.name == simulations.KIND.name else "units": kind.code
        for kind in kinds.values()
        if kind.code
    }


def _imported(key: str, name: Any, folder: Path | None) -> tuple[str, Any]:
    """Return the place of a Python file (see `Kind.code`), and its report or kind."""
    expected = "a Python file next to the campaign file, or of rebat, like 'torus/units.py'"
    if not isinstance(name, str) or not name.endswith(".py"):
        raise InputError(f"is {name!r}", key, expected)
    places = [] if folder is None else [folder / name]
    if not name.startswith("./"):
        places.append(CAMPAIGNS / name)
    file = next((place for place in places if place.is_file()), None)
    inside = included(file) if file else None
    if file is None or (folder is None and inside is None):
        raise InputError(f"there is no {name!r}", key, expected)
    variable, kind = CODE[key]
    value = getattr(module_of(file), variable, None)
    if not isinstance(value, kind):
        raise InputError(f"defines no {variable}", str(file), f"{variable} = {kind.__name__}(...)")
    return inside.as_posix() if inside else f"./{name.removeprefix('./')}", value


def _own(kind: Kind, place: str) -> Kind:
    if kind.name == simulations.KIND.name or kind.files:
        expected = f"another name than {simulations.KIND.name!r}, and no files"
        raise InputError("the KIND does not fit", place, expected)
    return replace(kind, code=place)


def kind_of(
    grid: dict[str, Any], where: str, tables: dict[str, Any], kinds: Mapping[str, Kind]
) -> Kind:
    """Return the kind of the units of a grid.

    The key ``kind`` determines it. Without this key, other keys of the grid or tables of the file
    determine it.
    """
    name = grid.get("kind")
    if name is not None:
        if name not in kinds:
            raise unknown_name("kind", name, kinds).at(where)
        return kinds[name]
    for kind in kinds.values():
        if kind.mark in grid:
            return kind
    for kind in kinds.values():
        if any(key in tables for key in kind.tables):
            return kind
    marks = " or ".join(kind.mark for kind in kinds.values())
    raise InputError("has no runs", where, marks)
