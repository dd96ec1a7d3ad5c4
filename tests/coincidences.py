# SPDX-License-Identifier: Apache-2.0
"""Random scenarios full of coincident dates, played in three ways that must agree.

``python -m tests.coincidences 10000`` plays so many; the suite plays some hundred.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from rebat.core.jobs import PROBES, Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.engine.engine import Engine, Scheduler
from rebat.engine.options import EngineOptions
from rebat.models.checkpoint import add_perfect, add_young_daly
from rebat.models.failures.events import (
    GenericEvent,
    MachineEvent,
    read_events,
    write_events,
)
from rebat.models.tiers import add_tiers, parse_tiers
from rebat.policies.presets import PRESETS, preset
from rebat.results.files.batsim_csv import jobs_csv
from rebat.runs.single import simulate
from rebat.session.session import Session
from rebat.wire.conversation import Conversation, session_for
from rebat.wire.instants import WholeInstants
from rebat.wire.recording import TO_SCHEDULER, TO_SIMULATOR, Recorder
from rebat.wire.remote import run_remote
from tests.noise import Noise
from tests.recordings import replay
from tests.scenarios import check_run, on_ring, validated

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
TIERS = [
    "peer=1/1@2+remote=1/2@4", "memory=1/0@1+remote=2/1@3", "memory=0/1@1+peer=1/1@2+remote=1/2@4",
]  # fmt: skip
POLICIES = sorted(PRESETS) + REPLACING + MIGRATING


class Case:
    """A workload, its failures and a policy, all drawn from a seed; dates are whole seconds."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        policy, self.n_nodes = rng.choice(POLICIES), rng.choice([2, 4, 10])
        drain = rng.choice(["drain=ignore", "drain=migrate", "drain=wait"])
        name = on_ring(policy, self.n_nodes).name
        stages = rng.choice(["", "", ",detect=2", ",detect=gpu=1/3,diagnose=1,init=nic=2/1"])
        self.policy = f"{name}{',' if ':' in name else ':'}{drain}{stages}"
        self.workload = workload(rng, self.n_nodes)
        self.events = outages(rng, self.n_nodes)
        self.cores = 1 if self.n_nodes == 2 else rng.choice([1, 1, 2])
        self.operations = operations(rng, self.n_nodes // self.cores, self.workload)

    @property
    def told(self) -> dict:
        """What the scheduler is told over the wire."""
        return {"cores_per_node": self.cores}


def workload(rng: random.Random, n_nodes: int) -> Workload:
    """Few dates for many jobs; some composed of two delays, some outrunning their walltime."""
    profiles = {f"d{length}": {"type": "delay", "delay": length} for length in range(1, 13)}
    profiles |= {
        f"c{a}{b}": {"type": "composed", "seq": [f"d{a}", f"d{b}"]} for a in (1, 4) for b in (2, 6)
    }
    composed = rng.random() < 0.3
    names = list(profiles) if composed else [name for name in profiles if name[0] == "d"]
    rigid = rng.random() < 0.5
    jobs = []
    for number in range(rng.randint(1, 12)):
        size = rng.randint(1, n_nodes)
        jobs.append(
            Job(
                str(number),
                size,
                to_us(rng.randint(0, 20)),
                rng.choice([None, to_us(rng.randint(1, 20))]),
                rng.choice(names),
                {} if rigid else shape(rng, size, n_nodes),
            )
        )
    made = Workload("coincidences", n_nodes, tuple(jobs), profiles)
    if composed or rng.random() < 0.5:
        return made
    if rng.random() < 0.5:
        return add_perfect(made)
    if rng.random() < 0.5:
        tiers = parse_tiers(rng.choice(TIERS))
        shares = (0.3, 0.6)[: len(tiers.lights)] if tiers.lights[1:] else 0.6
        return add_tiers(
            made, tiers, n_nodes=n_nodes, mtbf_s=8, light_share=shares, software="gpu"
        )  # fmt: skip
    return add_young_daly(made, n_nodes=n_nodes, mtbf_s=8, cost_s=1.0, recovery_s=2.0)


def shape(rng: random.Random, size: int, n_nodes: int) -> dict:
    """Rigid, moldable or malleable, around a size."""
    sizes = sorted(rng.sample(range(1, n_nodes + 1), rng.randint(1, min(3, n_nodes))))
    ends = {"min": rng.randint(1, size), "max": rng.randint(size, n_nodes)}
    return rng.choice(
        [
            {},
            {"shape": {"kind": "moldable", "sizes": sizes}},
            {"shape": {"kind": "malleable"} | ends},
        ]
    )


def outages(rng: random.Random, n_nodes: int) -> list[MachineEvent]:
    """Nodes, or groups of them, that fail, often at the very date at which some came back."""
    events, group = [], rng.choice([1, 1, 2])
    for node in range(0, n_nodes, group):
        at = 0
        for _ in range(rng.randint(0, 3)):
            down = at + rng.choice([0, rng.randint(0, 25)]) + (at == 0)
            at = down + rng.randint(1, 12)
            nodes = NodeSet.of(range(node, node + group))
            cause = rng.choice([None, None, "gpu", "nic"])
            events.append(MachineEvent(to_us(down), False, nodes, cause))
            events.append(MachineEvent(to_us(at), True, nodes))
    rng.shuffle(events)
    return events


def operations(rng: random.Random, n_nodes: int, jobs: Workload) -> list[GenericEvent]:
    """Nodes drained and taken back, jobs moved; in the end all nodes are in service."""
    found, drained, at = [], set[int](), 0
    for _ in range(rng.choice([0, 0, 6])):
        at += rng.randint(0, 6)
        node = rng.randrange(n_nodes)
        data = {"type": "undrain" if node in drained else "drain", "nodes": str(node)}
        if rng.random() < 0.3:
            data = {"type": "migrate", "job": rng.choice(jobs.jobs).id}
            if rng.random() < 0.5:
                data["nodes"] = str(node)
        elif node in drained:
            drained.remove(node)
        else:
            drained.add(node)
            data["spanning"] = rng.random() < 0.7
        found.append(GenericEvent(to_us(at), data))
    if drained:
        nodes = str(NodeSet.of(drained))
        found.append(GenericEvent(to_us(at + 5), {"type": "undrain", "nodes": nodes}))
    return found


def play(case: Case, folder: Path) -> None:
    """Play a case embedded, over the wire and from its recording; all must say the same."""
    write_events(case.events, folder / "f.events")
    events = read_events(folder / "f.events")
    result = simulate(
        case.workload, preset(case.policy), n_nodes=case.n_nodes, machine_events=events,
        cores_per_node=case.cores, operations=case.operations,
    )  # fmt: skip
    check_run(result)
    assert {row.job_id for row in result.rows} == {job.id for job in case.workload.jobs}

    options = EngineOptions(acknowledge_dynamic_jobs=True, forward_unknown_events=True)
    engine = Engine(
        case.workload, n_nodes=case.n_nodes, events=events, operations=case.operations,
        options=options,
    )  # fmt: skip

    def session(_: str) -> Session:
        return session_for(case.policy, case.told, strict=True)

    conversation = Conversation(session)
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
    again = replay(
        folder / "talk.jsonl", lambda _: session_for(case.policy, case.told, strict=True)
    )
    assert list(again) == []


def play_split(case: Case) -> None:
    """Play a case with every instant told in several messages: safe, and no job is lost."""
    options = EngineOptions(split_instants=True)
    result = simulate(
        case.workload, preset(case.policy), n_nodes=case.n_nodes, machine_events=case.events,
        engine_options=options, cores_per_node=case.cores, operations=case.operations,
    )  # fmt: skip
    check_run(result)
    assert {row.job_id for row in result.rows} == {job.id for job in case.workload.jobs}


def play_noisy(case: Case) -> None:
    """Play a case with messages that bring nothing, and with repairs told apart from failures.

    The same schedule results: no decision depends on how many messages make up an instant.
    """
    rng, handle = random.Random(repr(case.policy)), session(case)
    expected = schedule(case, handle, acknowledged=False)
    assert schedule(case, Noise(session(case), rng), acknowledged=False) == expected
    real = WholeInstants(session(case))
    assert schedule(case, Noise(real, rng, apart=True), acknowledged=True) == expected


def session(case: Case) -> Scheduler:
    """A session that is validated after every message."""
    return validated(session_for(case.policy, case.told, strict=True))


def schedule(case: Case, scheduler: Scheduler, *, acknowledged: bool) -> list[str]:
    """The rows of the workload's own jobs."""
    engine = Engine(
        case.workload, n_nodes=case.n_nodes, events=case.events, operations=case.operations,
        options=EngineOptions(
            acknowledge_dynamic_jobs=acknowledged, forward_unknown_events=True
        ),
    )  # fmt: skip
    engine.run(scheduler)
    return [*jobs_csv(job for job in engine.ended if job.workload != PROBES)]


def main(count: int, first: int = 0) -> None:
    """Play so many cases; stops at the first that fails."""
    with tempfile.TemporaryDirectory() as name:
        for seed in range(first, first + count):
            try:
                play(Case(seed), Path(name))
                play_split(Case(seed))
                play_noisy(Case(seed))
            except BaseException:
                print(f"case {seed}: {Case(seed).policy}")
                raise
    print(f"{count} cases agree")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
