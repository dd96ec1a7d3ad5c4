# SPDX-License-Identifier: Apache-2.0
"""Slurm's node events: the output of ``sacctmgr -P show event``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from datetime import tzinfo
from pathlib import Path
from typing import NamedTuple

from rebat.core.errors import InputError
from rebat.records.clock import Clock, TimeKind
from rebat.records.clusters import check_clusters
from rebat.records.hosts import check_list, expanded, sorted_names
from rebat.records.problems import Problems
from rebat.records.sacct import EXPORT_EVENTS
from rebat.records.slurm_rows import header_of, joined_rows
from rebat.records.sources import opened
from rebat.records.values import UNSET, number

BASE_STATE = 15
"""Mask of the base state in StateRaw. All other bits are flags."""

DOWN, FAIL, REBOOT = 1, 8192, 1 << 20
"""Base state of a node that is down, and the flags of failed and rebooting nodes."""


class DownRow(NamedTuple):
    """A down interval of a node, in seconds since the Unix epoch.

    If the node is still down, its end is infinite.
    """

    node: str
    down_s: float
    up_s: float
    kind: str
    reason: str


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
    path : Path
    zone : tzinfo
        Time zone of local times.
    strict : bool
        Whether the first invalid line is an error.
    cluster : str, optional
        Read only the events of this cluster (column Cluster).

    Raises
    ------
    InputError
        If the file is not the output of ``sacctmgr -P show event``, if more than a tenth of the
        rows is invalid, or if a node name occurs in several clusters.
    """
    where = str(path)
    clock, problems = Clock(zone), Problems(where, strict)
    rows: list[DownRow] = []
    lists: dict[str, set[str]] = {}
    dropped: Counter[str] = Counter()
    with opened(path) as text:
        delimiter, names = header_of(
            text.readline(1_000_000), where, f"the output of: {EXPORT_EVENTS}"
        )
        _check_columns(names, where)
        header = list(names)
        names = [{"start": "timestart", "end": "timeend"}.get(name, name) for name in names]
        plausible = _plausibility(names, clock)
        for line, values in joined_rows(text, delimiter, names, plausible, problems):
            fields = dict(zip(names, values, strict=True))
            if [value.strip().lower() for value in values] == header:
                continue
            if cluster is not None and fields.get("cluster") != cluster:
                dropped["of other clusters"] += 1
                continue
            try:
                _add(
                    fields, clock, rows, lists.setdefault(fields.get("cluster", ""), set()), dropped
                )
            except InputError as error:
                problems.add(line, error.problem, error.expected, error.expected or "")
    problems.check(len(rows) + dropped.total())
    check_clusters(lists, where)
    names_in_order = sorted_names(set().union(*lists.values()))
    return NodeEvents(rows, names_in_order, dropped, problems, clock.kinds)


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
            _seconds(clock, fields[start])
            _seconds(clock, fields[end])
        except InputError:
            return False
        return True

    return plausible


def _add(
    fields: dict[str, str],
    clock: Clock,
    rows: list[DownRow],
    lists: set[str],
    dropped: Counter[str],
) -> None:
    node = fields["nodename"].strip()
    if node in UNSET:
        dropped["the size of the cluster"] += 1
        return
    check_list(node)
    lists.add(node)
    kind = _kind(fields)
    if kind not in ("down", "fail", "reboot"):
        dropped[kind] += 1
        return
    down_s, up_s = _seconds(clock, fields["timestart"]), _seconds(clock, fields["timeend"])
    if math.isnan(down_s):
        raise InputError("the event has no start", expected="a time in column Start")
    if up_s < down_s:
        raise InputError("the event ends before it starts", expected="End after Start")
    up_s = math.inf if math.isnan(up_s) else up_s
    reason = fields.get("reason", "")
    rows.extend(DownRow(name, down_s, up_s, kind, reason) for name in expanded(node))


def _seconds(clock: Clock, text: str) -> float:
    return clock.parsed(text, UNSET)


def _kind(fields: dict[str, str]) -> str:
    """Return the kind of an event (down, fail or reboot), or the reason why it is no failure."""
    state = fields.get("state", "").upper()
    raw = fields.get("stateraw", "")
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
