# SPDX-License-Identifier: Apache-2.0
"""The driver for Batsim's messages answers as the session does."""

from __future__ import annotations

import pytest

from rebat.core import events as e
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.drive.ask import Session
from rebat.drive.drivers import driver_for
from rebat.drive.invariants import BrokenInvariant
from rebat.drive.simulate import Events
from rebat.drive.wire import Wire
from rebat.engine.engine import EngineOptions
from rebat.models.failures.events import MachineEvent
from rebat.policies.presets import preset
from rebat.state import rooms
from tests.drive.test_both_ways import agreement
from tests.support.asked import simulate
from tests.support.both_ways import Case, check_same
from tests.support.recordings import OUR_RECORDINGS, folder_of, replay
from tests.support.scenarios import machine


def test_random_conversations_are_equal() -> None:
    """``python -m tests.support.shadow 20000 0 all`` compares more of them."""
    compared = agreement("tests.support.shadow", "200", "300000", "all")
    assert "200 cases" in compared and "'complete'" in compared
    assert "error of both" in compared and "different" not in compared
    assert "100 cases" in agreement("tests.support.shadow", "100", "400000", "all", "stages")
    assert "60 cases" in agreement("tests.support.shadow", "60", "410000", "all", "tiers", "stages")
    assert "100 cases" in agreement("tests.support.shadow", "100", "420000", "all", "operating")


def test_a_rejection_after_the_last_reaction_is_no_news() -> None:
    """In this case, the end of a wait releases a job that is too large for the machine."""
    assert "1 cases" in agreement("tests.support.shadow", "1", "5109451", "all")
    assert "60 cases" in agreement("tests.support.shadow", "60", "0", "all", "replacing")


def test_random_conversations_have_equal_bytes() -> None:
    """``python -m tests.support.same_bytes 1000`` compares more of them."""
    compared = agreement("tests.support.same_bytes", "40", "300000")
    for protocol in (4, 5):
        assert f"Batsim {protocol}: 40 runs with equal bytes" in compared


def test_runs_on_the_engine_are_equal() -> None:
    """Options of the engine need messages. The rules answer them, or the session (reference)."""
    options = EngineOptions(acknowledge_dynamic_jobs=True, split_instants=True)
    for seed in range(400_000, 400_012):
        case = Case(seed)
        results = [
            simulate(
                case.workload, preset(case.policy), n_nodes=case.n_nodes, how=how,
                machine_events=Events(case.events).all, max_attempts=case.max_attempts,
                engine_options=options,
            )
            for how in ("auto", "asked")
        ]  # fmt: skip
        check_same(*results)


def test_the_session_answers_what_the_rules_do_not_cover() -> None:
    """For example checkpoints in several tiers with six digits: the first message shows them."""
    light = {"type": "delay", "delay": 5, "checkpoint_period": 2, "light_period": 1}
    profiles = {"w0": {"x": light}}
    for policy, answers in (("baseline", Wire), ("authors-baseline", Session)):
        chosen = preset(policy)
        began = e.SimulationBegan(at_us=0, n_nodes=4, config={}, profiles=profiles, workloads={})
        driver = driver_for(chosen, chosen.session, began)
        driver.handle(e.Message(0, (began,)))
        assert isinstance(driver, answers)
        assert driver.began and driver.n_running == driver.n_waiting == 0


@pytest.mark.parametrize(("recording", "policy"), OUR_RECORDINGS)
def test_conversations_recorded_with_batsim_are_equal(recording: str, policy: str) -> None:
    path, chosen = folder_of(recording) / f"{recording}.jsonl", preset(policy)
    assert not [*replay(path, lambda *_: Wire(chosen.point, chosen.session))]


def begun() -> Wire:
    """Return a driver with one running job of two nodes, and one that waits."""
    chosen = preset("baseline")
    wire = Wire(chosen.point, chosen.session)
    profile = {"type": "delay", "delay": 5}
    jobs = [
        e.JobSubmitted(
            at_us=0, job_id=f"w0!{i}", job={"res": size, "profile": "d"}, profile=profile
        )
        for i, size in enumerate((2, 3))
    ]
    config = {"dynamic-jobs-enabled": True}
    began = e.SimulationBegan(at_us=0, n_nodes=4, config=config, profiles={}, workloads={})
    reply = wire.handle(e.Message(0, (began, *jobs)))
    assert [each.nodes for each in reply.decisions] == [NodeSet.parse("0-1")]
    wire.validate()
    return wire


def wrong_owner(wire: Wire) -> None:
    wire.state.owner[3] = 1


def wrong_number(wire: Wire) -> None:
    wire.state.n.n_free = 1


def down(wire: Wire) -> None:
    wire.state.down[1] = True


def queued_twice(wire: Wire) -> None:
    wire.state.attempts[1].job = 0


def ended(wire: Wire) -> None:
    wire.state.attempts[0].end = 0


def shared(wire: Wire) -> None:
    wire.state.lists[1].running, wire.state.n.n_running = 0, 2


@pytest.mark.parametrize("change", [wrong_owner, wrong_number, down, queued_twice, ended, shared])
def test_an_impossible_state_is_an_error(change) -> None:
    wire = begun()
    change(wire)
    with pytest.raises(BrokenInvariant):
        wire.validate()


@pytest.mark.parametrize("how", ["interpreted", "asked"])
def test_a_failure_can_hit_more_attempts_than_tables_have_rows(how: str) -> None:
    n = rooms.SMALL_PLAIN + 50
    everything = NodeSet.from_intervals([(0, n - 1)])
    events = [MachineEvent(to_us(at), at > 10, everything) for at in (10, 20)]
    workload = machine(n, *[(1, 50)] * n)
    result = simulate(workload, preset("baseline"), machine_events=events, how=how)
    assert sum(result.ledger.interrupted.values()) == n
