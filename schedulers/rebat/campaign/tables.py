# SPDX-License-Identifier: Apache-2.0
"""Tables of a campaign's results: results.parquet (tidy) and campaign.json."""

from __future__ import annotations

from typing import Any

from rebat.campaign.kinds import KINDS
from rebat.campaign.opening import Campaign
from rebat.campaign.store import TABLE, Store, UnitResult
from rebat.core.files import atomic_path

Results = dict[str, UnitResult | None]


def write_tables(store: Store, campaign: Campaign) -> None:
    """Write results.parquet and campaign.json from the available results."""
    results = {key: store.read(key) for key in campaign.distinct}
    store.write_overview(campaign.owner, _overview(campaign, results))
    _write_parquet(store, campaign, results)


def failures(campaign: Campaign, results: Results) -> list[tuple[str, str]]:
    """Return a description and the error of each failed unit."""
    return [
        (f"{unit.grid}, {unit.about}", result.error or "")
        for key, unit in campaign.distinct.items()
        if (result := results[key]) is not None and result.status == "failed"
    ]


def columns_of(campaign: Campaign) -> dict[str, type]:
    """Return the columns of the table with their types, for the kinds of unit in the campaign.

    A column that several kinds share has the same meaning for all kinds.
    """
    kinds = [KINDS[name] for name in dict.fromkeys(unit.kind for unit in campaign.units)]
    columns: dict[str, type] = {"kind": str, "grid": str}
    for kind in kinds:
        columns |= kind.columns
    columns["metric"] = str
    for kind in kinds:
        columns |= kind.details
    return columns | {"value": float, "key": str}


def _write_parquet(store: Store, campaign: Campaign, results: Results) -> None:
    """Write a row per grid, unit and metric. Columns of other kinds of unit are empty."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    columns = columns_of(campaign)
    cells: dict[str, list[Any]] = {name: [] for name in columns}
    for unit in campaign.units:
        result = results[unit.key]
        if result is None or result.metrics is None:
            continue
        about = {"kind": unit.kind, "grid": unit.grid, **unit.labels, "key": unit.key}
        for row in KINDS[unit.kind].rows(unit, result.metrics):
            for name, column in cells.items():
                column.append(row[name] if name in row else about.get(name))
    schema = pa.schema([(name, types[kind]) for name, kind in columns.items()])
    with atomic_path(store.folder / TABLE) as temporary:
        pq.write_table(pa.table(cells, schema=schema), temporary, compression="zstd")


def _overview(campaign: Campaign, results: Results) -> dict[str, Any]:
    present = [result for result in results.values() if result is not None]
    failed = [
        {"grid": unit.grid, **unit.labels, "key": unit.key, "error": result.error}
        for unit in campaign.units
        if (result := results[unit.key]) is not None and result.status == "failed"
    ]
    return {
        "runs": len(results),
        "ok": sum(result.status == "ok" for result in present),
        "failed": sum(result.status == "failed" for result in present),
        "grids": list(dict.fromkeys(unit.grid for unit in campaign.units)),
        "notes": campaign.notes,
        "failures": failed,
    }
