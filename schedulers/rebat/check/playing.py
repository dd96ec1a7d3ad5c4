# SPDX-License-Identifier: Apache-2.0
"""Simulate (*play*) a case with a policy, and report the rules that the run breaks.

Noise adds messages without news, which must not change decisions. It also changes the order of the
events in a message, as Batsim 5 can do. Events of the same kind keep their order.
"""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from itertools import pairwise

import msgspec
import numpy as np

from rebat.check.cases import CheckCase
from rebat.contract import Changes, News, Policy, Proposal, View
from rebat.core.attempts import INTERRUPTED, Cause
from rebat.core.decisions import Decision, Reply
from rebat.core.errors import Deadlock, RebatError, one_line
from rebat.core.events import (
    CallRequested,
    Event,
    JobCompleted,
    JobsKilled,
    Message,
    NodesFailed,
    NodesRejuvenated,
    Notified,
    SimulationBegan,
    SimulationEnded,
)
from rebat.core.jobs import PROBES
from rebat.core.numbers import counted
from rebat.core.units import to_s, to_us
from rebat.drive.ask import Session
from rebat.drive.messages import Messages
from rebat.engine.engine import Engine, EngineOptions, Scheduler
from rebat.policies.own import is_own
from rebat.policies.own_policy import OwnPolicy, own_policy
from rebat.policies.presets import Preset, preset
from rebat.results.files.batsim_csv import jobs_csv
from rebat.results.measures.jobs import JobRows
from rebat.results.measures.summary import Measures, RunSummary, summarise
from rebat.runs.single import RunResult
from rebat.state.ledger import Ledger
from rebat.wire.conversation import Conversation, run_remote
from rebat.wire.instants import WholeInstants


class How(StrEnum):
    """The ways to play a case."""

    EMBEDDED = "embedded"
    """Messages are Python objects."""
    WIRE = "wire"
    """Messages are sent as bytes in Batsim's protocol."""
    NOISY = "noisy"
    """The policy also receives messages without news."""
    TWICE = "twice"
    """The case is played twice in the same process, and both runs are compared."""


class Played(msgspec.Struct, frozen=True):
    """The outcome of one run of a case."""

    rule: str = ""
    """Name of the failed check, or an empty text if the run failed no check."""
    problem: str = ""
    schedule: str = ""
    """Hash of the rows of jobs.csv."""
    decisions: str = ""
    """Hash of all replies."""


def load_policy(spec: str, n_nodes: int) -> Preset | OwnPolicy:
    """Load a policy. Its file is executed again, so that no state of earlier runs remains."""
    own = is_own(spec) and "=" not in spec
    return (own_policy(spec) if own else on_ring(spec, n_nodes)).carrying_out()


def play(spec: str, case: CheckCase, how: How) -> Played:
    """Load a policy, and play a case."""
    policy = load_policy(spec, case.workload.n_nodes)
    first = _play(policy, case, how, 1)
    if how is How.TWICE and not first.rule:
        second = _play(policy, case, how, 2)
        if second != first:
            return Played("repeat", second.problem or "the second run differs from the first")
    return first


def _play(policy: Preset | OwnPolicy, case: CheckCase, how: How, seed: int) -> Played:
    """Play a case, after seeding the global random generators with ``seed``."""
    random.seed(seed)
    np.random.seed(seed)
    run = _Run(policy, case)
    try:
        run.play(how)
    except ViewChanged as error:
        return Played("view", str(error))
    except Violation as error:
        return Played(run.rule, str(error))
    except Deadlock:
        return Played("ends", _stuck(run.session))
    except RebatError as error:
        return Played("safety", str(error))
    except Exception as error:  # the policy's actions cause errors of the session
        return Played("safety", one_line(error))
    rows = [*jobs_csv(job for job in run.engine.ended if job.workload != PROBES)]
    return Played(schedule=_hash(*rows), decisions=run.replies.hexdigest())


def _hash(*rows: str) -> str:
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def _stuck(session: Messages) -> str:
    names = ", ".join([*session.queue][:3]) or "a stopped job"
    return f"at {session.now_us / 1e6:g} s nothing runs, and the policy does not start {names}"


class _Run:
    """A simulation of a case.

    The session is checked after each message, and the ledger at the end.
    """

    def __init__(self, policy: Preset | OwnPolicy, case: CheckCase) -> None:
        self.case, self.rule, self.replies = case, "safety", hashlib.sha256()
        options = msgspec.structs.replace(
            policy.session, strict=True, cores_per_node=case.cores_per_node
        )
        self.session = Session(Watched(policy.make()), options)
        self.engine: Engine

    def play(self, how: How) -> None:
        """Simulate the case, then check the ledger. ``rule`` is the name of the current check."""
        acknowledged = how in (How.WIRE, How.NOISY)
        self.engine = Engine(
            self.case.workload,
            events=self.case.events,
            operations=self.case.operations,
            options=EngineOptions(
                acknowledge_dynamic_jobs=acknowledged,
                forward_unknown_events=True,
                latency_us=self.case.latency_us,
                split_instants=self.case.split_instants,
                split_failures=how is How.NOISY,
            ),
        )
        if how is How.WIRE:
            run_remote(self.engine, self._over_the_wire())
        else:
            noisy = how is How.NOISY
            self.engine.run(_noisy(self._recorded) if noisy else self._recorded)
        self._check()

    def _recorded(self, message: Message) -> Reply:
        reply = validated(self.session)(message)
        self.replies.update(repr(reply).encode())
        return reply

    def _over_the_wire(self) -> Callable[[bytes], bytes]:
        conversation = Conversation(lambda *_: self.session)

        def answer(data: bytes) -> bytes:
            reply = conversation.answer(data)
            self.session.validate()
            return reply

        return answer

    def _check(self) -> None:
        ledger, case = self.session.ledger, self.case
        slack_us = 3 * case.latency_us
        check_nodes(ledger, slack_us)
        check_sizes(ledger, slack_us)
        self.rule = "ends"
        check_ends(ledger)
        summary, rows = summarise(ledger, case.workload.n_nodes, Measures())
        missing = {f"w0!{job.id}" for job in case.workload.jobs} - {f"w0!{r.job_id}" for r in rows}
        require(not missing, f"no result of job {', '.join(sorted(missing))}")
        self.rule = "safety"
        if not slack_us:
            check_time(summary, rows)
        self.rule = "starvation"
        if case.stream:
            check_starts(ledger)


def _noisy(handle: Scheduler) -> Scheduler:
    """Return a scheduler that receives additional messages without news."""
    rng = random.Random(0)
    noise = Noise(WholeInstants(handle), rng)

    def scheduler(message: Message) -> Reply:
        reply = noise(message)
        ended = any(isinstance(event, SimulationEnded) for event in message.events)
        if ended or rng.random() < 0.5:
            return reply
        notice = Notified(at_us=message.now_us, kind="comment", data={})
        more = handle(Message(message.now_us, (notice,)))
        return Reply(reply.now_us, (*reply.decisions, *more.decisions))

    return scheduler


class Violation(RebatError):
    """Error: a run broke a rule."""


def require(condition: object, text: str) -> None:
    """Raise a Violation with this text if the condition is False."""
    if not condition:
        raise Violation(text)


def validated(session: Messages) -> Scheduler:
    """Return a scheduler that checks the invariants of a session after each message."""

    def handle(message: Message) -> Reply:
        reply = session.handle(message)
        session.validate()
        return reply

    return handle


def check_run(result: RunResult) -> None:
    """Check the nodes, ends, sizes and times of attempts in a run without latency."""
    check_nodes(result.ledger)
    check_ends(result.ledger)
    check_sizes(result.ledger)
    check_time(result.summary, result.rows)


def check_nodes(ledger: Ledger, slack_us: int = 0) -> None:
    """Check that no node runs two attempts, and that no attempt runs on a node that is down.

    An attempt may hang on a node that is down until the failure is detected. ``slack_us`` is the
    delay of a kill on a platform with latency.
    """
    held, hung_us = defaultdict(list), {}
    for record in ledger.attempts:
        hung_us[record.attempt.id] = record.hung_us
        for node in record.nodes or ():
            if record.end_us > record.start_us:
                held[node].append((record.start_us, record.end_us, record.attempt.id))
    for node, intervals in held.items():
        intervals.sort()
        for (_, end, first), (start, _, second) in pairwise(intervals):
            require(end <= start, f"node {node} runs {first} and {second}")
    horizon = max((record.end_us for record in ledger.attempts), default=0)
    for node, down, up in ledger.node_events.outages(horizon).rows():
        for start, end, attempt in held.get(node, ()):
            dead = min(end - hung_us[attempt], up) - max(start, down)
            require(dead <= slack_us, f"{attempt} runs on the dead node {node}")


def check_ends(ledger: Ledger) -> None:
    """Check that every job ends exactly once, with its last attempt.

    All earlier attempts must have been interrupted. The attempts of a job must not overlap.
    """
    again = INTERRUPTED | {Cause.SILENT_ERROR, Cause.MOLDED}
    attempts = defaultdict(list)
    for record in ledger.attempts:
        attempts[record.attempt.job_id].append(record)
    for job_id, records in attempts.items():
        records.sort(key=lambda record: record.attempt.number)
        numbers = [record.attempt.number for record in records]
        require(numbers == [*range(len(records))], f"job {job_id} has the attempts {numbers}")
        causes = [record.cause for record in records]
        require(all(c in again for c in causes[:-1]), f"job {job_id} continues after its end")
        require(causes[-1] not in again, f"job {job_id} does not end")
        for before, after in pairwise(record for record in records if record.start_us >= 0):
            require(before.end_us <= after.start_us, f"two attempts of job {job_id} overlap")


def check_sizes(ledger: Ledger, slack_us: int = 0) -> None:
    """Check that each attempt has the right number of nodes, and starts after its submission.

    Each attempt must also end within its walltime.
    """
    for record in ledger.attempts:
        attempt = record.attempt
        if record.nodes is not None:
            size, ran_us = len(record.nodes), record.end_us - record.start_us
            require(size == attempt.n_nodes, f"{attempt.id} runs on {counted(size, 'node')}")
            require(attempt.queued_us <= record.start_us, f"{attempt.id} starts too early")
            require(ran_us <= attempt.walltime_us + slack_us, f"{attempt.id} exceeds its walltime")


def check_time(summary: RunSummary, rows: JobRows) -> None:
    """Check that the uses of node time add up to the total, and that no flow is negative."""
    p = summary.platform
    parts = (
        p.useful, p.checkpoint, p.recovery, p.waste_failure, p.waste_stealing, p.waste_silent,
        p.waste_walltime, p.waste_moving, p.held,
    )  # fmt: skip
    gap = abs(sum(parts) + p.downtime + p.idle - p.total)
    require(gap <= 1e-6 * max(1.0, p.total), "the uses of node time do not add up")
    require(min(*parts, p.downtime, p.idle) >= 0, "a use of node time is negative")
    require(all(row.flow >= 0 for row in rows if row.flow is not None), "a flow is negative")


def check_starts(ledger: Ledger) -> None:
    """Check that each job starts within its maximum wait, in a run without failures.

    The maximum wait of a job is the longest walltime, multiplied by the number of jobs submitted up
    to and including the job. A policy that serves jobs in order of arrival never exceeds it.
    Backfilling does not exceed it either, if it never delays the first job of the queue.
    """
    firsts = [record for record in ledger.attempts if record.attempt.number == 0]
    longest_us = max(record.attempt.walltime_us for record in firsts)
    for record in firsts:
        attempt = record.attempt
        until = sum(other.attempt.submit_us <= attempt.submit_us for other in firsts)
        if record.start_us >= 0:
            waited_us, bound_us = record.start_us - attempt.submit_us, until * longest_us
            require(
                waited_us <= bound_us,
                f"job {attempt.job_id} of {counted(attempt.n_nodes, 'node')} waits "
                f"{to_s(waited_us):g} s "
                f"(bound: {counted(until, 'job')} of {to_s(longest_us):g} s)",
            )


_LIKE = {JobsKilled: JobCompleted, NodesRejuvenated: NodesFailed}
"""Events that are of the same kind as others."""


class Noise:
    """A wrapper of a scheduler that changes the messages of the engine."""

    def __init__(self, handle: Callable[[Message], Reply], rng: random.Random) -> None:
        self._handle, self._rng, self._now_us = handle, rng, 0

    def __call__(self, message: Message) -> Reply:
        """Handle a message and additional messages, and return all decisions in one reply."""
        decisions: list[Decision] = []
        for part in self._parts(message):
            decisions += self._handle(part).decisions
        self._now_us = message.now_us
        return Reply(message.now_us, tuple(decisions))

    def _parts(self, message: Message) -> Iterator[Message]:
        now_us = message.now_us
        if now_us - self._now_us > to_us(1) and self._rng.random() < 0.5:
            yield Message(now_us - to_us(0.5), ())
        yield Message(now_us, self._mixed(message.events))
        while self._rng.random() < 0.5:
            call = (CallRequested(at_us=now_us),)
            yield Message(now_us, self._rng.choice([(), call]))

    def _mixed(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        """Return the events in a random order in which each kind keeps its order."""
        if events and isinstance(events[0], SimulationBegan):
            return events
        kinds = [_LIKE.get(type(event), type(event)) for event in events]
        lanes = defaultdict(list)
        for kind, event in zip(kinds, events, strict=True):
            lanes[kind].append(event)
        self._rng.shuffle(kinds)
        return tuple(lanes[kind].pop(0) for kind in kinds)


def on_ring(policy: str, n_nodes: int) -> Preset:
    """Return the preset of this name, adapted to a machine of ``n_nodes`` nodes.

    If the preset needs a torus, use a ring of all nodes. If it predicts failures, set its foresight
    to 'oldest'.
    """
    chosen = preset(policy)
    ring = {"torus": str(n_nodes), "foresight": "oldest"}
    own = [f"{axis}={value}" for axis, value in ring.items() if axis in chosen.point.effective]
    return preset(policy + (":" if ":" not in policy else ",") + ",".join(own)) if own else chosen


class ViewChanged(RebatError):
    """An error: a policy changed the state of jobs or nodes without a proposal."""


class Watched(Policy):
    """A policy wrapper that compares the view before and after each proposal of the policy."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def react(self, view: View, news: News) -> Iterator[Proposal]:
        """Return the proposals for running attempts."""
        hit = list(news.hit)
        yield from self._steps("react", view, lambda: self._policy.react(view, news))
        if news.hit != hit:
            raise ViewChanged(f"react at {to_s(view.now_us):g} s changes news.hit")

    def plan(self, view: View, changes: Changes) -> Iterator[Proposal]:
        """Return the proposals for queued attempts."""
        return self._steps("plan", view, lambda: self._policy.plan(view, changes))

    def _steps(
        self, name: str, view: View, call: Callable[[], Iterable[Proposal]]
    ) -> Iterator[Proposal]:
        """Yield the proposals, and check that the policy does not change the view.

        The session may change the view between two proposals.
        """
        before = snapshot(view)
        proposals = iter(call())
        while True:
            proposal = next(proposals, None)
            after = snapshot(view)
            changed = [part for part in before if before[part] != after[part]]
            if changed:
                where = f"{name} at {to_s(view.now_us):g} s"
                raise ViewChanged(f"{where} changes the view: {', '.join(changed)}")
            if proposal is None:
                return
            yield proposal
            before = snapshot(view)


def snapshot(view: View) -> dict[str, object]:
    """Return a copy of the state in a view."""
    machine = view.machine
    attempts = [*view.queue.values(), *(running.attempt for running in view.running.values())]
    return {
        "queue": list(view.queue.items()),
        "running": list(view.running.items()),
        "stopping": list(view.stopping),
        "scheduled": list(view.scheduled),
        "waiting": list(view.waiting),
        "nodes": (machine.tags.tobytes(), machine.down.tobytes(), machine.drained.tobytes()),
        "fields of jobs": repr([view.job(attempt.job_id).fields for attempt in attempts]),
    }
