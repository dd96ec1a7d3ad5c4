# SPDX-License-Identifier: Apache-2.0
"""Data that a session and an engine delete when a job has ended."""

from __future__ import annotations

import msgspec

from rebat.drive.ask import Session
from rebat.engine.engine import Engine, EngineOptions
from rebat.policies.presets import preset
from rebat.runs.single import simulate
from tests.support.scenarios import fails, machine


def test_a_job_may_be_named_as_a_resubmission_where_nothing_is_resubmitted() -> None:
    workload = machine(2, (1, 10), (1, 10), (2, 10, 1))
    one, other, last = workload.jobs
    jobs = (one, msgspec.structs.replace(other, id="1#1"), last)
    named = msgspec.structs.replace(workload, jobs=jobs)
    static = EngineOptions(dynamic_jobs=False)
    rows = simulate(named, preset("greedy"), engine_options=static).rows
    assert [(row.job_id, row.finish_time) for row in rows] == [("1", 10), ("1#1", 10), ("3", 20)]


def test_all_attempts_of_a_job_are_let_go_with_it() -> None:
    result = simulate(machine(2, (1, 10), (1, 50)), preset("greedy"), machine_events=fails(0, 3, 4))
    assert [row.attempts for row in result.rows] == [2, 1]


def test_the_engine_keeps_no_static_job_that_ended() -> None:
    engine = Engine(machine(2, (1, 10), (1, 50)), events=fails(0, 3, 4))
    engine.run(Session(preset("greedy").make()).handle)
    assert len(engine.ended) == 3
    assert set(engine._jobs) == {"w0!1#1"}
