# SPDX-License-Identifier: Apache-2.0
"""Operations and failures in one event file: Batsim changes the order of simultaneous lines."""

from __future__ import annotations

import pytest

from rebat.core.errors import Deadlock
from rebat.engine.engine import Engine, EngineOptions
from rebat.models.failures.events import read_event_file
from rebat.results.files.batsim_files import read_jobs
from rebat.wire.conversation import Conversation, run_remote, session_for
from rebat.workloads.load import load_workload
from tests.support.recordings import DATA

FOLDER = DATA / "real-batsim/op-merged-deadlock"
POLICY = "training-requeue:detect=5,diagnose=uniform:0:4,reschedule=1,init=2,drain=wait"


def serve(*files: str) -> tuple[Engine, Conversation]:
    first, *second = (read_event_file(FOLDER / file).events for file in files)
    engine = Engine(
        load_workload(FOLDER / "w.json"), events=first, operations=second[0] if second else [],
        options=EngineOptions(acknowledge_dynamic_jobs=True, forward_unknown_events=True),
    )  # fmt: skip
    conversation = Conversation(lambda _, began: session_for(POLICY, {}, began), probes=True)
    return engine, conversation


def test_one_file_ends_in_batsims_deadlock_with_a_warning() -> None:
    """In the recorded run, the job never started either."""
    engine, conversation = serve("merged.events")
    with pytest.raises(Deadlock):
        run_remote(engine, conversation.answer)
    assert not read_jobs(FOLDER / "real_jobs.csv").records
    (told,) = [text for _, _, text in conversation.session.ledger.refusals if "drained" in text]
    assert "write operations and failures into separate --events files" in told


def test_two_files_keep_the_order() -> None:
    engine, conversation = serve("f.events", "ops.events")
    run_remote(engine, conversation.answer)
    assert not [text for _, _, text in conversation.session.ledger.refusals if "drained" in text]
    assert [job.state for job in engine.ended][-1] == "COMPLETED_SUCCESSFULLY"
