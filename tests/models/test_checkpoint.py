# SPDX-License-Identifier: Apache-2.0
"""Each case of sections 5.2 and 7.2.2 of the node-stealing paper."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.core.units import to_us
from rebat.models.checkpoint import (
    Checkpointing,
    add_perfect,
    add_young_daly,
    checkpoint_kinds,
    checkpoint_time_us,
    checkpointed_profile,
    checkpointing_of,
    n_below_period,
    with_checkpoints_us,
    without_checkpoints,
    work_in_us,
    young_daly_period_s,
)
from rebat.models.remaining import (
    Remaining,
    after_next_checkpoint,
    after_proactive_checkpoint,
    resumed,
    resumed_length_us,
    since_last_checkpoint,
)
from rebat.models.tiers import add_tiers, parse_tiers
from tests.support.scenarios import machine

# T = 100, C = 10, R = 7. An original checkpoints over [100, 110), [210, 220) ...
ORIGINAL = Checkpointing(100, 10, 7, 100, 0)
# A resubmission that recovers for 7, works 40, checkpoints until 57, then regularly.
RESUMED = Checkpointing(100, 10, 7, 40, 7)


@given(
    st.lists(st.integers(1, 10**6), min_size=1, max_size=9),
    st.sampled_from(["ceil", "floor"]),
    st.sampled_from([600, 3600, 90_000]),
)
def test_checkpoints_are_dropped(lengths_s, rounding, mtbf_s) -> None:
    workload = Workload(
        "w",
        8,
        tuple(Job(str(n), 1 + n % 8, 0, to_us(2 * s), f"d{n}") for n, s in enumerate(lengths_s)),
        {f"d{n}": {"type": "delay", "delay": s} for n, s in enumerate(lengths_s)},
    )
    tiers = parse_tiers("memory=1s/17s@5min+peer=5s/31s@10min+remote=60s/62s@30min")
    for longer in (
        add_young_daly(workload, n_nodes=8, mtbf_s=mtbf_s, rounding=rounding),
        add_perfect(workload),
        add_tiers(workload, tiers, n_nodes=8, mtbf_s=mtbf_s, light_share=(0.3, 0.6), software="s"),
    ):
        plain = without_checkpoints(longer)
        assert checkpointed_profile(plain) is None
        for job, expected in zip(plain.jobs, workload.jobs, strict=True):
            assert job.walltime_us == expected.walltime_us
            profile = plain.profiles[job.profile]
            assert profile == workload.profiles[expected.profile]


@pytest.mark.parametrize(
    ("c", "run", "useful", "first_period", "recovery"),
    [
        (ORIGINAL, 50, 0, 100, 7),
        (ORIGINAL, 110, 0, 100, 7),  # t_run <= t_1: the note's table keeps nothing yet
        (ORIGINAL, 111, 110, 100, 7),
        (ORIGINAL, 219, 110, 100, 7),
        (ORIGINAL, 220, 220, 100, 7),
        (RESUMED, 5, 0, 40, 7),
        (RESUMED, 57, 0, 40, 7),
        (RESUMED, 58, 50, 100, 7),
        (RESUMED, 167, 160, 100, 7),
    ],
)
def test_interrupted_at_once_keeps_the_last_checkpoint(c, run, useful, first_period, recovery):
    left = since_last_checkpoint(c.pattern, run, "paper")
    assert (left.useful, left.first_period, left.first_recovery) == (
        useful, first_period, recovery,
    )  # fmt: skip


def test_the_program_gives_no_recovery_before_the_first_checkpoint() -> None:
    assert since_last_checkpoint(ORIGINAL.pattern, 50, "authors").first_recovery == 0
    assert since_last_checkpoint(RESUMED.pattern, 50, "authors").first_recovery == 7
    assert since_last_checkpoint(ORIGINAL.pattern, 150, "authors").first_recovery == 7


@pytest.mark.parametrize(
    ("run", "useful", "first_period", "wait"),
    [
        (7, 0, 40, 0),  # case 1: recovering
        (17, 10, 30, 10),  # case 2: in the first period
        (50, 50, 100, 7),  # case 3: in the first checkpoint, complete at 57
        (87, 80, 70, 10),  # case 4: 30 into a regular period
        (160, 160, 100, 7),  # case 5: in a regular checkpoint, complete at 167
    ],
)
def test_proactive_checkpoint_has_figure_14s_five_cases(run, useful, first_period, wait) -> None:
    left = after_proactive_checkpoint(RESUMED.pattern, run, "paper")
    assert (left.useful, left.first_period, left.wait) == (useful, first_period, wait)
    assert left.first_recovery == 7


@pytest.mark.parametrize(
    ("run", "useful", "wait"), [(7, 0, 0), (8, 110, 109), (117, 110, 0), (118, 220, 109)]
)
def test_next_checkpoint_has_figure_16s_two_cases(run, useful, wait) -> None:
    regular = Checkpointing(100, 10, 7, 100, 7)
    left = after_next_checkpoint(regular.pattern, run, "paper")
    assert (left.useful, left.wait) == (useful, wait)


def test_the_program_waits_for_a_checkpoint_even_while_recovering() -> None:
    left = after_next_checkpoint(RESUMED.pattern, 3, "authors")
    assert (left.useful, left.wait) == (50, 54)
    assert after_proactive_checkpoint(RESUMED.pattern, 3, "authors").wait == 100_000


RULES = st.sampled_from([since_last_checkpoint, after_proactive_checkpoint, after_next_checkpoint])


@given(
    st.integers(1, 50), st.integers(1, 9), st.integers(0, 9), st.integers(1, 1000),
    st.lists(st.tuples(RULES, st.floats(0, 1, exclude_max=True)), max_size=12),
    st.sampled_from(["paper", "authors"]),
)  # fmt: skip
def test_what_is_banked_and_what_remains_is_always_the_jobs_length(
    period, cost, recovery, length, interruptions, semantics
) -> None:
    """After any chain of interruptions, saved and remaining work add up to the length of the job.

    Progress never decreases.
    """
    c, remaining, banked = Checkpointing(period, cost, recovery, period), length, 0
    for rule, share in interruptions:
        run = int(share * remaining)
        left = Remaining(*rule(c.pattern, run, semantics))
        if run + left.wait_us >= remaining:
            continue  # it would have completed first
        assert left.useful_us >= 0
        banked += left.useful_us
        remaining = resumed_length_us(remaining, c, left)
        c = resumed(c, left)
        assert c is not None
        assert banked + remaining - c.first_recovery_us == length
        assert remaining > 0


def test_young_daly_period_of_128_nodes_is_8_hours() -> None:
    """Section 6.1: MTBF 1 h on 49,152 nodes, C = 5 min."""
    assert young_daly_period_s(128, 49_152, 3600, 300) / 3600 == pytest.approx(8, rel=0.01)


def test_lengths_and_walltimes_grow_by_eqs_1_and_2() -> None:
    workload = machine(49_152, (512, 40_000, 0, 90_000))
    job = add_young_daly(workload, n_nodes=49_152, mtbf_s=3600, rounding="ceil").jobs[0]
    period = young_daly_period_s(512, 49_152, 3600, 300)
    assert period == pytest.approx(14_400)
    grown = add_young_daly(workload, n_nodes=49_152, mtbf_s=3600, rounding="ceil")
    assert grown.profiles[job.profile]["delay"] == 40_000 + 3 * 300
    assert job.walltime_us == to_us(90_000 + 7 * 300)
    floored = add_young_daly(workload, n_nodes=49_152, mtbf_s=3600, rounding="floor")
    assert floored.profiles[job.profile]["delay"] == 40_000 + 2 * 300


def test_the_recorded_workload_has_these_lengths(shared) -> None:
    """Each job of a month equals that in the workload that the authors prepared."""
    from rebat.workloads.batsim_json import read_workload
    from rebat.workloads.load import load_workload

    recorded = read_workload(shared / "golden/node-stealing/mira-2018-11-ckpt.json.gz")
    trace = shared / "traces/mira-2018-09_2018-12.swf.gz"
    ours = load_workload(trace, months="2018-11", cap=49_000)
    ours = add_young_daly(ours, n_nodes=49_152, mtbf_s=3600, rounding="ceil")
    assert len(ours.jobs) == len(recorded.jobs)
    for mine, theirs in zip(ours.jobs, recorded.jobs, strict=True):
        assert (mine.n_nodes, mine.submit_us, mine.walltime_us) == (
            theirs.n_nodes, theirs.submit_us, theirs.walltime_us,
        )  # fmt: skip
        a, b = ours.profiles[mine.profile], recorded.profiles[theirs.profile]
        assert a["delay"] == b["delay"]
        assert checkpointing_of(a) == checkpointing_of(b)


@pytest.mark.parametrize(
    ("work", "length"),
    # RESUMED checkpoints after 40 of work, then after each 100, and always at the end.
    [(1, 11), (40, 50), (41, 61), (140, 160), (141, 171), (340, 380)],
)
def test_work_is_lengthened_by_a_checkpoint_for_each_period_begun(work, length) -> None:
    assert with_checkpoints_us(RESUMED, work) == length
    assert work_in_us(RESUMED, length) == work


def test_lengths_of_equation_1_hold_the_work_that_they_were_made_of() -> None:
    """The work can be computed from the length, also after a regular checkpoint."""
    for work in (1, 99, 100, 101, 250, 300):
        length = work + -(-work // 100) * 10
        assert [work_in_us(ORIGINAL, length), with_checkpoints_us(ORIGINAL, work)] == [work, length]
        if work > 100:
            assert work_in_us(ORIGINAL, length - 110) == work - 100


def test_a_length_that_ends_in_a_checkpoint_holds_no_more_work() -> None:
    assert [work_in_us(RESUMED, n) for n in (9, 49, 50, 55, 60, 61)] == [0, 39, 40, 40, 40, 41]
    assert (work_in_us(None, 55), with_checkpoints_us(None, 55)) == (55, 55)


@pytest.mark.parametrize(
    "fields",
    [{"checkpoint_cost": "x"}, {"recovery_cost": -1}, {"Tfirst": float("nan")}, {}],
)
def test_broken_checkpoint_fields_are_told(fields) -> None:
    profile = {"checkpoint_period": 0 if not fields else 5, "checkpoint_cost": 1, **fields}
    with pytest.raises(InputError, match="profile field"):
        checkpointing_of(profile)


TIMES_US = st.integers(1, 2**53 // 4) | st.integers(1, 10**6).map(lambda s: s * 10**6)


@given(
    jobs=st.lists(st.tuples(TIMES_US, st.integers(1, 3), st.none() | TIMES_US), min_size=1),
    mtbf_s=st.floats(1e5, 1e9),
    cost_s=st.floats(0.1, 1e4),
    rounding=st.sampled_from(["ceil", "floor"]),
)
def test_the_columns_are_lengthened_as_one_job_is(jobs, mtbf_s, cost_s, rounding) -> None:
    """Equations 1 and 2 in Python numbers, job by job, with profiles in the order of the jobs."""
    workload = Workload(
        "w",
        8,
        tuple(
            Job(str(n), size, 0, wall_us, f"d{us}") for n, (us, size, wall_us) in enumerate(jobs)
        ),
        {f"d{us}": {"delay": us / 10**6, "type": "delay"} for us, _, _ in reversed(jobs)},
    )

    def longer_us(us: int, size: int) -> int:
        periods = us / 10**6 / young_daly_period_s(size, 8, mtbf_s, cost_s)
        count = math.ceil(periods) if rounding == "ceil" else math.floor(periods)
        return us + count * to_us(cost_s)

    made = add_young_daly(workload, n_nodes=8, mtbf_s=mtbf_s, cost_s=cost_s, rounding=rounding)
    assert [*made.profiles] == [*dict.fromkeys(f"d{us}@{size}" for us, size, _ in jobs)]
    for job, (us, size, wall_us) in zip(made.jobs, jobs, strict=True):
        assert job.walltime_us == (None if wall_us is None else longer_us(wall_us, size))
        profile = made.profiles[job.profile]
        assert profile["delay"] == longer_us(to_us(us / 10**6), size) / 10**6
        assert [*profile][:3] == ["delay", "type", "checkpoint_period"]


def test_checkpoints_without_an_end_are_refused() -> None:
    with pytest.raises(InputError, match="take more than"):
        add_young_daly(machine(8, (8, 10**9)), n_nodes=8, mtbf_s=1e-6, cost_s=1e6)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["checkpoint_period", "checkpoint_cost", "Tfirst", "Rfirst"]),
            st.sampled_from([1, 2.5, [1]]),
        )
        | st.just({"checkpoint_period": 5, "checkpoint_rounding": "floor"})
        | st.just({"checkpoint_period": 9, "light_period": 2, "light_cost": 0.5})
    )
)
def test_kinds_of_checkpoints_are_those_of_each_profile(profiles) -> None:
    try:
        expected = [checkpointing_of(profile) for profile in profiles]
    except InputError as error:
        with pytest.raises(InputError, match=re.escape(str(error))):
            checkpoint_kinds(profiles)
        return
    kinds, codes = checkpoint_kinds(profiles)
    assert [kinds[code] for code in codes] == expected


def pattern(c: Checkpointing, length: int) -> str:
    """Return the use of each microsecond after the recovery: w for work, c for checkpoint."""
    marks = "w" * c.first_period_us + "c" * c.cost_us
    return (marks + ("w" * c.period_us + "c" * c.cost_us) * (length // c.cycle_us + 1))[:length]


@given(
    st.integers(1, 12), st.integers(0, 5), st.integers(1, 12), st.integers(0, 60), st.booleans(),
    st.data(),
)  # fmt: skip
def test_checkpoint_time_is_that_of_the_microseconds(period, cost, first, work, closing, data):
    """The exact count equals a count of the microseconds of an attempt, or of its first part."""
    c = Checkpointing(period, cost, 0, first, closing=closing)
    length = with_checkpoints_us(c, work)
    marks = pattern(c, length)
    if closing and marks.count("w") > work:  # it ended within a period, with a closing checkpoint
        marks = pattern(c, length - cost) + "c" * cost
    assert marks.count("w") == work
    until = data.draw(st.integers(0, length))
    assert checkpoint_time_us(c, until, length, True, "exact") == marks[:until].count("c")


@given(
    st.integers(1, 12), st.integers(0, 5), st.integers(1, 12), st.integers(0, 60), st.booleans(),
    st.data(),
)  # fmt: skip
def test_what_was_interrupted_closed_nothing(period, cost, first, length, closing, data):
    c = Checkpointing(period, cost, 0, first, closing=closing)
    until = data.draw(st.integers(0, length))
    marks = pattern(c, length)
    assert checkpoint_time_us(c, until, length, False, "exact") == marks[:until].count("c")
    whole = first + cost + (length - first - cost) // (period + cost) * (period + cost)
    counted = marks[: whole if length >= first + cost else 0]
    for ended in (True, False):
        found = checkpoint_time_us(c, until, length, ended, "program")
        assert found == counted[:until].count("c")


def test_the_program_counts_whole_periods_of_an_original() -> None:
    """floor(length / (T + C)) checkpoints: node-stealing-authors' scripts."""
    for length in range(700):
        found = checkpoint_time_us(ORIGINAL, length, length, True, "program")
        assert found == length // 110 * 10


def test_jobs_below_a_period_are_counted() -> None:
    """The period is 4 h on 512 nodes, and 2 h on 2,048 nodes."""
    jobs = [(512, 14_399), (512, 14_401), (2048, 7_199), (2048, 7_201)]
    assert n_below_period(machine(49_152, *jobs), 49_152, 3600, 300) == 2


def test_checkpoints_are_rounded_down_by_default() -> None:
    """A job shorter than its period writes no checkpoint, and its length does not change."""
    made = add_young_daly(machine(49_152, (512, 3600)), n_nodes=49_152, mtbf_s=3600)
    assert made.profiles[made.jobs[0].profile]["delay"] == 3600
