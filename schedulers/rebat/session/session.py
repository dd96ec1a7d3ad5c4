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

from collections.abc import Mapping

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.contract import Answer, Changes, News, Policy, View
from rebat.core.attempts import Attempt, Running
from rebat.core.cores import groups_of
from rebat.core.decisions import FinishRegistration, Reply
from rebat.core.errors import InputError
from rebat.core.events import Message, SimulationBegan
from rebat.core.options import SessionOptions
from rebat.core.units import to_s
from rebat.session.by_rules import ByRules
from rebat.session.intake import Intake
from rebat.session.ledger import Ledger
from rebat.session.plan_record import PlanRecorder
from rebat.session.registry import Registry
from rebat.session.state import State, check_jobs, check_nodes
from rebat.session.transactions import Transactions

MOST_ROUNDS = 3
"""Maximum number of plans per message that request no other plan.

A plan is repeated if it changed the state by proposals other than starts, if some of its proposals
were refused, or if it started attempts and requested another plan (``Wake``).
"""


class Session:
    """The state of a simulation, computed from Batsim's messages. ``handle`` processes a message.

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
        self._uptime_us, self._recorder = uptime_us, recorder
        self._policy = policy
        self._state = State(options or SessionOptions())
        self._may_plan_while_killing = self._state.options.dialect.two_passes
        self._set_up(0)

    def _set_up(self, n_nodes: int) -> None:
        """Create the parts of the session for a machine of ``n_nodes`` nodes."""
        state = self._state
        state.begin(n_nodes, self._uptime_us if n_nodes else None)
        self._jobs, self._nodes = state.jobs, state.nodes
        self._registry = Registry(state)
        self._transactions = Transactions(state, self._registry)
        state.by_rules = ByRules(state, self._transactions)
        parts = self._registry, self._transactions
        self._intake = Intake(state, *parts)
        self.view = View(state, self._registry)

    # ---- state

    @property
    def ledger(self) -> Ledger:
        """Records of the simulation."""
        self._state.ledger.holds = self._transactions.held()
        return self._state.ledger

    @property
    def now_us(self) -> int:
        """Time of the last message."""
        return self._state.now_us

    @property
    def began(self) -> SimulationBegan | None:
        """The first event of the simulation, or None if it has not arrived yet."""
        return self._state.began

    @property
    def ended(self) -> bool:
        """Whether the simulation ended."""
        return self._state.ended

    @property
    def options(self) -> SessionOptions:
        """The options of the session."""
        return self._state.options

    @property
    def statics_over(self) -> bool:
        """Whether every job of the workload has been submitted."""
        return self._state.statics_over

    @property
    def queue(self) -> Mapping[str, Attempt]:
        """Queued attempts by id, in order of entry."""
        return self.view.queue

    @property
    def running(self) -> Mapping[str, Running]:
        """Running attempts by id, in order of start."""
        return self.view.running

    # ---- messages

    def handle(self, message: Message) -> Reply:
        """Process a message, decide, and return the reply."""
        state = self._state
        if message.now_us < state.now_us:
            raise InputError(
                f"the message at {to_s(message.now_us)} s follows one at {to_s(state.now_us)} s",
                expected="times in ascending order",
            )
        state.now_us = message.now_us
        state.reserve(len(message.events))
        events, begins = message.events, False
        if state.began is None and events and isinstance(events[0], SimulationBegan):
            self._begin(events[0])
            events, begins = events[1:], True
        relevant = self._intake.take(events)
        if relevant or begins or self._transactions.due():
            self._decide()
        self._finish()
        decisions, state.out = tuple(state.out), []
        return Reply(state.now_us, decisions)

    def validate(self) -> None:
        """Check the invariants that hold after every message."""
        check_jobs(self._jobs)
        check_nodes(self._jobs, self._nodes)

    def _decide(self) -> None:
        """Decide on running and queued attempts.

        The method is not called for a message that only acknowledges decisions, because decisions
        must not depend on the number of messages in an instant.
        """
        self._transactions.complete_moves()
        if not self._jobs.n_stopping:
            self._may_plan_while_killing = self._state.options.dialect.two_passes
        self._transactions.release()
        while True:
            self._react()
            self._plan()
            if self._transactions.second_pass():
                self._plan()
            if not self._transactions.release():  # starts and rejections of jobs release others
                return

    def _begin(self, event: SimulationBegan) -> None:
        state = self._state
        groups_of(event.n_nodes, state.options.cores_per_node)
        self._set_up(event.n_nodes)
        state.began = msgspec.structs.replace(event, profiles={})  # the registry knows the profiles
        state.registering = bool(event.config.get("dynamic-jobs-enabled"))
        self._registry.begin(event)

    def _react(self) -> None:
        """Process failures of running attempts, then the stops and waits that are due."""
        state, transactions = self._state, self._transactions
        news, state.news = state.news, News()
        news.hit, called_off = transactions.failed_attempts(self._intake.hit())
        if transactions.wakes:
            news.woken = transactions.woken()
            state.changes.woken += news.woken
        if news.hit:
            n_free, hit = self._nodes.n_free, {running.attempt.id for running in news.hit}
            news.called_off = [*called_off]
            if state.options.dialect.hit == "failed" or hit > called_off.keys():
                state.ledger.failures_that_hit.append((state.now_us, n_free))
        for proposal in self._policy.react(self.view, news):
            state.news.answers.append(Answer(proposal, transactions.propose(proposal)))
        for running in news.hit:
            transactions.stop_hit(running, called_off.get(running.attempt.id))
        transactions.send_kills()
        if transactions.carry_out_due():
            # No plan until the victims are stopped: other jobs would start on their nodes.
            self._may_plan_while_killing = False

    def _plan(self) -> None:
        """Decide on queued attempts."""
        if not self._state.changes or (self._jobs.n_stopping and not self._may_plan_while_killing):
            return
        rounds = 0
        while rounds < MOST_ROUNDS:
            self._request_plan()
            changes = self._state.changes
            if not changes or self._jobs.n_stopping:
                return
            rounds += not (changes.woken and changes.started)

    def _request_plan(self) -> None:
        state = self._state
        changes, state.changes = state.changes, Changes()
        if changes.failures or changes.repairs:
            self._report_nodes(changes)
        state.planning = True
        for proposal in list(self._policy.plan(self.view, changes)):
            self._transactions.propose(proposal)
        state.planning = False
        self._nodes.note_reported()
        if self._recorder is not None:
            self._recorder.record(self.view, changes, self._policy)
        self._transactions.send_kills()

    def _report_nodes(self, changes: Changes) -> None:
        """Report to the policy the nodes whose state differs from the last report.

        Attempts and holds that no plan has received yet are a special case, because their nodes
        were usable when the attempt or hold began. If one of these nodes is down and the last
        report already states this, only the attempt or hold is reported. If one of these nodes was
        repaired, the attempt or hold is not reported.
        """
        unplanned = {running.attempt.id for running in (*changes.moved, *changes.held)}
        for node, usable, news in self._nodes.news():
            if news:
                (changes.rejuvenated_nodes if usable else changes.failed_nodes).append(node)
            tag = self._nodes.tag(node)
            held = self._jobs.holds.get(tag - 1)
            holder = held.attempt.id if held else self._state.by_tag.get(tag)
            if not holder:
                continue
            if usable and news and holder not in unplanned:
                changes.rejuvenated_under.append(holder)
            elif not usable and (news or holder in unplanned):
                changes.failed_under.append(holder)

    def _finish(self) -> None:
        state, jobs = self._state, self._jobs
        self._transactions.ask_to_be_called()
        if not jobs.n_stopping:  # a kill of an ended attempt may be unacknowledged
            for job_id in jobs.take_gone():
                self._registry.forget(job_id, jobs.alive)
        if state.registering and state.statics_over and jobs.idle:
            state.registering = False
            state.out.append(FinishRegistration(at_us=state.now_us))
