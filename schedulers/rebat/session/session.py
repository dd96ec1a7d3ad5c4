# SPDX-License-Identifier: Apache-2.0
"""The session owns what is true, and lets a policy decide; no socket, file or clock in here.

An instant
    All messages with one simulated time. Batsim may report an instant in any number of messages:
    a failure in one, the end of the failed job in the next, the acknowledgement of a kill in a
    third. What is decided must not depend on how many there are. A message that only acknowledges
    is therefore no reason to ask the policy anything.

A stop
    The only thing that happens to a running attempt against its will. It takes up to three
    messages: the policy proposes it (and it may wait for a checkpoint), its kill is sent, its kill
    is acknowledged. Then the rest of the job is queued, moved, held back, or dropped, within the
    same instant: *stop, then requeue | move | wait | end* is one transaction.

Why a kill comes before a registration
    Until the kill is acknowledged the attempt may complete. Only the acknowledgement says which it
    was. A resubmission registered before that could run a job twice. Nodes also belong to the
    attempt until then: Batsim aborts on an execution there.

What may not be planned meanwhile
    While a kill is under way nothing is started. A failure often stops several attempts; planning
    between two of the kills would give nodes away that the failure's own jobs should get first. So
    a failure is decided on as a whole: reactions first, then one plan when all kills are
    acknowledged. The program of the node-stealing authors plans twice instead (``Dialect.passes``).
    Nodes held for a waiting job look like a running attempt to every plan.

Who decides
    The policy only proposes. Each proposal is carried out or refused (`contract.Refusal`) before
    the next one is asked for. Refused is whatever a real Batsim would abort on. Attempts on dead
    nodes are stopped even if no policy says so.

``validate`` checks what holds after every message.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from rebat.contract import Answer, Changes, News, Policy
from rebat.core.attempts import Attempt, Running
from rebat.core.cores import groups_of
from rebat.core.decisions import FinishRegistration, Reply
from rebat.core.errors import InputError
from rebat.core.events import Message, SimulationBegan
from rebat.core.options import SessionOptions
from rebat.core.units import to_s
from rebat.session.board import Board
from rebat.session.claims import Claims
from rebat.session.intake import Intake
from rebat.session.ledger import Ledger
from rebat.session.lifecycle import Lifecycle, Scheduled
from rebat.session.resubmission import Registry
from rebat.session.transactions import Transactions
from rebat.session.validate import check_jobs, check_nodes
from rebat.session.view import SessionView

MOST_ROUNDS = 3
"""A policy plans again at once when its proposals were refused, or changed more than starts do."""


class Session:
    """One simulation seen from the scheduler's side: ``handle`` is the only way in.

    Parameters
    ----------
    policy : Policy
    options : SessionOptions
    uptime_us : int64 array, shape (n,), optional
        How long each node has been up when the simulation begins (default: 0).

    Raises
    ------
    InputError
        When the simulation begins on another number of nodes than there are uptimes.
    """

    def __init__(
        self,
        policy: Policy,
        options: SessionOptions | None = None,
        uptime_us: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self._uptime_us = uptime_us
        self._policy = policy
        self._board = Board(options or SessionOptions(), Ledger())
        self._may_plan_while_killing = self._board.options.dialect.two_passes
        self._furnish(0)

    def _furnish(self, n_nodes: int) -> None:
        """Make the rooms, for a machine of so many nodes."""
        board = self._board
        self._jobs, self._claims = Lifecycle(), Claims(n_nodes)
        self._registry = Registry(board)
        self._transactions = Transactions(board, self._jobs, self._claims, self._registry)
        self._intake = Intake(board, self._jobs, self._claims, self._registry, self._transactions)
        self.view = SessionView(board, self._jobs, self._claims, self._registry)

    # ---- what others may know

    @property
    def ledger(self) -> Ledger:
        """What happened so far."""
        return self._board.ledger

    @property
    def now_us(self) -> int:
        """The date of the last message."""
        return self._board.now_us

    @property
    def began(self) -> SimulationBegan | None:
        """How the simulation began; None if it has not."""
        return self._board.began

    @property
    def ended(self) -> bool:
        """Whether the simulation ended."""
        return self._board.ended

    @property
    def max_attempts(self) -> int:
        """Attempts of one job that failures may interrupt."""
        return self._board.options.max_attempts

    @property
    def statics_over(self) -> bool:
        """Whether every job of the workload has been submitted."""
        return self._board.statics_over

    @property
    def queue(self) -> Mapping[str, Attempt]:
        """Waiting attempts by id, in order of entry."""
        return self.view.queue

    @property
    def running(self) -> Mapping[str, Running]:
        """Running attempts by id, in order of start."""
        return self.view.running

    # ---- messages

    def handle(self, message: Message) -> Reply:
        """Take in a whole message, decide, and answer.

        Raises
        ------
        InputError
            When the peer says what cannot be (an unknown job ends, a date goes back ...).
        PolicyError
            When a proposal is refused and the session is strict.
        """
        board = self._board
        if message.now_us < board.now_us:
            raise InputError(
                f"message dated {to_s(message.now_us)} s after one of {to_s(board.now_us)} s"
            )
        board.now_us = message.now_us
        events, begins = message.events, False
        if board.began is None and events and isinstance(events[0], SimulationBegan):
            self._begin(events[0])
            events, begins = events[1:], True
        heard = self._intake.take(events)
        if heard or begins or self._transactions.due():
            self._decide()
        self._finish()
        decisions, board.out = tuple(board.out), []
        return Reply(board.now_us, decisions)

    def validate(self) -> None:
        """Check what must hold after every message, whatever the policy proposes.

        Raises
        ------
        BrokenInvariant
            For an attempt in two places, a node that two hold, or an attempt left on a dead node.
        """
        check_jobs(self._jobs)
        check_nodes(self._jobs, self._claims)

    def _decide(self) -> None:
        """Decide on what runs and what waits.

        Not asked for by a message that only acknowledges: how many of those make up an instant
        must not matter.
        """
        self._transactions.complete_moves()
        if not self._jobs.stopping:
            self._may_plan_while_killing = self._board.options.dialect.two_passes
        self._react()
        self._plan()
        if self._transactions.waits.second_pass():
            self._plan()

    def _begin(self, event: SimulationBegan) -> None:
        board = self._board
        board.began = event
        board.registering = bool(event.config.get("dynamic-jobs-enabled"))
        groups_of(event.n_nodes, board.options.cores_per_node)
        self._furnish(event.n_nodes)
        if self._uptime_us is not None:
            self._claims.begin(self._uptime_us)
        self._registry.begin(event)

    def _react(self) -> None:
        """Decide on what runs: failures first, then stops and waits that have come due."""
        board, transactions = self._board, self._transactions
        news, board.news = board.news, News()
        news.hit = self._intake.hit()
        called_off: dict[str, Scheduled | None] = {}
        news.woken = transactions.agenda.woken()
        board.changes.woken += news.woken
        if news.hit:
            n_free, hit = self._claims.n_free, {running.attempt.id for running in news.hit}
            scheduled = [name for name in self._jobs.scheduled if name in hit]
            later = board.options.dialect.two_passes
            called_off = {name: transactions.call_off(name, "hit", later) for name in scheduled}
            news.called_off = [*called_off]
            if board.options.dialect.hit == "failed" or hit > called_off.keys():
                board.ledger.failures_that_hit.append((board.now_us, n_free))
        for proposal in self._policy.react(self.view, news):
            board.news.answers.append(Answer(proposal, transactions.propose(proposal)))
        for running in news.hit:
            transactions.stop_hit(running, called_off.get(running.attempt.id))
        transactions.send_kills()
        if transactions.carry_out_due():
            # Nothing is planned until those are gone: others would take the nodes they leave.
            self._may_plan_while_killing = False

    def _plan(self) -> None:
        """Decide on what waits."""
        if not self._board.changes or (self._jobs.stopping and not self._may_plan_while_killing):
            return
        for _ in range(MOST_ROUNDS):
            self._ask_for_a_plan()
            if not self._board.changes or self._jobs.stopping:
                return

    def _ask_for_a_plan(self) -> None:
        board = self._board
        changes, board.changes = board.changes, Changes()
        if changes.failures or changes.repairs:
            self._tell_nodes(changes)
        board.planning = True
        for proposal in list(self._policy.plan(self.view, changes)):
            self._transactions.propose(proposal)
        board.planning = False
        self._transactions.send_kills()

    def _tell_nodes(self, changes: Changes) -> None:
        """Say which nodes are in another state than the policy was told last.

        What plans hear of only now took its nodes when they could be used; so those of them that
        plans believe dead are not told again, and those that came back are not under it.
        """
        unheard = {running.attempt.id for running in (*changes.moved, *changes.held)}
        for node, usable, news in self._claims.news():
            if news:
                (changes.rejuvenated_nodes if usable else changes.failed_nodes).append(node)
            tag = self._claims.tag(node)
            holder = self._board.by_tag.get(tag) or self._board.by_hold.get(tag)
            if not holder:
                continue
            if usable and news and holder not in unheard:
                changes.rejuvenated_under.append(holder)
            elif not usable and (news or holder in unheard):
                changes.failed_under.append(holder)

    def _finish(self) -> None:
        board, jobs = self._board, self._jobs
        self._transactions.ask_to_be_called()
        if not jobs.stopping:  # the kill of what has ended may be under way
            for job_id in jobs.take_gone():
                self._registry.forget(job_id, jobs.alive)
        if board.registering and board.statics_over and jobs.idle:
            board.registering = False
            board.out.append(FinishRegistration(at_us=board.now_us))
