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

N, FRESH_AT, N_USERS, CLASSIC = range(4)
"""Numbers of a tree: rows, the time of the last refresh (-1: its result is no longer valid), users,
and whether the rule is the classic algorithm.
"""

LN2 = math.log(2)


class Tree(NamedTuple):
    """Accounts and users in rows. Row 0 is the root.

    Attributes
    ----------
    numbers : int64 array, shape (4,)
    half_life : float64 array, shape (1,)
        Half-life of usage in microseconds. 0: usage does not decay.
    parent, first, last, next : int64 arrays
        The account of a row, its first and last member, and the next member of the same account.
        -1 if there is none.
    n_members : int64 array
    is_listed : int64 array
        Whether a row is a member of its account. Users that the site did not declare become members
        when their first job enters the queue.
    as_parent : int64 array
        Whether a row has Slurm's Share=parent: a user has the factor of its account, and the
        members of an account are siblings of the other members of the account above.
    running : int64 array
        Number of nodes that the jobs of a row hold.
    at : int64 array
        Time of ``usage`` in microseconds.
    shares, usage, factor : float64 arrays
        The usage is in node-microseconds.
    total, used, level : float64 arrays
        Shares and usage of the members of an account, and the level of a row, at the last refresh.
    line, tied, merged, accounts : int64 arrays
        Scratch: rows that have no rank yet (the next one is the last), whether a row has the rank
        of the row before, whether its members are ranked with those of the account before, and
        accounts that are ranked together.
    """

    numbers: Any
    half_life: Any
    parent: Any
    first: Any
    last: Any
    next: Any
    n_members: Any
    is_listed: Any
    as_parent: Any
    running: Any
    at: Any
    shares: Any
    usage: Any
    factor: Any
    total: Any
    used: Any
    level: Any
    line: Any
    tied: Any
    merged: Any
    accounts: Any


def empty_tree(n: int, half_life_us: int, classic: bool) -> Tree:
    """Return a tree with room for ``n`` rows, of which only the root exists."""
    ints = {name: np.zeros(n, dtype=np.int64) for name in Tree._fields[5:11]}
    floats = {name: np.zeros(n) for name in Tree._fields[11:17]}
    links = {name: np.full(n, -1, dtype=np.int64) for name in ("parent", "first", "last", "next")}
    scratch = {name: np.zeros(n, dtype=np.int64) for name in Tree._fields[17:]}
    numbers = np.array([1, -1, 0, classic], dtype=np.int64)
    tree = Tree(numbers, np.array([float(half_life_us)]), **{**ints, **links}, **floats, **scratch)
    tree.is_listed[0] = 1
    tree.factor[:] = 1.0
    return tree


def larger_tree(tree: Tree) -> Tree:
    """Return a tree with the same rows and room for twice as many."""
    n = len(tree.parent)
    new = empty_tree(2 * n, 0, False)
    for array, old in zip(new[2:], tree[2:], strict=True):
        array[:n] = old
    return new._replace(numbers=tree.numbers, half_life=tree.half_life)


@kernel
def enlist(tree: Any, row: int) -> None:
    """Make a row a member of its account, and its account one of the account above."""
    while not tree.is_listed[row]:
        above = tree.parent[row]
        tree.is_listed[row] = 1
        if tree.last[above] < 0:
            tree.first[above] = row
        else:
            tree.next[tree.last[above]] = row
        tree.last[above] = row
        if tree.n_members[row] == 0:
            tree.numbers[N_USERS] += 1
        if tree.n_members[above] == 0 and above > 0 and tree.is_listed[above]:
            tree.numbers[N_USERS] -= 1
        tree.n_members[above] += 1
        tree.numbers[FRESH_AT] = -1
        row = above


@kernel
def usage_at(tree: Any, row: int, now: int) -> float:
    """Return the usage of a row at a time, in node-microseconds."""
    elapsed, usage, running = now - tree.at[row], tree.usage[row], tree.running[row]
    if tree.half_life[0] == 0.0:
        return float(usage + running * float(elapsed))
    rate = LN2 / tree.half_life[0]
    change = math.expm1(-rate * elapsed)
    return float(usage * (1 + change) - running * change / rate)


@kernel
def hold(tree: Any, row: int, n_nodes: int, now: int) -> None:
    """Record that a job of a user begins to hold nodes, or releases ``-n_nodes`` nodes."""
    enlist(tree, row)
    while row >= 0:
        tree.usage[row], tree.at[row] = usage_at(tree, row, now), now
        tree.running[row] += n_nodes
        row = tree.parent[row]
    tree.numbers[FRESH_AT] = -1


@inner
def sibling(tree: Any, account: int, row: int) -> int:
    """Return the first of the siblings below an account from a row on, or -1.

    Accounts with Share=parent are replaced by their members.
    """
    while row >= 0 and tree.as_parent[row] and tree.n_members[row]:
        row = tree.first[row]
    return row


@inner
def next_sibling(tree: Any, account: int, row: int) -> int:
    """Return the sibling after a row, or -1."""
    while tree.next[row] < 0 and tree.parent[row] != account:
        row = tree.parent[row]
    return sibling(tree, account, tree.next[row])


@inner
def above(tree: Any, row: int) -> int:
    """Return the account above a row. Accounts with Share=parent are left out."""
    row = tree.parent[row]
    while tree.as_parent[row]:
        row = tree.parent[row]
    return row


@kernel
def refresh(tree: Any, now: int) -> None:
    """Compute the factors of all users."""
    if tree.numbers[FRESH_AT] == now:
        return
    for row in range(tree.numbers[N]):
        if tree.is_listed[row]:
            tree.usage[row], tree.at[row] = usage_at(tree, row, now), now
    for account in range(tree.numbers[N]):
        tree.total[account] = tree.used[account] = 0.0
        row = sibling(tree, account, tree.first[account])
        while row >= 0:
            tree.total[account] += tree.shares[row]
            tree.used[account] += tree.usage[row]
            row = next_sibling(tree, account, row)
    if tree.numbers[CLASSIC]:
        rank_classic(tree)
    else:
        rank_tree(tree)
    tree.numbers[FRESH_AT] = now


@inner
def share_of(tree: Any, row: int) -> float:
    """Return the shares of a row, divided by those of all its siblings."""
    total = tree.total[above(tree, row)]
    return tree.shares[row] / total if total else 0.0


@inner
def level_of(tree: Any, row: int) -> float:
    """Return the level fair share of a row: shares divided by usage, relative to its siblings."""
    if tree.as_parent[row]:  # a user
        row = above(tree, row)
        if row == 0:
            return math.inf
    share, used = share_of(tree, row), tree.used[above(tree, row)]
    if share == 0.0:
        return 0.0
    if used == 0.0 or tree.usage[row] == 0.0:
        return math.inf
    return float(share / (tree.usage[row] / used))


@inner
def is_before(tree: Any, a: int, b: int) -> bool:
    """Return whether a row is before another. Of equal levels, users are before accounts."""
    if tree.level[a] != tree.level[b]:
        return tree.level[a] > tree.level[b]
    return tree.n_members[a] == 0 and tree.n_members[b] > 0


@inner
def sort_line(tree: Any, begin: int, end: int) -> None:
    """Sort a part of the line, so that the first row is the last (Shell's method)."""
    line, gap = tree.line, 1
    while gap < end - begin:
        gap = 3 * gap + 1
    while gap > 1:
        gap //= 3
        for i in range(begin + gap, end):
            row, k = line[i], i
            while k >= begin + gap and is_before(tree, line[k - gap], row):
                line[k] = line[k - gap]
                k -= gap
            line[k] = row


@inner
def add_members(tree: Any, account: int, end: int) -> int:
    """Add the siblings below an account at the end of the line. Return its length."""
    row = sibling(tree, account, tree.first[account])
    while row >= 0:
        tree.level[row] = level_of(tree, row)
        tree.line[end] = row
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
        row = tree.line[i]
        is_equal = i + 1 < end and tree.level[tree.line[i + 1]] == tree.level[row]
        tree.tied[i] = is_equal if i + 1 < end else joins
        tree.merged[i] = is_equal and tree.n_members[tree.line[i + 1]] > 0


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
        row, tied = tree.line[n], tree.tied[n]
        if tree.n_members[row] == 0:
            if not tied:
                rank = next_rank
            tree.factor[row] = rank / n_users
            next_rank -= 1
            continue
        n_accounts, tree.accounts[0] = 1, row
        while n > 0 and tree.merged[n - 1]:
            n -= 1
            tree.accounts[n_accounts] = tree.line[n]
            n_accounts += 1
        begin = n
        for i in range(n_accounts):
            n = add_members(tree, tree.accounts[i], n)
        line_up(tree, begin, n, tied)


@kernel
def rank_classic(tree: Any) -> None:
    """Set the factor of each user to 2 ** (-effective usage / normalized shares)."""
    tree.line[0], tree.level[0], tree.used[0], n = 0, 1.0, 0.0, 1
    while n > 0:
        n -= 1
        account = tree.line[n]
        shares, effective = tree.level[account], tree.used[account]
        row = sibling(tree, account, tree.first[account])
        while row >= 0:
            own, used = shares, effective
            if not tree.as_parent[row]:
                share = share_of(tree, row)
                used = tree.usage[row] / tree.usage[0] if tree.usage[0] else 0.0
                if account > 0:
                    used += (effective - used) * share
                own = shares * share
            tree.factor[row] = math.exp(-LN2 * (used / own)) if own else 0.0
            if tree.n_members[row]:
                tree.level[row], tree.used[row], tree.line[n] = own, used, row
                n += 1
            row = next_sibling(tree, account, row)
