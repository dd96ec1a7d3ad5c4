# SPDX-License-Identifier: Apache-2.0
"""The results table of a campaign, as far as one kind of unit wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rebat.core.errors import InputError

LATER = ("accounting",)
"""Columns that results of earlier versions lack: their cells are empty."""


def read_results(path: Path, kind: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The rows of a kind of unit, in the order of the file; an empty cell is None.

    Raises
    ------
    InputError
        For a file that is no table of results, or one without rows of that kind.
    """
    import pandas as pd

    try:
        table = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise InputError(f"not a table of results: {error}", str(path)) from None
    for name in {*LATER} & {*columns} - {*table.columns}:
        table[name] = None
    missing = {"kind", *columns} - {*table.columns}
    if missing and not table.empty:
        what = f"lacks the column {min(missing)}: it is of another version"
        raise InputError(what, str(path), "rebat campaign report, which writes it anew")
    if table.empty or not (table["kind"] == kind).any():
        raise InputError("holds no results yet", str(path))
    table = table.loc[table["kind"] == kind, list(columns)]
    plain = table.astype(object).where(table.notna(), None)
    return plain.itertuples(index=False, name=None)
