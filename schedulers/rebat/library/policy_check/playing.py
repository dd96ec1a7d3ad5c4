# SPDX-License-Identifier: Apache-2.0
"""Simulate (*play*) a case with a policy, and report broken rules."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from enum import StrEnum

import msgspec
import numpy as np

from rebat.core.decisions import Reply
from rebat.core.errors import Deadlock, RebatError, one_line
from rebat.core.events import Message, Notified, SimulationEnded
from rebat.core.jobs import PROBES
from rebat.engine.engine import Engine, EngineOptions, Scheduler
from rebat.library.policy_check.cases import CheckCase
from rebat.library.policy_check.invariants import (
    Violation,
    check_ends,
    check_nodes,
    check_sizes,
    check_starts,
    check_time,
    require,
    validated,
)
from rebat.library.policy_check.noise import Noise
from rebat.library.policy_check.ring import on_ring
from rebat.library.policy_check.watched import ViewChanged, Watched
from rebat.policies.own import is_own
from rebat.policies.own_policy import OwnPolicy, own_policy
from rebat.policies.presets import Preset
from rebat.results.files.batsim_csv import jobs_csv
from rebat.results.measures.summary import Measures, summarise
from rebat.session.session import Session
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


def _stuck(session: Session) -> str:
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
        conversation = Conversation(lambda _: self.session)

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
