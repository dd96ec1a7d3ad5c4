# SPDX-License-Identifier: Apache-2.0
"""The rows of jobs, attempts and held nodes of a session, and the objects that policies see."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from rebat.core.attempts import Attempt, Cause, Running, hold_id
from rebat.core.decisions import RejectJob
from rebat.core.nodes import NodeSet
from rebat.drive.linking import Linking
from rebat.rules.instant import submit
from rebat.rules.links import release
from rebat.rules.waits import note_progress
from rebat.session.ledger import AttemptRecord, Hold
from rebat.session.registry import Registry
from rebat.session.state import State
from rebat.state import codes


class JobRows:
    """The part of the session that writes rows of jobs, and reads those of held nodes."""

    def __init__(self, state: State, registry: Registry) -> None:
        self.state, self.registry = state, registry
        self.jobs, self.nodes = state.jobs, state.nodes
        self._users = {"": 0}
        self._links = Linking()
        self._first: dict[str, int] = {}
        """First attempts by id of the job, also of jobs that have ended."""
        self._attempt_of: list[int] = []

    def submit(self, attempt: Attempt) -> bool:
        """Add rows of a submitted job and its first attempt. Return whether it is blocked."""
        rows, j = self.state.rows, len(self.state.job_ids)
        job = rows.jobs[j]
        job.submit, job.size, job.wall = attempt.submit_us, attempt.n_nodes, attempt.walltime_us
        job.job_class = attempt.priority_class
        traits = self.registry.submissions[attempt.job_id].traits
        job.user = self._users.setdefault(traits.user, len(self._users))
        job.block = self._links.link(
            rows, attempt.job_id, traits, lambda job_id: self._first.get(job_id, -1)
        )
        self.state.job_ids.append(attempt.job_id)
        self._attempt_of.append(attempt.serial - 1)
        n_blocked = rows.n.n_blocked
        self._first[attempt.job_id] = submit(rows, j, self.state.now_us)
        self.fill(attempt)
        return bool(rows.n.n_blocked > n_blocked)

    def row_of(self, job_id: str) -> int:
        """Return the row of a job that was submitted."""
        return int(self.state.rows.attempts[self._first[job_id]].job)

    def fill(self, attempt: Attempt) -> None:
        """Write the numbers of an attempt to its row."""
        row = self.state.rows.attempts[attempt.serial - 1]
        row.number, row.priority, row.wall = attempt.number, attempt.priority, attempt.walltime_us
        row.queued = attempt.queued_us
        self.state.rows.jobs[row.job].size = attempt.n_nodes
        self._attempt_of[row.job] = attempt.serial - 1
        self.jobs.name(attempt.serial - 1, attempt.id)

    def enter(self, attempt: Attempt) -> None:
        """Add an attempt, which has a row, to the queue."""
        self.fill(attempt)
        self.jobs.enqueue(attempt)

    def release(self) -> bool:
        """Queue the jobs whose conditions hold, and reject those whose conditions can never hold.

        Return whether there are any.
        """
        state, rows, n = self.state, self.state.rows, self.state.rows.n
        if state.statics_over and not self._links.is_checked:
            self._links.check(rows, state.job_ids)
        if not (n.n_new_jobs or n.n_progressed or n.n_touched):
            return False
        n.n_entered = n.n_out = 0
        changed = release(rows, state.now_us)
        for row in rows.out[: n.n_out]:
            j = rows.attempts[row.subject].job
            self.never_runs(self.jobs.blocked[state.job_ids[j]], self._links.why_never(rows, j))
        for row in rows.lists[: n.n_entered]:
            j = rows.attempts[row.entered].job
            blocked = self.jobs.blocked[state.job_ids[j]]
            attempt = msgspec.structs.replace(blocked, queued_us=state.now_us)
            self.registry.work[attempt.id].attempt = attempt
            self.enter(attempt)
            for arrived in (state.changes.arrived, state.news.arrived):
                arrived.append(attempt)
                arrived.sort(key=lambda attempt: attempt.serial)
        n.n_entered = n.n_out = 0
        return bool(changed)

    def never_runs(self, attempt: Attempt, reason: str) -> None:
        """Record that a job is rejected."""
        state = self.state
        self.jobs.reject(attempt)
        state.out.append(RejectJob(at_us=state.now_us, job_id=attempt.id))
        state.ledger.rejections.append((attempt.id, reason))
        self._never_ran(attempt, Cause.REJECTED)

    def _never_ran(self, attempt: Attempt, cause: Cause) -> None:
        profile = self.registry.work[attempt.id].profile
        self.state.ledger.add(
            AttemptRecord(attempt, profile, None, -1, -1, cause, "REJECTED", 0, None)
        )

    def over(self, attempt: Attempt, succeeded: bool = False) -> None:
        """End a job."""
        self.jobs.over(attempt.job_id)
        j = self.state.rows.attempts[attempt.serial - 1].job
        note_progress(self.state.rows, j, codes.OK if succeeded else codes.NOT_OK)

    def held(self) -> list[Hold]:
        """Return the records of held nodes."""
        rows = self.state.rows
        return [
            Hold(
                self.state.job_ids[row.job], self.nodes_at(row), row.since,
                None if row.until < 0 else row.until,
            )
            for row in rows.hold_records[: rows.n.n_holds]
        ]  # fmt: skip

    def nodes_at(self, row: Any) -> NodeSet:
        """Return the nodes of a row."""
        nodes = self.state.rows.nodes[row.nodes_at : row.nodes_at + row.n_nodes_at]
        return NodeSet(nodes.astype(np.int64))

    def _settle_holds(self) -> None:
        """Bring held sets and changes up to date with the rows of holds that changed."""
        rows, jobs, changes = self.state.rows, self.jobs, self.state.changes
        n = rows.n
        for i in range(n.n_left):  # also those that no plan has received
            h = rows.lists[i].left
            if rows.attempts[h].number == codes.HOLD and h in jobs.holds:
                changes.leave(jobs.holds.pop(h), changes.ended)
        n.n_left = 0
        for i in range(n.n_new_holds):
            h = rows.lists[i].new_hold
            if rows.attempts[h].number == codes.HOLD:
                changes.held.append(self._begin_hold(h))
        n.n_new_holds = 0

    def _begin_hold(self, h: int) -> Running:
        """Return a row of held nodes as a running attempt."""
        rows, jobs, serial = self.state.rows, self.jobs, h + 1
        row = rows.attempts[h]
        job_id = self.state.job_ids[row.job]
        nodes = self.nodes_at(row)
        like = self.registry.work[jobs.names[self._attempt_of[row.job]]].attempt
        held = msgspec.structs.replace(
            like, id=hold_id(job_id, serial, row.lives), serial=serial, n_nodes=nodes.size,
            walltime_us=row.wall,
        )  # fmt: skip
        jobs.name(h, "")
        jobs.holds[h] = Running(held, row.start, nodes)
        return jobs.holds[h]
