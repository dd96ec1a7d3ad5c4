# SPDX-License-Identifier: Apache-2.0
"""Fair share: the shares of accounts and users, their decayed usage, and their factors.

Sources: Slurm, "Fair Tree Fairshare Algorithm" and "Classic Fairshare Algorithm". Usage decays
continuously here. Slurm updates usage and factors every ``PriorityCalcPeriod`` (5 minutes).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

import msgspec

from rebat.core.errors import InputError
from rebat.core.traits import Traits

EXPECTED = "NAME=SHARES joined by +, an account with its members in parentheses: phys=3(ann=1+bo=2)"
_DEEPEST = 16
PARENT = "parent"
"""Slurm's Share=parent. A user has the factor of its account, without shares of its own. The
members of an account are siblings of the other members of the account above."""


class Share(NamedTuple):
    """The shares of an account or a user, and the members of the account."""

    shares: float
    members: Mapping[str, Share]
    as_parent: bool = False


@lru_cache(maxsize=64)
def read_shares(text: str) -> dict[str, Share]:
    """Return the shares that a text describes, by name.

    >>> read_shares("phys=3(ann=1+bo=2)+chem=1")["phys"].members["bo"].shares
    2.0
    """
    rows, end = _read(text, 0, 0) if text else ({}, 0)
    if end < len(text):
        raise InputError(f"invalid shares {text[:60]!r}", expected=EXPECTED)
    return rows


def _read(text: str, at: int, depth: int) -> tuple[dict[str, Share], int]:
    """Return the rows that begin at a position, and the position after them."""
    rows: dict[str, Share] = {}
    while True:
        end = at
        while end < len(text) and text[end] not in "+()":
            end += 1
        name, _, number = text[at:end].partition("=")
        members: dict[str, Share] = {}
        if end < len(text) and text[end] == "(" and depth < _DEEPEST:
            members, end = _read(text, end + 1, depth + 1)
            if text[end : end + 1] != ")":
                raise InputError(f"invalid shares {text[:60]!r}", expected=EXPECTED)
            end += 1
        as_parent = number == PARENT
        number = "0" if as_parent else number
        valid = number.replace(".", "", 1).isdecimal() and len(number) < 16
        if not name or not valid or name in rows:
            raise InputError(f"invalid shares {text[at:end][:60]!r}", expected=EXPECTED)
        rows[name] = Share(float(number), members, as_parent)
        if text[end : end + 1] != "+":
            return rows, end
        at = end + 1


class Node(msgspec.Struct):
    """An account or a user, with its usage in node-microseconds at ``at_us``."""

    name: str
    shares: float
    parent: Node | None = None
    members: dict[str, Node] = {}
    is_user: bool = False
    as_parent: bool = False
    usage: float = 0.0
    at_us: int = 0
    running: int = 0
    """Number of nodes that its jobs hold."""
    factor: float = 1.0


class Shares:
    """The accounts and users of a machine, and their usage.

    Parameters
    ----------
    text : str
        Shares (see `read_shares`). Other accounts and users have one share.
    half_life_us : int
        Time in which the weight of usage halves, in microseconds. 0: usage does not decay.
    rule : str
        A key of `RULES`.
    """

    def __init__(self, text: str = "", half_life_us: int = 0, rule: str = "tree") -> None:
        self._half_life_us, self._rule = half_life_us, RULES[rule]
        self._root = Node("root", 1.0)
        self._users: dict[tuple[str, str], Node] = {}
        self._names: dict[str, list[Node]] = {}
        self._fresh_us = -1
        self._add(self._root, read_shares(text))

    def _add(self, parent: Node, rows: Mapping[str, Share]) -> None:
        for name, row in rows.items():
            node = self._child(parent, name, row.shares)
            node.as_parent = row.as_parent
            self._add(node, row.members)

    def _child(self, parent: Node, name: str, shares: float) -> Node:
        node = parent.members[name] = Node(name, shares, parent)
        self._names.setdefault(name, []).append(node)
        return node

    def user(self, traits: Traits) -> Node:
        """Return the user of a job within its account. An unknown user has one share.

        If the job has no account, return the first user of this name, or a new one below the root.
        """
        key = traits.account, traits.user
        if key not in self._users:
            named = [n for n in self._names.get(traits.user, ()) if not n.members]
            above = self._root
            if traits.account:
                accounts = [n for n in self._names.get(traits.account, ()) if not n.is_user]
                above = accounts[0] if accounts else self._child(self._root, traits.account, 1.0)
                named = [n for n in named if n.parent is above]
            user = named[0] if named else self._child(above, traits.user, 1.0)
            user.is_user = True
            self._users[key] = user
            self._fresh_us = -1
        return self._users[key]

    def hold(self, traits: Traits, n_nodes: int, now_us: int) -> None:
        """Record that a job of a user begins to hold nodes, or releases ``-n_nodes`` nodes."""
        node: Node | None = self.user(traits)
        while node is not None:
            self._update(node, now_us)
            node.running += n_nodes
            node = node.parent
        self._fresh_us = -1

    def _update(self, node: Node, now_us: int) -> None:
        node.usage, node.at_us = self._usage(node, now_us), now_us

    def _usage(self, node: Node, now_us: int) -> float:
        """Return the usage of a node of the tree at a time, in node-microseconds."""
        elapsed_us = now_us - node.at_us
        if not self._half_life_us:
            return node.usage + node.running * float(elapsed_us)
        rate = math.log(2) / self._half_life_us
        change = math.expm1(-rate * elapsed_us)
        return node.usage * (1 + change) - node.running * change / rate

    def usage_s(self, traits: Traits, now_us: int) -> float:
        """Return the decayed usage of a job's user in node-seconds."""
        return self._usage(self.user(traits), now_us) / 1e6

    def factor(self, traits: Traits, now_us: int) -> float:
        """Return the fair-share factor of a job's user, from 0 to 1."""
        user = self.user(traits)
        if self._fresh_us != now_us:
            for node in _all(self._root):
                self._update(node, now_us)
            self._rule(self._root)
            self._fresh_us = now_us
        return user.factor


def _all(node: Node) -> Iterator[Node]:
    yield node
    for member in node.members.values():
        yield from _all(member)


def _above(node: Node) -> Node:
    """Return the account above a node of the tree. Accounts with `PARENT` are left out."""
    assert node.parent is not None
    parent = node.parent
    return _above(parent) if parent.as_parent else parent


def _below(node: Node) -> list[Node]:
    """Return the members of an account, and those of its members with `PARENT`."""
    rows = [*node.members.values()]
    return [
        node for row in rows for node in (_below(row) if row.as_parent and row.members else [row])
    ]


def _share_of(node: Node) -> float:
    """Return the shares of a node of the tree, divided by those of all its siblings."""
    total = sum(other.shares for other in _below(_above(node)))
    return node.shares / total if total else 0.0


def fair_tree(root: Node) -> None:
    """Set the factor of each user to its rank, divided by the number of users.

    Users are ranked from the smallest factor to the largest by the level fair share of their
    accounts and of themselves: shares divided by usage, both relative to the siblings. Siblings
    with equal values share a rank, and their members are sorted together.
    """
    n_users = sum(1 for node in _all(root) if not node.members and node is not root)
    _rank(_below(root), Ranks(n_users, n_users, n_users), joins=False)


class Ranks(msgspec.Struct):
    """State of the ranking: number of users, rank of the last user, and the next rank."""

    n_users: int
    rank: int
    next: int


def _rank(siblings: list[Node], ranks: Ranks, joins: bool) -> None:
    """Rank siblings. ``joins`` states whether the first one has the rank of the user before it."""
    rows = sorted(siblings, key=lambda node: (-_level(node), bool(node.members), node.name))
    previous, at = math.nan, 0
    while at < len(rows):
        node, level = rows[at], _level(rows[at])
        tied = joins if at == 0 else level == previous
        previous, at = level, at + 1
        if not node.members:
            if not tied:
                ranks.rank = ranks.next
            node.factor = ranks.rank / ranks.n_users
            ranks.next -= 1
            continue
        members = _below(node)
        while at < len(rows) and _level(rows[at]) == level:
            members += _below(rows[at])
            at += 1
        _rank(members, ranks, tied)


def _level(node: Node) -> float:
    """Return the level fair share of a node of the tree."""
    above = _above(node)
    if node.as_parent:  # a user
        return _level(above) if above.parent else math.inf
    used = sum(other.usage for other in _below(above))
    share = _share_of(node)
    if not share:
        return 0.0
    return share / (node.usage / used) if used and node.usage else math.inf


def classic(root: Node) -> None:
    """Set the factor of each user to 2 ** (-effective usage / normalized shares)."""

    def visit(node: Node, shares: float, effective: float) -> None:
        for child in _below(node):
            if child.as_parent:
                child.factor = 2 ** -(effective / shares) if shares else 0.0
                continue
            share = _share_of(child)
            actual = child.usage / root.usage if root.usage else 0.0
            used = actual if node is root else actual + (effective - actual) * share
            child.factor = 2 ** -(used / (shares * share)) if shares * share else 0.0
            visit(child, shares * share, used)

    visit(root, 1.0, 0.0)


RULES: dict[str, Callable[[Node], None]] = {"tree": fair_tree, "classic": classic}
"""Slurm's fair tree (default since 19.05), and its classic algorithm (NO_FAIR_TREE)."""
