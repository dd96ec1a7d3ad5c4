# SPDX-License-Identifier: Apache-2.0
"""The engine instead of Batsim 5, and the presets with this engine."""

from __future__ import annotations

import msgspec
import pytest

from rebat.check.playing import check_ends, check_nodes, check_sizes
from rebat.core.decisions import (
    CallMeLater,
    Decision,
    ExecuteJob,
    FinishRegistration,
    KillJobs,
    Reply,
)
from rebat.core.events import CallRequested, JobsKilled, JobSubmitted, Message
from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.engine.batsim5 import Engine5
from rebat.engine.engine import EngineOptions
from rebat.models.failures.events import GenericEvent, MachineEvent
from rebat.policies.presets import preset
from rebat.results.files.batsim_csv import jobs_csv, jobs_csv5
from rebat.runs.single import simulate
from tests.support.batsim5 import play5, replay_on_engine, rows4
from tests.support.coincidences import Case
from tests.support.recordings import cases5
from tests.support.scenarios import machine
from tests.wire.test_batsim5 import plain

FINER = {"near_finer", "thirds"}
"""Cases with times of more digits than a microsecond, the engine's resolution."""

NOT_READ = {"load_negative_subtime", "load_no_jobs", "names", "parallel"}
"""Cases whose workloads rebat refuses to read, or that need a network model."""

DELETED = {
    "abort_other_workloads_parts_noreuse",
    "abort_resubmit_static_parts_noreuse",
    "abort_reuse_off_still_used",
}
"""Cases in which Batsim 5.0.0-rc2 deletes a profile or a part that is still in use, and aborts."""


def playable() -> list:
    """Return the recorded conversations that continued after the handshake."""
    return [
        case
        for case in cases5()
        if case.name not in FINER | NOT_READ | DELETED
        and len((case / "conversation.jsonl").read_bytes().splitlines()) > 2
    ]


@pytest.mark.parametrize("case", playable(), ids=lambda case: case.name)
def test_the_engine_sends_what_batsim_5_sent(case) -> None:
    """Messages, their order, and outputs are equal, also if Batsim aborts."""
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


@pytest.mark.slow
def test_jobs_that_fail_also_fail_after_an_interruption() -> None:
    """A scheduler of Batsim 5 can only register profiles that fail as sequences.

    No part of a composed profile fails, because Batsim 5, unlike Batsim 4, then ends the job. The
    last part of a sequence can end later within its instant; the order of rows is not compared.
    """
    failed = 0
    for seed in range(90):
        case = Case(seed)
        errors = {"silent_errors": 2} if seed % 2 else {}
        profiles = {
            name: {**fields, "ret": 1, **errors}
            if name[1:] in ("3", "5", "7", "8", "11")
            else fields
            for name, fields in case.workload.profiles.items()
        }
        case.workload = msgspec.structs.replace(case.workload, profiles=profiles)
        engine, _ = play5(case, split=True)
        rows = rows4(engine)
        assert sorted(rows) == sorted(jobs_csv(embedded(case).jobs)), (seed, case.policy)
        failed += sum("#" in row.split(",")[0] and "COMPLETED_FAILED" in row for row in rows)
    assert failed > 20


def test_a_job_that_runs_again_is_queued_after_jobs_submitted_at_the_same_time() -> None:
    """Job 1 ends with a silent error when job 3 is submitted. Batsim 5 reports its end last."""
    case = Case(0)
    case.policy, case.cores, case.n_nodes = "easy:silent_errors=retry", 1, 2
    case.events, case.operations = [], []
    workload = machine(2, (1, 10), (1, 50, 5), (1, 20, 10))
    workload.profiles["10s"] |= {"ret": 1, "silent_errors": 1}
    case.workload = workload
    engine, _ = play5(case)
    rows = [*jobs_csv(embedded(case).jobs)]
    assert rows4(engine) == rows
    assert [row.split(",")[0] for row in rows[1:]] == ["1", "3", "1#1", "2"]


def test_the_beginning_and_the_first_jobs_in_one_message() -> None:
    """With an event file, Batsim 5 sends them together. Empty nodes sleep at the beginning."""
    for seed in range(8):
        case = Case(seed)
        case.policy, case.cores, case.operations = "cluster:react=sleep,sleep=0,boot=2", 1, []
        first, *others = case.workload.jobs
        jobs = (msgspec.structs.replace(first, submit_us=0), *others)
        case.workload = msgspec.structs.replace(case.workload, jobs=jobs)
        case.events = case.events or [MachineEvent(to_us(3), False, NodeSet.of([0])),
                                      MachineEvent(to_us(4), True, NodeSet.of([0]))]  # fmt: skip
        engine, _ = play5(case)
        assert engine.ended[0].start_us >= to_us(2)
        assert rows4(engine) == [*jobs_csv(embedded(case).jobs)], seed


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


def test_progress_is_in_the_order_of_ids_as_text() -> None:
    jobs = tuple(Job(name, 1, 0, None, "d") for name in ("9", "10"))
    workload = Workload("w", 2, jobs, {"d": {"type": "delay", "delay": 9}})
    engine, killed = Engine5([workload], n_nodes=2), []

    def scheduler(message: Message) -> Reply:
        decisions: list[Decision] = []
        for event in message.events:
            if isinstance(event, JobSubmitted):
                node = NodeSet.of([len(decisions)])
                decisions.append(ExecuteJob(at_us=0, job_id=event.job_id, nodes=node))
                call = CallMeLater(at_us=0, when_us=to_us(3), name="kill")
            elif isinstance(event, CallRequested):
                ids = ("w0!9", "w0!10")
                decisions.append(KillJobs(at_us=message.now_us, job_ids=ids))
                decisions.append(FinishRegistration(at_us=message.now_us))
            elif isinstance(event, JobsKilled):
                killed.append(event)
        more = (call,) if any(isinstance(x, ExecuteJob) for x in decisions) else ()
        return Reply(message.now_us, (*decisions, *more))

    engine.run(scheduler)
    (event,) = killed
    assert event.job_ids == ("w0!9", "w0!10")
    assert [*event.progress] == ["w0!10", "w0!9"]
