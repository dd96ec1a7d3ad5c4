# SPDX-License-Identifier: Apache-2.0
"""The base class of policies, and the events and changes that a policy receives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from rebat.contract.planned import PlannedStarts
from rebat.contract.proposals import Answer, Proposal, Refusal
from rebat.contract.view import View
from rebat.core.attempts import Attempt, Running
from rebat.core.nodes import NodeSet


class News(msgspec.Struct):
    """Events of one message, for ``Policy.react``.

    The session stops and requeues the attempts in ``hit``. To prevent this, a policy makes other
    proposals for them.
    """

    arrived: list[Attempt] = []
    """Submitted jobs."""
    started: list[Running] = []
    """Attempts started since the previous call."""
    ended: list[Running] = []
    """Attempts that ended without being stopped."""
    failed: list[int] = []
    """Nodes that failed."""
    rejuvenated: list[int] = []
    """Nodes that were repaired."""
    hit: list[Running] = []
    """Running attempts on nodes that failed."""
    called_off: list[str] = []
    """Ids of the attempts in ``hit`` that were to be stopped later. These stops are cancelled."""
    held_hit: list[str] = []
    """Ids of waiting jobs for which a held node failed."""
    woken: list[str] = []
    """Tags of the wakes that are due."""
    notices: list[tuple[str, dict[str, Any]]] = []
    """Other events of Batsim, as (kind, data)."""
    refused: list[Refusal] = []
    """Proposals that were refused, or accepted and then cancelled."""
    answers: list[Answer] = []
    """Answers to the proposals of the previous call of ``react``, in the order of the proposals."""


class Changes(msgspec.Struct):
    """Changes since the previous plan, for ``Policy.plan``."""

    arrived: list[Attempt] = []
    """Submitted jobs."""
    resubmitted: list[Attempt] = []
    """Attempts that entered the queue after an interruption or a silent error."""
    started: list[Running] = []
    """Attempts that the previous plan started. Refused starts are in ``refused``."""
    ended: list[Running] = []
    """Attempts that ended without being stopped, and sets of held nodes that were released."""
    stopped: list[Running] = []
    """Attempts that were stopped and released their nodes."""
    moved: list[Running] = []
    """Attempts that started by a move or a reaction instead of a plan."""
    held: list[Running] = []
    """Sets of nodes that are now held for a job (*holds*), represented as running attempts."""
    failed_nodes: list[int] = []
    """Nodes that became unusable: they failed or were drained."""
    rejuvenated_nodes: list[int] = []
    """Nodes that became usable again."""
    failures: int = 0
    """Number of failures and drains of nodes. It includes nodes that are usable again."""
    repairs: int = 0
    """Number of repairs and undrains of nodes. It includes nodes that are unusable again."""
    failing: list[NodeSet] = []
    """The nodes counted in ``failures``."""
    returning: list[NodeSet] = []
    """The nodes counted in ``repairs``."""
    refused: list[Refusal] = []
    """Proposals that were refused, or accepted and then cancelled."""
    withdrawn: list[str] = []
    """Ids of queued jobs that a reaction rejected or started."""
    woken: list[str] = []
    """Tags of the wakes that are due."""

    def withdraw(self, attempt: Attempt) -> None:
        """Record that a reaction removed an attempt from the queue.

        If ``plan`` has not yet received the attempt, remove its entry from the changes instead.
        """
        for entries in (self.arrived, self.resubmitted):
            if attempt in entries:
                entries.remove(attempt)
                return
        self.withdrawn.append(attempt.job_id)

    def leave(self, running: Running, records: list[Running]) -> None:
        """Record in ``records`` that an attempt or a hold released its nodes.

        If ``plan`` has not yet received it, remove its entry from the changes instead.
        """
        if self.moved or self.held:
            for unplanned in (self.moved, self.held):
                if running in unplanned:
                    unplanned.remove(running)
                    return
        records.append(running)

    def __bool__(self) -> bool:
        return bool(
            self.arrived
            or self.resubmitted
            or self.ended
            or self.stopped
            or self.moved
            or self.held
            or self.failures
            or self.repairs
            or self.refused
            or self.withdrawn
            or self.woken
        )


class Policy:
    """Base class of schedulers. A custom scheduler only needs the method ``plan``."""

    def react(self, view: View, news: News) -> Iterable[Proposal]:
        """Return proposals for running attempts.

        The session calls this method before ``plan``, for every message except those that only
        acknowledge decisions. The session carries out each proposal before it requests the next
        one.

        By default, this method proposes nothing. The session then stops the attempts on failed
        nodes and requeues them at the head of the queue, from their last checkpoints.
        """
        return ()

    def plan(self, view: View, changes: Changes) -> Iterable[Proposal]:
        """Return the queued attempts to start or to reject now."""
        raise NotImplementedError

    def planned(self, view: View) -> PlannedStarts | None:
        """Return the planned starts of queued attempts.

        The session calls this method after each plan, if the run records its plans (``rebat run
        --explain``). The method only reports reservations of the policy. It must not make
        decisions.

        By default, the policy has no reservations, and this method returns None.
        """
        return None

    def reasons(self, view: View) -> Mapping[str, str]:
        """Return sentences that explain why queued attempts wait, by attempt id.

        The session calls this method after ``planned``. ``rebat explain`` prints the sentences.
        """
        return {}
