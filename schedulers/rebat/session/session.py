"""The session owns what is true and lets a policy decide; no socket, file or clock in here.

It hides the wire's traps (attempts on dead nodes are always killed; a resubmission waits for the
kill's acknowledgement; while a kill is pending nothing is started, so that a failure is decided on
as a whole within its instant) and refuses proposals on which a real Batsim would abort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import msgspec

from rebat.core.attempts import Attempt, Cause, Priority, Running
from rebat.core.decisions import (
    CallMeLater,
    Decision,
    ExecuteJob,
    FinishRegistration,
    KillJobs,
    RegisterJob,
    RegisterProfile,
    RejectJob,
    Reply,
)
from rebat.core.errors import InputError, PolicyError
from rebat.core.events import (
    CallRequested,
    Event,
    JobCompleted,
    JobsKilled,
    JobSubmitted,
    Message,
    NodesFailed,
    NodesRejuvenated,
    NoMoreExternalEvents,
    NoMoreStaticJobs,
    Notified,
    SimulationBegan,
    SimulationEnded,
)
from rebat.core.jobs import batsim_number
from rebat.core.nodes import NodeSet
from rebat.core.options import SessionOptions
from rebat.core.units import FOREVER_US, MAX_SECONDS, to_s, to_us
from rebat.kernels.pool import NodePool
from rebat.models.checkpoint import (
    Checkpointing,
    checkpointing_of,
    derived_checkpointing,
    remaining_after,
    resumed,
    resumed_length_us,
    since_last_checkpoint,
)
from rebat.models.silent_errors import retried_profile
from rebat.policies.base import (
    Action,
    Changes,
    Failure,
    Interrupt,
    Policy,
    Reject,
    Resume,
    Start,
)
from rebat.session.holds import Holds
from rebat.session.ledger import AttemptRecord, Ledger

_CAUSES = {
    "COMPLETED_SUCCESSFULLY": Cause.COMPLETED,
    "COMPLETED_FAILED": Cause.JOB_FAILED,
    "COMPLETED_WALLTIME_REACHED": Cause.WALLTIME,
}


class _Work(msgspec.Struct):
    """What the session knows of an attempt and the policy must not: what it really does."""

    attempt: Attempt
    workload: str
    profile: str
    checkpointing: Checkpointing | None


class Session:
    """One simulation seen from the scheduler's side: ``handle`` is the only way in.

    Parameters
    ----------
    policy : Policy
    options : SessionOptions

    Attributes
    ----------
    ledger : Ledger
        What happened so far.
    statics_over : bool
        Every job of the workload has been submitted.
    """

    def __init__(self, policy: Policy, options: SessionOptions | None = None) -> None:
        self._policy = policy
        self._options = options or SessionOptions()
        self.ledger = Ledger()
        self.now_us = 0
        self.n_nodes = 0
        self.began: SimulationBegan | None = None
        self.ended = False
        self._pool = NodePool(0)
        self._queue: dict[str, Attempt] = {}
        self._running: dict[str, Running] = {}
        self._work: dict[str, _Work] = {}
        self._by_tag: dict[int, str] = {}
        self._profiles: dict[str, dict[str, dict[str, Any]]] = {}
        self._registered: set[str] = set()
        self._kept: dict[str, list[AttemptRecord]] = {}
        self._dying: dict[str, Interrupt] = {}
        self._may_plan_while_killing = self._options.plan_while_killing
        self._holds = Holds(self._pool)
        self._killed_running: dict[str, Running] = {}
        self._changes = Changes()
        self._changed_nodes: dict[int, None] = {}
        self._told_down: set[int] = set()
        self._failed_now: list[int] = []
        self._hit_now: list[str] = []
        self._serial = 0
        self.statics_over = False
        self._registering = False
        self._out: list[Decision] = []

    # ---- the view that policies read

    @property
    def n_up(self) -> int:
        """Nodes that are up."""
        return self.n_nodes - self._pool.n_down

    @property
    def n_free(self) -> int:
        """Nodes that are up and hold no attempt."""
        return self._pool.n_free

    @property
    def queue(self) -> Mapping[str, Attempt]:
        """Waiting attempts by id, in order of entry."""
        return MappingProxyType(self._queue)

    @property
    def running(self) -> Mapping[str, Running]:
        """Running attempts by id, in order of start."""
        return MappingProxyType(self._running)

    def checkpointing(self, attempt_id: str) -> Checkpointing | None:
        """How an attempt checkpoints; None if it does not."""
        return self._work[attempt_id].checkpointing

    def obstacle(self, nodes: NodeSet) -> int:
        """The first of these nodes that is not up and free; -1 if all are."""
        return self._pool.obstacle(nodes)

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
        if message.now_us < self.now_us:
            raise InputError(
                f"message dated {to_s(message.now_us)} s after one of {to_s(self.now_us)} s"
            )
        self.now_us = message.now_us
        for event in message.events:
            self._take_in[type(event)](self, event)
        self._recover()
        if self._holds.parked:
            self._review()
        if self._changes and (not self._dying or self._may_plan_while_killing):
            self._plan()
            if self._changes.refused:  # whoever planned on what was refused may think again, once
                self._plan()
        self._finish()
        decisions, self._out = tuple(self._out), []
        return Reply(self.now_us, decisions)

    def _on_begin(self, event: SimulationBegan) -> None:
        if self.began is not None:
            raise InputError("the simulation begins twice")
        self.began = event
        self.n_nodes = event.n_nodes
        self._pool = NodePool(event.n_nodes)
        self._holds = Holds(self._pool)
        self._profiles = {name: dict(profiles) for name, profiles in event.profiles.items()}
        self._registering = bool(event.config.get("dynamic-jobs-enabled"))

    def _on_submit(self, event: JobSubmitted) -> None:
        if event.job_id in self._registered:
            return  # the acknowledgement of our own registration
        if event.job_id in self._work:
            raise InputError("is submitted twice", f"job {event.job_id}")
        workload = event.job_id.partition("!")[0]
        if event.profile is not None:
            profiles = self._profiles.setdefault(workload, {})
            profiles[str(event.job.get("profile"))] = event.profile
        attempt = self._original(event)
        profile = str(event.job.get("profile"))
        try:
            checkpointing = checkpointing_of(self._profiles.get(workload, {}).get(profile, {}))
        except InputError as error:
            raise error.at(f"job {event.job_id}") from None
        if checkpointing is None:
            checkpointing = derived_checkpointing(
                attempt.n_nodes, self.n_nodes, self._options.young_daly
            )
        self._enqueue(attempt, _Work(attempt, workload, profile, checkpointing))
        self._changes.arrived.append(attempt)

    def _original(self, event: JobSubmitted) -> Attempt:
        fields, where = event.job, f"job {event.job_id}"
        n_nodes = fields.get("res")
        if not isinstance(n_nodes, int) or isinstance(n_nodes, bool) or n_nodes < 1:
            raise InputError(f"res is {n_nodes!r}", where, "a whole number, 1 or more")
        walltime = fields.get("walltime", -1)
        if not isinstance(walltime, int | float) or not (walltime == -1 or walltime > 0):
            raise InputError(f"walltime is {walltime!r}", where, "seconds above 0, or -1")
        endless = walltime == -1 or walltime > MAX_SECONDS
        self._serial += 1
        return Attempt(
            id=event.job_id,
            job_id=event.job_id,
            serial=self._serial,
            job_serial=self._serial,
            number=0,
            n_nodes=n_nodes,
            walltime_us=FOREVER_US if endless else to_us(walltime),
            submit_us=event.at_us,
            queued_us=event.at_us,
        )

    def _enqueue(self, attempt: Attempt, work: _Work) -> None:
        self._work[attempt.id] = work
        self._queue[attempt.id] = attempt

    def _on_complete(self, event: JobCompleted) -> None:
        running = self._running.pop(event.job_id, None)
        if running is None:
            raise InputError("ends without having been started", f"job {event.job_id}")
        self._pool.release(running.nodes)
        del self._by_tag[running.attempt.serial]
        interrupt = self._dying.get(event.job_id) if event.state == "COMPLETED_KILLED" else None
        work = self._work[event.job_id]
        if interrupt:
            cause, useful = interrupt.cause, interrupt.remaining.useful_us
            self._changes.killed.append(running)
            self._killed_running[event.job_id] = running
        else:
            cause = _CAUSES.get(event.state, Cause.JOB_FAILED)
            recovery = work.checkpointing.first_recovery_us if work.checkpointing else 0
            useful = max(0, event.at_us - running.start_us - recovery)
            if cause == Cause.JOB_FAILED and self._options.silent_errors == "retry":
                cause, useful = Cause.SILENT_ERROR, 0
            self._changes.ended.append(running)
        self._record(work, running, event, cause, useful)
        if cause == Cause.SILENT_ERROR:
            self._retry(work)

    def _record(
        self, work: _Work, running: Running, event: JobCompleted, cause: Cause, useful: int
    ) -> None:
        record = AttemptRecord(
            running.attempt, work.profile, work.checkpointing, running.start_us,
            event.at_us, cause, event.state, useful, running.nodes,
        )  # fmt: skip
        self.ledger.attempts.append(record)
        if cause in (Cause.NODE_FAILURE, Cause.STOLEN) and useful:
            self._kept.setdefault(running.attempt.job_id, []).append(record)

    def _on_killed(self, event: JobsKilled) -> None:
        for attempt_id in event.job_ids:
            interrupt = self._dying.pop(attempt_id, None)
            killed = self._killed_running.pop(attempt_id, None)
            if not self._dying:
                self._may_plan_while_killing = self._options.plan_while_killing
            # An attempt that ended by itself at the very instant of its kill is not resubmitted.
            if interrupt and attempt_id in event.progress:
                if killed and interrupt.hold_us > 0:
                    self._park(interrupt, killed)
                else:
                    self._resubmit(interrupt)

    def _park(self, interrupt: Interrupt, killed: Running) -> None:
        """Hold the surviving nodes, and ask to be called when the wait is over."""
        self._serial += 1
        until_us = self.now_us + interrupt.hold_us
        lowest = self._options.hold_lowest
        held = self._holds.park(killed, interrupt, self._serial, self.now_us, lowest)
        if held is not None:
            self._changes.held.append(held)
        self._out.append(CallMeLater(at_us=self.now_us, when_us=until_us))

    def _end_hold(self, held: Running | None) -> None:
        """Tell the planning that nodes are held no more, if it was ever told that they were."""
        if held is None:
            return
        if held in self._changes.held:
            self._changes.held.remove(held)
        else:
            self._changes.ended.append(held)

    def _check_nodes(self, nodes: NodeSet, down: bool) -> None:
        """Nodes that change must be in the machine, and in the other state before."""
        if nodes.size and int(nodes.intervals[-1, 1]) >= self.n_nodes:
            raise InputError(f"nodes {nodes} of a machine of {self.n_nodes} change their state")
        for node in nodes:
            if bool(self._pool.down[node]) == down:
                raise InputError(f"node {node} is {'down' if down else 'up'} already")

    def _on_fail(self, event: NodesFailed) -> None:
        self._check_nodes(event.nodes, down=True)
        self.ledger.node_events.append((event.at_us, False, event.nodes))
        tags = self._pool.fail(event.nodes)
        self._failed_now.extend(event.nodes)
        self._hit_now.extend(self._by_tag[tag] for tag in tags if tag in self._by_tag)
        for ended, shrunk in self._holds.shrink(tags):
            self._end_hold(ended)
            if shrunk is not None:
                self._changes.held.append(shrunk)
        self._changed_nodes.update(dict.fromkeys(event.nodes))
        self._changes.failures += event.nodes.size

    def _on_rejuvenate(self, event: NodesRejuvenated) -> None:
        self._check_nodes(event.nodes, down=False)
        self.ledger.node_events.append((event.at_us, True, event.nodes))
        self._pool.repair(event.nodes)
        self._changed_nodes.update(dict.fromkeys(event.nodes))
        self._changes.repairs += event.nodes.size

    def _on_no_more_jobs(self, _: NoMoreStaticJobs) -> None:
        self.statics_over = True

    def _on_end(self, _: SimulationEnded) -> None:
        self.ended = True

    def _ignore(self, _: Event) -> None:
        pass

    _take_in: ClassVar[dict[type[Event], Callable[..., None]]] = {
        SimulationBegan: _on_begin,
        JobSubmitted: _on_submit,
        JobCompleted: _on_complete,
        JobsKilled: _on_killed,
        NodesFailed: _on_fail,
        NodesRejuvenated: _on_rejuvenate,
        NoMoreStaticJobs: _on_no_more_jobs,
        NoMoreExternalEvents: _ignore,
        CallRequested: _ignore,
        Notified: _ignore,
        SimulationEnded: _on_end,
    }

    # ---- failures

    def _recover(self) -> None:
        """Kill what runs on nodes that failed, and what the policy interrupts for it."""
        if not self._failed_now:
            return
        hit = tuple(
            self._running[attempt_id]
            for attempt_id in dict.fromkeys(self._hit_now)
            if attempt_id in self._running and attempt_id not in self._dying
        )
        failure = Failure(tuple(self._failed_now), hit, self._holds.take_hits())
        self._failed_now, self._hit_now = [], []
        if hit:
            self.ledger.failures_that_hit.append((self.now_us, self.n_free))
        actions = list(self._policy.recover(self, failure))
        interrupts = [action for action in actions if isinstance(action, Interrupt)]
        named = {interrupt.attempt_id for interrupt in interrupts}
        unnamed = [self._failed(r) for r in hit if r.attempt.id not in named]
        steals = sum(i.cause == Cause.STOLEN or i.hold_us > 0 for i in interrupts)
        self.ledger.steals += [self.now_us] * steals
        self._act([*actions, *unnamed])

    def _failed(self, running: Running) -> Interrupt:
        run_us = self.now_us - running.start_us
        checkpointing = self._work[running.attempt.id].checkpointing
        remaining = remaining_after(
            checkpointing, run_us, since_last_checkpoint, self._options.semantics
        )
        return Interrupt(running.attempt.id, Cause.NODE_FAILURE, Priority.FAILED, remaining)

    def _act(self, actions: Iterable[Action]) -> None:
        """Kill, now, each to be resubmitted when its kill is acknowledged; resume parked jobs."""
        kill = []
        for action in actions:
            if isinstance(action, Resume):
                self._resume(action.job_id)
            elif action.attempt_id not in self._running or action.attempt_id in self._dying:
                self._refuse(action.attempt_id, "cannot be interrupted: it is not running")
            else:
                self._dying[action.attempt_id] = action
                kill.append(action.attempt_id)
        if kill:
            self._need_registration(kill[0])
            self._out.append(KillJobs(at_us=self.now_us, job_ids=tuple(kill)))

    def _resume(self, job_id: str) -> None:
        if job_id not in self._holds.parked:
            self._refuse(job_id, "cannot be resumed: it is not parked")
            return
        interrupt, held = self._holds.resume(job_id)
        self._end_hold(held)
        self._resubmit(interrupt)

    def _need_registration(self, attempt_id: str) -> None:
        if not self._registering:
            raise InputError(
                "must be resubmitted after a failure, but Batsim takes no new jobs",
                f"job {attempt_id}",
                "Batsim started with --enable-dynamic-jobs --enable-profile-reuse",
            )

    def _resubmit(self, interrupt: Interrupt) -> None:
        old = self._work[interrupt.attempt_id]
        attempt = self._next_attempt(
            old.attempt, self._resumed_walltime_us(old, interrupt), interrupt.priority
        )
        checkpointing = resumed(old.checkpointing, interrupt.remaining)
        self._submit_again(attempt, old, self._resumed_profile(old, interrupt), checkpointing)

    def _retry(self, failed: _Work) -> None:
        """Put a job back into the queue, whole, after an error was detected when it ended.

        When the error struck is not known, so no checkpoint can be trusted either: what earlier
        attempts had kept is lost.
        """
        job_id = failed.attempt.job_id
        self._need_registration(failed.attempt.id)
        for record in self._kept.pop(job_id, ()):
            record.void = True
        first, profiles = self._work[job_id], self._profiles[failed.workload]
        attempt = self._next_attempt(failed.attempt, first.attempt.walltime_us, Priority.REGULAR)
        profile = retried_profile(profiles[first.profile], profiles[failed.profile])
        self._submit_again(attempt, first, profile, first.checkpointing)

    def _next_attempt(self, last: Attempt, walltime_us: int, priority: int) -> Attempt:
        self._serial += 1
        return msgspec.structs.replace(
            last,
            id=f"{last.job_id}#{last.number + 1}",
            serial=self._serial,
            number=last.number + 1,
            walltime_us=walltime_us,
            queued_us=self.now_us,
            priority=priority,
        )

    def _submit_again(
        self, attempt: Attempt, old: _Work, profile: dict[str, Any],
        checkpointing: Checkpointing | None,
    ) -> None:  # fmt: skip
        """Register an attempt and its profile, and queue it."""
        profiles = self._profiles[old.workload]
        if profile.get("type") == "composed":
            name = self._loaded_again(old, profile)
        else:
            name = f"{attempt.id.partition('!')[2]}:{old.profile.partition(':')[2] or old.profile}"
            profiles[name] = profile
            self._out.append(
                RegisterProfile(
                    at_us=self.now_us, workload=old.workload, name=name, profile=profile
                )
            )
        self._registered.add(attempt.id)
        work = _Work(attempt, old.workload, name, checkpointing)
        self._register(work)
        self._enqueue(attempt, work)
        self._changes.resubmitted.append(attempt)

    def _loaded_again(self, old: _Work, profile: dict[str, Any]) -> str:
        """The name under which Batsim has loaded a composed profile.

        A composed profile that is registered kills Batsim when a job of it starts.
        """
        where = f"job {old.attempt.id}"
        if profile != self._profiles[old.workload][old.profile]:
            raise InputError(
                "cannot run again in another form: Batsim takes no new composed profiles", where,
                "a delay profile",
            )  # fmt: skip
        if self.began is None or not self.began.config.get("profile-reuse-enabled"):
            raise InputError(
                f"cannot run again: Batsim forgets its composed profile {old.profile}", where,
                "Batsim started with --enable-profile-reuse",
            )  # fmt: skip
        return old.profile

    def _resumed_walltime_us(self, old: _Work, interrupt: Interrupt) -> int:
        if not old.attempt.has_walltime:
            return FOREVER_US
        return resumed_length_us(old.attempt.walltime_us, old.checkpointing, interrupt.remaining)

    def _resumed_profile(self, old: _Work, interrupt: Interrupt) -> dict[str, Any]:
        """What remains to be run; only delays can be shortened, other profiles start over."""
        profile = self._profiles[old.workload][old.profile]
        if old.checkpointing is None or profile.get("type") != "delay":
            return profile
        remaining = interrupt.remaining
        length = resumed_length_us(to_us(profile["delay"]), old.checkpointing, remaining)
        return {
            **profile,
            "delay": to_s(length),
            "Tfirst": to_s(remaining.first_period_us),
            "Rfirst": to_s(remaining.first_recovery_us),
        }

    def _register(self, work: _Work) -> None:
        attempt = work.attempt
        fields: dict[str, Any] = {
            "id": attempt.id,
            "subtime": batsim_number(self.now_us),
            "res": attempt.n_nodes,
            "profile": work.profile,
        }
        if attempt.has_walltime:
            fields["walltime"] = batsim_number(attempt.walltime_us)
        self._out.append(RegisterJob(at_us=self.now_us, job_id=attempt.id, job=fields))

    def _review(self) -> None:
        """End waits that are over. Nothing is planned until the victims are gone.

        Otherwise others would take the nodes that were held up to this instant.
        """
        before = len(self._dying)
        self._act(self._policy.review(self))
        if len(self._dying) > before:
            self._may_plan_while_killing = False

    # ---- plans

    def _plan(self) -> None:
        changes, self._changes = self._changes, Changes()
        self._tell_nodes(changes)
        for proposal in list(self._policy.plan(self, changes)):
            if isinstance(proposal, Start):
                self._start(proposal)
            else:
                self._reject(proposal)

    def _tell_nodes(self, changes: Changes) -> None:
        """Say which nodes are in another state than the policy was told last.

        A node may have been repaired and have failed again, at one date even.
        """
        for node in self._changed_nodes:
            down = bool(self._pool.down[node])
            if down == (node in self._told_down):
                continue
            (changes.failed_nodes if down else changes.rejuvenated_nodes).append(node)
            tag = int(self._pool.owner[node])
            if down and tag in self._by_tag:
                changes.failed_under.append(self._by_tag[tag])
        self._told_down.update(changes.failed_nodes)
        self._told_down.difference_update(changes.rejuvenated_nodes)
        self._changed_nodes.clear()

    def _start(self, start: Start) -> None:
        attempt = self._queue.get(start.attempt_id)
        reason = self._why_not(attempt, start.nodes)
        if reason or attempt is None:
            self._refuse(start.attempt_id, reason)
            return
        nodes = start.nodes or self._pool.lowest(attempt.n_nodes)
        self._pool.take(nodes, attempt.serial)
        self._by_tag[attempt.serial] = attempt.id
        del self._queue[attempt.id]
        self._running[attempt.id] = Running(attempt, self.now_us, nodes)
        self._out.append(ExecuteJob(at_us=self.now_us, job_id=attempt.id, nodes=nodes))

    def _why_not(self, attempt: Attempt | None, nodes: NodeSet | None) -> str:
        """Why a real Batsim would abort on this start; empty if it would not."""
        if attempt is None:
            return "is not in the queue"
        if nodes is None:
            short = attempt.n_nodes > self._pool.n_free
            return f"needs {attempt.n_nodes} nodes, {self.n_free} are free" if short else ""
        if nodes.size != attempt.n_nodes:
            return f"asks for {attempt.n_nodes} nodes, not {nodes.size}"
        obstacle = self._pool.obstacle(nodes)
        return f"node {obstacle} is not up and free" if obstacle >= 0 else ""

    def _reject(self, proposal: Reject) -> None:
        attempt = self._queue.pop(proposal.attempt_id, None)
        if attempt is None:
            self._refuse(proposal.attempt_id, "cannot be rejected: it is not in the queue")
            return
        self._out.append(RejectJob(at_us=self.now_us, job_id=attempt.id))
        self.ledger.attempts.append(
            AttemptRecord(
                attempt, self._work[attempt.id].profile, None, -1, -1, Cause.REJECTED,
                "REJECTED", 0, None,
            )
        )  # fmt: skip

    def _refuse(self, attempt_id: str, reason: str) -> None:
        if self._options.strict:
            raise PolicyError(f"at {to_s(self.now_us)} s the policy's {attempt_id} {reason}")
        self.ledger.refusals.append((self.now_us, attempt_id, reason))
        self._changes.refused.append((attempt_id, reason))

    def _finish(self) -> None:
        idle = not (self._queue or self._running or self._dying or self._holds.parked)
        if self._registering and self.statics_over and idle:
            self._registering = False
            self._out.append(FinishRegistration(at_us=self.now_us))
