# SPDX-License-Identifier: Apache-2.0
"""Tables of jobs with any columns (CSV, JSON, Parquet), read with a mapping."""

from __future__ import annotations

from datetime import tzinfo
from pathlib import Path

import numpy as np

from rebat.core.errors import InputError
from rebat.records.clock import EARLIEST_EPOCH_S
from rebat.records.mapping import AUTO, TableMapping, detected_mapping, open_mapping
from rebat.records.reader import read_rows
from rebat.records.sources import header_of, table_blocks
from rebat.records.table import Problems, Rows


def read_table(path: Path, zone: tzinfo, strict: bool = False, mapping: str | Path = AUTO) -> Rows:
    """Read a table of jobs: CSV or JSON, plain or .gz, or Parquet.

    Parameters
    ----------
    path : Path
        The file.
    zone : tzinfo
        Time zone of dates without a zone. A zone in the mapping takes precedence.
    strict : bool
        Whether the first invalid row is an error.
    mapping : str or Path
        Name of an included mapping, or a TOML file. ``"auto"`` uses the included mapping that fits
        the header of the table.
    """
    rules = open_mapping(_detected(path) if str(mapping) == AUTO else mapping)
    problems = Problems(str(path), strict)
    blocks = table_blocks(path, rules, problems)
    fields = {field: (column,) for field, column in rules.columns.items()}
    rows = read_rows(blocks, fields, zone, problems, rules.where)
    n_read = rows.facts["n_read"]
    if not len(rows):
        problems.check(0)
        problem = "has no row with the values of 'where'" if n_read else "has no rows"
        raise InputError(problem, str(path), "a row per job")
    _note(rows, rules)
    if "id" not in rows.texts:
        rows.texts["id"] = np.array([str(number + 1) for number in range(len(rows))], dtype=object)
    submit = rows.column("submit")
    last_s = np.nanmax(submit) if np.isfinite(submit).any() else 0.0
    dated = rules.columns.submit.unit == "date" or bool(last_s >= EARLIEST_EPOCH_S)
    rows.facts |= {"n_nodes": rules.machine.nodes, "dated": dated, "mapping": rules}
    if rules.machine.cores_per_node is not None:
        rows.facts["machine"] = {"cores_per_node": rules.machine.cores_per_node}
    return rows


def _note(rows: Rows, rules: TableMapping) -> None:
    n_valid = len(rows) + rows.problems.counts.total()
    if rules.where and n_valid < rows.facts["n_read"]:
        rows.notes.append(f"{n_valid} of {rows.facts['n_read']} rows have the values of 'where'")
    if repeated := rows.facts["repeated_hours"]:
        rows.notes.append(
            f"{repeated} local times are in the hour that clocks repeat in autumn: the first "
            "of the two hours is used"
        )


def _detected(path: Path) -> str:
    try:
        name = detected_mapping(header_of(path))
    except InputError as error:
        raise (error if error.where else error.at(str(path))) from None
    if name is None:
        raise InputError("no mapping fits the columns", str(path), "--mapping NAME or FILE.toml")
    return name
