# SPDX-License-Identifier: Apache-2.0
"""Tables of the Failure Trace Archive: ``event_trace.tab``.

Source: Kondo, Javadi, Iosup, Epema, "The Failure Trace Archive: enabling comparative analysis of
failures in diverse distributed systems", CCGrid 2010, and the format's own description. Times are
seconds since the Unix epoch. Event type 0 is unavailability, 1 availability. Lines that begin with
``#`` are comments. A line with the names of the columns is left out.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from rebat.core.errors import InputError
from rebat.records.mapping import (
    CsvLayout,
    Fields,
    TextColumn,
    TimeColumn,
    ValueColumn,
    required_columns,
)
from rebat.records.outages import drop, only, read_outages, without_zero
from rebat.records.sources import csv_blocks
from rebat.records.table import Problems, Rows

COLUMNS = (
    "event_id", "component_id", "node_id", "platform_id", "node_name", "event_type",
    "event_start_time", "event_stop_time", "event_end_reason",
)  # fmt: skip

LAYOUT = CsvLayout(delimiter="\t", names=COLUMNS, comment="#")

UNAVAILABLE = "unavailable"


def _id(name: str, text: str) -> str:
    text = text.strip()
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise InputError(f"{name} is {text[:40]!r}", expected="a whole number")
    return str(int(text))


def _type(text: str) -> str:
    kind = text.strip()
    return {"0": UNAVAILABLE, "1": "available"}.get(kind, f"event type {kind}")


def _id_column(name: str) -> ValueColumn:
    return ValueColumn(column=name, convert=partial(_id, name), default="")


FIELDS: Fields = {
    "node": (_id_column("node_id"),),
    "platform": (_id_column("platform_id"),),
    "name": (TextColumn(column="node_name"),),
    "type": (ValueColumn(column="event_type", convert=_type, default=""),),
    "down": (TimeColumn(column="event_start_time", unit="s"),),
    "up": (TimeColumn(column="event_stop_time", unit="s"),),
}


def read_fta(path: Path, platform: int | None = None, strict: bool = False) -> Rows:
    """Read the outages of nodes. Time 0 is the start time in the first line.

    A node is down while any of its components is unavailable. All nodes in the table are numbered
    from 0 in the order of their node_id, even if they never fail.

    Parameters
    ----------
    path : Path
        The table, plain, .gz or .xz.
    platform : int, optional
        The platform_id. It is required if the table has several platforms.
    strict : bool
        Whether the first invalid row is an error. Otherwise invalid rows are dropped and counted.
    """
    problems = Problems(str(path), strict)
    columns = partial(required_columns, required=COLUMNS[2:8])
    blocks = csv_blocks(path, columns, problems, LAYOUT)
    rows = _of_platform(read_outages(blocks, FIELDS, problems), platform)
    names = dict(zip(rows.text("node").tolist(), rows.text("name").tolist(), strict=True))
    order = sorted(names, key=int)
    rows.facts["names"] = tuple(names[node] or node for node in order)
    rows.facts["zero_s"] = rows.column("down").min(initial=np.inf)
    numbers = {node: float(number) for number, node in enumerate(order)}
    rows.numbers["node"] = np.array([numbers[node] for node in rows.text("node")])
    rows = only(rows, "type", (UNAVAILABLE,))
    return without_zero(rows)


def _of_platform(rows: Rows, platform: int | None) -> Rows:
    numbers = sorted(set(rows.text("platform").tolist()), key=int)
    if platform is None:
        if len(numbers) > 1:
            problem = f"contains platforms {' and '.join(numbers)}"
            raise InputError(problem, rows.where, "--platform with one of them")
        return rows
    if str(platform) not in numbers:
        problem = f"contains no events of platform {platform}"
        raise InputError(problem, rows.where, f"--platform {' or '.join(numbers)}")
    return drop(rows, rows.text("platform") != str(platform), "of other platforms")
