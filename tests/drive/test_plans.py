# SPDX-License-Identifier: Apache-2.0
"""The rules record the same plans as the session, in files with the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from rebat.core.jobs import Job
from rebat.core.units import to_us
from rebat.drive.ask import Session
from rebat.drive.drivers import driver_for
from rebat.drive.messages import Messages
from rebat.drive.plan_record import PLAN_COLUMNS, PlanCause, PlanRecord, PlanRecorder
from rebat.drive.simulate import Events
from rebat.drive.wire import Wire
from rebat.engine.engine import Engine, EngineOptions
from rebat.policies.presets import preset
from rebat.results.files.run_folder import PLANS
from rebat.runs.single import write_run
from tests.support.asked import simulate
from tests.support.both_ways import Case, check_same_plans
from tests.support.parted import PartedCase
from tests.support.scenarios import fails, machine


def files_of(case: Any, policy: str, events: Any, folder: Path, **way: Any) -> dict[str, bytes]:
    """Return the files of a run with a record of its plans."""
    result = simulate(
        case.workload, preset(policy), n_nodes=case.n_nodes, machine_events=Events(events).all,
        max_attempts=case.max_attempts, explain=True, **way,
    )  # fmt: skip
    write_run(folder, result, {})
    return {path.name: path.read_bytes() for path in folder.iterdir()}


SPLIT = EngineOptions(acknowledge_dynamic_jobs=True, split_instants=True)
"""Options of an engine that need messages. The rules answer them, or a policy that is asked."""


@pytest.mark.parametrize("seed", range(500_000, 500_008))
def test_both_drivers_write_the_files_of_the_session(seed: int, tmp_path: Path) -> None:
    case: Any = Case(seed)
    policy, events = case.policy, case.events
    for n, way in enumerate(({}, {"engine_options": SPLIT})):
        files = [
            files_of(case, policy, events, tmp_path / f"{n}-{how}", how=how, **way)
            for how in ("auto", "asked")
        ]
        assert PLANS in files[0] and files[0] == files[1]


def test_files_on_partitions_are_equal(tmp_path: Path) -> None:
    case = PartedCase(500_001, engines=True)
    policy = f"{case.options},partitions={case.partitions}"
    hows = "interpreted", "asked"
    files = [files_of(case, policy, case.events(), tmp_path / how, how=how) for how in hows]
    assert PLANS in files[0] and files[0] == files[1]


def recorded(asks: bool) -> tuple[PlanRecord, Messages]:
    """Record a run in which a steal is refused, because its victim could not continue."""
    workload = machine(4, (3, 10, 0, 20))
    profiles = {
        **workload.profiles,
        "half": {"type": "delay", "delay": 15.0},
        "composed": {"type": "composed", "seq": ["half"], "repeat": 2},
    }
    jobs = (*workload.jobs, Job("2", 1, to_us(1), to_us(40), "composed"))
    workload = msgspec.structs.replace(workload, jobs=jobs, profiles=profiles)
    recorder, chosen = PlanRecorder(), preset("sfsj")
    options = msgspec.structs.replace(chosen.session, strict=False)
    engine = Engine(
        workload, n_nodes=4, events=fails(0, 5, 100), options=EngineOptions(profile_reuse=False)
    )
    driver = driver_for(chosen, options, engine.began(), recorder=recorder, asks=asks)
    engine.run(driver.handle)
    return recorder.result(), driver


def test_a_refused_steal_is_a_cause_of_the_next_plan() -> None:
    (expected, session), (ours, wire) = recorded(True), recorded(False)
    assert isinstance(session, Session) and isinstance(wire, Wire)
    check_same_plans(ours, expected)
    causes = ours.plans[:, PLAN_COLUMNS.index("causes")]
    assert wire.refusals and (causes & PlanCause.REFUSAL > 0).sum() == 1


def test_plans_with_a_rule_of_a_file_are_recorded(tmp_path: Path) -> None:
    """The session checks the planned starts. They include attempts that the plan started."""
    (tmp_path / "rules.py").write_text("def smallest(job, *_):\n    return job.n_nodes\n")
    workload = machine(4, (3, 10, 0, 20), (2, 10, 0, 20), (1, 5, 0, 20))
    chosen = preset(f"easy:order={tmp_path / 'rules.py'}:smallest")
    record = simulate(workload, chosen, explain=True).plans
    expected = simulate(workload, preset("easy:order=smallest"), explain=True).plans
    check_same_plans(record, expected)


@pytest.mark.parametrize("how", ["interpreted", "asked"])
def test_a_partition_without_a_plan_does_not_hide_planned_starts(how: str) -> None:
    workload = machine(4, (2, 10, 0, 20), (2, 10, 1, 20))
    chosen = preset("baseline:partitions=used:0-1+unused:2-3")
    jobs = tuple(msgspec.structs.replace(j, extra={"queue": "used"}) for j in workload.jobs)
    record = simulate(
        msgspec.structs.replace(workload, jobs=jobs), chosen, explain=True, how=how
    ).plans
    assert record is not None
    assert [2, 1, to_us(20)] in record.rows[:, 1:].tolist()
    assert [2, 1, to_us(10)] in record.rows[:, 1:].tolist()
