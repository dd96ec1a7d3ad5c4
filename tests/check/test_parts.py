# SPDX-License-Identifier: Apache-2.0
"""The parts of ``rebat policy check``: cases, shrinking, clocks, and the input of a policy."""

from __future__ import annotations

import datetime
import itertools
import subprocess
import sys
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.check.cases import (
    STREAMS,
    SteppedClock,
    busy_case,
    case_of,
    case_record,
    of_parts,
    parts_of,
    random_case,
    stream_case,
)
from rebat.check.playing import How, _Run, load_policy, play
from rebat.check.verdict import smallest
from rebat.core.attempts import Cause
from rebat.core.errors import InputError
from rebat.models.failures.events import check_alternation
from rebat.models.operations import check_operations
from rebat.policies.presets import PRESETS

SEEDS = range(60)


@pytest.mark.parametrize("kind", [random_case, busy_case])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_case_survives_json_and_any_part_can_go(seed: int, kind: Any) -> None:
    case = kind(seed)
    record = case_record(case)
    assert case_record(case_of(record)) == record
    parts = parts_of(case)
    assert of_parts(case, parts) == case
    for gone in parts:
        smaller = of_parts(case, [part for part in parts if part != gone])
        check_alternation(smaller.events, case.workload.n_nodes)
        check_operations(
            smaller.operations, case.workload.n_nodes, {job.id for job in smaller.workload.jobs}
        )
        ups = [event.available for event in smaller.events]
        assert ups.count(True) == ups.count(False) or len(ups) < len(case.events)


def test_the_cases_have_everything_that_they_promise() -> None:
    cases = [random_case(seed) for seed in SEEDS]
    assert any(case.latency_us for case in cases) and any(case.split_instants for case in cases)
    assert any(case.cores_per_node > 1 for case in cases) and any(case.events for case in cases)
    kinds = {event.data["type"] for case in cases for event in case.operations}
    assert kinds == {"drain", "undrain", "migrate"}
    shapes = {job.extra.get("shape", {}).get("kind") for c in cases for job in c.workload.jobs}
    assert shapes == {None, "moldable", "malleable"}


def test_failures_hit_several_jobs_of_busy_cases_at_a_time() -> None:
    n_cases = 0
    for case in map(busy_case, SEEDS):
        run = _Run(load_policy("easy", case.workload.n_nodes), case)
        run.play(How.EMBEDDED)
        ends = [
            record.end_us for record in run.session.ledger.attempts
            if record.cause == Cause.NODE_FAILURE
        ]  # fmt: skip
        n_cases += len(ends) > len(set(ends))
    assert n_cases > len(SEEDS) // 2


@pytest.mark.slow
def test_a_policy_that_resizes_jobs_does_so_in_the_cases() -> None:
    resized = 0
    for seed in range(20):
        case = random_case(seed)
        policy = load_policy("pra:manager=egs", case.workload.n_nodes)
        run = _Run(policy, case)
        run.play(How.EMBEDDED)
        sizes = [
            (record.attempt.job_id, len(record.nodes))
            for record in run.session.ledger.attempts
            if record.nodes is not None
        ]
        jobs = [job for job, _ in {*sizes}]
        resized += len(jobs) - len({*jobs})
    assert resized


@pytest.mark.parametrize("seed", range(len(STREAMS)))
def test_streams_are_longer_than_their_bound(seed: int) -> None:
    """In a shorter stream no policy could fail."""
    jobs = stream_case(seed).workload.jobs
    (other,) = (job for job in jobs if job.id == "other")
    until = sum(job.submit_us <= other.submit_us for job in jobs)
    bound_us = until * max(job.walltime_us or 0 for job in jobs)
    assert max(job.submit_us for job in jobs) > other.submit_us + bound_us


@given(st.sets(st.integers(0, 40), max_size=4), st.integers(41, 60))
def test_what_is_smallest_has_only_what_is_needed(needed: set[int], n: int) -> None:
    assert smallest(range(n), lambda kept: needed <= {*kept}, most=10_000) == sorted(needed)


def test_shrinking_ends_after_the_given_number_of_calls() -> None:
    calls = itertools.count()

    def fails(_: list[int]) -> bool:
        next(calls)
        return False

    smallest(range(1000), fails, most=7)
    assert next(calls) == 7


READ = """
from rebat.check.cases import SteppedClock
SteppedClock(86_400 * 10**9, 10**9).install()
import datetime, time
from time import monotonic
print(time.time(), time.time_ns(), monotonic(), datetime.datetime.now(datetime.UTC).isoformat())
"""


def test_a_clock_replaces_those_of_python() -> None:
    done = subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        "86401.0", "86402000000000", "86403.0", "1970-01-02T00:00:04+00:00"
    ]  # fmt: skip
    clock = SteppedClock(0, 5)
    assert [clock.nanoseconds(), clock.nanoseconds()] == [5, 10]
    assert type(datetime.datetime.now()) is datetime.datetime and time.time() > 1e9  # not here


@pytest.mark.parametrize("field", ["workload", "events", "latency_s"])
def test_a_case_without_a_field_is_an_error(field: str) -> None:
    record = case_record(random_case(0))
    del record[field]
    with pytest.raises(InputError, match=field):
        case_of(record)


def test_the_same_case_is_played_in_the_same_way() -> None:
    case = random_case(3)
    assert play("easy", case, How.EMBEDDED) == play("easy", case, How.EMBEDDED)


OVERTAKING = {
    "greedy", "greedy-sfsj", "r-list-0", "r-list-1", "r-list-q", "r-shelf-b", "r-shelf-nb",
    "training-preempt", "training-requeue", "training-stealing", "training-swap",
}  # fmt: skip
"""Presets in which any number of jobs may overtake a job (see docs/how-to/policy-check.md)."""


@pytest.mark.slow
def test_presets_keep_all_rules_but_some_have_no_bound_on_waits() -> None:
    broken = {
        (name, played.rule)
        for name in PRESETS
        for case in (random_case(2), random_case(5), stream_case(0), stream_case(4))
        if (played := play(name, case, How.EMBEDDED)).rule
    }
    assert broken == {(name, "starvation") for name in OVERTAKING}
    assert (len(OVERTAKING), len(PRESETS)) == (11, 67)
