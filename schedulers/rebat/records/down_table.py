# SPDX-License-Identifier: Apache-2.0
"""Failures as a plain table with the columns ``node``, ``down`` and ``up``."""

from __future__ import annotations

import itertools
from datetime import UTC, tzinfo
from functools import partial
from pathlib import Path

import numpy as np

from rebat.core.cores import MAX_NODES
from rebat.core.errors import InputError
from rebat.core.files import open_text
from rebat.records.clock import EARLIEST_EPOCH_S, midnight_s, zone_of
from rebat.records.detect import PLAIN_COLUMNS, split_header
from rebat.records.hosts import check_list, expanded
from rebat.records.mapping import (
    CsvLayout,
    Fields,
    TimeColumn,
    TimeUnit,
    ValueColumn,
    required_columns,
)
from rebat.records.outages import read_outages, without_zero
from rebat.records.sources import csv_blocks
from rebat.records.table import Problems, Rows


def _node(text: str) -> str:
    text = text.strip()
    if not text:
        raise InputError("node is empty", expected="a number or a name")
    if "[" in text or "," in text:
        check_list(text)
    return text


def _first_line(path: Path) -> str:
    with open_text(path) as text:
        return next((line for line in text if line.strip()), "")


def read_down_table(
    path: Path, strict: bool = False, zone: str | None = None, local: tzinfo = UTC
) -> Rows:
    """Read failures from a table with the columns ``node``, ``down`` and ``up``.

    The names may have capital letters. The columns may be separated by commas, semicolons or tabs.
    Times are either all in seconds or all ISO dates (``2024-03-01T12:30``). If ``up`` is empty, the
    node stayed down. Seconds count from time 0 of the events. Seconds after 1985 count from the
    Unix epoch. With Unix times or ISO dates, time 0 is midnight of the day of the first failure. If
    any node is not a number, all nodes are names or lists of names. Names are numbered in order of
    appearance.

    Parameters
    ----------
    path : Path
        Plain, .gz or .xz.
    strict : bool
        Whether the first invalid row is an error. Otherwise invalid rows are dropped and counted.
    zone : str, optional
        Time zone of the midnight that is time 0 for Unix times (default: UTC).
    local : tzinfo
        Time zone of ISO dates without a zone.
    """
    problems = Problems(str(path), strict)
    delimiter, header = split_header(_first_line(path))
    names = {name.lower(): name for name in header}
    node, down_column, up_column = (names.get(name, name) for name in PLAIN_COLUMNS)
    columns = partial(required_columns, required=(node, down_column, up_column))
    blocks = csv_blocks(path, columns, problems, CsvLayout(delimiter=delimiter))
    first = next(blocks, None)
    if first is None:
        problems.check(0)
        raise InputError("contains no failures", str(path), "one failure per line: node,down,up")
    cells = [cell for cell in first.columns[down_column] if str(cell).strip()]
    dated = 2 * sum(map(_is_number, cells)) < len(cells)
    unit: TimeUnit = "date" if dated else "s"
    fields: Fields = {
        "hosts": (ValueColumn(column=node, convert=_node, default=""),),
        "down": (TimeColumn(column=down_column, unit=unit),),
        "up": (TimeColumn(column=up_column, unit=unit),),
    }
    rows = read_outages(itertools.chain([first], blocks), fields, problems, local)
    if rows.clock.kinds >= {"local", "zoned"}:
        expected = "only dates without a zone, or only dates with one"
        raise InputError("dates have mixed formats", str(path), expected)
    down = rows.column("down")
    first_s = float(down.min(initial=np.inf))
    if dated or EARLIEST_EPOCH_S <= first_s < np.inf:
        rows.facts["zone"] = UTC if dated else zone_of(zone, "--zone")
        rows.facts["zero_s"] = midnight_s(first_s, rows.facts["zone"])
    rows = without_zero(rows)
    nodes = dict.fromkeys(rows.text("hosts").tolist())
    if all(name.isascii() and name.isdecimal() for name in nodes):
        largest = max(nodes, key=lambda name: (len(name.lstrip("0")), name), default="0")
        if len(largest.lstrip("0")) > 9 or int(largest) >= MAX_NODES:
            raise InputError(
                f"node {largest[:20]} is too large", str(path), f"0 to {MAX_NODES - 1}"
            )
        rows.numbers["node"] = rows.text("hosts").astype(np.float64)
    else:
        rows.facts["names"] = tuple(
            dict.fromkeys(name for node in nodes for name in expanded(node))
        )
    return rows


def _is_number(text: object) -> bool:
    try:
        float(str(text))
    except ValueError:
        return False
    return True
