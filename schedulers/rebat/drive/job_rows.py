# SPDX-License-Identifier: Apache-2.0
"""The rows of jobs, attempts and held nodes of a session, and the objects that policies see."""

from __future__ import annotations

import msgspec

from rebat.core.attempts import Attempt, Cause, Running, hold_id
from rebat.core.decisions import RejectJob
from rebat.drive.ask_state import AskState
from rebat.drive.registry import Registry
from rebat.rules.links import release
from rebat.rules.waits import note_progress
from rebat.state import codes
from rebat.state.ledger import AttemptRecord, Hold


class JobRows:
    """The part of the session that writes rows of jobs, and reads those of held nodes."""

    def __init__(self, session: AskState, registry: Registry) -> None:
        self.session, self.registry = session, registry
        self.jobs, self.nodes = session.jobs, session.nodes
        self._attempt_of: dict[int, int] = {}

    def fill(self, attempt: Attempt) -> None:
        """Write the numbers of an attempt to its row."""
        row = self.session.state.attempts[attempt.serial - 1]
        row.number, row.priority, row.wall = attempt.number, attempt.priority, attempt.walltime_us
        row.queued = attempt.queued_us
        self.session.state.jobs[row.job].size = attempt.n_nodes
        self._attempt_of[row.job] = attempt.serial - 1
        profile = self.registry.work[attempt.id].profile
        self.session.name(attempt.serial - 1, attempt.id, profile)

    def enter(self, attempt: Attempt) -> None:
        """Add an attempt, which has a row, to the queue."""
        self.fill(attempt)
        self.jobs.enqueue(attempt)

    def release(self) -> bool:
        """Queue the jobs whose conditions hold, and reject those whose conditions can never hold.

        Return whether there are any.
        """
        session, rows, n = self.session, self.session.state, self.session.state.n
        if not (n.n_new_jobs or n.n_progressed or n.n_touched):
            return False
        n.n_entered = n.n_out = 0
        changed = release(rows, session.now_us)
        for row in rows.out[: n.n_out]:
            j = rows.attempts[row.subject].job
            self.never_runs(
                self.jobs.blocked[session.submitted[j]], session.links.why_never(rows, j)
            )
        for row in rows.lists[: n.n_entered]:
            j = rows.attempts[row.entered].job
            blocked = self.jobs.blocked[session.submitted[j]]
            attempt = msgspec.structs.replace(blocked, queued_us=session.now_us)
            self.registry.work[attempt.id].attempt = attempt
            self.enter(attempt)
            for arrived in (session.changes.arrived, session.news.arrived):
                arrived.append(attempt)
                arrived.sort(key=lambda attempt: attempt.serial)
        n.n_entered = n.n_out = 0
        return bool(changed)

    def never_runs(self, attempt: Attempt, reason: str) -> None:
        """Record that a job is rejected."""
        session = self.session
        self.jobs.reject(attempt)
        session.out.append(RejectJob(at_us=session.now_us, job_id=attempt.id))
        session.records.rejections.append((attempt.id, reason))
        arrived = session.news.arrived  # a dependency can hold after the last reaction
        session.news.arrived = [other for other in arrived if other.id != attempt.id]
        self._never_ran(attempt, Cause.REJECTED)

    def _never_ran(self, attempt: Attempt, cause: Cause) -> None:
        profile = self.registry.work[attempt.id].profile
        self.session.records.add(
            AttemptRecord(attempt, profile, None, -1, -1, cause, "REJECTED", 0, None)
        )

    def over(self, attempt: Attempt, succeeded: bool = False) -> None:
        """End a job."""
        self.jobs.over(attempt.job_id)
        j = self.session.state.attempts[attempt.serial - 1].job
        note_progress(self.session.state, j, codes.OK if succeeded else codes.NOT_OK)

    def held(self) -> list[Hold]:
        """Return the records of held nodes."""
        rows = self.session.state
        return [
            Hold(
                self.session.submitted[row.job], self.session.nodes_at(row), row.since,
                None if row.until < 0 else row.until,
            )
            for row in rows.hold_records[: rows.n.n_holds]
        ]  # fmt: skip

    def _settle_holds(self) -> None:
        """Bring held sets and changes up to date with the rows of holds that changed."""
        rows, jobs, changes = self.session.state, self.jobs, self.session.changes
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
        rows, jobs, serial = self.session.state, self.jobs, h + 1
        row = rows.attempts[h]
        job_id = self.session.submitted[row.job]
        nodes = self.session.nodes_at(row)
        like = self.registry.work[self.session.names[self._attempt_of[row.job]]].attempt
        held = msgspec.structs.replace(
            like, id=hold_id(job_id, serial, row.lives), serial=serial, n_nodes=nodes.size,
            walltime_us=row.wall,
        )  # fmt: skip
        jobs.holds[h] = Running(held, row.start, nodes)
        return jobs.holds[h]
