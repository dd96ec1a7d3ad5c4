# SPDX-License-Identifier: Apache-2.0
"""The number of attempts that a job may need with failures."""

from __future__ import annotations

import math

import pytest

from rebat.models.checkpoint import add_young_daly
from rebat.models.failures.law import generate_events
from rebat.models.failures.renewal import Poisson
from rebat.models.overload import MANY_ATTEMPTS, hopeless_jobs
from tests.support.scenarios import machine, run


def attempts(found) -> list[tuple[str, float]]:
    return [(one.job.id, one.log_attempts) for one in found]


def test_the_exponent_is_the_rate_of_the_jobs_nodes_times_its_length() -> None:
    """If 8 nodes fail once a second in total, 6 nodes survive 10 s with probability e^-7.5."""
    workload = machine(8, (6, 10), (1, 10), (8, 12), (9, 100))  # the last is rejected
    assert attempts(hopeless_jobs(workload, 8, 1.0)) == [("3", 12.0), ("1", 7.5)]
    assert math.exp(7.5) > MANY_ATTEMPTS
    assert hopeless_jobs(workload, 8, 10.0) == []


def test_a_walltime_and_checkpoints_shorten_what_must_be_survived() -> None:
    workload = machine(8, (8, 100, 0, 20))
    assert attempts(hopeless_jobs(workload, 8, 1.0)) == [("1", 20.0)]
    kept = add_young_daly(machine(8, (8, 100)), n_nodes=8, mtbf_s=1.0, cost_s=2, recovery_s=3)
    assert attempts(hopeless_jobs(kept, 8, 1.0)) == [("1", pytest.approx(2 + 2 + 3))]


def test_a_profile_that_only_batsim_understands_is_not_judged() -> None:
    workload = machine(8, (8, 100))
    workload.profiles["100s"] = {"type": "parallel", "cpu": [1], "com": [1]}
    assert hopeless_jobs(workload, 8, 1.0) == []


def test_numbers_beyond_any_float_are_told_as_powers() -> None:
    told = [one.attempts for one in hopeless_jobs(machine(1, (1, 9), (1, 10_000)), 1, 1.0)]
    assert told == ["10^4343", "8,103"]


@pytest.mark.slow
def test_the_estimate_is_what_simulations_need() -> None:
    """A job of 4 s on a node that fails every 2 s needs e^2 attempts (mean of 200 scenarios)."""
    counts = []
    for seed in range(200):
        events = generate_events(Poisson(2.0, 0.1), 1, horizon_s=300, seed=seed)
        counts.append(run("baseline", machine(1, (1, 4)), events).summary.attempts)
    mean = sum(counts) / len(counts)
    # The counts are geometric: three standard errors are about 3 means / sqrt(200).
    assert mean == pytest.approx(math.exp(2), abs=3 * math.exp(2) / math.sqrt(200))
