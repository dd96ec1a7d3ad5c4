# SPDX-License-Identifier: Apache-2.0
"""Reservations of nodes: windows of time in which only some users, or no user, may use them.

The option ``reservations`` and announcements of maintenance (`rebat.models.operations`) define
windows. No job starts on a node if it could still run in a window that is closed to it. Jobs
that started before an announcement continue. A job that requests a reservation starts only in its
windows, on its nodes. Other jobs of its users and accounts prefer these nodes during a window.
Source: Slurm, "Advanced Resource Reservation Guide" (flags MAINT and DAILY, options Users and
Accounts).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from rebat.core.cores import processors_of
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.units import parse_duration, to_us

ANNOUNCED = "announced"
"""Value of the option if administrators announce all windows during the run."""

EXPECTED = (
    "NAME:NODES:begin=TIME:length=TIME[:every=TIME][:user=NAME][:account=NAME] joined by +, "
    "like night:0-63:begin=22h:length=8h:every=1d"
)


class Reservation(NamedTuple):
    """A window of time, which may be repeated. Times are in microseconds.

    ``nodes`` is a set of node numbers. Users in ``users`` and ``accounts`` may use the nodes in the
    window.
    """

    name: str
    nodes: NodeSet
    begin_us: int
    length_us: int
    every_us: int = 0
    users: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()


@lru_cache(maxsize=64)
def read_reservations(text: str) -> tuple[Reservation, ...]:
    """Return the reservations that a text describes.

    >>> [row.name for row in read_reservations("night:0-63:begin=22h:length=8h:every=1d")]
    ['night']
    """
    if text in ("", ANNOUNCED):
        return ()
    return tuple(_reservation(part) for part in text.split("+"))


def _reservation(part: str) -> Reservation:
    head, *words = re.split(r":(?=(?:begin|length|every|user|account)=)", part)
    name, _, nodes = head.partition(":")
    values: dict[str, str] = {}
    users, accounts = set[str](), set[str]()
    for word in words:
        key, _, value = word.partition("=")
        if key in ("user", "account"):
            (users if key == "user" else accounts).add(unquote(value))
        elif key in values:
            raise InputError(f"invalid reservation {part[:60]!r}", expected=EXPECTED)
        values[key] = value
    if not (name and nodes and values.keys() >= {"begin", "length"}):
        raise InputError(f"invalid reservation {part[:60]!r}", expected=EXPECTED)
    begin_us, length_us, every_us = (
        to_us(parse_duration(values.get(key, "0"))) for key in ("begin", "length", "every")
    )
    if not length_us or 0 < every_us <= length_us:
        problem = f"reservation {name}: length is {values['length']}"
        raise InputError(problem, expected="above 0, and below every")
    owners = frozenset(users), frozenset(accounts)
    return Reservation(unquote(name), NodeSet.parse(nodes), begin_us, length_us, every_us, *owners)


def on_processors(
    rows: Iterable[Reservation], n_processors: int, cores_per_node: int
) -> list[Reservation]:
    """Return reservations in the numbers of the processors of a machine.

    Raises
    ------
    InputError
        If a node does not exist.
    """
    placed, count = [], n_processors // cores_per_node
    for row in rows:
        last = int(row.nodes.intervals[-1, 1])
        if last >= count:
            where = f"reservation {row.name}"
            raise InputError(f"node {last} is not on the machine", where, f"0 to {count - 1}")
        placed.append(row._replace(nodes=processors_of(row.nodes, cores_per_node)))
    return placed


class Announced:
    """The reservations that administrators have announced during a run.

    Attributes
    ----------
    rows : list of Reservation
        Their nodes have the numbers of the machine.
    """

    def __init__(self) -> None:
        self.rows: list[Reservation] = []

    def add(self, nodes: NodeSet, begin_us: int, end_us: int) -> None:
        """Add a window in which no user may use some processors."""
        self.rows.append(Reservation("announced", nodes, begin_us, end_us - begin_us))
