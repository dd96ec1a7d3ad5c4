# SPDX-License-Identifier: Apache-2.0
"""What a policy is, and what it receives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from rebat.contract.proposals import Answer, Proposal, Refusal
from rebat.contract.view import View
from rebat.core.attempts import Attempt, Running


class News(msgspec.Struct):
    """What one message reported: a policy reacts to it before anything is planned.

    ``failed`` nodes, and the running attempts ``hit`` by that: they are stopped and queued again,
    unless a proposal says otherwise. ``called_off``: those of them whose stop was to come for
    another reason. ``held_hit``: jobs that wait and lost nodes held for them. ``woken``: the tags
    of the wakes that are due. ``notices``: (kind, data) of Batsim's other events. ``refused``:
    what was not carried out, or fell through, of all that was proposed. ``answers``: to what
    ``react`` proposed when it was last asked, in its order.
    """

    arrived: list[Attempt] = []
    started: list[Running] = []
    ended: list[Running] = []
    failed: list[int] = []
    rejuvenated: list[int] = []
    hit: list[Running] = []
    called_off: list[str] = []
    held_hit: list[str] = []
    woken: list[str] = []
    notices: list[tuple[str, dict[str, Any]]] = []
    refused: list[Refusal] = []
    answers: list[Answer] = []


class Changes(msgspec.Struct):
    """What happened since the policy was last asked to plan.

    ``started`` is what it had proposed itself and was accepted (what was not is ``refused``, and in
    the queue still). ``withdrawn`` names the jobs that were queued when it was last asked, and
    were rejected or started by a reaction. ``stopped`` gave their nodes back before their end;
    ``moved`` run somewhere without ever having been planned: a stop or a reaction put them there.
    ``held`` are nodes kept free for a job, as if an attempt ran there; when they are given back
    they are among the ``ended``. ``failed_nodes`` cannot be used any more (they failed, or were
    drained) and could when it was last asked, ``rejuvenated_nodes`` the other way round;
    ``failures`` and ``repairs`` count the events, also those that took each other back.
    ``failed_under`` names, for each failed node that an attempt still holds, that attempt, and
    ``rejuvenated_under`` for each rejuvenated one. ``woken`` are the tags of wakes that are
    due.
    """

    arrived: list[Attempt] = []
    resubmitted: list[Attempt] = []
    started: list[Running] = []
    ended: list[Running] = []
    stopped: list[Running] = []
    moved: list[Running] = []
    held: list[Running] = []
    failed_nodes: list[int] = []
    failed_under: list[str] = []
    rejuvenated_nodes: list[int] = []
    rejuvenated_under: list[str] = []
    failures: int = 0
    repairs: int = 0
    refused: list[Refusal] = []
    withdrawn: list[str] = []
    woken: list[str] = []

    def withdraw(self, attempt: Attempt) -> None:
        """A reaction took an attempt out of the queue; a plan that never had it ignores this."""
        for unheard in (self.arrived, self.resubmitted):
            if attempt in unheard:
                unheard.remove(attempt)
                return
        self.withdrawn.append(attempt.job_id)

    def leave(self, running: Running, how: list[Running]) -> None:
        """Something gave its nodes back; a plan that never had it ignores this."""
        if self.moved or self.held:
            for unplanned in (self.moved, self.held):
                if running in unplanned:
                    unplanned.remove(running)
                    return
        how.append(running)

    def __bool__(self) -> bool:
        return bool(
            self.arrived or self.resubmitted or self.ended or self.stopped or self.moved
            or self.held or self.failures or self.repairs or self.refused or self.withdrawn
            or self.woken
        )  # fmt: skip


class Policy:
    """A scheduler: ``plan`` is all that one of one's own needs."""

    def react(self, view: View, news: News) -> Iterable[Proposal]:
        """What is to become of what runs; asked at every message with news, before ``plan``.

        A message that only acknowledges has no news.

        Each proposal is carried out before the next one is asked for. By default nothing: the
        session stops what runs on failed nodes and queues it first, from its last checkpoint.
        """
        return ()

    def plan(self, view: View, changes: Changes) -> Iterable[Proposal]:
        """Which queued attempts to start, or to reject, now."""
        raise NotImplementedError
