# SPDX-License-Identifier: Apache-2.0
"""The engine instead of Batsim 5, and the presets with this engine."""

from __future__ import annotations

import msgspec
import pytest

from rebat.core.units import to_us
from rebat.engine.options import EngineOptions
from rebat.library.policy_check.invariants import check_ends, check_nodes, check_sizes
from rebat.models.failures.events import GenericEvent, MachineEvent
from rebat.policies.presets import preset
from rebat.results.files.batsim5_files import jobs_csv5
from rebat.results.files.batsim_csv import jobs_csv
from rebat.runs.single import simulate
from tests.batsim5 import play5, replay_on_engine, rows4
from tests.coincidences import Case
from tests.recordings import cases5
from tests.wire.test_batsim5 import plain

FINER = {"near_finer", "thirds"}
"""Cases with times of more digits than a microsecond, the engine's resolution."""

NOT_READ = {"load_negative_subtime", "load_no_jobs", "names", "parallel"}
"""Cases whose workloads rebat refuses to read, or that need a network model."""


def playable() -> list:
    """Return the recorded conversations that continued after the handshake."""
    return [
        case
        for case in cases5()
        if case.name not in FINER | NOT_READ
        and len((case / "conversation.jsonl").read_bytes().splitlines()) > 2
    ]


@pytest.mark.parametrize("case", playable(), ids=lambda case: case.name)
def test_the_engine_sends_what_batsim_5_sent(case) -> None:
    """Messages, their order, outputs and exit status are equal, also if Batsim aborts."""
    engine = replay_on_engine(case, plain)
    written = (case / "jobs.csv").read_text().splitlines() if (case / "jobs.csv").exists() else []
    if written:
        assert [*jobs_csv5(engine.ended)] == written


SEEDS = range(6)
EACH = 25


@pytest.mark.parametrize("first", SEEDS)
def test_presets_decide_the_same_behind_the_protocol(first: int) -> None:
    """For times of whole seconds the jobs have the same bytes as an embedded run."""
    for seed in range(first * EACH, (first + 1) * EACH):
        case = Case(seed)
        expected = [*jobs_csv(embedded(case).jobs)]
        for split in (False, True):
            engine, _ = play5(case, split=split)
            assert rows4(engine) == expected, (seed, case.policy, split)


def embedded(case: Case):
    return simulate(
        case.workload, preset(case.policy), n_nodes=case.n_nodes, machine_events=case.events,
        cores_per_node=case.cores, operations=case.operations, engine_options=EngineOptions(),
    )  # fmt: skip


@pytest.mark.parametrize("first", SEEDS)
def test_late_calls_are_safe(first: int) -> None:
    """If times are not whole milliseconds, no start is unsafe and no further start is refused.

    `test_batsim5` tests how late a call can be.
    """
    for seed in range(first * EACH, (first + 1) * EACH):
        case = stretched(Case(seed))
        _, conversation = play5(case)
        ledger = conversation.session.ledger
        assert ledger.refusals == embedded(case).ledger.refusals
        check_nodes(ledger)
        check_ends(ledger)
        check_sizes(ledger)


FACTOR = 1.000123457


def stretched(case: Case) -> Case:
    """Return the case with all its times multiplied by a factor."""

    def longer(us: int | None) -> int | None:
        return None if us is None else round(us * FACTOR)

    lengths = ("delay", "checkpoint_period", "checkpoint_cost", "recovery_cost", "Tfirst")
    profiles = {
        name: {
            key: round(value * FACTOR, 6) if key in lengths and value > 1e-5 else value
            for key, value in fields.items()
        }
        for name, fields in case.workload.profiles.items()
    }
    jobs = tuple(
        msgspec.structs.replace(
            job, submit_us=longer(job.submit_us), walltime_us=longer(job.walltime_us)
        )
        for job in case.workload.jobs
    )
    case.workload = msgspec.structs.replace(case.workload, jobs=jobs, profiles=profiles)
    case.events = [MachineEvent(longer(e.at_us), e.available, e.nodes) for e in case.events]
    case.operations = [GenericEvent(longer(e.at_us), e.data) for e in case.operations]
    assert to_us(FACTOR) % 1000
    return case
