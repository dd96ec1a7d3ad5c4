# SPDX-License-Identifier: Apache-2.0
"""Tables of a campaign's results: results.parquet (a row per value) and campaign.json.

The metadata of the table next to a report contains all other data of the report. From this table,
the report can be written again without the runs and their inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rebat.campaign.opening import Campaign
from rebat.campaign.store import TABLE, State, Store
from rebat.core.files import atomic_path
from rebat.report.kind import Kind
from rebat.runs.unit import Unit

if TYPE_CHECKING:
    import pyarrow as pa
import base64
import zlib
from pathlib import Path
from typing import TypeVar

import msgspec

from rebat.core.errors import InputError

PART = 5_000
"""Number of units whose rows are in memory at the same time."""


def write_tables(store: Store, campaign: Campaign) -> None:
    """Write results.parquet and campaign.json from the available results."""
    store.write_overview(campaign.owner, _overview(store, campaign))
    _write_parquet(store, campaign)


def failures(campaign: Campaign, store: Store) -> list[tuple[str, str]]:
    """Return pairs of the description and the error of each failed unit."""
    errors = _errors(store, store.states(campaign.units))
    return [
        (f"{unit.grid}, {unit.about}", errors[key])
        for key, unit in campaign.distinct.items()
        if key in errors
    ]


def _errors(store: Store, states: Mapping[str, State]) -> dict[str, str]:
    """Return the errors of the failed units."""
    failed = [key for key, state in states.items() if state == "failed"]
    return {key: result.error or "" for key in failed if (result := store.read(key)) is not None}


def columns_of(campaign: Campaign) -> dict[str, type]:
    """Return the columns of the table with their types, for the kinds of units in the campaign.

    If several kinds have the same column, it has the same meaning for all.
    """
    kinds = [campaign.kinds[name] for name in dict.fromkeys(unit.kind for unit in campaign.units)]
    columns: dict[str, type] = {"kind": str, "grid": str}
    for kind in kinds:
        columns |= kind.columns
    columns["metric"] = str
    for kind in kinds:
        columns |= kind.details
    return columns | {"value": float, "key": str}


def _write_parquet(store: Store, campaign: Campaign) -> None:
    """Write a row per grid, unit and metric. Columns of other kinds of units are empty."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    columns = columns_of(campaign)
    schema = pa.schema([(name, types[kind]) for name, kind in columns.items()])
    units = campaign.units
    with (
        atomic_path(store.folder / TABLE) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd") as writer,
    ):
        for start in range(0, max(len(units), 1), PART):
            part = units[start : start + PART]
            writer.write_table(_rows(store, part, campaign.kinds, schema))


def _rows(
    store: Store, units: Sequence[Unit], kinds: Mapping[str, Kind], schema: pa.Schema
) -> pa.Table:
    """Return the rows of units as a table. The labels of a unit are converted only once."""
    import numpy as np
    import pyarrow as pa

    labels: list[dict[str, Any]] = []
    counts: list[int] = []
    differing = {"metric", "value", *(name for kind in kinds.values() for name in kind.details)}
    own: dict[str, list[Any]] = {name: [] for name in schema.names if name in differing}
    for unit in units:
        result = store.read(unit.key)
        if result is None or result.metrics is None:
            continue
        about = {"kind": unit.kind, "grid": unit.grid, **unit.labels, "key": unit.key}
        rows = list(kinds[unit.kind].rows(unit, result.metrics))
        for name, column in own.items():
            default = about.get(name)
            column.extend([row.get(name, default) for row in rows])
        labels.append(about)
        counts.append(len(rows))
    of_row = pa.array(np.repeat(np.arange(len(counts)), counts))
    arrays = [
        pa.array(own[field.name], field.type)
        if field.name in own
        else pa.array([about.get(field.name) for about in labels], field.type).take(of_row)
        for field in schema
    ]
    return pa.table(arrays, schema=schema)


def _overview(store: Store, campaign: Campaign) -> dict[str, Any]:
    states = store.states(campaign.units)
    errors = _errors(store, states)
    failed = [
        {"grid": unit.grid, **unit.labels, "key": unit.key, "error": errors[unit.key]}
        for unit in campaign.units
        if unit.key in errors
    ]
    return {
        "runs": len(states),
        "ok": list(states.values()).count("ok"),
        "failed": list(states.values()).count("failed"),
        "grids": list(dict.fromkeys(unit.grid for unit in campaign.units)),
        "notes": campaign.notes,
        "failures": failed,
    }


T = TypeVar("T")

_KEY = b"rebat.report"
"""Key of the metadata in the file. The value is a `ReportData` as JSON, deflated, in base 64."""


class ReportData(msgspec.Struct, frozen=True):
    """The data that reports need in addition to the table.

    Attributes
    ----------
    provenance, unfinished
        See `Report`.
    kinds : dict
        For each kind of unit that has results, the result of `Kind.gather`.
    code : dict
        The Python files that define the kinds and reports (see `kinds.code_of`).
    title : str
        Title of the campaign. It is the title of reports that do not check the claims of a paper.
    """

    provenance: list[str]
    unfinished: str
    kinds: dict[str, msgspec.Raw]
    title: str = ""
    code: dict[str, str] = {}


def write_with_data(results: Path, data: ReportData, target: Path) -> None:
    """Copy a table of results and add the report data to it."""
    import pyarrow.parquet as pq

    packed = base64.b64encode(zlib.compress(msgspec.json.encode(data), 9))
    table = pq.read_table(results).replace_schema_metadata({_KEY: packed})
    names = set(table.column_names) - {"value"}
    with atomic_path(target) as temporary:
        pq.write_table(
            table,
            temporary,
            compression="zstd",
            compression_level=19,
            use_dictionary=sorted(names),
            use_byte_stream_split=["value"],
        )


def read_data(table: Path) -> ReportData:
    """Read the report data of a table."""
    import pyarrow.parquet as pq

    try:
        packed = (pq.read_metadata(table).metadata or {}).get(_KEY)
    except FileNotFoundError:
        expected = "a results.parquet of 'rebat campaign report FILE'"
        raise InputError("there is no such file", str(table), expected) from None
    except (OSError, ValueError) as error:
        raise InputError(f"is not a table of results: {error}", str(table)) from None
    if packed is None:
        problem = "contains results, but no report data"
        raise InputError(problem, str(table), "a results.parquet of 'rebat campaign report FILE'")
    try:
        return decoded(zlib.decompress(base64.b64decode(packed)), ReportData, table)
    except (ValueError, zlib.error) as error:
        raise InputError(f"contains damaged report data: {error}", str(table)) from None


def decoded(text: bytes | msgspec.Raw, kind: type[T], table: Path) -> T:
    """Decode the part ``text`` of the report data of a table."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        problem = f"was written by another version: {error}"
        raise InputError(
            problem, str(table), "a file written again by 'rebat campaign report FILE'"
        ) from None
