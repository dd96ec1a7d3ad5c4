# SPDX-License-Identifier: Apache-2.0
"""Slurm's node events: the output of ``sacctmgr -P show event``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from datetime import tzinfo
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rebat.core.errors import InputError
from rebat.records.clock import Clock, TimeKind
from rebat.records.foreign import EXPORT_EVENTS, reject_foreign
from rebat.records.hosts import check_list, expanded, sorted_names
from rebat.records.judge import check_clusters
from rebat.records.mapping import Fields, TextColumn, TimeColumn, ValueColumn
from rebat.records.outages import drop, only, read_outages
from rebat.records.slurm_rows import exported_header, slurm_blocks
from rebat.records.sources import Block, opened
from rebat.records.table import Problems, Rows
from rebat.records.values import UNSET, number

BASE_STATE = 15
"""Mask of the base state in StateRaw. All other bits are flags."""

DOWN, FAIL, REBOOT = 1, 8192, 1 << 20
"""Base state of a node that is down, and the flags of failing and rebooting nodes."""

FAILURE = "down"
PLANNED = "a planned reboot, which kills no job"
DRAIN = "a drain, which kills no job"
"""Kinds of events. Slurm lets the jobs of a node in the state FAIL end, as on a drained node."""


class DownRow(NamedTuple):
    """A down interval of a node, in seconds since the Unix epoch.

    If the node is still down, its end is infinite.
    """

    node: str
    down_s: float
    up_s: float
    kind: str
    reason: str


def _kind(states: str) -> str:
    """Return the kind of an event: `FAILURE`, or the reason why it is no failure."""
    state, _, raw = states.upper().rpartition(" ")
    value = number(raw)
    if math.isnan(value):
        down, fails = state.startswith("DOWN"), state.startswith("FAIL")
        issued = "^" in state or "REBOOT_ISSUED" in state or state.startswith("BOOT")
    else:
        flags = int(value)
        down, fails = flags & BASE_STATE == DOWN, bool(flags & FAIL)
        issued = bool(flags & REBOOT)
    if issued:
        return PLANNED
    if down:
        return FAILURE
    if state.startswith("UNK"):
        return "an unknown state at the start of the daemons"
    return DRAIN if fails or state.startswith("DR") else "no failure"


def _repaired(rows: Rows) -> Rows:
    """Return rows in which the reboot of a node that is down is a part of the failure."""
    kind, hosts = rows.text("kind").copy(), rows.text("hosts")
    down_s, up_s = rows.column("down"), rows.column("up")
    until_s: dict[str, float] = {}
    for at in np.argsort(down_s, kind="stable").tolist():
        host = hosts[at]
        if kind[at] == PLANNED and down_s[at] <= until_s.get(host, -np.inf):
            kind[at] = FAILURE
        if kind[at] == FAILURE:
            until_s[host] = max(until_s.get(host, -np.inf), float(up_s[at]))
    rows.texts["kind"] = kind
    return rows


def _hosts(text: str) -> str:
    node = text.strip()
    if node in UNSET:
        return ""
    check_list(node)
    return node


FIELDS: Fields = {
    "cluster": (TextColumn(column="cluster"),),
    "hosts": (ValueColumn(column="nodename", convert=_hosts, default=""),),
    "kind": (ValueColumn(column="states", convert=_kind, default=""),),
    "down": (TimeColumn(column="timestart", unit="any"),),
    "up": (TimeColumn(column="timeend", unit="any"),),
    "reason": (TextColumn(column="reason"),),
}


class NodeEvents(NamedTuple):
    """Down intervals in the order of the file.

    ``names`` contains all nodes of the file in natural order. ``dropped`` counts rows that are not
    failures, by reason. ``problems`` counts lines that cannot be read. ``kinds`` contains the kinds
    of times in the file.
    """

    rows: list[DownRow]
    names: tuple[str, ...]
    dropped: Counter[str]
    problems: Problems
    kinds: set[TimeKind]

    @property
    def invalid(self) -> Counter[str]:
        """Number of lines that cannot be read, by reason."""
        return self.problems.reasons()

    @property
    def notes(self) -> list[str]:
        """Sentences about lines that cannot be read."""
        return self.problems.notes()


_REQUIRED = {
    "NodeName": frozenset({"nodename"}),
    "Start": frozenset({"start", "timestart"}),
    "End": frozenset({"end", "timeend"}),
    "State": frozenset({"state", "stateraw"}),
}


def read_node_events(
    path: Path, zone: tzinfo, strict: bool = False, cluster: str | None = None
) -> NodeEvents:
    """Read the events of nodes, plain or .gz.

    A node is down if the base state in StateRaw is DOWN (even if the node also drains). If there is
    no StateRaw, a node is down if State begins with DOWN. Drains, nodes in the state FAIL, and
    reboots that an administrator requested are not failures: Slurm waits until their jobs end. The
    reboot of a node that is down is a part of the failure.

    Parameters
    ----------
    zone : tzinfo
        Time zone of local times.
    strict : bool
        Whether the first invalid line is an error.
    cluster : str, optional
        Read only the events of this cluster (column Cluster).
    """
    where = str(path)
    problems = Problems(where, strict)
    with opened(path) as text:
        first = text.readline(1_000_000)
        reject_foreign(first, where)
        delimiter, names = exported_header(first, where, EXPORT_EVENTS, _REQUIRED)
        names = [{"start": "timestart", "end": "timeend"}.get(name, name) for name in names]
        plausible = _plausibility(names, Clock(zone))
        blocks = map(_with_states, slurm_blocks(text, delimiter, names, plausible, problems))
        rows = read_outages(blocks, FIELDS, problems, zone)
    if cluster is not None:
        rows = drop(rows, rows.text("cluster") != cluster, "of other clusters")
    rows = drop(rows, rows.text("hosts") == "", "the size of the cluster")
    check_clusters(rows)
    every = sorted_names(set(rows.text("hosts").tolist()))
    rows = only(_repaired(rows), "kind", (FAILURE,))
    times, texts = (
        (rows.column("down"), rows.column("up")),
        (rows.text("kind"), rows.text("reason")),
    )
    columns = (column.tolist() for column in (rows.text("hosts"), *times, *texts))
    downs = [
        DownRow(name, *values)
        for hosts, *values in zip(*columns, strict=True)
        for name in expanded(hosts)
    ]
    return NodeEvents(downs, every, rows.dropped, problems, rows.clock.kinds)


def _with_states(block: Block) -> Block:
    """Add the column ``states``: State and StateRaw, separated by a space."""
    none = [""] * len(block.lines)
    cells = (block.columns.get(name, none) for name in ("state", "stateraw"))
    states = [f"{state} {raw}" for state, raw in zip(*cells, strict=True)]
    return Block(block.lines, {**block.columns, "states": states})


def _plausibility(names: list[str], clock: Clock) -> Callable[[list[str]], bool]:
    start, end = names.index("timestart"), names.index("timeend")

    def plausible(fields: list[str]) -> bool:
        try:
            clock.parsed(fields[start])
            clock.parsed(fields[end])
        except InputError:
            return False
        return True

    return plausible
