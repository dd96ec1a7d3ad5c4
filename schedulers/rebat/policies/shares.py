# SPDX-License-Identifier: Apache-2.0
"""Fair share: the shares of accounts and users as a text, and the users of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from rebat.core.errors import InputError
from rebat.core.traits import Traits
from rebat.kernels.fair_share import (
    N,
    empty_tree,
    enlist,
    hold,
    larger_tree,
    refresh,
    usage_at,
)

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


class Shares:
    """The accounts and users of a machine, and their usage (`rebat.kernels.fair_share`).

    Parameters
    ----------
    text : str
        Shares (see `read_shares`). Other accounts and users have one share.
    half_life_us : int
        Time in which the weight of usage halves, in microseconds. 0: usage does not decay.
    rule : str
        A value of `RULES`.

    Attributes
    ----------
    tree : Tree
    """

    def __init__(self, text: str = "", half_life_us: int = 0, rule: str = "tree") -> None:
        self.tree = empty_tree(64, half_life_us, rule == "classic")
        self._users: dict[tuple[str, str], int] = {}
        self._names: dict[str, list[int]] = {}
        self._are_users: set[int] = set()
        self._are_accounts: set[int] = set()
        self._add(0, read_shares(text))

    def _add(self, parent: int, rows: Mapping[str, Share]) -> None:
        for name, share in rows.items():
            row = self._child(parent, name, share.shares)
            self.tree.rows[row].as_parent = share.as_parent
            enlist(self.tree, row)
            self._add(row, share.members)

    def _child(self, parent: int, name: str, shares: float) -> int:
        row = int(self.tree.numbers[N])
        if row == len(self.tree.rows):
            self.tree = larger_tree(self.tree)
        self.tree.numbers[N] += 1
        self.tree.rows[row].parent, self.tree.rows[row].shares = parent, shares
        self._are_accounts.add(parent)
        self._names.setdefault(name, []).append(row)
        return row

    def row_of(self, traits: Traits) -> int:
        """Return the row of a job's user within its account. An unknown user has one share.

        If the job has no account, return the first user of this name, or a new one below the root.
        A new row is not yet a member of its account.
        """
        key = traits.account, traits.user
        if key not in self._users:
            above, rows = 0, self._names.get(traits.user, ())
            named = [row for row in rows if row not in self._are_accounts]
            if traits.account:
                accounts = self._names.get(traits.account, ())
                declared = (row for row in accounts if row not in self._are_users)
                above = next(declared, -1)
                if above < 0:
                    above = self._child(0, traits.account, 1.0)
                named = [row for row in named if self.tree.rows[row].parent == above]
            row = named[0] if named else self._child(above, traits.user, 1.0)
            self._are_users.add(row)
            self._users[key] = row
        return self._users[key]

    def enter(self, traits: Traits) -> int:
        """Return the row of a user, which is a member of its account from now on."""
        row = self.row_of(traits)
        enlist(self.tree, row)
        return row

    def hold(self, traits: Traits, n_nodes: int, now_us: int) -> None:
        """Record that a job of a user begins to hold nodes, or releases ``-n_nodes`` nodes."""
        row = self.enter(traits)
        hold(self.tree, row, n_nodes, now_us)

    def usage_s(self, traits: Traits, now_us: int) -> float:
        """Return the decayed usage of a job's user in node-seconds."""
        row = self.enter(traits)
        return float(usage_at(self.tree, row, now_us)) / 1e6

    def factor(self, traits: Traits, now_us: int) -> float:
        """Return the fair-share factor of a job's user, from 0 to 1."""
        row = self.enter(traits)
        refresh(self.tree, now_us)
        return float(self.tree.rows[row].factor)


RULES = "tree", "classic"
"""Slurm's fair tree (default since 19.05), and its classic algorithm (NO_FAIR_TREE)."""
