# SPDX-License-Identifier: Apache-2.0
"""The session and the driver for Batsim's messages get the same messages. Their replies are equal.

``python -m tests.support.shadow COUNT [FIRST] [KIND] [WORD ...]``. Kinds: ``brief``
(baseline, easy, greedy, sfsj with T1), ``all`` (everything that `both_ways` and `parted` draw).
With ``tiny``, all tables begin with one row. With ``replacing``, policies replace failed nodes. The
records of plans are also compared. Every case runs on a randomly disturbed engine: latency, split
instants, split failures, late acknowledgements. Some workloads, options and messages have errors.
"""

from __future__ import annotations

import itertools
import random
import re
import sys
import traceback
from collections import Counter
from typing import Any

import msgspec

from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.errors import PolicyError, RebatError
from rebat.core.jobs import Workload
from rebat.core.nodes import NodeSet
from rebat.core.options import SessionOptions, YoungDaly
from rebat.drive.ask import Session
from rebat.drive.parts import Uncovered
from rebat.drive.plan_record import PLAN_COLUMNS, PlanCause, PlanRecorder
from rebat.drive.simulate import Events
from rebat.drive.wire import Wire
from rebat.engine.engine import Engine, EngineOptions
from rebat.policies.presets import preset
from rebat.state.ledger import Ledger
from rebat.wire.instants import WholeInstants
from tests.support.both_ways import LEDGER, WORDS, Case, check_same_plans
from tests.support.parted import PartedCase

BRIEF = ("baseline", "easy", "greedy", "sfsj", "baseline:react=stealing", "easy:react=stealing",
         "sfsj:victim=latest-release", "greedy:react=stealing,victim=fits")  # fmt: skip


class Different(Exception):
    pass


def shown(reply: Any) -> str:
    if isinstance(reply, RebatError):
        return f"    {reply!r}"
    return "\n".join(f"    {each}" for each in reply.decisions)


def in_us(reply: d.Reply) -> list[d.Decision]:
    """Return the decisions of a reply, with the numbers of profiles in whole microseconds."""
    return [
        msgspec.structs.replace(
            each,
            profile={
                name: round(value, 6) if isinstance(value, float) else value
                for name, value in each.profile.items()
            },
        )
        if isinstance(each, d.RegisterProfile)
        else each
        for each in reply.decisions
    ]


def kind_of(error: RebatError) -> str:
    """Return the text of an error without names and numbers."""
    return re.sub(r"'.*?'|\S*[\d!#]\S*|job nobody", "*", str(error))[:80]


class Shadow:
    """Answers as the session does, and compares the wire driver's replies."""

    def __init__(self, session: Any, wire: Any) -> None:
        self.session, self.wire = session, wire
        self.messages = self.split = 0
        self.counts: Counter[str] = Counter()
        self._last, self._open_kills = -1, 0

    def handle(self, message: e.Message) -> d.Reply:
        expected = self._reply_or_error(message)
        self.messages += 1
        self.split += message.now_us == self._last
        self._last = message.now_us
        for decision in expected.decisions:
            self.counts[type(decision).__name__] += 1
        if self._open_kills and not any(isinstance(x, e.JobsKilled) for x in message.events):
            self.counts["messages between kill and acknowledgement"] += 1
        self._open_kills += sum(isinstance(x, d.KillJobs) for x in expected.decisions)
        self._open_kills -= sum(isinstance(x, e.JobsKilled) for x in message.events)
        return expected

    def _reply_or_error(self, message: e.Message) -> d.Reply:
        """Return the reply of both, or raise the error of both."""
        try:
            expected: Any = self.session.handle(message)
        except RebatError as error:
            expected = error
        try:
            ours: Any = self.wire.handle(message)
            self.wire.validate()
        except RebatError as error:
            ours = error
        if isinstance(expected, RebatError):
            same = type(ours) is type(expected) and str(ours) == str(expected)
        else:
            same = ours == expected
        if not same and isinstance(expected, d.Reply) and isinstance(ours, d.Reply):
            # numbers with six digits can be smaller than a microsecond
            same = in_us(ours) == in_us(expected)
            self.counts["replies that differ by less than 1 us"] += same
        if not same and isinstance(expected, RebatError) and isinstance(ours, d.Reply):
            if isinstance(expected, PolicyError):
                self.counts["the session refuses its own policy"] += 1
                raise expected
            if "cannot become" in str(expected):
                self.counts["impossible messages"] += 1
                raise expected
        if not same:
            raise Different(
                f"message {self.messages + 1} at {message.now_us}: {message.events}\n"
                f"  session:\n{shown(expected)}\n  wire:\n{shown(ours)}"
            )
        if isinstance(expected, RebatError):
            self.counts["errors"] += 1
            raise expected
        return expected


class Late:
    """Delivers acknowledgements of kills one or more messages later, as a slow network could."""

    def __init__(self, handle: Any, engine: Engine, rng: random.Random) -> None:
        self._handle, self._engine, self._rng = handle, engine, rng
        self._held: list[e.Event] = []

    def __call__(self, message: e.Message) -> d.Reply:
        events = [*self._held, *message.events]
        self._held = []
        last = isinstance(events[-1], e.SimulationEnded) or not self._engine._heap
        if not last and self._rng.random() < 0.6:
            with_ends = self._rng.random() < 0.5
            self._held = [
                event
                for event in events
                if isinstance(event, e.JobsKilled)
                or (
                    with_ends
                    and isinstance(event, e.JobCompleted)
                    and event.state == "COMPLETED_KILLED"
                )
            ]
            events = [event for event in events if event not in self._held]
        if not events:
            return d.Reply(message.now_us)
        return self._handle(e.Message(message.now_us, tuple(events)))


def options_of(rng: random.Random) -> EngineOptions:
    """Return options of an engine that splits instants and acknowledges later, or does not."""
    return EngineOptions(
        acknowledge_dynamic_jobs=rng.random() < 0.7,
        forward_profiles=rng.random() < 0.3,
        latency_us=rng.choice([0, 0, 0, 100, 700_000, 3_000_000]),
        split_instants=rng.random() < 0.4,
        split_failures=rng.random() < 0.3,
        dynamic_jobs=rng.random() < 0.95,
        profile_reuse=rng.random() < 0.9,
        forward_unknown_events=rng.random() < 0.1,
    )


def with_wrong_dependencies(rng: random.Random, workload: Workload) -> Workload:
    """Return a workload in which a job depends on a job that does not exist, or on itself."""
    jobs = [*workload.jobs]
    at = rng.randrange(len(jobs))
    other = rng.choice(["nobody", jobs[at].id, rng.choice(jobs).id])
    text = rng.choice([f"afterok:{other}", f"after:{other},afterany:{rng.choice(jobs).id}"])
    jobs[at] = msgspec.structs.replace(jobs[at], extra={**jobs[at].extra, "dependency": text})
    return msgspec.structs.replace(workload, jobs=tuple(jobs))


def with_other_profiles(rng: random.Random, workload: Workload) -> Workload:
    """Return a workload with profiles of other types, names that are taken, and shapes."""
    jobs, profiles = [*workload.jobs], dict(workload.profiles)
    share = rng.choice([0.1, 0.5])
    for at, job in enumerate(jobs):
        if rng.random() > share:
            continue
        fields = {key: value for key, value in profiles[job.profile].items() if key != "ret"}
        length_s = fields["delay"]
        kind = rng.choice(["composed", "composed", "flops", "taken", "shape", "errors", "named"])
        name, extra = f"other{at}", dict(job.extra)
        if kind == "composed":
            profiles[f"part{at}"] = {"type": "delay", "delay": length_s / 2}
            profiles[name] = {"type": "composed", "seq": [f"part{at}"], "repeat": 2}
        elif kind == "flops":
            profiles[name] = {"type": "parallel_homogeneous", "cpu": length_s * 1e9, "com": 0}
        elif kind == "taken":
            name = job.profile
            profiles[f"{job.id}#1:{name}"] = {"type": "delay", "delay": 3}
        elif kind == "errors":
            profiles[name] = fields | {"silent_errors": 1, "ret": 1}
        elif kind == "named":
            name = rng.choice([f"a:b{at}", f"a#1:b{at}"])
            profiles[name] = fields
        else:
            name, extra["shape"] = job.profile, {"kind": "malleable", "min": 1, "max": job.n_nodes}
        jobs[at] = msgspec.structs.replace(job, profile=name, extra=extra)
    if rng.random() < 0.2:
        at = rng.randrange(len(jobs))
        jobs[at] = msgspec.structs.replace(
            jobs[at], id=f"{rng.choice(jobs).id}#{rng.randint(1, 2)}"
        )
    return msgspec.structs.replace(workload, jobs=tuple(jobs), profiles=profiles)


def spoiled(rng: random.Random, message: e.Message, session: Any) -> e.Message:
    """Return a message with an error, or with something unusual."""
    now, events = message.now_us, [*message.events]
    names = [*session.running, *session.queue, "w0!nobody"]
    name = rng.choice(names)
    job = {"id": "w0!new", "res": 1, "walltime": 5, "profile": "new", "subtime": 0}
    delay = {"type": "delay", "delay": 3}
    wrong: list[Any] = [
        {"res": 0}, {"res": True}, {"walltime": 0}, {"walltime": "x"}, {"walltime": -1},
        {"dependency": "?"}, {"dependency": "afterok:nobody"}, {"array": "x"}, {"array": 3},
        {"user": 3}, {"priority_class": -1}, {"res": 10**6}, {"shape": 3},
    ]  # fmt: skip
    profiles: list[Any] = [
        None, {}, {"type": "usage_trace"}, delay | {"checkpoint_period": 0},
        delay | {"checkpoint_period": [1]}, delay | {"speedup": "x"}, {"type": "delay"},
    ]  # fmt: skip
    other = rng.choice(
        [
            e.SimulationBegan(at_us=now, n_nodes=64, config={}, profiles={}, workloads={}),
            e.JobSubmitted(at_us=now, job_id=name, job=job | {"id": name}, profile=delay),
            e.JobSubmitted(
                at_us=now, job_id="w0!new", job=job | rng.choice(wrong),
                profile=rng.choice([delay, delay, None]),
            ),
            e.JobSubmitted(at_us=now, job_id="w0!new", job=job, profile=rng.choice(profiles)),
            e.JobSubmitted(at_us=now, job_id="new", job=job | {"id": "new"}, profile=delay),
            e.JobCompleted(
                at_us=now, job_id=name, return_code=0,
                state=rng.choice(["COMPLETED_FAILED", "COMPLETED_KILLED", "?"]),
                nodes=NodeSet.of([0]),
            ),
            e.JobsKilled(at_us=now, job_ids=(name,), progress={name: {}}),
            e.NodesFailed(at_us=now, nodes=NodeSet.of([rng.randint(0, 12)])),
            e.NodesRejuvenated(at_us=now, nodes=NodeSet.of([rng.randint(0, 12)])),
            e.NodesFailed(at_us=now, nodes=NodeSet.of([0, 1]), cause="gpu"),
            e.NoMoreStaticJobs(at_us=now),
            e.NoMoreExternalEvents(at_us=now),
            e.CallRequested(at_us=now),
            e.Notified(at_us=now, kind="x"),
            e.Notified(at_us=now, kind="drain", data={"nodes": rng.choice(["0", "1-99", "?"])}),
            e.Notified(at_us=now, kind="migrate", data={"job": name}),
            e.SimulationEnded(at_us=now),
            None,
        ]
    )  # fmt: skip
    if other is None:
        return e.Message(now - 1, message.events)
    events.insert(rng.randint(0, len(events)), other)
    return e.Message(now, tuple(events))


class Spoiling:
    """Spoils one message of a conversation."""

    def __init__(self, handle: Any, session: Any, rng: random.Random) -> None:
        self._handle, self._session, self._rng = handle, session, rng
        self._left = rng.randint(0, 30)

    def __call__(self, message: e.Message) -> d.Reply:
        self._left -= 1
        if self._left == 0:
            message = spoiled(self._rng, message, self._session)
        return self._handle(message)


def session_options_of(rng: random.Random, options: SessionOptions) -> SessionOptions:
    """Return the options of a session with random settings."""
    derived = YoungDaly(rng.choice([8.0, 40.0]), 1.0, 2.0)
    return msgspec.structs.replace(
        options,
        strict=rng.random() < 0.5,
        cores_per_node=rng.choice([*[1] * 9, *[2] * 5, 3]),
        young_daly=derived if rng.random() < 0.15 else None,
    )


def play(seed: int, kind: str, totals: Counter[str]) -> str:
    case: Any
    if kind == "all" and seed % 4 == 3:
        case = PartedCase(seed, engines=True)
        case.events, case.policy = case.events(), f"{case.options},partitions={case.partitions}"
    else:
        case = Case(seed)
    rng = random.Random(-seed)
    policy = rng.choice(BRIEF) if kind == "brief" else case.policy
    chosen, options = preset(policy), options_of(rng)
    session_options = msgspec.structs.replace(chosen.session, max_attempts=case.max_attempts)
    given = Events(case.events).all
    workload = case.workload
    if rng.random() < 0.1:
        workload = with_wrong_dependencies(rng, workload)
    if rng.random() < 0.3:
        workload = with_other_profiles(rng, workload)
    operations = getattr(case, "operations", [])
    if operations:
        options = msgspec.structs.replace(options, forward_unknown_events=True)
        session_options = msgspec.structs.replace(
            session_options, cores_per_node=case.cores_per_node
        )
    engine = Engine(
        workload, n_nodes=case.n_nodes, events=given, operations=operations, options=options
    )
    if rng.random() < 0.3 and not operations:
        session_options = session_options_of(rng, session_options)
        cores = session_options.cores_per_node
        if cores > 1 and isinstance(case, PartedCase) and case.n_nodes % cores == 0:
            policy = (
                f"{case.options},partitions=p0:0%-50%+p1:50%-100%:max_nodes={rng.randint(1, 9)}"
            )
            chosen = preset(policy)
        elif "partitions=" in policy or "reservations=" in policy:
            session_options = msgspec.structs.replace(session_options, cores_per_node=1)
    records = PlanRecorder(), PlanRecorder()
    shadow = Shadow(
        Session(chosen.make(), session_options, recorder=records[0]),
        Wire(chosen.point, session_options, records[1]),
    )
    kindness, handle = "complete", shadow.handle
    if rng.random() < 0.2:
        handle = Spoiling(handle, shadow.session, rng)
    if rng.random() < 0.5:
        handle = Late(handle, engine, rng)
    if rng.random() < 0.5:
        handle = WholeInstants(handle, 4, probes=True)
    try:
        engine.run(handle)
    except Uncovered as error:
        kindness = f"not covered: {error}"
    except RebatError as error:
        kindness = "stuck: " + str(error).split(" s: ")[-1].split("(")[0][:60]
        if shadow.counts["errors"]:
            kindness = f"error of both: {kind_of(error)}"
    if not (kindness.startswith(("error", "not covered")) or fault_of_session(shadow.counts)):
        check_ledgers(shadow.wire.ledger, shadow.session.ledger)
        expected, ours = (record.result() for record in records)
        check_same_plans(ours, expected)
        refusals = expected.plans[:, PLAN_COLUMNS.index("causes")] & PlanCause.REFUSAL > 0
        totals["plans"] += len(refusals)
        totals["plans after a refusal"] += int(refusals.sum())
        totals["ledgers"] += 1
    totals += shadow.counts
    totals["messages"] += shadow.messages
    totals["messages at the time of the one before"] += shadow.split
    if shadow.counts["KillJobs"]:
        totals["runs with kills"] += 1
    return kindness


def fault_of_session(counts: Counter[str]) -> bool:
    """Return whether the session ended with an error that the other driver does not have."""
    return bool(counts["the session refuses its own policy"] or counts["impossible messages"])


def check_ledgers(ours: Ledger, expected: Ledger) -> None:
    """Check that two ledgers are equal."""
    for one, other in itertools.zip_longest(ours.attempts, expected.attempts):
        assert one == other, f"attempt\n  session: {other}\n  wire:    {one}"
    for name in LEDGER:
        one, other = getattr(ours, name), getattr(expected, name)
        assert one == other, f"{name}\n  session: {other}\n  wire:    {one}"
    assert [*ours.interrupted] == [*expected.interrupted]


def main(count: int, first: int = 0, kind: str = "brief", go_on: str = "") -> None:
    kinds: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    for seed in range(first, first + count):
        try:
            kinds[play(seed, kind, totals)] += 1
        except Exception as error:
            print(f"case {seed}: {Case(seed).policy}")
            if not go_on:
                raise
            kinds["different"] += 1
            print("".join(traceback.format_exception(error))[-1500:])
    print(f"{count} cases ({kind}): {dict(sorted(kinds.items()))}")
    for name, number in totals.most_common():
        print(f"  {number:>8} {name}")


if __name__ == "__main__":
    for word, prepare in WORDS.items():
        if word in sys.argv:
            sys.argv.remove(word)
            prepare()
    main(*map(int, sys.argv[1:3]), *sys.argv[3:])
