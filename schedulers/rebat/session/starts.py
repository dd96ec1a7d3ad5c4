# SPDX-License-Identifier: Apache-2.0
"""Starts of queued attempts, on the requested or another number of nodes, and rejections."""

from __future__ import annotations

from rebat.contract import Refusal, Reject, Start
from rebat.core.attempts import Attempt, Cause, Running
from rebat.core.counted import counted
from rebat.core.decisions import ExecuteJob, RejectJob
from rebat.core.nodes import NodeSet
from rebat.session import checks
from rebat.session.board import Board
from rebat.session.claims import Claims
from rebat.session.ledger import AttemptRecord
from rebat.session.lifecycle import Lifecycle
from rebat.session.resubmission import Registry


class Starts:
    """The part of the session that starts or rejects queued attempts."""

    def __init__(self, board: Board, jobs: Lifecycle, claims: Claims, registry: Registry) -> None:
        self._board, self._jobs, self._claims, self._registry = board, jobs, claims, registry

    def start(self, start: Start) -> Refusal | None:
        """Start a queued attempt, on the requested or another number of nodes."""
        attempt = self._jobs.queue.get(start.attempt_id)
        refusal = checks.why_not_start(attempt, start, self._claims)
        if attempt and not refusal:
            refusal = self._why_not_mold(attempt, start.size(attempt.n_nodes))
        if refusal or attempt is None:
            return refusal
        size, changes = start.size(attempt.n_nodes), self._board.changes
        nodes = start.nodes or self._claims.lowest(size)
        started = attempt if size == attempt.n_nodes else self._mold(attempt, size)
        running = self.execute(started, nodes)
        if self._board.planning:
            changes.started.append(running)
        else:
            changes.withdraw(attempt)
            changes.moved.append(running)
        self._board.news.started.append(running)
        return None

    def _why_not_mold(self, attempt: Attempt, size: int) -> Refusal | None:
        if size == attempt.n_nodes:
            return None
        refusal = self._registry.why_not_size(attempt.id, size)
        if not refusal and (never := self._registry.why_not_again(attempt.id)):
            refusal = Refusal(
                attempt.id, f"cannot start on {counted(size, 'node')}: {never.reason}"
            )
        return refusal

    def _mold(self, attempt: Attempt, size: int) -> Attempt:
        """Replace a queued attempt by an attempt of another size, which is registered in Batsim."""
        board = self._board
        board.out.append(RejectJob(at_us=board.now_us, job_id=attempt.id))
        self._never_ran(attempt, Cause.MOLDED)
        molded = self._registry.molded(attempt, size)
        self._jobs.replace(attempt, molded)
        return molded

    def execute(self, attempt: Attempt, nodes: NodeSet) -> Running:
        """Execute an attempt on these free nodes."""
        board, running = self._board, Running(attempt, self._board.now_us, nodes)
        self._claims.take(nodes, attempt.serial)
        board.by_tag[attempt.serial] = attempt.id
        self._jobs.start(running)
        board.out.append(ExecuteJob(at_us=board.now_us, job_id=attempt.id, nodes=nodes))
        return running

    def reject(self, proposal: Reject) -> Refusal | None:
        """Reject a queued job permanently."""
        board = self._board
        if proposal.attempt_id not in self._jobs.queue:
            return Refusal(proposal.attempt_id, "cannot be rejected: it is not in the queue")
        attempt = self._jobs.reject(proposal.attempt_id)
        if not board.planning:
            board.changes.withdraw(attempt)
        board.out.append(RejectJob(at_us=board.now_us, job_id=attempt.id))
        board.ledger.rejections.append((attempt.id, proposal.reason))
        self._never_ran(attempt, Cause.REJECTED)
        return None

    def _never_ran(self, attempt: Attempt, cause: Cause) -> None:
        profile = self._registry.work[attempt.id].profile
        self._board.ledger.add(
            AttemptRecord(attempt, profile, None, -1, -1, cause, "REJECTED", 0, None)
        )
