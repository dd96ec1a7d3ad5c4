# SPDX-License-Identifier: Apache-2.0
"""Today's engine and session run; the wire driver gets the same messages, and its replies must be equal.

``python -m tests.support.shadow COUNT [FIRST] [KIND]``. Kinds: ``brief`` (baseline, easy, greedy, sfsj
with T1), ``all`` (everything that `both_ways` draws: orders, T2 and T3, both dialects, predictions).
Every case runs on a randomly disturbed engine: latency, split instants, split failures.
"""

from __future__ import annotations

import random
import sys
import traceback
from collections import Counter
from typing import Any

import msgspec

from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.errors import PolicyError, RebatError
from rebat.core.jobs import Workload
from rebat.drive.simulate import Events
from rebat.drive.wire import Wire
from rebat.engine.engine import Engine, EngineOptions
from rebat.policies.presets import preset
from rebat.session.session import Session
from rebat.wire.instants import WholeInstants
from tests.support.both_ways import Case

BRIEF = ("baseline", "easy", "greedy", "sfsj", "baseline:react=stealing", "easy:react=stealing",
         "sfsj:victim=latest-release", "greedy:react=stealing,victim=fits")  # fmt: skip


class Different(Exception):
    pass


def shown(reply: Any) -> str:
    if isinstance(reply, RebatError):
        return f"    {reply!r}"
    return "\n".join(f"    {each}" for each in reply.decisions)


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
        except RebatError as error:
            ours = error
        if isinstance(expected, RebatError):
            same = type(ours) is type(expected) and str(ours) == str(expected)
        else:
            same = ours == expected
        if isinstance(expected, PolicyError) and isinstance(ours, d.Reply):
            self.counts["the session refuses its own policy"] += 1
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
    )


def with_wrong_dependencies(rng: random.Random, workload: Workload) -> Workload:
    """Return a workload in which a job depends on a job that does not exist, or on itself."""
    jobs = [*workload.jobs]
    at = rng.randrange(len(jobs))
    other = rng.choice(["nobody", jobs[at].id, rng.choice(jobs).id])
    text = rng.choice([f"afterok:{other}", f"after:{other},afterany:{rng.choice(jobs).id}"])
    jobs[at] = msgspec.structs.replace(jobs[at], extra={**jobs[at].extra, "dependency": text})
    return msgspec.structs.replace(workload, jobs=tuple(jobs))


def play(seed: int, kind: str, totals: Counter[str]) -> str:
    case, rng = Case(seed), random.Random(-seed)
    policy = rng.choice(BRIEF) if kind == "brief" else case.policy
    chosen, options = preset(policy), options_of(rng)
    session_options = msgspec.structs.replace(chosen.session, max_attempts=case.max_attempts)
    given = Events(case.events).all
    workload = case.workload
    if rng.random() < 0.1:
        workload = with_wrong_dependencies(rng, workload)
    engine = Engine(workload, n_nodes=case.n_nodes, events=given, options=options)
    shadow = Shadow(Session(chosen.make(), session_options), Wire(chosen.point, session_options))
    kindness, handle = "complete", shadow.handle
    if rng.random() < 0.5:
        handle = Late(handle, engine, rng)
    if rng.random() < 0.5:
        handle = WholeInstants(handle, 4, probes=True)
    try:
        engine.run(handle)
    except RebatError as error:
        kindness = "stuck: " + str(error).split(" s: ")[-1].split("(")[0][:60]
        if shadow.counts["errors"]:
            kindness = "error of both"
    totals += shadow.counts
    totals["messages"] += shadow.messages
    totals["messages at the time of the one before"] += shadow.split
    if shadow.counts["KillJobs"]:
        totals["runs with kills"] += 1
    return kindness


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
    main(*map(int, sys.argv[1:3]), *sys.argv[3:])
