# SPDX-License-Identifier: Apache-2.0
"""Tiers of checkpoints: light checkpoints between those in remote storage."""

from __future__ import annotations

import pytest

from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.models.checkpoint import light_of
from rebat.models.failures.events import MachineEvent
from rebat.models.tiers import add_tiers, parse_tiers, pattern_of
from rebat.runs.scenario import ScenarioOptions
from tests.session.test_hangs import story
from tests.support.scenarios import check_run, machine, run


def fails(at: float, *nodes: int, cause: str | None = None, back=0.5) -> list[MachineEvent]:
    """Return events of nodes that fail at the same time and are up again ``back`` seconds later."""
    some = NodeSet.of(nodes)
    return [
        MachineEvent(to_us(at), False, some, cause), MachineEvent(to_us(at + back), True, some),
    ]  # fmt: skip


def tiered(text: str, length: int = 60, software: str = "software"):
    """Return a workload of one job on two nodes with checkpoints in these tiers."""
    tiers = parse_tiers(text)
    return add_tiers(
        machine(2, (2, length, 0, 1000)), tiers, n_nodes=2, mtbf_s=100, light_share=0.5,
        software=software,
    )  # fmt: skip


# Parts of 10 + 1 s, and a deep checkpoint of 2 s after three parts: 11 22 33 35 46 57 68 70 s.
PEER = tiered("peer=1/3@10+remote=2/5@30")


def test_the_length_includes_all_checkpoints() -> None:
    assert PEER.profiles["60s@2"]["delay"] == 70
    assert story(run("easy", PEER)) == [("1", 0, 70, "completed", 70)]
    platform = run("easy", PEER).summary.platform
    assert (platform.useful, platform.checkpoint) == (2 * 60, 2 * (6 + 4))


def test_the_failure_of_one_node_loses_the_current_part() -> None:
    result = run("easy", PEER, fails(30, 0))
    assert story(result) == [("1", 0, 30, "node failure", 22), ("1#1", 30.5, 81.5, "completed", 48)]
    platform = result.summary.platform
    assert platform.waste_failure == 2 * 8
    assert platform.recovery == 2 * 3
    assert platform.useful == 2 * 60
    check_run(result)


def test_the_failure_of_both_nodes_loses_all_since_the_deep_checkpoint() -> None:
    result = run("easy", PEER, fails(60, 0, 1))
    assert story(result)[0] == ("1", 0, 60, "node failure", 35)
    assert story(result)[1] == ("1#1", 60.5, 60.5 + 5 + 35, "completed", 35)
    check_run(result)


def test_a_deep_failure_also_loses_what_only_light_checkpoints_contained() -> None:
    """The job keeps 22 s of work after the first failure, and loses them at the second failure."""
    result = run("easy", PEER, [*fails(30, 0), *fails(40, 0, 1)])
    assert story(result) == [
        ("1", 0, 30, "node failure", 22),
        ("1#1", 30.5, 40, "node failure", 0),
        ("1#2", 40.5, 40.5 + 5 + 70, "completed", 70),
    ]
    assert result.ledger.attempts[0].lost_us == 22_000_000
    assert result.summary.platform.useful == 2 * 60
    check_run(result)


def test_light_failures_in_a_row_keep_their_parts() -> None:
    """Each attempt restarts from its light checkpoint; the deep checkpoint is written in time."""
    events = [*fails(15, 0), *fails(31, 1), *fails(33, 0), *fails(60, 0, 1)]
    result = run("easy", PEER, events)
    assert story(result) == [
        ("1", 0, 15, "node failure", 11),
        ("1#1", 15.5, 31, "node failure", 11),  # load until 18.5, part until 29.5
        ("1#2", 31.5, 33, "node failure", 0),  # fails during the load
        ("1#3", 33.5, 60, "node failure", 13),  # load until 36.5, part until 47.5, deep until 49.5
        ("1#4", 60.5, 60.5 + 5 + 35, "completed", 35),
    ]
    check_run(result)


def test_memory_survives_software_failures_only() -> None:
    memory = tiered("memory=1/3@10+remote=2/5@30")
    assert story(run("easy", memory, fails(30, 0, cause="software")))[0][4] == 22
    assert story(run("easy", memory, fails(30, 0, 1, cause="software")))[0][4] == 22
    assert story(run("easy", memory, fails(30, 0, cause="gpu")))[0][4] == 0
    assert story(run("easy", memory, fails(30, 0)))[0][4] == 0


def test_a_failure_while_the_deep_checkpoint_is_written_keeps_the_light_one() -> None:
    result = run("easy", PEER, fails(34, 0))
    assert story(result) == [("1", 0, 34, "node failure", 33), ("1#1", 34.5, 74.5, "completed", 37)]
    check_run(result)


def test_best_intervals() -> None:
    tiers = parse_tiers("peer=1s/3min+remote=30s/10min")
    pattern = pattern_of(tiers, 3.093079 * 3600, 0.8)
    assert round(pattern.interval_s / 60, 2) == 2.78
    assert pattern.per_pattern == 11
    assert pattern_of(parse_tiers("remote=30s/1s"), 6000, 0).interval_s == 600


def test_the_law_says_what_tiers_survive() -> None:
    def tiers(law: str, text: str):
        from rebat.models.failures.laws import parse_law

        options = ScenarioOptions(
            law=parse_law(law), mtbf=60.0, checkpoint="tiers:auto", tiers=text
        )
        return options.scenario().checkpoint

    peer, memory = "peer=1/2+remote=3/4", "memory=1/2+remote=3/4"
    assert tiers("rsc-1", peer).light_share == 0.99
    assert tiers("llama3", memory).light_share == pytest.approx(63 / 419)
    assert tiers("llama3", memory).software == "software+nccl+dependency"
    assert tiers("poisson:mtbf=1h", peer).light_share == 1.0
    assert tiers("poisson:mtbf=1h", memory).light_share == 0.0


@pytest.mark.parametrize(
    ("field", "value"),
    [("light_period", 0), ("light_period", "x"), ("light_cost", -1), ("light_survives", "rack"),
     ("light_software", 3)],
)  # fmt: skip
def test_bad_profiles(field, value) -> None:
    with pytest.raises(InputError, match=field):
        light_of({"light_period": 5, "light_cost": 1, "light_recovery": 1, field: value})


def test_a_restart_in_another_size_keeps_the_work_at_risk() -> None:
    """After a failure of one node the job restarts on three; the next failure still loses 22 s."""
    from tests.support.flexible import flexible, malleable

    tiers = parse_tiers("peer=1/3@10+remote=2/5@80")
    workload = add_tiers(
        flexible(4, (4, 200, 0, malleable(1, 4))), tiers, n_nodes=4, mtbf_s=50, light_share=0.7,
        software="software",
    )  # fmt: skip
    one = fails(30, 0, back=500)
    kept = run("dbes", workload, one).ledger.attempts[0]
    assert (kept.useful_us, kept.lost_us) == (22_000_000, 0)
    assert run("dbes", workload, [*one, *fails(40, 1, 2)]).ledger.attempts[0].lost_us == 22_000_000
