# SPDX-License-Identifier: Apache-2.0
"""Resubmissions of jobs with checkpoints are profiles that are sequences."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rebat.core.batsim5 import ENDING_US, FAILS, as_sequence
from rebat.core.decisions import RegisterJob, RegisterProfile, RejectJob
from rebat.core.units import to_us
from rebat.models.checkpoint import Checkpointing
from rebat.wire.batsim5 import decode_reply
from rebat.wire.profiles5 import parts_of, with_sequences
from tests.support.batsim5 import play5
from tests.support.coincidences import Case

FIELDS = {
    "checkpoint_period": 100,
    "checkpoint_cost": 10,
    "recovery_cost": 7,
    "Tfirst": 40,
    "Rfirst": 7,
    "speedup": {"model": "amdahl", "serial": 0.1},
}


def registers(**profile) -> tuple:
    return with_sequences((RegisterProfile(at_us=5, workload="w0", name="1#1:d", profile=profile),))


def test_a_checkpointed_delay_is_a_sequence_of_its_parts() -> None:
    *parts, sequence = registers(type="delay", delay=197, **FIELDS)
    lengths = {part.name.partition(".")[2]: part.profile["delay"] for part in parts}
    assert lengths == {"recovery": 7, "first": 40, "checkpoint": 10, "work": 100, "last": 20}
    names = ["recovery", "first", "checkpoint", "work", "checkpoint", "last", "checkpoint"]
    assert sequence.profile == {
        "type": "composed",
        "repeat": 1,
        "seq": [f"1#1:d.{name}" for name in names],
        **FIELDS,
    }


@pytest.mark.parametrize("checkpoints", [{}, FIELDS])
def test_a_delay_that_fails_is_as_long_as_a_delay_and_its_last_part_fails(checkpoints) -> None:
    *parts, sequence = registers(
        type="delay", delay=197, ret=1, **{FAILS: ["1:d", "1:d.end"]}, **checkpoints
    )
    delays = {part.name: part.profile["delay"] for part in parts}
    *others, last = sequence.profile["seq"]
    assert last == "1:d.end" and "ret" not in sequence.profile
    assert sum(to_us(delays[name]) for name in others) + ENDING_US == to_us(197)


@pytest.mark.parametrize("checkpoints", [{}, FIELDS])
@pytest.mark.parametrize("fails", [{}, {"ret": 1, FAILS: ["1:d", "1:d.end"]}])
def test_a_delay_as_long_as_its_walltime_is_ended_by_the_walltime(checkpoints, fails) -> None:
    """Parts of 0.1, 0.1 and 0.1 s end before a walltime of 0.3 s in Batsim's arithmetic."""
    profile = {"type": "delay", "delay": 197.3, **fails, **checkpoints}
    job = {"id": "w0!1#1", "res": 1, "profile": "1#1:d", "walltime": 197.3}
    first, _ = with_sequences(
        (
            RegisterProfile(at_us=5, workload="w0", name="1#1:d", profile=profile),
            RegisterJob(at_us=5, job_id="w0!1#1", job=job),
        )
    )
    assert first.profile == {"type": "delay", "delay": 197.3, **checkpoints}


@given(st.integers(1, 10**13))
@example(4_000_000)
def test_the_work_of_a_failing_delay_leaves_at_most_its_last_part_of_the_walltime(us) -> None:
    profile = {"type": "delay", "delay": us / 1e6, "ret": 1}
    parts = as_sequence("d", profile, limited=True)
    left_s = us / 1e6
    *work, last = (parts[name]["delay"] for name in parts["d"]["seq"])
    for length_s in work:  # as in do_delay_task of Batsim 5
        assert len(repr(length_s).replace(".", "").lstrip("0")) <= 15 or "e" in repr(length_s)
        assert length_s < left_s
        left_s -= length_s
    assert not last < left_s
    assert sum(map(to_us, (*work, last))) == us


def test_other_profiles_stay_as_they_are() -> None:
    for profile in (
        {"type": "delay", "delay": 50},
        {"type": "composed", "seq": ["a"]},
        {"type": "delay", "delay": 30, "checkpoint_period": 100},
        {"type": "delay", "delay": 30, "checkpoint_period": 1e-6},
    ):
        (only,) = registers(**profile)
        assert only.profile == profile
    reject = (RejectJob(at_us=5, job_id="w0!1"),)
    assert with_sequences(reject) is reject


spans = st.integers(0, 50)


@given(spans.map(lambda x: x + 1), spans, spans, spans, st.booleans(), st.integers(1, 900))
def test_the_parts_are_as_long_as_the_delay(period, cost, first, recovery, closing, length) -> None:
    c = Checkpointing(period, cost, recovery, first, recovery, closing)
    parts = list(parts_of(c, length))
    assert sum(us for _, us in parts) == length
    assert all(us >= 0 for _, us in parts)
    lengths: dict[str, set[int]] = {}
    for name, us in parts:
        if us:
            lengths.setdefault(name, set()).add(us)
    assert all(len(values) == 1 for values in lengths.values())


@pytest.mark.parametrize(
    ("rest_us", "parts"),
    [(9, [("last", 9)]), (10, [("last", 10)]), (11, [("last", 1), ("checkpoint", 10)])],
)
def test_a_closing_checkpoint_follows_only_a_rest_that_is_longer(rest_us, parts) -> None:
    c = Checkpointing(100, 10, 7, first_period_us=40, first_recovery_us=7, closing=True)
    ended = [part for part in parts_of(c, 7 + 40 + 10 + rest_us) if part[1]]
    assert ended == [("recovery", 7), ("first", 40), ("checkpoint", 10), *parts]


def test_resubmissions_run_as_sequences() -> None:
    """The random cases have checkpoints. Other tests check that the schedule is unchanged."""
    registered = []
    for seed in range(40):
        case = Case(seed)
        replies = []
        play5(case, listen=replies.append)
        registered += [
            x.profile["type"]
            for reply in replies[1:]
            for x in decode_reply(reply).decisions
            if isinstance(x, RegisterProfile)
        ]
    assert registered.count("composed") > 5
