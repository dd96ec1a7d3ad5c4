# SPDX-License-Identifier: Apache-2.0
"""Decisions about static jobs that have ended or are submitted later. The engine stores neither.

Job 1 runs from 0 to 2 s, job 2 is submitted at 5 s, and the scheduler is called at 3 s.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rebat.core.decisions import (
    CallMeLater,
    Decision,
    ExecuteJob,
    FinishRegistration,
    KillJobs,
    RegisterJob,
    RejectJob,
    Reply,
    SetMetadata,
)
from rebat.core.errors import BatsimAbort
from rebat.core.events import CallRequested, JobSubmitted, Message, SimulationBegan
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.engine.engine import Engine
from rebat.results.files.batsim_csv import jobs_csv
from tests.support.scenarios import machine

WORKLOAD = machine(1, (1, 2), (1, 2, 5))
NODE = NodeSet.of([0])
ENDED, NOT_SUBMITTED = "completion was already sent", "not submitted or already started"


def run_with(decide: Callable[[int], list[Decision]]) -> Engine:
    """Start every job at its submission, and make the given decisions at 3 s."""

    def scheduler(message: Message) -> Reply:
        at_us, decisions = message.now_us, []
        for event in message.events:
            if isinstance(event, SimulationBegan):
                decisions.append(CallMeLater(at_us=at_us, when_us=to_us(3), name="now"))
                decisions.append(FinishRegistration(at_us=at_us))
            elif isinstance(event, JobSubmitted):
                decisions.append(ExecuteJob(at_us=at_us, job_id=event.job_id, nodes=NODE))
            elif isinstance(event, CallRequested):
                decisions += decide(at_us)
        return Reply(at_us, tuple(decisions))

    engine = Engine(WORKLOAD)
    engine.run(scheduler)
    return engine


@pytest.mark.parametrize(
    ("decision", "problem"),
    [
        (lambda at: KillJobs(at_us=at, job_ids=("w0!1",)), ENDED),
        (lambda at: KillJobs(at_us=at, job_ids=("w0!2",)), "never started"),
        (lambda at: KillJobs(at_us=at, job_ids=("w0!3",)), "unknown job"),
        (lambda at: ExecuteJob(at_us=at, job_id="w0!1", nodes=NODE), NOT_SUBMITTED),
        (lambda at: ExecuteJob(at_us=at, job_id="w0!2", nodes=NODE), NOT_SUBMITTED),
        (lambda at: ExecuteJob(at_us=at, job_id="w1!1", nodes=NODE), "unknown job"),
        (lambda at: RejectJob(at_us=at, job_id="w0!1"), NOT_SUBMITTED),
        (lambda at: SetMetadata(at_us=at, job_id="w0!3", metadata="x"), "unknown job"),
    ],
)
def test_batsim_would_abort(decision: Callable[[int], Decision], problem: str) -> None:
    with pytest.raises(BatsimAbort, match=problem):
        run_with(lambda at_us: [decision(at_us)])


@pytest.mark.parametrize("job_id", ["w0!1", "w0!2"])
def test_an_id_cannot_be_registered_twice(job_id: str) -> None:
    """Job 1 has ended, and job 2 is submitted later. Neither id is available."""
    fields = {"res": 1, "subtime": 0, "profile": "2s"}

    def scheduler(message: Message) -> Reply:
        at_us, decisions = message.now_us, []
        for event in message.events:
            if isinstance(event, SimulationBegan):
                decisions.append(CallMeLater(at_us=at_us, when_us=to_us(3), name="now"))
            elif isinstance(event, JobSubmitted):
                decisions.append(ExecuteJob(at_us=at_us, job_id=event.job_id, nodes=NODE))
            elif isinstance(event, CallRequested):
                decisions.append(RegisterJob(at_us=at_us, job_id=job_id, job=fields))
        return Reply(at_us, tuple(decisions))

    with pytest.raises(BatsimAbort, match="duplicate name"):
        Engine(WORKLOAD).run(scheduler)


def test_metadata_may_be_set_before_the_submission_and_after_the_end() -> None:
    engine = run_with(
        lambda at_us: [
            SetMetadata(at_us=at_us, job_id="w0!1", metadata="over"),
            SetMetadata(at_us=at_us, job_id="w0!2", metadata="early"),
        ]
    )
    rows = [row.split(",") for row in jobs_csv(engine.ended)][1:]
    assert [(row[0], row[-1]) for row in rows] == [("1", '"over"'), ("2", '"early"')]
