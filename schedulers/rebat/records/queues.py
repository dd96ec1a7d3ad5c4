# SPDX-License-Identifier: Apache-2.0
"""Declared partitions: the output of ``scontrol show partition`` (Slurm) or ``qstat -Qf`` (PBS)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rebat.core.errors import InputError
from rebat.core.numbers import exact
from rebat.records.hosts import check_list
from rebat.records.sources import opened
from rebat.records.values import NO_VALUES_16, duration_s

EXPORT_PARTITIONS = "scontrol show partition > partitions.txt"

ALL_NODES = "ALL"
"""Value of ``nodes`` for all nodes of the cluster."""

_PAIR = re.compile(r"(\w+)=(\S*)")
_QUEUE = re.compile(r"Queue:\s*(\S+)\s*\Z")
_FIELD = re.compile(r"\s+([\w.]+)\s*=\s*(.*\S)\s*\Z")


def read_queues(path: Path) -> dict[str, dict[str, Any]]:
    """Return the fields of each partition or queue (see `workloads.machine.FIELDS`).

    The nodes of a partition of Slurm are in the field ``nodes``. A queue of PBS has no such field.
    """
    with opened(path) as text:
        lines = text.read().splitlines()
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("PartitionName="):
        rows = {name: _slurm(fields) for name, fields in _slurm_rows(lines) if name}
    elif _QUEUE.match(first):
        rows = {name: _pbs(fields) for name, fields in _pbs_rows(lines)}
    else:
        expected = "the output of 'scontrol show partition' (Slurm) or 'qstat -Qf' (PBS)"
        raise InputError("contains no partitions", str(path), expected)
    return rows


def _slurm_rows(lines: list[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each partition with its fields. A partition is on one line or on several."""
    fields: dict[str, str] = {}
    for pair in (pair for line in lines for pair in _PAIR.findall(line)):
        if pair[0] == "PartitionName" and fields:
            yield fields["PartitionName"], fields
            fields = {}
        fields.setdefault(*pair)
    yield fields["PartitionName"], fields


def _slurm(fields: dict[str, str]) -> dict[str, Any]:
    nodes = fields.get("Nodes", "")
    row: dict[str, Any] = {}
    if nodes not in ("", "(null)"):
        if nodes != ALL_NODES:
            check_list(nodes)
        row["nodes"] = nodes
    tier = _number(fields.get("PriorityTier", ""), 1, NO_VALUES_16)
    if tier != 1:
        row["tier"] = tier
    weight = _number(fields.get("PriorityJobFactor", ""), 1, NO_VALUES_16)
    if weight > 1:
        row["weight"] = weight
    if most := _number(fields.get("MaxNodes", ""), 0):
        row["max_nodes"] = most
    return row | _times(fields.get("MaxTime", ""), fields.get("DefaultTime", ""))


def _pbs_rows(lines: list[str]) -> Iterator[tuple[str, dict[str, str]]]:
    name, fields = "", dict[str, str]()
    for line in lines:
        if head := _QUEUE.match(line):
            if name:
                yield name, fields
            name, fields = head[1], {}
        elif field := _FIELD.match(line):
            fields[field[1]] = field[2]
    yield name, fields


def _pbs(fields: dict[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    priority = _number(fields.get("Priority", ""), 0)  # 0: no priority, as the default tier
    if priority > 1:
        row["tier"] = priority
    if most := _number(fields.get("resources_max.nodect", ""), 0):
        row["max_nodes"] = most
    longest = fields.get("resources_max.walltime", "")
    return row | _times(longest, fields.get("resources_default.walltime", ""))


MOST = 10**6
"""Numbers from this one on are no limits."""


def _number(text: str, default: int, unset: frozenset[float] = frozenset()) -> int:
    """Return a number, or the default if it is unset, unlimited or no number."""
    unlimited = not text.isdecimal() or int(text) >= MOST or int(text) in unset
    return default if unlimited else int(text)


def _times(longest: str, default: str) -> dict[str, str]:
    row = {}
    for name, text in (("max_time", longest), ("default_time", default)):
        seconds = duration_s(text)
        if seconds > 0 and math.isfinite(seconds):
            row[name] = exact(seconds).replace(" ", "")
    return row
