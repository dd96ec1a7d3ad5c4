# SPDX-License-Identifier: Apache-2.0
"""Node tables (``nodes.csv``): a failure law and an uptime for every node of a machine.

The columns are ``node,law,scale_s,shape,uptime_s``, in any order. The default of ``law`` is
weibull. All nodes have the same law. Under lognormal, the scale is the median, and the shape is the
standard deviation of the logarithm. Under exponential, the scale is the mean, and the shape is 1.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from rebat.core.errors import InputError, unknown_name
from rebat.core.files import open_text, write_text
from rebat.core.units import MAX_SECONDS
from rebat.models.failures.events import MAX_NODE
from rebat.models.failures.per_node import FAMILIES, ExponentialNodes, Floats, NodeLaws

COLUMNS = ("node", "law", "scale_s", "shape", "uptime_s")
REQUIRED = tuple(name for name in COLUMNS if name != "law")

_HEADER = f"the columns {','.join(REQUIRED)} and optionally law"


class NodeTable(msgspec.Struct, frozen=True, eq=False):
    """The failure laws and the uptimes (s) of all nodes. Arrays have an entry per node."""

    laws: NodeLaws
    uptime_s: Floats

    def __post_init__(self) -> None:
        if self.uptime_s.shape != (len(self.laws),):
            raise InputError(
                f"there are {self.uptime_s.size} uptimes",
                expected=f"one for each of {len(self)} nodes",
            )
        if not (np.isfinite(self.uptime_s) & (self.uptime_s >= 0)).all():
            raise InputError("an uptime is negative or not a number", expected="0 s or more")

    def __len__(self) -> int:
        return len(self.laws)


class _Row(NamedTuple):
    where: str
    node: int
    law: str
    scale_s: float
    shape: float
    uptime_s: float


def read_nodes(path: Path, n_nodes: int | None = None) -> NodeTable:
    """Read a node table, plain or .gz. Its lines may be in any order.

    Parameters
    ----------
    n_nodes : int, optional
        Size of the machine. Default: the number of lines.
    """
    with open_text(Path(path), newline="") as text:
        try:
            rows = list(_rows(csv.reader(text, strict=True), str(path)))
        except csv.Error as error:
            raise InputError(f"broken CSV: {error}", str(path), _HEADER) from None
    if not rows:
        raise InputError("has no nodes", str(path), "a line for each node")
    _check_nodes(rows, len(rows) if n_nodes is None else n_nodes, str(path))
    rows.sort(key=lambda row: row.node)
    scale_s, shape, uptime_s = (np.array(column) for column in list(zip(*rows, strict=True))[3:])
    return NodeTable(FAMILIES[rows[0].law](scale_s, shape), uptime_s)


def write_nodes(path: Path, table: NodeTable) -> None:
    """Write a node table with exact numbers, compressed if the name ends in .gz."""
    columns = (table.laws.scale_s, table.laws.shape, table.uptime_s)
    numbers = zip(*(column.tolist() for column in columns), strict=True)
    lines = [
        f"{node},{table.laws.family},{scale_s!r},{shape!r},{uptime_s!r}\n"
        for node, (scale_s, shape, uptime_s) in enumerate(numbers)
    ]
    write_text(Path(path), "".join([",".join(COLUMNS) + "\n", *lines]))


def _rows(reader: Any, where: str) -> Iterator[_Row]:
    header = [name.strip() for name in next(reader, [])]
    _check_header(header, f"{where}:1")
    for fields in reader:
        if not fields:
            continue
        place = f"{where}:{reader.line_num}"
        if len(fields) != len(header):
            raise InputError(f"has {len(fields)} fields", place, f"{len(header)} as in the header")
        try:
            yield _row(dict(zip(header, fields, strict=True)), place)
        except InputError as error:
            raise error.at(place) from None


def _check_header(header: list[str], where: str) -> None:
    for name in REQUIRED:
        if name not in header:
            raise InputError(f"has no column {name}", where, _HEADER)
    for name in header:
        if name not in COLUMNS:
            raise InputError(f"unknown column {name[:40]!r}", where, _HEADER)
        if header.count(name) > 1:
            raise InputError(f"column {name} is a duplicate", where, _HEADER)


def _row(fields: dict[str, str], place: str) -> _Row:
    text = fields["node"].strip()
    if not (text.isascii() and text.isdecimal() and len(text) <= 9 and int(text) <= MAX_NODE):
        raise InputError(f"node is {text[:40]!r}", expected=f"a whole number, 0 to {MAX_NODE}")
    law = fields.get("law", "weibull").strip()
    if law not in FAMILIES:
        raise unknown_name("law", law[:40], FAMILIES)
    row = _Row(place, int(text), law, *(_number(fields, name) for name in COLUMNS[2:]))
    if FAMILIES[law] is ExponentialNodes and row.shape != 1:
        raise InputError(f"shape is {row.shape:g}", expected="1 under exponential")
    return row


def _number(fields: dict[str, str], name: str) -> float:
    text = fields[name].strip()
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if name == "uptime_s":
        good, expected = 0 <= value <= MAX_SECONDS, f"seconds, 0 to {MAX_SECONDS:.0e}"
    else:
        good, expected = 0 < value < math.inf, "a finite number above 0"
    if not good:
        raise InputError(f"{name} is {text[:40]!r}", expected=expected)
    return value


def _check_nodes(rows: Iterable[_Row], n_nodes: int, where: str) -> None:
    """Raise InputError unless each node has exactly one row, and all rows have the same law."""
    seen: dict[int, _Row] = {}
    for row in rows:
        first = seen.setdefault(row.node, row)
        if first is not row:
            raise InputError(f"node {row.node} is a duplicate", row.where, "every node once")
        if row.node >= n_nodes:
            expected = f"0 to {n_nodes - 1}, each once"
            raise InputError(f"node is {row.node}", row.where, expected)
        family = next(iter(seen.values())).law
        if row.law != family:
            raise InputError(f"law is {row.law}", row.where, f"{family} as on the previous lines")
    missing = next((node for node in range(n_nodes) if node not in seen), None)
    if missing is not None:
        raise InputError(
            f"has no line for node {missing}", where, f"nodes 0 to {n_nodes - 1}, each once"
        )
