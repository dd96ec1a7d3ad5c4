# SPDX-License-Identifier: Apache-2.0
"""Slurm's node events: the output of ``sacctmgr -P show event``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import tzinfo
from pathlib import Path
from typing import NamedTuple

from rebat.core.errors import InputError
from rebat.records.clock import Clock, TimeKind
from rebat.records.hosts import check_list, expanded, sorted_names
from rebat.records.judge import check_clusters
from rebat.records.mapping import Fields, TextColumn, TimeColumn, ValueColumn
from rebat.records.outages import drop, only, read_outages
from rebat.records.sacct import EXPORT_EVENTS
from rebat.records.slurm_rows import header_of, slurm_blocks
from rebat.records.sources import Block, opened
from rebat.records.table import Problems
from rebat.records.values import UNSET, number

BASE_STATE = 15
"""Mask of the base state in StateRaw. All other bits are flags."""

DOWN, FAIL, REBOOT = 1, 8192, 1 << 20
"""Base state of a node that is down, and the flags of failed and rebooting nodes."""


FAILURES = frozenset(("down", "fail", "reboot"))
"""The kinds of events that are failures."""


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
    """Return the kind of an event (one of `FAILURES`), or the reason why it is no failure."""
    state, _, raw = states.upper().rpartition(" ")
    if raw:
        value = int(number(raw))
        if value & BASE_STATE == DOWN:
            return "reboot" if value & REBOOT else "down"
        if value & FAIL:
            return "fail"
    elif state.startswith("DOWN"):
        return "down"
    elif state.startswith(("FAIL", "BOOT")):
        return "fail" if state.startswith("FAIL") else "reboot"
    if state.startswith("UNK"):
        return "an unknown state at the start of the daemons"
    return "a drain, which kills no job" if state.startswith("DR") else "no failure"


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


def read_node_events(
    path: Path, zone: tzinfo, strict: bool = False, cluster: str | None = None
) -> NodeEvents:
    """Read the events of nodes, plain or .gz.

    A node is down if the base state in StateRaw is DOWN (even if the node also drains), or if the
    flag FAIL is set. If there is no StateRaw, a node is down if State begins with DOWN, FAIL or
    BOOT. Drains are not failures.

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
        delimiter, names = header_of(
            text.readline(1_000_000), where, f"the output of: {EXPORT_EVENTS}"
        )
        _check_columns(names, where)
        names = [{"start": "timestart", "end": "timeend"}.get(name, name) for name in names]
        plausible = _plausibility(names, Clock(zone))
        blocks = map(_with_states, slurm_blocks(text, delimiter, names, plausible, problems))
        rows = read_outages(blocks, FIELDS, problems, zone)
    if cluster is not None:
        rows = drop(rows, rows.text("cluster") != cluster, "of other clusters")
    rows = drop(rows, rows.text("hosts") == "", "the size of the cluster")
    check_clusters(rows)
    every = sorted_names(set(rows.text("hosts").tolist()))
    rows = only(rows, "kind", FAILURES)
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


def _check_columns(names: list[str], where: str) -> None:
    have = set(names)
    groups = (
        ({"nodename"}, "NodeName"),
        ({"start", "timestart"}, "Start"),
        ({"end", "timeend"}, "End"),
        ({"state", "stateraw"}, "State"),
    )
    missing = [label for choices, label in groups if not choices & have]
    if missing:
        problem = f"has no column {', '.join(missing)}; export again with: {EXPORT_EVENTS}"
        raise InputError(problem, f"{where}:1")


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
