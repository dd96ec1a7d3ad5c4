# SPDX-License-Identifier: Apache-2.0
"""Usage and fair-share factors of a tree of accounts and users.

Sources: Slurm, "Fair Tree Fairshare Algorithm" and "Classic Fairshare Algorithm". Usage decays
continuously here. Slurm updates usage and factors every ``PriorityCalcPeriod`` (5 minutes).

A refresh updates the usage of all rows, makes two sums per account (of the shares and of the usage
of its members), and ranks once.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rebat.kernels.jit import inner, kernel

N, FRESH_AT, N_USERS, CLASSIC, HALF_LIFE = range(5)
"""Numbers of a tree: rows, the time of the last refresh (-1: its result is no longer valid), users,
whether the rule is the classic algorithm, and the half-life of usage in microseconds (0: usage does
not decay).
"""

LN2 = math.log(2)

_LINKS = ("parent", "first", "last", "next")
_NUMBERS = (
    "n_members",
    "is_listed",
    "as_parent",
    "running",
    "at",
    "line",
    "tied",
    "merged",
    "group",
)
_VALUES = ("shares", "usage", "factor", "total", "used", "level")
_ROW = [(name, np.int64) for name in (*_LINKS, *_NUMBERS)] + [(name, float) for name in _VALUES]


class Tree(NamedTuple):
    """Accounts and users. Few arrays, because each rule passes them on.

    Attributes
    ----------
    numbers : int64 array, shape (5,)
    rows : record array
        Row 0 is the root. Fields of a row:

        - ``parent``, ``first``, ``last``, ``next``: its account, its first and last member, and the
          next member of the same account (-1: there is none); ``n_members``.
        - ``is_listed``: whether it is a member of its account. Users that the site did not declare
          become members when their first job enters the queue.
        - ``as_parent``: whether it has Slurm's Share=parent. A user is first in its account, or
          has its factor (classic). The members of an account are siblings of the other members of
          the account above.
        - ``running``: number of nodes that its jobs hold; ``usage`` at the time ``at``, in
          node-microseconds and microseconds.
        - ``shares`` and ``factor``.
        - ``total``, ``used``, ``level``: shares and usage of its members, and its level, at the
          last refresh.

        Fields of the i-th entry of lists: ``line`` (rows that have no rank yet; the next one is the
        last), ``tied`` (whether a row has the rank of the row before), ``merged`` (whether its
        members are ranked with those of the account before), and ``group`` (accounts that are
        ranked together).
    """

    numbers: Any
    rows: Any


def empty_tree(n: int, half_life_us: int, classic: bool) -> Tree:
    """Return a tree that contains only the root, with room for ``n`` rows."""
    rows = np.zeros(n, dtype=np.dtype((np.record, _ROW))).view(np.recarray)
    for name in _LINKS:
        rows[name] = -1
    rows["is_listed"][0], rows["factor"] = 1, 1.0
    return Tree(np.array([1, -1, 0, classic, half_life_us], dtype=np.int64), rows)


def larger_tree(tree: Tree) -> Tree:
    """Return a tree with the same rows and room for twice as many."""
    n = len(tree.rows)
    rows = empty_tree(2 * n, 0, False).rows
    rows[:n] = tree.rows
    return Tree(tree.numbers, rows)


@kernel
def enlist(tree: Any, row: int) -> None:
    """Make a row a member of its account, and its account one of the account above."""
    while not tree.rows[row].is_listed:
        above = tree.rows[row].parent
        tree.rows[row].is_listed = 1
        if tree.rows[above].last < 0:
            tree.rows[above].first = row
        else:
            tree.rows[tree.rows[above].last].next = row
        tree.rows[above].last = row
        if tree.rows[row].n_members == 0:
            tree.numbers[N_USERS] += 1
        if tree.rows[above].n_members == 0 and above > 0 and tree.rows[above].is_listed:
            tree.numbers[N_USERS] -= 1
        tree.rows[above].n_members += 1
        tree.numbers[FRESH_AT] = -1
        row = above


@kernel
def usage_at(tree: Any, row: int, now: int) -> float:
    """Return the usage of a row at a time, in node-microseconds."""
    elapsed, usage, running = now - tree.rows[row].at, tree.rows[row].usage, tree.rows[row].running
    if tree.numbers[HALF_LIFE] == 0:
        return float(usage + running * float(elapsed))
    rate = LN2 / tree.numbers[HALF_LIFE]
    change = math.expm1(-rate * elapsed)
    return float(usage * (1 + change) - running * change / rate)


@kernel
def hold(tree: Any, row: int, n_nodes: int, now: int) -> None:
    """Record that a job of a user begins to hold nodes, or releases ``-n_nodes`` nodes."""
    enlist(tree, row)
    while row >= 0:
        tree.rows[row].usage, tree.rows[row].at = usage_at(tree, row, now), now
        tree.rows[row].running += n_nodes
        row = tree.rows[row].parent
    tree.numbers[FRESH_AT] = -1


@inner
def sibling(tree: Any, row: int) -> int:
    """Return the first sibling from a member of an account on, or -1.

    Accounts with Share=parent are replaced by their members.
    """
    while row >= 0 and tree.rows[row].as_parent and tree.rows[row].n_members:
        row = tree.rows[row].first
    return row


@inner
def next_sibling(tree: Any, account: int, row: int) -> int:
    """Return the sibling after a row, or -1."""
    while tree.rows[row].next < 0 and tree.rows[row].parent != account:
        row = tree.rows[row].parent
    return sibling(tree, tree.rows[row].next)


@inner
def above(tree: Any, row: int) -> int:
    """Return the account above a row. Accounts with Share=parent are left out."""
    row = tree.rows[row].parent
    while tree.rows[row].as_parent:
        row = tree.rows[row].parent
    return row


@kernel
def refresh(tree: Any, now: int) -> None:
    """Compute the factors of all users."""
    if tree.numbers[FRESH_AT] == now:
        return
    for row in range(tree.numbers[N]):
        if tree.rows[row].is_listed:
            tree.rows[row].usage, tree.rows[row].at = usage_at(tree, row, now), now
    for account in range(tree.numbers[N]):
        tree.rows[account].total = tree.rows[account].used = 0.0
        row = sibling(tree, tree.rows[account].first)
        while row >= 0:
            tree.rows[account].total += tree.rows[row].shares
            tree.rows[account].used += tree.rows[row].usage
            row = next_sibling(tree, account, row)
    if tree.numbers[CLASSIC]:
        rank_classic(tree)
    else:
        rank_tree(tree)
    tree.numbers[FRESH_AT] = now


@inner
def share_of(tree: Any, row: int) -> float:
    """Return the shares of a row, divided by those of all its siblings."""
    total = tree.rows[above(tree, row)].total
    return tree.rows[row].shares / total if total else 0.0


@inner
def level_of(tree: Any, row: int) -> float:
    """Return the level fair share of a row: shares divided by usage, relative to its siblings."""
    if tree.rows[row].as_parent:  # a user, which is first in its account (Slurm's fair_tree.c)
        return math.inf
    share, used = share_of(tree, row), tree.rows[above(tree, row)].used
    if share == 0.0:
        return 0.0
    if used == 0.0 or tree.rows[row].usage == 0.0:
        return math.inf
    return float(share / (tree.rows[row].usage / used))


@inner
def is_before(tree: Any, a: int, b: int) -> bool:
    """Return whether a row is before another. Of equal levels, users are before accounts."""
    if tree.rows[a].level != tree.rows[b].level:
        return tree.rows[a].level > tree.rows[b].level
    return tree.rows[a].n_members == 0 and tree.rows[b].n_members > 0


@inner
def sort_line(tree: Any, begin: int, end: int) -> None:
    """Sort a part of the line, so that the first row is the last (Shell's method)."""
    rows, gap = tree.rows, 1
    while gap < end - begin:
        gap = 3 * gap + 1
    while gap > 1:
        gap //= 3
        for i in range(begin + gap, end):
            row, k = rows[i].line, i
            while k >= begin + gap and is_before(tree, rows[k - gap].line, row):
                rows[k].line = rows[k - gap].line
                k -= gap
            rows[k].line = row


@inner
def add_members(tree: Any, account: int, end: int) -> int:
    """Add the siblings below an account at the end of the line. Return its length."""
    row = sibling(tree, tree.rows[account].first)
    while row >= 0:
        tree.rows[row].level = level_of(tree, row)
        tree.rows[end].line = row
        end += 1
        row = next_sibling(tree, account, row)
    return end


@inner
def line_up(tree: Any, begin: int, end: int, joins: int) -> None:
    """Sort new rows of the line, and find equal levels. The first has the rank before if it joins.

    Users with equal levels share a rank. Accounts with equal levels are ranked together.
    """
    sort_line(tree, begin, end)
    for i in range(begin, end):
        row = tree.rows[i].line
        is_equal = i + 1 < end and tree.rows[tree.rows[i + 1].line].level == tree.rows[row].level
        tree.rows[i].tied = is_equal if i + 1 < end else joins
        tree.rows[i].merged = is_equal and tree.rows[tree.rows[i + 1].line].n_members > 0


@kernel
def rank_tree(tree: Any) -> None:
    """Set the factor of each user to its rank, divided by the number of users (Fair Tree).

    Siblings are ranked from the largest level to the smallest. The members of an account take its
    place.
    """
    n_users = tree.numbers[N_USERS]
    rank = next_rank = n_users
    n = add_members(tree, 0, 0)
    line_up(tree, 0, n, 0)
    while n > 0:
        n -= 1
        row, tied = tree.rows[n].line, tree.rows[n].tied
        if tree.rows[row].n_members == 0:
            if not tied:
                rank = next_rank
            tree.rows[row].factor = rank / n_users
            next_rank -= 1
            continue
        n_accounts, tree.rows[0].group = 1, row
        while n > 0 and tree.rows[n - 1].merged:
            n -= 1
            tree.rows[n_accounts].group = tree.rows[n].line
            n_accounts += 1
        begin = n
        for i in range(n_accounts):
            n = add_members(tree, tree.rows[i].group, n)
        line_up(tree, begin, n, tied)


@kernel
def rank_classic(tree: Any) -> None:
    """Set the factor of each user to 2 ** (-effective usage / normalized shares)."""
    tree.rows[0].line, tree.rows[0].level, tree.rows[0].used, n = 0, 1.0, 0.0, 1
    while n > 0:
        n -= 1
        account = tree.rows[n].line
        shares, effective = tree.rows[account].level, tree.rows[account].used
        row = sibling(tree, tree.rows[account].first)
        while row >= 0:
            own, used = shares, effective
            if not tree.rows[row].as_parent:
                share = share_of(tree, row)
                used = tree.rows[row].usage / tree.rows[0].usage if tree.rows[0].usage else 0.0
                if account > 0:
                    used += (effective - used) * share
                own = shares * share
            tree.rows[row].factor = math.exp(-LN2 * (used / own)) if own else 0.0
            if tree.rows[row].n_members:
                tree.rows[row].level, tree.rows[row].used, tree.rows[n].line = own, used, row
                n += 1
            row = next_sibling(tree, account, row)
