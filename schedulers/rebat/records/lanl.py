# SPDX-License-Identifier: Apache-2.0
"""Los Alamos National Laboratory's failure records of 1996 to 2005.

Source: LA-UR-05-7318, "Failure data" (credit: Los Alamos National Laboratory). A line is a failure
of a node of a system, with the start and the end of the problem, to the minute.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np

from rebat.core.cores import MAX_NODES
from rebat.core.errors import InputError
from rebat.records.detect import LANL_COLUMNS
from rebat.records.mapping import Fields, TimeColumn, ValueColumn, required_columns
from rebat.records.outages import read_outages
from rebat.records.sources import Block, csv_blocks, without
from rebat.records.table import Problems, Rows
from rebat.records.values import NAN

SHORTEST_S = 60.0
"""Minimum duration of a failure: the times in the file are in whole minutes."""

DATE = "%m/%d/%Y %H:%M"


def _node(text: str) -> float:
    if not (text.strip().isdecimal() and len(text) < 9 and int(text) < MAX_NODES):
        raise InputError(f"nodenumz is {text[:40]!r}", expected=f"0 to {MAX_NODES - 1}")
    return float(text)


def _size(text: str) -> float:
    return float(text) if text.strip().isdecimal() and len(text) < 9 else NAN


FIELDS: Fields = {
    "node": (ValueColumn(column="nodenumz", convert=_node),),
    "size": (ValueColumn(column="nodes", convert=_size),),
    "down": (TimeColumn(column="Prob Started", format=DATE),),
    "up": (TimeColumn(column="Prob Fixed", format=DATE),),
}


def read_lanl(path: Path, system: int | None, strict: bool = False) -> Rows:
    """Read the failures of one system. Time 0 is the start of its first failure.

    Nodes are numbered from zero (column ``nodenumz``). The size of the machine is in the column
    ``nodes``. If the record contains larger node numbers (systems 11 and 14), the size is the
    largest node number plus 1. Lines without a node are dropped. No line of system 17 has a node.

    Parameters
    ----------
    path : Path
        The CSV file, plain, .gz or .xz.
    system : int or None
        Number of the system. It may be None if the file has only one system.
    strict : bool
        Whether the first invalid row is an error. Otherwise invalid rows are dropped and counted.
    """
    problems, dropped, systems = Problems(str(path), strict), Counter[str](), set[str]()

    def other(block: Block) -> list[str]:
        reasons = []
        cells = block.columns["System"], block.columns["nodenumz"]
        for name, node in zip(*([str(x).strip() for x in column] for column in cells), strict=True):
            if node:
                systems.add(name)
            of_other = system is not None and name != str(system)
            reasons.append("of other systems" if of_other else "" if node else "no node")
        return reasons

    columns = partial(required_columns, required=LANL_COLUMNS, optional=("nodes",))
    blocks = without(csv_blocks(path, columns, problems), other, dropped)
    rows = read_outages(blocks, FIELDS, problems, ends=True)
    if not systems:
        raise InputError("contains no failures", str(path), "a row per failure")
    if not len(rows) or (system is None and len(systems) > 1):
        problem = (
            "contains several systems" if system is None else f"system {system} has no failures"
        )
        names = ", ".join(sorted(systems, key=lambda name: (len(name), name)))
        raise InputError(problem, f"{path}: --system", f"one of: {names}")
    rows.dropped += dropped
    rows.numbers["up"] = np.maximum(rows.column("up"), rows.column("down") + SHORTEST_S)
    largest = np.fmax(rows.column("node") + 1, rows.column("size")).max()
    rows.facts |= {"n_nodes": int(largest), "zero_s": rows.column("down").min()}
    return rows
