# SPDX-License-Identifier: Apache-2.0
"""R-LIST and R-SHELF: kernels compared with the slow oracle, recorded makespans and theorems."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.core.errors import InputError
from rebat.kernels import rlist, rlist_all
from rebat.kernels.resilient_state import ScenarioBatch
from rebat.models import resilient
from rebat.policies.queue_order import ranks
from tests.oracles.resilient import check_schedule, makespan, optimum, r_list, r_shelf
from tests.support.amount import few
from tests.support.recordings import job_sets

DEPTHS = {"R-LIST-0": 0, "R-LIST-1": 1, "R-LIST-2": 2, "R-LIST-3": 3, "R-LIST-Q": None}
VARIANTS = [
    *((name, kind) for name in DEPTHS for kind in resilient.RESERVATIONS),
    ("R-SHELF-B", "paper"),
    ("R-SHELF-NB", "paper"),
]


@st.composite
def instances(draw, most_jobs=8, most_procs=12, most_time=6, most_failures=3):
    """Draw few distinct times, sizes and ranks: many ties and simultaneous completions."""
    n = draw(st.integers(1, most_jobs))
    n_procs = draw(st.integers(1, most_procs))

    def numbers(low, high):
        return draw(st.lists(st.integers(low, high), min_size=n, max_size=n))

    return {
        "times": numbers(1, most_time),
        "sizes": numbers(1, n_procs),
        "rank": numbers(0, n),
        "failures": numbers(0, most_failures),
        "n_procs": n_procs,
    }


def oracle(name, reservations, case):
    if name in DEPTHS:
        return r_list(**case, depth=DEPTHS[name], reservations=reservations)
    return r_shelf(**case, backfill=name == "R-SHELF-B")


def as_lists(schedule):
    return [attempts.tolist() for attempts in schedule]


@pytest.mark.parametrize(("name", "reservations"), VARIANTS)
@settings(max_examples=few(400))
@given(case=instances())
def test_every_attempt_starts_when_the_oracle_starts_it(name, reservations, case):
    starts = as_lists(resilient.starts(name, **case, reservations=reservations))
    assert starts == oracle(name, reservations, case)
    check_schedule(starts, case["times"], case["sizes"], case["failures"], case["n_procs"])
    (length,) = resilient.makespans(name, **case, reservations=reservations)
    assert length == makespan(starts, case["times"])


@pytest.mark.parametrize(("name", "reservations"), VARIANTS)
def test_larger_instances_cross_the_blocks_of_the_queue(name, reservations):
    rng = np.random.default_rng(7)
    for n in (9, 17, 26):
        case = {
            "times": rng.integers(1, 40, n).tolist(),
            "sizes": rng.integers(1, 40, n).tolist(),
            "rank": rng.permutation(n).tolist(),
            "failures": rng.geometric(0.5, n).tolist(),
            "n_procs": 64,
        }
        starts = as_lists(resilient.starts(name, **case, reservations=reservations))
        assert starts == oracle(name, reservations, case)


@settings(max_examples=few(300))
@given(case=instances(most_jobs=40, most_procs=100, most_time=60))
def test_the_general_kernel_agrees_with_the_special_ones(case):
    """Depths 0, 1 and |Q| have special kernels that use properties of these depths."""
    t, p, rank, f = (np.array(case[k]) for k in ("times", "sizes", "rank", "failures"))
    order = np.argsort(rank, kind="stable")
    nothing = np.empty(0, np.int64)

    def general(depth, easy_head=False):
        result = np.zeros(1, np.int64)
        fails = np.ascontiguousarray(f[None, order])
        batch = ScenarioBatch(t[order], p[order], fails, case["n_procs"], result, nothing, nothing)
        rlist.reserving(batch, depth, easy_head)
        return result.tolist()

    def special(name, reservations="paper"):
        return resilient.makespans(name, **case, reservations=reservations).tolist()

    assert general(0) == special("R-LIST-0")
    assert general(1) == special("R-LIST-1")
    assert general(1, easy_head=True) == special("R-LIST-1", "easy_head")
    assert general(len(t)) == special("R-LIST-Q")
    assert general(len(t), easy_head=True) == special("R-LIST-Q", "easy_head")


def played(kernel, times, sizes, failures, n_procs):
    """Return the makespan and all starts of one scenario, with the jobs in queue order."""
    ends = np.cumsum(failures + 1)
    starts, length = np.empty(ends[-1], np.int64), np.zeros(1, np.int64)
    kernel(
        ScenarioBatch(times, sizes, failures[None], n_procs, length, starts, ends - failures - 1)
    )
    return [*length.tolist(), *starts.tolist()]


@settings(max_examples=few(150))
@given(
    seed=st.integers(0, 2**32 - 1),
    most_time=st.sampled_from([3, 30, 3000]),
    widest=st.sampled_from([4, 16, 64]),
    rule=st.sampled_from(["LPT", "LA", "SPT", "RANDOM"]),
    success=st.sampled_from([0.5, 0.9]),
)
def test_reservations_known_out_of_turn_are_those_of_a_full_round(
    seed, most_time, widest, rule, success
):
    """In deep queues the kernel of R-LIST-Q computes few reservations, and the general kernel
    all."""
    n, n_procs, rng = 120, 64, np.random.default_rng(seed)
    times, sizes = rng.integers(1, most_time + 1, n), rng.integers(1, widest + 1, n)
    order = np.argsort(ranks(rule, times, sizes, n_procs=n_procs))
    times, sizes, failures = times[order], sizes[order], rng.geometric(success, (2, n)) - 1

    def full_rounds(batch):
        rlist.reserving(batch, n, False)

    full = [played(full_rounds, times, sizes, row, n_procs) for row in failures]
    few = [played(rlist_all.conservative, times, sizes, row, n_procs) for row in failures]
    assert few == full
    found = resilient.makespans("R-LIST-Q", times, sizes, np.arange(n), failures, n_procs=n_procs)
    assert found.tolist() == [row[0] for row in full]


def test_recorded_makespans():
    files = job_sets()
    assert files
    wrong, compared = [], 0
    for file in files:
        data = json.loads(file.read_text())
        times = [job["t"] for job in data["jobs"]]
        sizes = [job["p"] for job in data["jobs"]]
        failures = [scenario["f"] for scenario in data["scenarios"]]
        for (key, name), kind in {
            **{("makespan_paper", name): "paper" for name in resilient.HEURISTICS},
            ("makespan_r_list_1_easy_head", "R-LIST-1"): "easy_head",
        }.items():
            tables = [scenario[key] for scenario in data["scenarios"]]
            tables = [table.get(name, table) for table in tables]
            for rule in tables[0]:
                rank = ranks(rule, times, sizes, n_procs=data["P"])
                found = resilient.makespans(
                    name, times, sizes, rank, failures, n_procs=data["P"], reservations=kind
                )
                expected = [table[rule] for table in tables]
                compared += len(expected)
                if found.tolist() != expected:
                    wrong.append((file.name, name, kind, rule))
    assert not wrong
    assert compared == 2772


@settings(max_examples=few(500))
@given(case=instances(most_jobs=4, most_procs=5, most_time=5, most_failures=1))
def test_greedy_is_within_two_of_the_optimum(case):
    """Proposition 2: for any priority rule the ratio is at most 2 - 1/P."""
    best = optimum(case["times"], case["sizes"], case["failures"], case["n_procs"])
    (length,) = resilient.makespans("R-LIST-0", **case)
    assert best <= length <= (2 - Fraction(1, case["n_procs"])) * best


@pytest.mark.parametrize("name", ["R-LIST-1", "R-LIST-2", "R-LIST-Q"])
@pytest.mark.parametrize("reservations", ["paper", "easy_head"])
@settings(max_examples=few(200))
@given(case=instances(most_jobs=4, most_procs=5, most_time=5, most_failures=1))
def test_reservations_with_ljf_are_within_three_of_the_optimum(name, reservations, case):
    """Proposition 1: for R-LIST with m > 0 and the LJF rule the ratio is at most 3 - 4/(P + 1)."""
    n_procs = case["n_procs"]
    case["rank"] = ranks("LJF", case["times"], case["sizes"], n_procs=n_procs)
    best = optimum(case["times"], case["sizes"], case["failures"], n_procs)
    (length,) = resilient.makespans(name, **case, reservations=reservations)
    assert best <= length <= (3 - Fraction(4, n_procs + 1)) * best


def test_a_failed_job_with_priority_moves_reservations_unless_they_are_stale():
    """Each of two jobs needs the entire machine. The first fails once. It must wait for the
    second if reservations are stale."""
    case = {"times": [3, 2], "sizes": [2, 2], "rank": [0, 1], "failures": [1, 0], "n_procs": 2}
    assert as_lists(resilient.starts("R-LIST-Q", **case)) == [[0, 3], [6]]
    assert as_lists(resilient.starts("R-LIST-Q", **case, reservations="stale")) == [[0, 5], [3]]


def test_the_head_that_starts_uses_up_the_reservation_only_in_the_paper():
    """The first job starts, and the second does not fit. The long third job delays the second
    unless the second has a reservation."""
    case = {
        "times": [2, 2, 9],
        "sizes": [2, 4, 1],
        "rank": [0, 1, 2],
        "failures": [0, 0, 0],
        "n_procs": 4,
    }
    assert as_lists(resilient.starts("R-LIST-1", **case)) == [[0], [9], [0]]
    easy = resilient.starts("R-LIST-1", **case, reservations="easy_head")
    assert as_lists(easy) == [[0], [2], [4]]


def test_threads_do_not_change_the_result():
    rng = np.random.default_rng(3)
    times, sizes = rng.integers(1, 99, 20), rng.integers(1, 9, 20)
    failures = rng.integers(0, 3, (101, 20))
    for name in resilient.HEURISTICS:
        one, many = (
            resilient.makespans(name, times, sizes, times, failures, n_procs=16, threads=threads)
            for threads in (1, 4)
        )
        assert one.tolist() == many.tolist()


def test_no_job_and_no_scenario():
    none = np.empty(0, np.int64)
    assert resilient.makespans("R-LIST-Q", none, none, none, none, n_procs=4).tolist() == [0]
    empty = np.empty((0, 1), np.int64)
    assert resilient.makespans("R-SHELF-B", [1], [1], [0], empty, n_procs=4).tolist() == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sizes": [1, 5]}, "job 1: needs 5 processors .expected 1 to 4"),
        ({"sizes": [0, 1]}, "job 0: needs 0 processors"),
        ({"times": [0, 1]}, "job 0: has time 0"),
        ({"times": [1.5, 1]}, "times has type float64"),
        ({"failures": [0, -1]}, "a number of failures is negative"),
        ({"failures": [0]}, "shapes of the arrays differ"),
        ({"times": [2**60, 2**60], "failures": [1, 1]}, "too long for 64 bits"),
        ({"n_procs": 0}, "0 processors"),
        ({"reservations": "firm"}, "one of: easy_head, paper, stale"),
        ({"which": "R-LIST-A"}, "unknown heuristic 'R-LIST-A'"),
        ({"which": "R-LIST--1"}, "unknown heuristic"),
    ],
)
def test_bad_input(change, message):
    good = {
        "which": "R-LIST-0",
        "times": [1, 1],
        "sizes": [1, 1],
        "rank": [0, 1],
        "failures": [0, 0],
        "n_procs": 4,
    }
    with pytest.raises(InputError, match=message):
        resilient.makespans(**{**good, **change})
