# SPDX-License-Identifier: Apache-2.0
"""Slurm's node events: the output of ``sacctmgr -P show event``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from datetime import tzinfo
from pathlib import Path
from typing import NamedTuple

from rebat.accounting.hosts import check_list, names_of, sorted_names
from rebat.accounting.rows import Problems, dropped_lines, header_of, joined_rows
from rebat.accounting.sacct import EXPORT_EVENTS
from rebat.accounting.values import UNSET, Clock, number
from rebat.core.errors import InputError
from rebat.core.files import open_text

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
    failures, by reason. ``invalid`` counts lines that cannot be read, by reason.
    """

    rows: list[DownRow]
    names: tuple[str, ...]
    dropped: Counter[str]
    invalid: Counter[str]

    @property
    def notes(self) -> list[str]:
        """Sentences about lines that cannot be read."""
        return dropped_lines(self.invalid)


def read_node_events(path: Path, zone: tzinfo, strict: bool = False) -> NodeEvents:
    """Read the events of nodes, plain or .gz.

    A node is down if the base state in StateRaw is DOWN (even if the node also drains), or if the
    flag FAIL is set. If there is no StateRaw, a node is down if State begins with DOWN, FAIL or
    BOOT. Drains are not failures.

    Raises
    ------
    InputError
        If the file is not the output of ``sacctmgr -P show event``.
    """
    where = str(path)
    clock, problems = Clock(zone), Problems(where, strict)
    rows: list[DownRow] = []
    lists: set[str] = set()
    dropped: Counter[str] = Counter()
    with open_text(path, newline="\n", errors="replace") as text:
        delimiter, names = header_of(
            text.readline(1_000_000), where, f"the output of: {EXPORT_EVENTS}"
        )
        _check_columns(names, where)
        names = [{"start": "timestart", "end": "timeend"}.get(name, name) for name in names]
        plausible = _plausibility(names, clock)
        for line, values in joined_rows(text, delimiter, names, plausible, problems):
            fields = dict(zip(names, values, strict=True))
            try:
                _add(fields, clock, rows, lists, dropped)
            except InputError as error:
                problems.add(line, error.problem, error.expected)
    return NodeEvents(rows, sorted_names(lists), dropped, problems.reasons())


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
            clock.seconds(fields[start])
            clock.seconds(fields[end])
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
    down_s, up_s = clock.seconds(fields["timestart"]), clock.seconds(fields["timeend"])
    if math.isnan(down_s):
        raise InputError("the event has no start", expected="a time in column Start")
    if up_s < down_s:
        raise InputError("the event ends before it starts", expected="End after Start")
    up_s = math.inf if math.isnan(up_s) else up_s
    reason = fields.get("reason", "")
    rows.extend(DownRow(name, down_s, up_s, kind, reason) for name in names_of(node))


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
