# SPDX-License-Identifier: Apache-2.0
"""Three and four tiers of checkpoints: the work that a failure loses, and the best intervals."""

from __future__ import annotations

import itertools

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.core.errors import InputError
from rebat.core.units import to_us
from rebat.models.checkpoint import light_of
from rebat.models.ettr import (
    Levels,
    TwoTiers,
    best_pattern,
    levels_ettr,
    two_tier_ettr,
)
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.laws import parse_law
from rebat.models.tiers import add_tiers, needed, parse_tiers, pattern_of
from rebat.runs.scenario import ScenarioOptions
from tests.models.test_tiers import fails
from tests.oracles.training import (
    end_of_tiered_job,
    one_job_of_levels,
    ratio_with_error,
    tier_intervals_s,
)
from tests.session.test_hangs import story
from tests.support.amount import few
from tests.support.scenarios import check_run, machine, run

TEXT = "memory=1/3@10+peer=2/4@20+remote=3/5@40"


def tiered(text: str = TEXT, length: int = 60, n_nodes: int = 2, group: int = 1):
    """Return a workload of one job on all nodes with checkpoints in these tiers."""
    tiers = parse_tiers(text)
    return add_tiers(
        machine(n_nodes, (n_nodes, length, 0, 1000)), tiers, n_nodes=n_nodes, mtbf_s=100,
        light_share=(0.3, 0.6, 0.9)[: len(tiers.lights)], software="software", group=group,
    )  # fmt: skip


# A part is 10 s of work and a write of 1 s to memory. After two parts the job writes 2 s to a peer
# (until 24 s), after four also 3 s to remote storage (until 51 s). Then it has a part of 11 s, and
# one of 11 + 2 s (until 75 s).
THREE = tiered()


def test_the_profile_lists_the_tiers() -> None:
    profile = THREE.profiles["60s@2"]
    assert profile["delay"] == 75
    assert profile["light_period"] == [10, 22]
    assert profile["light_survives"] == ["process", "node"]
    assert profile["checkpoint_period"] == 48
    assert story(run("easy", THREE)) == [("1", 0, 75, "completed", 75)]
    platform = run("easy", THREE).summary.platform
    assert (platform.useful, platform.checkpoint) == (2 * 60, 2 * (6 + 6 + 3))


@pytest.mark.parametrize(
    ("at", "nodes", "cause", "kept", "load"),
    [
        (30, (0,), "software", 24, 3),
        (37, (0,), "software", 35, 3),
        (37, (0,), "gpu", 24, 4),
        (37, (0, 1), "gpu", 0, 5),
        (23, (0,), "software", 22, 3),  # while the checkpoint of the peer is written
        (23, (0,), "gpu", 0, 4),
        (49, (0,), "software", 48, 3),  # while the checkpoint in remote storage is written
        (49, (0,), "gpu", 48, 4),
        (49, (0, 1), "gpu", 0, 5),
        (64, (0, 1), "gpu", 51, 5),
        (64, (0,), "gpu", 51, 4),
        (64, (0,), "software", 62, 3),
    ],
)
def test_a_failure_returns_to_the_lightest_tier_that_survives_it(
    at, nodes, cause, kept, load
) -> None:
    result = run("easy", THREE, fails(at, *nodes, cause=cause))
    assert story(result) == [
        ("1", 0, at, "node failure", kept),
        ("1#1", at + 0.5, at + 0.5 + load + 75 - kept, "completed", 75 - kept),
    ]
    assert result.summary.platform.useful == 2 * 60
    check_run(result)


def test_a_heavier_failure_also_loses_what_only_lighter_tiers_contained() -> None:
    """Memory has 35 s of the job, the peer 24 s: the second failure loses another 11 s."""
    events = [*fails(37, 0, cause="software"), *fails(45, 0, cause="gpu")]
    result = run("easy", THREE, events)
    assert story(result) == [
        ("1", 0, 37, "node failure", 35),
        ("1#1", 37.5, 45, "node failure", 0),
        ("1#2", 45.5, 45.5 + 4 + 51, "completed", 51),
    ]
    assert result.ledger.attempts[0].lost_us == to_us(11)
    assert result.summary.platform.useful == 2 * 60
    check_run(result)


def test_a_third_failure_loses_the_rest_once() -> None:
    events = [
        *fails(37, 0, cause="software"), *fails(45, 0, cause="gpu"), *fails(52, 0, 1, cause="gpu"),
    ]  # fmt: skip
    result = run("easy", THREE, events)
    assert story(result)[-1] == ("1#3", 52.5, 52.5 + 5 + 75, "completed", 75)
    assert result.ledger.attempts[0].lost_us == to_us(35)
    assert result.summary.platform.useful == 2 * 60
    check_run(result)


def test_a_tier_in_another_group_survives_the_failure_of_a_group() -> None:
    four = tiered("memory=1/3@10+group=2/4@20+remote=3/5@40", n_nodes=4, group=2)
    kept = [
        story(run("easy", four, fails(37, *nodes, cause="nic")))[0][4]
        for nodes in ((0,), (0, 1), (2, 3), (1, 2), (0, 1, 2))
    ]
    assert kept == [24, 24, 24, 0, 0]


SECONDS = st.lists(
    st.tuples(st.integers(1, 300), st.sampled_from([0, 1, 2])), max_size=9, unique_by=lambda f: f[0]
)


@settings(max_examples=few(150))
@given(SECONDS, st.integers(20, 90))
def test_the_end_of_a_job_is_that_of_the_oracle(failures, work) -> None:
    """Times are in tenths of seconds. No failure coincides with the end of a checkpoint."""
    kinds = [((0,), "software"), ((0,), "gpu"), ((0, 1), "gpu")]
    events: list[MachineEvent] = []
    used: list[tuple[int, int]] = []
    for at, needs in sorted(failures):
        tenths = 10 * at + len(used) + 1
        if not used or tenths > used[-1][0] + 10:  # the nodes are up again
            nodes, cause = kinds[needs]
            events += fails(tenths / 10, *nodes, cause=cause, back=1)
            used.append((tenths, needs))
    result = run("easy", tiered(length=work), events)
    check_run(result)
    tiers = [(100, 10, 30), (200, 20, 40), (400, 30, 50)]
    end_us = max(record.end_us for record in result.ledger.attempts)
    assert end_us == end_of_tiered_job(10 * work, tiers, used, 10) * 100_000
    assert result.summary.platform.useful == pytest.approx(2 * work)


@pytest.mark.parametrize("policy", ["dbes", "pwa", "training-shrinking", "training-swap:spares=1"])
def test_three_tiers_with_moves_and_resizes(policy: str) -> None:
    from tests.support.flexible import flexible, malleable

    base = flexible(6, (4, 90, 0, malleable(1, 6)), (2, 60, 5, malleable(1, 4)), (2, 30, 9, None))
    workload = add_tiers(
        base, parse_tiers("memory=1/1@5+peer=1/2@10+remote=2/3@20"), n_nodes=6, mtbf_s=50,
        light_share=(0.3, 0.7), software="software",
    )  # fmt: skip
    rng = np.random.default_rng(3)
    at, events = 5.0, []
    for cause in ["software", "gpu", "software", "nic", "software", "gpu"]:
        events += fails(at, int(rng.integers(6)), cause=cause)
        at += float(rng.integers(7, 15))
    result = run(policy, workload, events)
    check_run(result)
    assert len(result.ledger.interrupted) >= 1


# ---- texts and profiles


def test_the_law_says_what_each_tier_survives() -> None:
    def tiers(law: str, text: str):
        options = ScenarioOptions(
            law=parse_law(law), mtbf=60.0, checkpoint="tiers:auto", tiers=text
        )
        return options.scenario().checkpoint

    three = tiers("rsc-1", "memory=1/2+peer=1/2+remote=3/4")
    assert three.light_share == pytest.approx((63 / 419, 0.99))
    assert three.group is msgspec.UNSET
    grouped = tiers("rsc-1", "peer=1/2+group=1/2+remote=3/4")
    assert (grouped.light_share, grouped.group) == (pytest.approx((0.99, 1.0)), 2)
    assert needed((0.25, 0.75)) == (0.25, 0.5, 0.25)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("memory=1/1+disk=1/1+remote=1/1", "disk survives no more failures than memory"),
        ("peer=1/1+memory=1/1+remote=1/1", "memory survives no more failures than peer"),
        ("remote=1/1+remote=1/1", "remote survives no more"),
        ("memory=1/1+group=1/1", "group does not survive all failures"),
    ],
)
def test_bad_texts(text, error) -> None:
    with pytest.raises(InputError, match=error):
        parse_tiers(text)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"light_period": [5, 13]}, "light_period has 13 .expected a multiple"),
        ({"light_period": [5, 0]}, "light_period is 0"),
        ({"light_cost": 1}, "have different lengths"),
        ({"light_survives": ["node", "process"]}, "has process after node"),
        ({"light_survives": ["node", "rack"]}, "light_survives is 'rack'"),
        ({"light_group": 0}, "light_group is 0"),
        ({"light_recovery": [1, "x"]}, "light_recovery is 'x'"),
    ],
)
def test_bad_profiles(fields, error) -> None:
    good = {
        "light_period": [5, 12], "light_cost": [1, 1], "light_recovery": [1, 1],
        "light_survives": ["process", "node"],
    }  # fmt: skip
    assert light_of(good) is not None
    with pytest.raises(InputError, match=error):
        light_of(good | fields)


# ---- closed form and best pattern

LEVELS = Levels(
    mtbf_s=3600, shares=(0.5, 0.3, 0.2), writes_s=(2, 20, 100), loads_s=(30, 200, 600), detect_s=60
)


@pytest.mark.slow
@pytest.mark.parametrize(("interval_s", "counts"), [(200, (3, 4)), (100, (1, 5)), (300, (4, 1))])
def test_the_closed_form_is_that_of_the_oracle(interval_s, counts) -> None:
    mean, error = ratio_with_error(
        lambda rng: one_job_of_levels(LEVELS, interval_s, counts, 2_000, rng), 20
    )
    assert abs(mean - levels_ettr(LEVELS, interval_s, counts)) < 3 * error
    assert error < 0.002


def test_two_levels_are_two_tiers_if_the_deep_write_is_free() -> None:
    levels = Levels(mtbf_s=7200, shares=(0.8, 0.2), writes_s=(1, 0), loads_s=(30, 120), detect_s=20)
    tiers = TwoTiers(
        mtbf_s=7200, light_share=0.8, interval_s=156, per_pattern=12, writes_s=(1, 0),
        loads_s=(30, 120), detect_s=20,
    )  # fmt: skip
    assert levels_ettr(levels, 156, (12,)) == pytest.approx(two_tier_ettr(tiers), rel=1e-12)


@pytest.mark.parametrize("mtbf_s", [1800, 3600, 36_000])
def test_the_best_pattern_is_that_of_a_grid(mtbf_s) -> None:
    levels = msgspec.structs.replace(LEVELS, mtbf_s=mtbf_s)
    start_s = tier_intervals_s(mtbf_s, levels.shares, levels.writes_s)
    best = levels_ettr(levels, *best_pattern(levels, start_s, (False,) * 3))
    grid = itertools.product(np.geomspace(20, 4000, 80), range(1, 12), range(1, 10))
    assert best >= max(levels_ettr(levels, w, (a, b)) for w, a, b in grid) - 1e-9
    first = tuple(max(1, round(b / a)) for a, b in itertools.pairwise(start_s))
    assert best >= levels_ettr(levels, start_s[0], first)


def test_intervals_that_are_set_are_kept() -> None:
    def pattern(text: str):
        return pattern_of(parse_tiers(text), 3600, (0.5, 0.8))

    assert pattern(TEXT) == pattern_of(parse_tiers(TEXT), 99, (0.1, 0.2))
    assert pattern(TEXT).counts == (2, 2)
    first = pattern("memory=2/30@77+peer=20/200+remote=100/600")
    assert first.interval_s == 77
    last = pattern("memory=2/30+peer=20/200+remote=100/600@1h")
    assert last.interval_s * last.per_pattern == pytest.approx(3600, rel=0.2)


def test_a_pattern_without_hope_has_the_ettr_0() -> None:
    assert levels_ettr(LEVELS, 1e9, (2, 2)) == 0
    assert levels_ettr(msgspec.structs.replace(LEVELS, mtbf_s=1.0), 10, (2, 2)) < 1e-9


def test_shares_add_up_to_1() -> None:
    with pytest.raises(InputError, match="shares of the tiers"):
        Levels(mtbf_s=1, shares=(0.5, 0.6), writes_s=(1, 1), loads_s=(1, 1))
