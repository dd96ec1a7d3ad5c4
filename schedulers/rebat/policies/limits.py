# SPDX-License-Identifier: Apache-2.0
"""Limits on the running jobs of users, accounts and queues, as in Slurm.

If a job would exceed a limit now, plans leave it out: it does not start, and has no
reservation. Only running jobs and held nodes count, so later jobs of other users start first.
Sources: Slurm, "Resource Limits" (MaxJobs, GrpJobs, MaxTRESPU, GrpTRES), and `sacctmgr`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import msgspec

from rebat.contract import Changes, Proposal, View, Wake
from rebat.core.attempts import Attempt
from rebat.core.errors import InputError
from rebat.core.numbers import exactly
from rebat.core.traits import Traits
from rebat.policies.composition import Planning, Wrapping
from rebat.policies.own import Rule, UnfitAnswer, called

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


def why_barred(kind: str, name: str, limit: Limit, running: tuple[int, int], n_nodes: int) -> str:
    """Return why one more job of a group would exceed its limit, or an empty text.

    ``running`` contains the numbers of running jobs and of their nodes.
    """
    jobs, nodes = running
    if limit.jobs and jobs + 1 > limit.jobs:
        return f"{kind} {name} runs {exactly(jobs, 'job')}, the limit"
    if limit.nodes and nodes + n_nodes > limit.nodes:
        return f"{kind} {name} uses {exactly(nodes, 'node')}, and the limit is {limit.nodes}"
    return ""


def why_never(kind: str, name: str, limit: Limit, n_nodes: int) -> str:
    """Return why a job of a group can never start, or an empty text."""
    if not 0 < limit.nodes < n_nodes:
        return ""
    needs = exactly(n_nodes, "node")
    return f"requires {needs}, but the limit of {kind} {name} is {limit.nodes}"


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


class OwnLimits(Wrapping):
    """A planning by the rules, from which the jobs that a user-defined limit bars are hidden.

    Parameters
    ----------
    planning : RulePlanning
    rule : OwnLimit
    """

    def __init__(self, planning: Planning, rule: OwnLimit) -> None:
        super().__init__(planning)
        self._rule = rule
        self._waiting: dict[str, Attempt] = {}
        self._barred: dict[str, Attempt] = {}
        self._running: tuple[Attempt, ...] = ()
        self._again_us: set[int] = set()
        self._requested_us: set[int] = set()

    def plan(self, view: View, changes: Changes) -> Iterator[Proposal]:
        """Yield the plan by the rules, and request plans at the times that the limit states."""
        self._note_running(view)
        self._again_us.clear()
        self._requested_us = {at_us for at_us in self._requested_us if at_us > view.now_us}
        for running in (*changes.started, *changes.moved, *changes.held):
            self._waiting.pop(running.attempt.job_id, None)
        for attempt in (*changes.arrived, *changes.resubmitted):
            self._waiting[attempt.job_id] = attempt
        for job_id in changes.withdrawn:
            self._waiting.pop(job_id, None)
        for proposal in self._planning.plan(view, self._visible(view, changes)):
            may_start = partial(self._may_start, view)
            yield msgspec.structs.replace(proposal, may_start=may_start)
        for at_us in sorted(self._again_us - self._requested_us):
            self._requested_us.add(at_us)
            yield Wake(at_us, "limit")

    def _visible(self, view: View, changes: Changes) -> Changes:
        """Return the changes for the rules: attempts that the limit bars are not in their queue.

        If attempts are barred, or no longer, the rules make their plan again.
        """
        before = self._barred
        self._barred = {
            job_id: attempt
            for job_id, attempt in self._waiting.items()
            if attempt.id in view.queue and self._why_barred(view, attempt)
        }
        new = {attempt.id for attempt in (*changes.arrived, *changes.resubmitted)}
        hidden = {attempt.id for attempt in self._barred.values()}
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

    def _may_start(self, view: View, attempt_id: str, starting: Sequence[str]) -> bool:
        self._note_running(view, starting)
        return not self._why_barred(view, view.queue[attempt_id])

    def _note_running(self, view: View, starting: Sequence[str] = ()) -> None:
        """Note the running attempts, the held nodes, and the attempts that start now."""
        held = [waiting.held for waiting in view.waiting.values() if waiting.held]
        running = (run.attempt for run in (*view.running.values(), *held))
        self._running = (*running, *(view.queue[name] for name in starting))

    def _why_barred(self, view: View, attempt: Attempt) -> str:
        """Return why a queued attempt cannot start now, or an empty text."""
        answer = self._rule(attempt, self._running, view)
        if answer is True:
            return ""
        if answer is not False:
            self._again_us.add(answer)
        return str(getattr(self._rule.rule, "__name__", "limits"))

    def reasons(self, view: View) -> Mapping[str, str]:
        """Return the reasons of the rules, and the limit if it bars attempts."""
        self._note_running(view)
        reasons = dict(super().reasons(view))
        for attempt in self._barred.values():
            if attempt.id in view.queue and (reason := self._why_barred(view, attempt)):
                reasons[attempt.id] = EXCEEDS + reason
        return reasons
