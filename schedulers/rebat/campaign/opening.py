# SPDX-License-Identifier: Apache-2.0
"""Reader of campaign files, which checks them and expands them to units.

The file (TOML) defines runs in ``[[grid]]`` tables. The keys of a grid determine its kind of unit,
and each kind reads its own tables. See ``docs/how-to/campaigns.md``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from rebat.campaign.kinds import CODE, code_of, kind_of, kinds_of
from rebat.campaign.simulations import KIND as SIMULATIONS
from rebat.campaign.store import Owner
from rebat.core.errors import InputError, check_keys
from rebat.core.files import read_text
from rebat.report.kind import Document, Kind
from rebat.runs.reading import distinct, required
from rebat.runs.unit import Unit

_TOP = ("name", "title", "grid", *CODE)


class Campaign(msgspec.Struct, frozen=True):
    """A campaign: its units, and the name and file name that its results folder stores."""

    owner: Owner
    """Name and file of the campaign, stored in the results folder."""
    units: list[Unit]
    notes: list[str] = []
    """Notes about units that are omitted."""
    title: str = ""
    kinds: dict[str, Kind] = msgspec.field(default_factory=lambda: {SIMULATIONS.name: SIMULATIONS})
    """The kinds of its units by name."""

    @property
    def distinct(self) -> dict[str, Unit]:
        """The distinct units by key, in the order of the file. Grids may share units."""
        units: dict[str, Unit] = {}
        for unit in self.units:
            units.setdefault(unit.key, unit)
        return units


def open_campaign(file: Path, trace: Path | None = None) -> Campaign:
    """Read a campaign file and its inputs, and check them.

    Parameters
    ----------
    file : Path
        The TOML file. File names in it are relative to its folder.
    trace : Path, optional
        Trace or workload file that replaces the traces and workload files of the campaign file.
    """
    tables = read_tables(file)
    try:
        return campaign_of(tables, file, trace)
    except InputError as error:
        raise error.at(str(file)) from None


def campaign_of(tables: dict[str, Any], file: Path, trace: Path | None = None) -> Campaign:
    """Build the campaign that the tables of a TOML file describe, and check its inputs.

    Parameters
    ----------
    tables : dict
        The content of the file.
    file : Path
        The path of the file. The file does not have to exist. File names in the tables are relative
        to its folder.
    trace : Path, optional
        See `open_campaign`.
    """
    name = _name(tables, file)
    kinds = kinds_of(tables, file.parent)
    documents = _by_kind(tables, file, trace, kinds)
    parts = [kinds[kind].expand(document) for kind, document in documents.items()]
    _check_effects(tables, kinds, documents)
    if trace and not any(kinds[kind].takes_trace(part) for kind, part in documents.items()):
        expected = "a table [workloads.NAME] with a file, or a table [days.NAME]"
        raise InputError("has no effect", "--trace", expected)
    return Campaign(
        Owner(name, file.name),
        [unit for part in parts for unit in part.units],
        [note for part in parts for note in part.notes],
        _title(tables),
        kinds,
    )


def read_tables(file: Path) -> dict[str, Any]:
    """Return the content of a campaign file.

    NUL characters are rejected, because file names cannot contain them.
    """
    text = read_text(file)
    try:
        tables = tomllib.loads(text)
        holds_null = any("\0" in text for text in _texts(tables))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is not TOML: {error}", str(file)) from None
    except RecursionError:
        raise InputError("is not TOML: it is nested too deeply", str(file)) from None
    if holds_null:
        raise InputError("contains a NUL character (\\u0000)", str(file))
    return tables


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts and keys that a value contains."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value:
            yield from _texts(part)
        if isinstance(value, dict):
            yield from _texts(list(value.values()))


def _name(tables: dict[str, Any], file: Path) -> str:
    name = tables.get("name", file.stem)
    if not isinstance(name, str) or name in ("", ".", "..") or "/" in name:
        raise InputError(f"is {name!r}", "name", "the name of a folder, without '/'")
    return name


def _title(tables: dict[str, Any]) -> str:
    """Return the title of the report: the file's title or, if it is missing, the file's name."""
    title = tables.get("title", tables.get("name", ""))
    if not isinstance(title, str):
        raise InputError(f"is {title!r}", "title", "a text")
    return title


def _by_kind(
    tables: dict[str, Any], file: Path, trace: Path | None, kinds: Mapping[str, Kind]
) -> dict[str, Document]:
    """Return the part of the file that concerns each kind of unit that has a grid."""
    check_keys(tables, (*_TOP, *(key for kind in kinds.values() for key in kind.tables)), "")
    rows = required(tables, "grid", list, "one or more tables [[grid]]")
    documents: dict[str, Document] = {}
    own = {key: value for key, value in tables.items() if key not in CODE}
    for index, row in enumerate(rows):
        where = f"grid[{index}]"
        if not isinstance(row, dict):
            raise InputError("is not a table", where, "[[grid]]")
        kind = kind_of(row, where, tables, kinds)
        document = documents.setdefault(kind.name, Document(file, own, [], trace))
        document.grids.append((where, {key: row[key] for key in row if key != "kind"}))
    distinct([row.get("name") for row in rows if isinstance(row.get("name"), str)], "grid: name")
    return documents


def _check_effects(
    tables: dict[str, Any], kinds: Mapping[str, Kind], documents: Mapping[str, Document]
) -> None:
    """Raise InputError if code or a table is for a kind of unit that has no grid."""
    for kind in kinds.values():
        for key in (*kind.tables, *code_of({kind.name: kind})):
            if key in tables and kind.name not in documents:
                raise InputError("has no effect", key, f"at least one grid with {kind.mark}")
