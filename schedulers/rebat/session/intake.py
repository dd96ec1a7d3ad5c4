# SPDX-License-Identifier: Apache-2.0
"""The intake: all events of a message update the state before any decision is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

import numpy as np

from rebat.contract import End
from rebat.core.attempts import Cause, Running
from rebat.core.errors import InputError
from rebat.core.events import (
    CallRequested,
    Event,
    JobCompleted,
    JobsKilled,
    JobSubmitted,
    NodesFailed,
    NodesRejuvenated,
    NoMoreExternalEvents,
    NoMoreStaticJobs,
    Notified,
    SimulationBegan,
    SimulationEnded,
)
from rebat.core.nodes import NodeSet
from rebat.kernels.pool import FREE
from rebat.models.checkpoint import Failure
from rebat.rules.instant import change_nodes
from rebat.rules.predict import note_run
from rebat.rules.waits import leave
from rebat.session.ledger import AttemptRecord
from rebat.session.registry import Registry
from rebat.session.state import State, Stopped
from rebat.session.transactions import Transactions

_CAUSES = {
    "COMPLETED_SUCCESSFULLY": Cause.COMPLETED,
    "COMPLETED_FAILED": Cause.JOB_FAILED,
    "COMPLETED_WALLTIME_REACHED": Cause.WALLTIME,
}


class Intake:
    """The part of the session that updates the state with the events of a message, in order."""

    def __init__(
        self,
        state: State,
        registry: Registry,
        transactions: Transactions,
    ) -> None:
        self._state, self._jobs = state, state.jobs
        self._registry, self._transactions = registry, transactions
        self._hit: dict[str, Failure] = {}
        self._retried: list[Running] = []

    def take(self, events: Iterable[Event]) -> bool:
        """Update the state with the events of a message. Return whether a decision is needed."""
        relevant = False
        for event in events:
            if not self._acknowledges(event):
                self._take_in[type(event)](self, event)
                relevant = True
        if relevant:
            self._settle()
        return relevant

    def _settle(self) -> None:
        """Carry out what ends of jobs cause, after the last event: events have no fixed order."""
        retried, self._retried = self._retried, []
        for running in sorted(retried, key=lambda running: running.attempt.serial):
            self._retry(running)
        self._transactions.begin_hung_waits()

    def _acknowledges(self, event: Event) -> bool:
        """Return whether an event only acknowledges a decision."""
        if isinstance(event, JobSubmitted):
            return event.job_id in self._registry.registered
        return isinstance(event, (CallRequested, NoMoreExternalEvents))

    def hit(self) -> dict[str, Failure]:
        """Return the attempts on nodes that failed since the last call, with the failures.

        Attempts that are being stopped are not included.
        """
        if not self._hit:
            return {}
        names, self._hit = self._hit, {}
        jobs = self._jobs
        stopping = jobs.stopping
        for name in names:
            if name in stopping:
                self._transactions.spoil(stopping[name])
        return {
            name: failure
            for name, failure in names.items()
            if name in jobs.running and name not in stopping
        }

    # ---- jobs

    def _on_submit(self, event: JobSubmitted) -> None:
        if self._jobs.knows(event.job_id):
            raise InputError("was already submitted", f"job {event.job_id}")
        self._state.serial = self._state.rows.n.n_attempts + 1
        attempt = self._registry.original(event, self._state.nodes.n_nodes)
        is_blocked = self._transactions.submit(attempt)
        if is_blocked:
            self._jobs.block(attempt)
            return
        self._jobs.enqueue(attempt)
        self._state.changes.arrived.append(attempt)
        self._state.news.arrived.append(attempt)

    def _on_complete(self, event: JobCompleted) -> None:
        running = self._jobs.end(event.job_id)
        if running is None:
            raise InputError("completed, but was not started", f"job {event.job_id}")
        leave(self._state.rows, running.attempt.serial - 1, event.at_us, 0, 0)
        self._transactions.vacated(event.job_id)
        del self._state.by_tag[running.attempt.serial]
        stopping = self._jobs.stopping.get(event.job_id) if self._jobs.n_stopping else None
        checkpointing = self._registry.work[event.job_id].checkpointing
        recovery_us = checkpointing.first_recovery_us if checkpointing else 0
        hang = self._transactions.hanging.get(event.job_id)
        until_us = hang.at_us if hang else event.at_us
        worked_us = max(0, until_us - running.start_us - recovery_us)
        hung = self._transactions.hung_completion(running) if stopping is None else None
        if hung:
            worked_us = max(0, hung.remaining.useful_us)
        timed_out = event.state == "COMPLETED_WALLTIME_REACHED"
        if stopping and hang and hang.due_us > hang.at_us and not timed_out:
            stopping.failed = True
        if stopping and (stopping.failed or event.state == "COMPLETED_KILLED"):
            self._state.changes.leave(running, self._state.changes.stopped)
            ends = isinstance(stopping.stop.then, End)
            useful_us = worked_us if ends else max(0, stopping.remaining.useful_us)
            self._record(running, event, stopping.stop.cause, useful_us, stopping)
            return
        if hung and not timed_out:
            self._state.changes.leave(running, self._state.changes.stopped)
            self._record(running, event, Cause.NODE_FAILURE, worked_us, hung)
            self._transactions.hold_until_detected(hung)
            return
        self._state.changes.leave(running, self._state.changes.ended)
        self._state.news.ended.append(running)
        cause = _CAUSES.get(event.state, Cause.JOB_FAILED)
        if cause == Cause.JOB_FAILED and self._state.options.silent_errors == "retry":
            self._record(running, event, Cause.SILENT_ERROR, 0)
            self._retried.append(running)
            return
        self._record(running, event, cause, worked_us)
        self._registry.note_run(running, event.at_us)
        note_run(self._state.rows, running.attempt.serial - 1, event.at_us)
        self._transactions.over(running.attempt, cause == Cause.COMPLETED)

    def _record(
        self,
        running: Running,
        event: JobCompleted,
        cause: Cause,
        useful: int,
        stopping: Stopped | None = None,
    ) -> None:
        work = self._registry.work[running.attempt.id]
        hang = self._transactions.hanging.pop(running.attempt.id, None)
        record = AttemptRecord(
            running.attempt,
            work.profile,
            work.checkpointing,
            running.start_us,
            event.at_us,
            cause,
            event.state,
            useful,
            running.nodes,
            why=stopping.stop.why if stopping else "",
            imaged=stopping.remaining.imaged if stopping else False,
            failure=hang.cause if hang else "",
            hung_us=event.at_us - hang.at_us if hang else 0,
            stages=hang.stages if hang else {},
        )
        self._state.ledger.add(record, stopping.remaining if stopping else None)
        if stopping and cause == Cause.NODE_FAILURE:
            rows = self._state.rows
            rows.jobs[rows.attempts[running.attempt.serial - 1].job].interruptions += 1

    def _retry(self, running: Running) -> None:
        """Requeue a job with all its work after an error that was detected at its end.

        The time of the error is unknown, so no checkpoint is valid. Therefore, the work of earlier
        attempts is also lost.
        """
        attempt = self._transactions.retry(running)
        self._state.ledger.lose(attempt.job_id, Cause.SILENT_ERROR)
        self._state.changes.resubmitted.append(attempt)

    def _on_killed(self, event: JobsKilled) -> None:
        for attempt_id in event.job_ids:
            # if it completes at its kill, there is no retry
            self._transactions.acknowledge(attempt_id, attempt_id in event.progress)
        self._transactions.second_pass()

    # ---- nodes

    def _check_nodes(self, nodes: NodeSet, down: bool) -> None:
        """Raise InputError if a node does not exist, or if its state would not change."""
        n_nodes = self._state.nodes.n_nodes
        if nodes.size and int(nodes.intervals[-1, 1]) >= n_nodes:
            raise InputError(f"an event has nodes {nodes}, but the machine has {n_nodes} nodes")
        for node in nodes:
            if bool(self._state.rows.failed[node]) == down:
                raise InputError(f"node {node} is already {'down' if down else 'up'}")

    def _on_fail(self, event: NodesFailed) -> None:
        self._check_nodes(event.nodes, down=True)
        state = self._state
        state.ledger.node_events.append((event.at_us, False, event.nodes))
        tags = sorted({*state.nodes.tags(event.nodes).tolist()} - {FREE})
        self._change(event, up=False)
        state.news.failed.extend(event.nodes)
        state.changes.failures += event.nodes.size
        state.changes.failing.append(event.nodes)
        for tag in tags:
            if tag in state.by_tag:
                self._hit.setdefault(state.by_tag[tag], self._failure(event, tag))
        self._transactions.lose_holds(tags)

    def _change(self, event: NodesFailed | NodesRejuvenated, up: bool) -> None:
        """Let nodes fail or come up."""
        state, nodes, ids = self._state, self._state.nodes, event.nodes.ids
        (nodes.up_since_us if up else nodes.failed_us)[ids] = event.at_us
        change_nodes(state.rows, state.room, True, ids.tolist(), up, 0, state.now_us)
        state.rows.n.n_hit = 0  # the session reports failures itself

    def _failure(self, event: NodesFailed, tag: int) -> Failure:
        """Return the failure of the attempt with this tag. Cores are converted to nodes."""
        hit = event.nodes.ids[self._state.nodes.tags(event.nodes) == tag]
        nodes = np.unique(hit // self._state.options.cores_per_node)
        return Failure(0, event.cause or "", len(nodes), int(nodes[0]), int(nodes[-1]))

    def _on_rejuvenate(self, event: NodesRejuvenated) -> None:
        self._check_nodes(event.nodes, down=False)
        state = self._state
        state.ledger.node_events.append((event.at_us, True, event.nodes))
        self._change(event, up=True)
        state.news.rejuvenated.extend(event.nodes)
        state.changes.repairs += event.nodes.size
        state.changes.returning.append(event.nodes)

    # ---- the simulation

    def _on_begin(self, _: SimulationBegan) -> None:
        raise InputError("the simulation has already begun")

    def _on_no_more_jobs(self, _: NoMoreStaticJobs) -> None:
        self._state.statics_over = True

    def _on_end(self, _: SimulationEnded) -> None:
        self._state.ended = True

    def _on_notice(self, event: Notified) -> None:
        self._state.news.notices.append((event.kind, event.data))

    _take_in: ClassVar[dict[type[Event], Callable[..., None]]] = {
        SimulationBegan: _on_begin,
        JobSubmitted: _on_submit,
        JobCompleted: _on_complete,
        JobsKilled: _on_killed,
        NodesFailed: _on_fail,
        NodesRejuvenated: _on_rejuvenate,
        NoMoreStaticJobs: _on_no_more_jobs,
        Notified: _on_notice,
        SimulationEnded: _on_end,
    }
