# SPDX-License-Identifier: Apache-2.0
"""Slow fair-share factors of a tree of accounts and users, written from the documentation.

Sources are in parentheses: *site-rules* is docs/how-to/site-rules.md, *fair tree* and *classic* are
pages of Slurm's documentation. *Program* means that no document decides, and that this module does
what rebat does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

CLOSE = 1e-9


@dataclass(eq=False)
class Member:
    """A user, or an account with its members.

    ``shares`` is None for ``parent``. ``kind`` is user, account, or empty if this is not known yet.
    A member that the shares do not declare exists from the entry of a job on.
    """

    name: str
    shares: float | None
    above: Member | None
    kind: str = ""
    exists: bool = True
    members: list[Member] = field(default_factory=list)
    usage: float = 0.0
    factor: float = 0.0

    @property
    def is_account(self) -> bool:
        """Whether it is ranked as an account, not as a user (program: if a member exists)."""
        return any(member.exists for member in self.members)

    @property
    def account(self) -> Member | None:
        """The nearest account above that has shares itself (site-rules: Share=parent)."""
        above = self.above
        while above and above.above and above.shares is None:
            above = above.above
        return above

    @property
    def children(self) -> list[Member]:
        """The members, with the members of accounts with Share=parent instead of these."""
        found = []
        for member in [member for member in self.members if member.exists]:
            inner = member.is_account and member.shares is None
            found += member.children if inner else [member]
        return found


def tree_of(text: str) -> tuple[Member, list[Member]]:
    """Return the root of shares like ``phys=3(ann=1+bo=2)+chem=parent``, and all below it."""
    root = Member("", 1.0, None, "account")
    here, everyone = root, []
    for word in text.replace("(", " ( ").replace(")", " ) ").replace("+", " ").split():
        if word == "(":
            here = here.members[-1]
            here.kind = "account"
        elif word == ")":
            assert here.above
            here = here.above
        else:
            name, _, shares = word.partition("=")
            here.members.append(Member(name, None if shares == "parent" else float(shares), here))
            everyone.append(here.members[-1])
    return root, everyone


def ratio(x: float, y: float) -> float:
    """Divide; by zero results in 0."""
    return x / y if y else 0.0


class FairShare:
    """The tree. ``doubt`` is called if the result depends on rounding."""

    def __init__(self, text: str, doubt: Callable[[str], None]) -> None:
        self.root, self.all = tree_of(text)  # in the order of the text, then of the first jobs
        self.doubt = doubt
        self.rank = self.next_rank = self.n_users = 0

    def member_of(self, user: str, account: str) -> Member:
        """Return the user of a job in its account; both are added if necessary."""
        if not account:  # site-rules: the first user with this name
            found = [m for m in self.all if m.name == user and m.kind != "account"]
            member = found[0] if found else self.join(user, self.root)
        else:
            # program: a name without members becomes a user or an account with its first job
            found = [m for m in self.all if m.name == account and m.kind != "user"]
            place = found[0] if found else self.join(account, self.root)
            place.kind = "account"
            inside = [m for m in place.members if m.name == user and m.kind != "account"]
            member = inside[0] if inside else self.join(user, place)
        member.kind = "user"
        return member

    def join(self, name: str, account: Member) -> Member:
        """Add a member that the shares do not declare (site-rules: it has one share)."""
        account.members.append(Member(name, 1.0, account, exists=False))
        self.all.append(account.members[-1])
        return self.all[-1]

    def update(self, usage_of: Callable[[Member], float], rule: str) -> None:
        """Compute the factor of each user."""
        users = [m for m in self.all if m.exists and not m.is_account]
        for member in [self.root, *self.all]:
            member.usage = 0.0
        for user in users:
            above: Member | None = user
            usage = usage_of(user)
            while above:
                above.usage += usage
                above = above.above
        if rule == "classic":
            for user in users:
                user.factor = self.classic(user)
        else:
            self.rank = self.next_rank = self.n_users = len(users)
            self.visit(self.root.children, tied=False)

    def normal(self, member: Member) -> float:
        """Return the shares of a member, divided by those of itself and its siblings."""
        assert member.account
        siblings = [m.shares for m in member.account.children if m.shares is not None]
        return ratio(member.shares or 0.0, sum(siblings))

    # ---- classic

    def classic(self, user: Member) -> float:
        """Return the factor 2^(-effective usage / normalised shares)."""
        fair = user if user.shares is not None else user.account  # classic: FairShare=parent
        if fair is None or fair is self.root:
            return 1.0  # program: a user with Share=parent directly below the root
        shares = self.shares(fair)
        return 2.0 ** (-self.effective(fair) / shares) if shares else 0.0  # program: 0 shares

    def shares(self, member: Member) -> float:
        """Return the shares of the entire machine (classic: normalized shares)."""
        return self.normal(member) * self.shares(member.account) if member.account else 1.0

    def effective(self, member: Member) -> float:
        """Return the effective usage (classic: the Slurm fair-share formula)."""
        usage, account = ratio(member.usage, self.root.usage), member.account
        if account is None or account is self.root:
            return usage
        return usage + (self.effective(account) - usage) * self.normal(member)

    # ---- fair tree

    def level(self, member: Member) -> float:
        """Return the level fairshare S / U (fair tree)."""
        account = member.account
        if account is None or member.shares is None:  # site-rules: first in its account
            return math.inf
        shares = self.normal(member)
        if not shares or not member.usage:
            return math.inf if shares else 0.0
        return shares / (member.usage / account.usage)

    def visit(self, members: list[Member], tied: bool) -> None:
        """Rank the users of these members (fair tree: algorithm, ties)."""
        rest = sorted(members, key=self.level, reverse=True)
        while rest:
            level = self.level(rest[0])
            same = [m for m in rest if self.is_tie(self.level(m), level)]
            rest = [m for m in rest if m not in same]
            for user in [m for m in same if not m.is_account]:
                if not tied:
                    self.rank = self.next_rank
                tied = True
                self.next_rank -= 1
                user.factor = self.rank / self.n_users
            accounts = [m for m in same if m.is_account]
            self.visit([m for account in accounts for m in account.children], tied)
            tied = False

    def is_tie(self, one: float, other: float) -> bool:
        """Return whether two levels are equal, except for rounding."""
        if one != other and math.isclose(one, other, rel_tol=CLOSE):
            self.doubt("two users or accounts are equal except for rounding")
            return True
        return one == other
