# SPDX-License-Identifier: Apache-2.0
"""Random scenarios with many simultaneous events; different ways to run them must agree.

``python -m tests.support.coincidences 10000`` runs 10,000 scenarios. The test suite runs fewer.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rebat.check.cases import operations, outages, workload
from rebat.check.playing import Noise, check_run, on_ring, validated
from rebat.core.decisions import ExecuteJob, Reply
from rebat.core.events import Message, SimulationBegan
from rebat.core.jobs import PROBES
from rebat.core.units import to_us
from rebat.drive.messages import Messages
from rebat.engine.engine import Engine, EngineOptions, Scheduler
from rebat.models.failures.events import GenericEvent, read_events, write_events
from rebat.policies.presets import PRESETS, preset
from rebat.results.files.batsim_csv import jobs_csv
from rebat.runs.single import simulate
from rebat.wire.conversation import Conversation, run_remote, session_for
from rebat.wire.instants import WholeInstants
from rebat.wire.recording import TO_SCHEDULER, TO_SIMULATOR, Recorder
from tests.support.both_ways import both, line_per_node, with_users
from tests.support.dependent import check_dependent, dependent
from tests.support.findings import findings_in
from tests.support.recordings import replay
from tests.support.seeds import play_all

REPLACING = [
    "dbes:react=replacement", "pwa:react=replacement,spares=1", "sa:react=replacement",
    "pra:manager=egs,react=replacement+stealing", "baseline:react=replacement",
    "baseline:react=replacement+stealing,spares=2",
]  # fmt: skip
MIGRATING = [
    "compaction:targets=several,period=3,migration_cost=1", "tiers:migration_cost=2",
    "compaction:react=compaction+sleep,period=2,sleep=3,boot=2,migration_cost=0",
    "priorities:partitions=high:0%-50%+low:50%-100%,period=2,migration_cost=1",
    "tiers:partitions=high:all:2+low:all:1,migration_cost=1", "easy:react=compaction,period=4",
]  # fmt: skip
PREDICTING = [
    "easy:predict=recent", "baseline:predict=recent", "authors-h213:predict=recent",
    "baseline:predict=0.5,margin=1", "easy:predict=0.1,placement=named", "torus-first:predict=0.3",
    "baseline:predict=actual,placement=cluster",
]  # fmt: skip
RULED = [
    "easy:wfp3", "baseline:unicef", "easy:order=10*fairshare+age,half_life=10",
    "baseline:order=age-usage,placement=named,order_period=3", "easy:limits=user:jobs=1",
    "baseline:limits=user:nodes=3,placement=named", "easy:planning=fifo,limits=user:jobs=1",
    "easy:reservations=announced", "baseline:reservations=m:0:begin=4:length=9,react=stealing",
    "easy:react=stealing,limits=user:jobs=2,reservations=d:0:begin=2:length=3:every=60:user=ann",
]  # fmt: skip
POLICIES = sorted(PRESETS) + REPLACING + MIGRATING + PREDICTING + RULED


class Case:
    """A workload, its failures and a policy, all drawn from a seed; times are whole seconds.

    If ``depends`` is set, jobs depend on each other.
    """

    def __init__(self, seed: int, depends: bool = False) -> None:
        rng = random.Random(seed)
        policy, self.n_nodes = rng.choice(POLICIES), rng.choice([2, 4, 10])
        drain = rng.choice(["drain=ignore", "drain=migrate", "drain=wait"])
        name = on_ring(policy, self.n_nodes).name
        stages = rng.choice(["", "", ",detect=2", ",detect=gpu=1/3,diagnose=1,init=nic=2/1"])
        self.policy = f"{name}{',' if ':' in name else ':'}{drain}{stages}"
        self.workload = workload(rng, self.n_nodes)
        if any(word in self.policy for word in ("predict", "share", "user", "usage")):
            self.workload = with_users(self.workload, rng)
        if depends:
            self.workload = dependent(random.Random(seed), self.workload)
        self.events = outages(rng, self.n_nodes)
        self.cores = 1 if self.n_nodes == 2 else rng.choice([1, 1, 2])
        self.operations = operations(rng, self.n_nodes // self.cores, self.workload)
        if "announced" in self.policy:
            node, begin = rng.randrange(self.n_nodes // self.cores), rng.randint(1, 20)
            data = {"type": "announce", "nodes": str(node), "begin": begin, "end": begin + 6}
            announced = GenericEvent(to_us(rng.randint(0, begin)), data)
            self.operations = sorted([*self.operations, announced], key=lambda event: event.at_us)
        if rng.random() < 0.5:
            self.events = line_per_node(self.events)

    @property
    def told(self) -> dict:
        """The settings that the scheduler receives over the wire."""
        return {"cores_per_node": self.cores}


def play(case: Case, folder: Path) -> None:
    """Run a case embedded, over the wire and from its recording. All three must agree."""
    write_events(case.events, folder / "f.events")
    events = read_events(folder / "f.events")
    result = both(
        case.workload, case.policy, n_nodes=case.n_nodes, machine_events=events,
        cores_per_node=case.cores, operations=case.operations,
    )  # fmt: skip
    check_run(result)
    check_dependent(result.ledger, case.workload)
    assert {row.job_id for row in result.rows} == {job.id for job in case.workload.jobs}
    assert findings_in(result, case.workload, events) == []

    options = EngineOptions(acknowledge_dynamic_jobs=True, forward_unknown_events=True)
    engine = Engine(
        case.workload, n_nodes=case.n_nodes, events=events, operations=case.operations,
        options=options,
    )  # fmt: skip

    conversation = Conversation(answering(case))
    with Recorder(folder / "talk.jsonl") as record:

        def ask(data: bytes) -> bytes:
            record(TO_SCHEDULER, data)
            reply = conversation.answer(data)
            if conversation.session:
                conversation.session.validate()
            record(TO_SIMULATOR, reply)
            return reply

        run_remote(engine, ask)
    assert [*jobs_csv(engine.ended)] == [*jobs_csv(result.jobs)]
    again = replay(folder / "talk.jsonl", answering(case))
    assert list(again) == []


def play_split(case: Case) -> None:
    """Run a case with each instant split into several messages: it is safe, and no job is lost."""
    options = EngineOptions(split_instants=True)
    result = simulate(
        case.workload, preset(case.policy), n_nodes=case.n_nodes, machine_events=case.events,
        engine_options=options, cores_per_node=case.cores, operations=case.operations,
    )  # fmt: skip
    check_run(result)
    check_dependent(result.ledger, case.workload)
    assert {row.job_id for row in result.rows} == {job.id for job in case.workload.jobs}


def play_noisy(case: Case) -> None:
    """Run a case with messages without news, and with each node event in a separate message.

    The schedule must stay the same: no decision depends on the number of messages of an instant. No
    job starts before the last event of its instant.
    """
    rng = random.Random(repr(case.policy))
    expected = schedule(case, session(case))
    assert schedule(case, Noise(session(case), rng)) == expected
    for noise in (None, rng):
        whole: Scheduler = WholeInstants(session(case))
        handle = Noise(whole, noise) if noise else whole
        real = schedule(case, handle, acknowledge_dynamic_jobs=True, split_failures=True)
        assert real == expected


def session(case: Case) -> Scheduler:
    """Return a session that is validated after every message."""
    profiles = {"w0": case.workload.profiles}
    began = SimulationBegan(
        at_us=0, n_nodes=case.n_nodes, config={}, profiles=profiles, workloads={}
    )
    return validated(session_for(case.policy, case.told, began, strict=True))


def answering(case: Case) -> Callable[[str, SimulationBegan], Messages]:
    """Return the function that creates the driver of a conversation."""
    return lambda _, began: session_for(case.policy, case.told, began, strict=True)


def schedule(case: Case, scheduler: Scheduler, **options: bool) -> list[str]:
    """Return the rows of the jobs of the workload."""
    engine = Engine(
        case.workload, n_nodes=case.n_nodes, events=case.events, operations=case.operations,
        options=EngineOptions(forward_unknown_events=True, **options),
    )  # fmt: skip

    def handle(message: Message) -> Reply:
        reply = scheduler(message)
        starts = any(isinstance(decision, ExecuteJob) for decision in reply.decisions)
        assert not (starts and engine.lines_left and options.get("acknowledge_dynamic_jobs"))
        return reply

    engine.run(handle)
    return [*jobs_csv(job for job in engine.ended if job.workload != PROBES)]


def play_ways(seed: int, folder: Path) -> list[str]:
    """Compare a case whole, in split instants, and with noise."""
    play(Case(seed), folder)
    play_split(Case(seed))
    play_noisy(Case(seed))
    return ["equal"]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        play_all(
            lambda seed: play_ways(seed, Path(name)),
            lambda seed: Case(seed).policy,
            *map(int, sys.argv[1:]),
        )
