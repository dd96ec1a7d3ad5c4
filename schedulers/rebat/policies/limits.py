# SPDX-License-Identifier: Apache-2.0
"""Limits on the running jobs of users, accounts and queues, as in Slurm.

If a job would exceed a limit now, the planning does not see it: it does not start, and has no
reservation. Only running jobs and held nodes count, so later jobs of other users start first.
Sources: Slurm, "Resource Limits" (MaxJobs, GrpJobs, MaxTRESPU, GrpTRES), and `sacctmgr`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import msgspec

from rebat.contract import Changes, Proposal, Reject, Start, View, Wake
from rebat.contract.proposals import PlanByRules
from rebat.core.attempts import Attempt, Running
from rebat.core.errors import InputError
from rebat.core.formatting import counted
from rebat.core.traits import Traits
from rebat.policies.composition import Planning, Wrapping
from rebat.policies.own import Rule, UnfitAnswer, called
from rebat.policies.shares import Shares

KINDS = ("user", "account", "queue")
"""Traits of jobs by which a limit groups jobs. Each user, account or queue is a group."""

EXPECTED = "KIND[=NAME]:jobs=N:nodes=N joined by +, like user:jobs=4+account=phys:nodes=64"

EXCEEDS = "its start would exceed a limit: "
"""Beginning of the reason why a job waits."""

OF_KIND = {"user": "account", "account": "child"}
"""Further words of a limit with a name: the account of a user, or a child of an account."""


class Limit(NamedTuple):
    """The maximum number of running jobs, and of nodes on which they run. 0: no maximum.

    ``others`` contains the accounts in which the limit of a user holds (default: all), or the
    children of an account. The limit of an account holds for the account and its children together.
    """

    jobs: int = 0
    nodes: int = 0
    others: frozenset[str] = frozenset()

    def holds_for(self, kind: str, name: str, traits: Traits) -> bool:
        """Return whether this limit of a user or an account with a name holds for a job."""
        if kind == "user":
            return traits.user == name and (not self.others or traits.account in self.others)
        return traits.account == name or traits.account in self.others


@lru_cache(maxsize=64)
def read_limits(text: str) -> dict[tuple[str, str], Limit]:
    """Return limits by kind and name. A limit with an empty name is for all others of the kind.

    The name of a limit of a user in some accounts contains these accounts.

    >>> read_limits("user:jobs=4+user=ann:jobs=9")["user", "ann"].jobs
    9
    >>> [*read_limits("user=ann:account=phys:jobs=9+account=sci:child=phys:nodes=4")]
    [('user', 'ann in phys'), ('account', 'sci')]
    """
    rows: dict[tuple[str, str], Limit] = {}
    for part in text.split("+") if text else ():
        head, *words = part.split(":")
        kind, equals, name = head.partition("=")
        pairs = [word.partition("=")[::2] for word in words]
        others = [value for key, value in pairs if name and key == OF_KIND.get(kind)]
        fields = {key: value for key, value in pairs if key in ("jobs", "nodes")}
        numbers = all(v.isascii() and v.isdecimal() and 0 < len(v) < 9 for v in fields.values())
        whole = len(fields) + len(others) == len(words) and all(others)
        label = f"{name} in {' '.join(others)}" if kind == "user" and others else name
        valid = kind in KINDS and bool(name) == bool(equals) and (kind, label) not in rows
        if not (valid and numbers and fields and whole):
            raise InputError(f"invalid limits {part[:60]!r}", expected=EXPECTED)
        jobs, nodes = (int(fields.get(key, 0)) for key in ("jobs", "nodes"))
        rows[kind, label] = Limit(jobs, nodes, frozenset(others))
    return rows


def owner_of(traits: Traits) -> tuple[str, ...]:
    """Return what decides to which groups a job belongs."""
    return traits.user, traits.account, traits.queue, traits.partition


def groups_of(
    limits: Mapping[tuple[str, str], Limit], traits: Traits
) -> Iterator[tuple[str, str, Limit]]:
    """Yield kind, name and limit of the groups to which a job belongs.

    >>> [name for _, name, _ in groups_of(read_limits("user:jobs=4"), Traits(user="ann"))]
    ['ann']
    """
    for kind in KINDS:
        name = getattr(traits, kind) or (traits.partition if kind == "queue" else "")
        limit = limits.get((kind, name)) or limits.get((kind, ""))
        if limit and name:
            yield kind, name, limit
    for (kind, label), limit in limits.items():
        name = label.partition(" in ")[0]
        own = limit.others and label != getattr(traits, kind)
        if own and limit.holds_for(kind, name, traits):
            yield kind, label, limit


class Group(msgspec.Struct):
    """The running jobs and held nodes of a user, an account or a queue, and the limit."""

    kind: str
    name: str
    limit: Limit
    jobs: int = 0
    nodes: int = 0

    def refuses(self, n_nodes: int, starting: tuple[int, int] = (0, 0)) -> str:
        """Return why one more job of ``n_nodes`` nodes would exceed the limit, or an empty text.

        ``starting`` contains the numbers of jobs and of nodes that start now.
        """
        jobs, nodes = self.jobs + starting[0], self.nodes + starting[1]
        return why_barred(self.kind, self.name, self.limit, (jobs, nodes), n_nodes)


def why_barred(kind: str, name: str, limit: Limit, running: tuple[int, int], n_nodes: int) -> str:
    """Return why one more job of a group would exceed its limit, or an empty text.

    ``running`` contains the numbers of running jobs and of their nodes.
    """
    jobs, nodes = running
    if limit.jobs and jobs + 1 > limit.jobs:
        return f"{kind} {name} runs {counted(jobs, 'job')}, the limit"
    if limit.nodes and nodes + n_nodes > limit.nodes:
        return f"{kind} {name} uses {counted(nodes, 'node')}, and the limit is {limit.nodes}"
    return ""


def why_never(kind: str, name: str, limit: Limit, n_nodes: int) -> str:
    """Return why a job of a group can never start, or an empty text."""
    if not 0 < limit.nodes < n_nodes:
        return ""
    needs = counted(n_nodes, "node")
    return f"requires {needs}, but the limit of {kind} {name} is {limit.nodes}"


Starting = dict[tuple[str, str], tuple[int, int]]
"""The numbers of jobs and of nodes that start now, by kind and name of the group."""


class Accounting(Wrapping):
    """A planning that records the usage of users, and hides jobs that limits bar from another one.

    Parameters
    ----------
    planning : Planning
        The planning that starts jobs.
    shares : Shares
        The usage of users, which this class updates.
    limits : str
        See `read_limits`.
    """

    def __init__(self, planning: Planning, shares: Shares, limits: str = "") -> None:
        super().__init__(planning)
        self._shares, self._limits = shares, read_limits(limits)
        self._bars = bool(self._limits)
        self._groups: dict[tuple[str, str], Group] = {}
        self._groups_by_owner: dict[tuple[str, ...], list[Group]] = {}
        self._holding: dict[str, tuple[Traits, int]] = {}
        self._waiting: dict[str, tuple[Attempt, Traits]] = {}
        self._barred: dict[str, Attempt] = {}

    def plan(self, view: View, changes: Changes) -> Iterator[Proposal]:
        """Yield the attempts to start now. No start exceeds a limit."""
        self._account(view, changes)
        if not self._bars:
            yield from self._planning.plan(view, changes)
            return
        rejected = [*self._enter(view, changes)]
        yield from rejected
        changes = self._visible(view, changes, {proposal.attempt_id for proposal in rejected})
        yield from self._allowed(view, self._planning.plan(view, changes))

    # ---- usage

    def _account(self, view: View, changes: Changes) -> None:
        """Update the usage of users and groups."""
        for running in (*changes.started, *changes.moved, *changes.held):
            traits, n_nodes = view.job(running.attempt.job_id).traits, running.attempt.n_nodes
            self._waiting.pop(running.attempt.job_id, None)
            self._holding[running.attempt.id] = traits, n_nodes
            self._hold(traits, 1, n_nodes, running.start_us)
        for running in (*changes.ended, *changes.stopped):
            self._release(running, view.now_us)
        for attempt in (*changes.arrived, *changes.resubmitted):
            self._shares.enter(view.job(attempt.job_id).traits)

    def _release(self, running: Running, now_us: int) -> None:
        traits, n_nodes = self._holding.pop(running.attempt.id, (None, 0))
        if traits is not None:
            self._hold(traits, -1, -n_nodes, now_us)

    def _hold(self, traits: Traits, jobs: int, nodes: int, at_us: int) -> None:
        self._shares.hold(traits, nodes, at_us)
        for group in self._groups_of(traits):
            group.jobs += jobs
            group.nodes += nodes

    def _groups_of(self, traits: Traits) -> list[Group]:
        """Return the groups with a limit to which a job belongs."""
        owner = owner_of(traits)
        if owner not in self._groups_by_owner:
            self._groups_by_owner[owner] = [
                self._groups.setdefault((kind, name), Group(kind, name, limit))
                for kind, name, limit in groups_of(self._limits, traits)
            ]
        return self._groups_by_owner[owner]

    # ---- limits

    def _enter(self, view: View, changes: Changes) -> Iterator[Reject]:
        """Note the new attempts. Reject those that are larger than a limit."""
        for attempt in (*changes.arrived, *changes.resubmitted):
            traits = view.job(attempt.job_id).traits
            self._waiting[attempt.job_id] = attempt, traits
            groups = self._groups_of(traits)
            never = (why_never(g.kind, g.name, g.limit, attempt.n_nodes) for g in groups)
            if reason := next(filter(None, never), ""):
                del self._waiting[attempt.job_id]
                yield Reject(attempt.id, reason)
        for job_id in changes.withdrawn:
            self._waiting.pop(job_id, None)

    def _visible(self, view: View, changes: Changes, rejected: set[str]) -> Changes:
        """Return the changes for the planning: attempts that limits bar are not in its queue.

        If attempts are barred, or no longer, the planning makes its plan again.
        """
        before, self._barred = self._barred, {}
        for job_id, (attempt, traits) in self._waiting.items():
            if self._why_barred(view, attempt, traits):
                self._barred[job_id] = attempt
        new = {attempt.id for attempt in (*changes.arrived, *changes.resubmitted)}
        hidden = rejected | {attempt.id for attempt in self._barred.values()}
        back = [
            attempt
            for job_id, attempt in before.items()
            if attempt.id not in new | hidden and job_id in self._waiting
        ]
        gone = [
            job_id
            for job_id, attempt in self._barred.items()
            if job_id not in before and attempt.id not in new
        ]
        return msgspec.structs.replace(
            changes,
            arrived=[a for a in changes.arrived if a.id not in hidden]
            + [a for a in back if not a.number],
            resubmitted=[a for a in changes.resubmitted if a.id not in hidden]
            + [a for a in back if a.number],
            withdrawn=changes.withdrawn + gone + [attempt.job_id for attempt in back],
        )

    def _allowed(self, view: View, proposals: Iterable[Proposal]) -> Iterator[Proposal]:
        """Yield proposals up to the first start that exceeds a limit. Then request another plan.

        The other plan does not contain the attempts that the limits then bar.
        """
        exceeded, starting = False, Starting()
        for proposal in list(proposals):
            if isinstance(proposal, Start):
                attempt = view.queue[proposal.attempt_id]
                exceeded = exceeded or self._exceeds(view, attempt, starting)
                if exceeded:
                    continue
            elif isinstance(proposal, Reject):
                self._waiting.pop(view.queue[proposal.attempt_id].job_id, None)
            yield proposal
        if exceeded:
            yield Wake(view.now_us, "limit")

    def _why_barred(self, view: View, attempt: Attempt, traits: Traits) -> str:
        """Return why a queued attempt cannot start now, or an empty text."""
        reasons = (group.refuses(attempt.n_nodes) for group in self._groups_of(traits))
        return next(filter(None, reasons), "")

    def _exceeds(self, view: View, attempt: Attempt, starting: Starting) -> bool:
        """Return whether a start exceeds a limit, and count it among those that start now."""
        exceeded, n_nodes = False, attempt.n_nodes
        for group in self._groups_of(view.job(attempt.job_id).traits):
            jobs, nodes = starting.get((group.kind, group.name), (0, 0))
            exceeded = exceeded or bool(group.refuses(n_nodes, (jobs, nodes)))
            starting[group.kind, group.name] = jobs + 1, nodes + n_nodes
        return exceeded

    # ---- the record of plans

    def reasons(self, view: View) -> Mapping[str, str]:
        """Return the reasons of the planning, and the limits that bar attempts."""
        reasons = dict(super().reasons(view))
        for job_id, attempt in self._barred.items():
            if attempt.id in view.queue:
                reason = self._why_barred(view, attempt, view.job(job_id).traits)
                reasons |= {attempt.id: EXCEEDS + reason} if reason else {}
        return reasons


class OwnLimit(msgspec.Struct, frozen=True):
    """A user-defined limit: a function of a queued attempt, of running attempts, and of the view.

    The running attempts include nodes held for jobs, and the attempts that the present plan starts
    earlier. The function returns whether the attempt may start now. Instead of False, it can return
    the time in microseconds of another call. Every plan calls the function in any case.
    """

    rule: Rule

    def __call__(self, attempt: Attempt, running: Sequence[Attempt], view: View) -> bool | int:
        """Return the result of the function."""
        answer: bool | int = called(self.rule, attempt, running, view)
        later = isinstance(answer, int) and answer > view.now_us
        if not (isinstance(answer, bool) or later):
            raise UnfitAnswer(self.rule, answer, "True, False, or a later time in whole us")
        return answer


class OwnLimits(Accounting):
    """A planning that hides jobs that a user-defined limit bars.

    Parameters
    ----------
    planning, shares
        See `Accounting`.
    rule : OwnLimit
    """

    def __init__(self, planning: Planning, shares: Shares, rule: OwnLimit) -> None:
        super().__init__(planning, shares)
        self._rule, self._bars = rule, True
        self._running: tuple[Attempt, ...] = ()
        self._again_us: set[int] = set()
        self._requested_us: set[int] = set()

    def plan(self, view: View, changes: Changes) -> Iterator[Proposal]:
        """Yield the attempts to start now, and request plans at the times that the limit states."""
        self._note_running(view)
        self._again_us.clear()
        self._requested_us = {at_us for at_us in self._requested_us if at_us > view.now_us}
        yield from super().plan(view, changes)
        for at_us in sorted(self._again_us - self._requested_us):
            self._requested_us.add(at_us)
            yield Wake(at_us, "limit")

    def _allowed(self, view: View, proposals: Iterable[Proposal]) -> Iterator[Proposal]:
        for proposal in super()._allowed(view, proposals):
            if isinstance(proposal, PlanByRules):
                may_start = partial(self._may_start, view)
                yield msgspec.structs.replace(proposal, may_start=may_start)
            else:
                yield proposal

    def _may_start(self, view: View, attempt_id: str, starting: Sequence[str]) -> bool:
        self._note_running(view, starting)
        attempt = view.queue[attempt_id]
        return not self._why_barred(view, attempt, attempt.traits)

    def _note_running(self, view: View, starting: Sequence[str] = ()) -> None:
        """Note the running attempts, the held nodes, and the attempts that start now."""
        held = [waiting.held for waiting in view.waiting.values() if waiting.held]
        running = (run.attempt for run in (*view.running.values(), *held))
        self._running = (*running, *(view.queue[name] for name in starting))

    def _why_barred(self, view: View, attempt: Attempt, traits: Traits) -> str:
        answer = self._rule(attempt, self._running, view)
        if answer is True:
            return ""
        if answer is not False:
            self._again_us.add(answer)
        return str(getattr(self._rule.rule, "__name__", "limits"))

    def _exceeds(self, view: View, attempt: Attempt, starting: Starting) -> bool:
        exceeded = bool(self._why_barred(view, attempt, attempt.traits))
        self._running += (attempt,)
        return exceeded

    def reasons(self, view: View) -> Mapping[str, str]:
        """See `Accounting.reasons`."""
        self._note_running(view)
        return super().reasons(view)
