# SPDX-License-Identifier: Apache-2.0
"""Outages of nodes as rows: what all formats of failure records have in common.

The columns ``down`` and ``up`` contain the begin and the end of an outage in seconds. An outage
without an end has an infinite ``up``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, tzinfo

import numpy as np

from rebat.core.arrays import Bools
from rebat.core.errors import InputError
from rebat.core.units import US_PER_S
from rebat.records.cells import Place
from rebat.records.mapping import Fields
from rebat.records.reader import read_rows
from rebat.records.sources import Block
from rebat.records.table import Problems, Rows


def read_outages(
    blocks: Iterable[Block],
    fields: Fields,
    problems: Problems,
    zone: tzinfo = UTC,
    ends: bool = False,
) -> Rows:
    """Read rows with the fields ``down`` and ``up``.

    Rows without a begin are invalid, as are rows that end before they begin, and with ``ends`` rows
    without an end.
    """
    rows = read_rows(blocks, fields, zone, problems, check_ids=False)
    down, up = (rows.column(name) for name in ("down", "up"))
    begin, end = (fields[name][0].column for name in ("down", "up"))
    place = Place(rows.where, rows.lines.tolist())
    for wrong, problem, expected in (
        (np.isnan(down), f"{begin} is unknown", f"a time in {begin}"),
        (ends & np.isnan(up), f"{end} is unknown", f"a time in {end}"),
        (up < down, "the outage ends before it begins", f"{end} after {begin}"),
    ):
        for at in np.flatnonzero(wrong).tolist():
            place.reject_as(at, InputError(problem, expected=expected))
    rows.numbers["up"] = np.where(np.isnan(up), np.inf, up)
    rows = rows.taken(place.count(problems))
    problems.check(len(rows))
    return rows


def drop(rows: Rows, mask: Bools, reason: str) -> Rows:
    """Return the rows that a mask does not select, and count the others as dropped."""
    if mask.any():
        rows.dropped[reason] += int(mask.sum())
    return rows.taken(~mask)


def without_zero(rows: Rows) -> Rows:
    """Return the rows whose outages last at least a microsecond, the resolution of events."""
    down_us, up_us = (np.rint(rows.column(name) * US_PER_S) for name in ("down", "up"))
    return drop(rows, up_us == down_us, "zero duration")


def only(rows: Rows, column: str, wanted: Collection[str]) -> Rows:
    """Return the rows whose text in a column is wanted. The others are counted by this text."""
    texts = rows.text(column)
    mask = np.isin(texts, [*wanted])
    rows.dropped.update(texts[~mask].tolist())
    return rows.taken(mask)
