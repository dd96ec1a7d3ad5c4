# SPDX-License-Identifier: Apache-2.0
"""The session keeps the state of the simulation and requests decisions from a policy.

It uses no socket, file or clock.

An instant
    The set of all messages with the same simulated time. Batsim may split an instant into any
    number of messages. For example, the first contains a failure, the second the end of the failed
    job, and the third the acknowledgement of a kill. Decisions must not depend on the number of
    messages in an instant. Therefore, the session does not call the policy for a message that only
    acknowledges decisions.

A stop
    The only way to interrupt a running attempt. A stop takes up to three messages. The policy
    proposes the stop, which may wait for a checkpoint. Then the kill is sent, and later
    acknowledged. Within the instant of the acknowledgement, the remaining work is queued, moves,
    waits, or ends. *Stop, then requeue | move | wait | end* is one transaction.

Why a kill comes before a registration
    Until the kill is acknowledged, the attempt may complete. If its resubmission were already
    registered, the job could run again. Until the acknowledgement, the nodes also belong to the
    attempt, and Batsim aborts if another job is executed on them.

Planning during a kill
    No attempt starts until all kills are acknowledged. A failure often stops several attempts. A
    plan between two of these kills would use nodes that the failed jobs should get first.
    Therefore, the session first processes all reactions and kills, and then makes one plan. In
    contrast, the program of the node-stealing authors makes two plans (``Dialect.passes``). Plans
    treat nodes held for a waiting job like a running attempt.

Dependencies
    The session itself blocks submitted jobs that depend on other jobs (`rules.links`).
    Until their conditions hold, policies do not see these jobs, and Batsim receives no decisions on
    them.

Decisions
    The policy only makes proposals. The session carries out or refuses (`contract.Refusal`) each
    proposal before it requests the next one. It refuses every proposal at which a real Batsim would
    abort. It stops attempts on failed nodes even if the policy does not propose these stops.

``validate`` checks the invariants after every message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rebat.contract import Answer, Changes, End, News, Policy, View
from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.attempts import Attempt, Cause, Running
from rebat.core.errors import InputError
from rebat.core.options import SessionOptions
from rebat.drive.ask_state import AskState
from rebat.drive.by_rules import ByRules
from rebat.drive.lifecycle import Stopped, check_jobs, check_nodes
from rebat.drive.plan_record import PlanRecorder
from rebat.drive.registry import Registry
from rebat.drive.transactions import Transactions
from rebat.kernels.pool import FREE
from rebat.models.checkpoint import Failure
from rebat.rules.predict import note_run
from rebat.rules.waits import leave
from rebat.rules.windows import take_due_wakes
from rebat.state.ledger import AttemptRecord, Ledger

MOST_ROUNDS = 3
"""Maximum number of plans per message that request no other plan.

A plan is repeated if it changed the state by proposals other than starts, if some of its proposals
were refused, or if it started attempts and requested another plan (``Wake``).
"""

CAUSES = {
    "COMPLETED_SUCCESSFULLY": Cause.COMPLETED,
    "COMPLETED_FAILED": Cause.JOB_FAILED,
    "COMPLETED_WALLTIME_REACHED": Cause.WALLTIME,
}


class Session(AskState):
    """The driver that asks a policy.

    Parameters
    ----------
    policy : Policy
    options : SessionOptions
    uptime_us : int64 array, shape (n,), optional
        Uptime of each node when the simulation begins, in microseconds (default: 0).
    recorder : PlanRecorder, optional
        Recorder of the plans (default: the plans are not recorded).
    """

    def __init__(
        self,
        policy: Policy,
        options: SessionOptions | None = None,
        uptime_us: npt.NDArray[np.int64] | None = None,
        recorder: PlanRecorder | None = None,
    ) -> None:
        self._recorder, self._policy = recorder, policy
        super().__init__(options or SessionOptions(), uptime_us)
        self._may_plan_while_killing = self.options.dialect.two_passes

    def _set_up(self, n_nodes: int) -> None:
        super()._set_up(n_nodes)
        self._registry = Registry(self)
        self._transactions = Transactions(self, self._registry)
        self.by_rules = ByRules(self, self._transactions)
        self._hit: dict[str, Failure] = {}
        self._retried: list[Running] = []
        self.view = View(self, self._registry)

    # ---- state

    @property
    def ledger(self) -> Ledger:
        """Records of the simulation."""
        self.records.holds = self._transactions.held()
        return self.records

    @property
    def refusals(self) -> Sequence[tuple[int, str, str]]:
        return self.records.refusals

    @property
    def interrupted(self) -> Mapping[str, int]:
        return self.records.interrupted

    @property
    def queue(self) -> Mapping[str, Attempt]:
        """Queued attempts by id, in order of entry."""
        return self.view.queue

    @property
    def running(self) -> Mapping[str, Running]:
        """Running attempts by id, in order of start."""
        return self.view.running

    def validate(self) -> None:
        """Check the invariants that hold after every message."""
        check_jobs(self.jobs)
        check_nodes(self.jobs, self.nodes)

    # ---- events

    def _take_in(self) -> None:
        """Carry out what ends of jobs cause, after the last event: events have no fixed order."""
        retried, self._retried = self._retried, []
        for running in sorted(retried, key=lambda running: running.attempt.serial):
            self._retry(running)
        self._transactions.begin_hung_waits()

    def _on_submit(self, event: e.JobSubmitted) -> None:
        job, content = self._new_job(event)
        attempt = self._registry.original(job, event, content)
        traits, n_blocked = self._registry.submissions[event.job_id].traits, self.state.n.n_blocked
        self._add_job(event, attempt, traits)
        self.place(len(self.submitted) - 1, traits)
        self._submit(event, traits)
        self._transactions.fill(attempt)
        if self.state.n.n_blocked > n_blocked:
            self.jobs.block(attempt)
            return
        self.jobs.enqueue(attempt)
        self.changes.arrived.append(attempt)
        self.news.arrived.append(attempt)

    def _is_forgotten(self, job_id: str) -> bool:
        return job_id not in self._registry.submissions

    def _on_complete(self, event: e.JobCompleted) -> None:
        running = self.jobs.end(event.job_id)
        if running is None:
            raise InputError("completed, but was not started", f"job {event.job_id}")
        leave(self.state, running.attempt.serial - 1, event.at_us, 0, 0)
        self._transactions.vacated(event.job_id)
        del self.by_tag[running.attempt.serial]
        stopping = self.jobs.stopping.get(event.job_id) if self.jobs.n_stopping else None
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
            self.changes.leave(running, self.changes.stopped)
            ends = isinstance(stopping.stop.then, End)
            useful_us = worked_us if ends else max(0, stopping.remaining.useful_us)
            self._record(running, event, stopping.stop.cause, useful_us, stopping)
            return
        if hung and not timed_out:
            self.changes.leave(running, self.changes.stopped)
            self._record(running, event, Cause.NODE_FAILURE, worked_us, hung)
            self._transactions.hold_until_detected(hung)
            return
        self.changes.leave(running, self.changes.ended)
        self.news.ended.append(running)
        cause = CAUSES.get(event.state, Cause.JOB_FAILED)
        if cause == Cause.JOB_FAILED and self.options.silent_errors == "retry":
            self._record(running, event, Cause.SILENT_ERROR, 0)
            self._retried.append(running)
            return
        self._record(running, event, cause, worked_us)
        note_run(self.state, running.attempt.serial - 1, event.at_us)
        self._transactions.over(running.attempt, cause == Cause.COMPLETED)

    def _record(
        self,
        running: Running,
        event: e.JobCompleted,
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
        self.records.add(record, stopping.remaining if stopping else None)
        if stopping and cause == Cause.NODE_FAILURE:
            self.state.jobs[self.state.attempts[running.attempt.serial - 1].job].interruptions += 1

    def _retry(self, running: Running) -> None:
        """Requeue a job with all its work after an error that was detected at its end.

        The time of the error is unknown, so no checkpoint is valid. Therefore, the work of earlier
        attempts is also lost.
        """
        attempt = self._transactions.retry(running)
        self.records.lose(attempt.job_id, Cause.SILENT_ERROR)
        self.changes.resubmitted.append(attempt)

    def _acknowledge(self, i: int, killed: bool) -> None:
        self._transactions.acknowledge(i, killed)

    def _second_pass(self) -> None:
        self._transactions.second_pass()

    def _change_nodes(
        self, event: e.NodesFailed | e.NodesRejuvenated, numbers: list[int], cause: int
    ) -> None:
        nodes = event.nodes
        tags = sorted({*self.nodes.tags(nodes).tolist()} - {FREE})
        super()._change_nodes(event, numbers, cause)
        self.state.n.n_hit = 0  # the session reports failures itself
        if isinstance(event, e.NodesRejuvenated):
            self.news.rejuvenated.extend(nodes)
            self.changes.repairs += nodes.size
            self.changes.returning.append(nodes)
            return
        self.news.failed.extend(nodes)
        self.changes.failures += nodes.size
        self.changes.failing.append(nodes)
        for tag in tags:
            if tag in self.by_tag:
                self._hit.setdefault(self.by_tag[tag], self._failure(event, tag))
        self._transactions.lose_holds(tags)

    def _on_notice(self, event: e.Notified) -> None:
        self.news.notices.append((event.kind, event.data))

    def _failures(self) -> dict[str, Failure]:
        """Return the attempts on nodes that failed since the last call, with the failures.

        Attempts that are being stopped are not included.
        """
        if not self._hit:
            return {}
        names, self._hit = self._hit, {}
        jobs = self.jobs
        stopping = jobs.stopping
        for name in names:
            if name in stopping:
                self._transactions.spoil(stopping[name])
        return {
            name: failure
            for name, failure in names.items()
            if name in jobs.running and name not in stopping
        }

    def _failure(self, event: e.NodesFailed, tag: int) -> Failure:
        """Return the failure of the attempt with this tag. Cores are converted to nodes."""
        hit = event.nodes.ids[self.nodes.tags(event.nodes) == tag]
        nodes = hit // self.options.cores_per_node
        return Failure(0, event.cause or "", int(nodes[0]), int(nodes[-1]))

    # ---- decisions

    def _is_due(self, now: int) -> bool:
        return self._transactions.due()

    def _decide(self, now: int) -> None:
        """Decide on running and queued attempts."""
        self._transactions.complete_moves()
        if not self.jobs.n_stopping:
            self._may_plan_while_killing = self.options.dialect.two_passes
        self._transactions.release()
        while True:
            self._react()
            self._transactions.release()
            self._plan()
            if self._transactions.second_pass():
                self._transactions.release()
                self._plan()
            if not self._transactions.release():  # starts and rejections of jobs release others
                return

    def _react(self) -> None:
        """Process failures of running attempts, then the stops and waits that are due."""
        transactions = self._transactions
        news, self.news = self.news, News()
        news.hit, called_off = transactions.failed_attempts(self._failures())
        if transactions.wakes:
            news.woken = transactions.woken()
            self.changes.woken += news.woken
        n_wakes = self.state.n.n_wakes
        take_due_wakes(self.state, self.now_us)
        self.changes.woken += ["window"] * (n_wakes - self.state.n.n_wakes)
        if news.hit:
            n_free, hit = self.nodes.n_free, {running.attempt.id for running in news.hit}
            news.called_off = [*called_off]
            if self.options.dialect.hit == "failed" or hit > called_off.keys():
                self.records.failures_that_hit.append((self.now_us, n_free))
        for proposal in self._policy.react(self.view, news):
            self.news.answers.append(Answer(proposal, transactions.propose(proposal)))
        for running in news.hit:
            transactions.stop_hit(running, called_off.get(running.attempt.id))
        transactions.send_kills()
        if transactions.carry_out_due():
            # No plan until the victims are stopped: other jobs would start on their nodes.
            self._may_plan_while_killing = False

    def _plan(self) -> None:
        """Decide on queued attempts."""
        if not self.changes or (self.jobs.n_stopping and not self._may_plan_while_killing):
            return
        rounds = 0
        while rounds < MOST_ROUNDS:
            self._request_plan()
            changes = self.changes
            if not changes or self.jobs.n_stopping:
                return
            rounds += not (changes.woken and changes.started)

    def _request_plan(self) -> None:
        changes, self.changes = self.changes, Changes()
        if changes.failures or changes.repairs:
            self._report_nodes(changes)
        self.planning = True
        for proposal in list(self._policy.plan(self.view, changes)):
            self._transactions.propose(proposal)
        self.planning = False
        self.nodes.note_reported()
        if self._recorder is not None:
            self._recorder.record(self.view, changes, self._policy)
        self._transactions.send_kills()

    def _report_nodes(self, changes: Changes) -> None:
        """Report to the policy the nodes whose state differs from the last report."""
        for node, usable, is_news in self.nodes.news():
            if is_news:
                (changes.rejuvenated_nodes if usable else changes.failed_nodes).append(node)

    def _decisions(self, now: int) -> list[d.Decision]:
        out, self.out = self.out, []
        return out

    def _wakes(self) -> Iterable[int]:
        state = self.state
        windows_us = map(int, state.wakes[: state.n.n_wakes])
        return [*(wake.at_us for wake in self._transactions.wakes), *windows_us]

    def _forget(self) -> None:
        if not self.jobs.n_stopping:  # a kill of an ended attempt may be unacknowledged
            for job_id in self.jobs.take_gone():
                self._registry.forget(job_id, self.jobs.alive)

    def _is_idle(self) -> bool:
        return self.jobs.idle
