# SPDX-License-Identifier: Apache-2.0
"""Reader of the results table of a campaign, for one kind of unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rebat.core.errors import InputError
from rebat.core.formatting import counted

LATER = ("accounting", "begin_s", "trace_end_s")
"""Columns that earlier versions did not write. If they are missing, their cells are None."""


def read_results(path: Path, kind: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a kind of unit in the order of the file. Empty cells are None."""
    import pandas as pd

    try:
        table = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise InputError(f"is not a table of results: {error}", str(path)) from None
    for name in {*LATER} & {*columns} - {*table.columns}:
        table[name] = None
    missing = {"kind", *columns} - {*table.columns}
    if missing and not table.empty:
        problem = f"has no column {min(missing)}: another version wrote this file"
        raise InputError(problem, str(path), "a file written again by 'rebat campaign report'")
    if table.empty or not (table["kind"] == kind).any():
        raise InputError("contains no results yet", str(path))
    table = table.loc[table["kind"] == kind, list(columns)]
    plain = table.astype(object).where(table.notna(), None)
    return plain.itertuples(index=False, name=None)


def rejections(path: Path) -> str:
    """Return a text with the numbers of rejected jobs and of runs that rejected them.

    If no run rejected a job, the text is empty.
    """
    import pyarrow.parquet as pq

    selected = [("metric", "==", "rejected"), ("value", ">", 0)]
    table = pq.read_table(path, columns=["key", "value"], filters=selected)
    jobs = dict(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))
    if not jobs:
        return ""
    runs, count = counted(len(jobs), "run"), counted(int(sum(jobs.values())), "job")
    return f"{runs} rejected {count} in total; flows do not include rejected jobs"
