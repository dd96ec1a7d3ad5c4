# SPDX-License-Identifier: Apache-2.0
"""Silent errors: probabilities, scenarios, bounds, and the paper's instances."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction

import msgspec
import numpy as np
import pytest

from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.models import resilient
from rebat.models import silent_errors as model
from tests.oracles import harmonic


def test_the_job_of_average_area_fails_with_the_average_probability():
    """Section 5.1: q = 1 - exp(-lambda a), and q_j = 1 - (1 - q)^(a_j / a)."""
    times, sizes = [10, 20, 30], [2, 2, 2]
    rate = model.error_rate(times, sizes, 0.3)
    q = harmonic.error_probabilities(times, sizes, rate)
    assert q[1] == pytest.approx(0.3, rel=1e-14)
    assert q == pytest.approx([1 - 0.7 ** (a / 40) for a in (20, 40, 60)], rel=1e-14)
    assert model.error_rate(times, sizes, 0) == 0


@pytest.mark.parametrize("probability", [-0.1, 1, 1.5, math.nan])
def test_average_probabilities_out_of_range(probability):
    with pytest.raises(InputError, match="below 1"):
        model.error_rate([1], [1], probability)


def test_no_job_has_no_error_rate():
    with pytest.raises(InputError, match="no job"):
        model.error_rate([], [], 0.5)


@pytest.mark.parametrize("rate", [-1, math.nan, math.inf])
def test_rates_out_of_range(rate):
    with pytest.raises(InputError, match="error rate"):
        model.draw_failures([1], [1], rate, range(1), seed=0)


def test_failures_are_geometric():
    times, sizes, rate = [1, 3, 9], [1, 1, 1], 0.25
    failures = model.draw_failures(times, sizes, rate, range(20_000), seed=5)
    q = harmonic.error_probabilities(times, sizes, rate)
    assert failures.mean(axis=0) == pytest.approx(q / (1 - q), rel=0.05)
    for count in range(4):
        share = (failures == count).mean(axis=0)
        assert share == pytest.approx(q**count * (1 - q), abs=0.012)


def test_a_scenario_can_be_drawn_alone_and_depends_on_its_names_only():
    args = ([5, 7], [1, 2], 0.1)
    together = model.draw_failures(*args, range(10), seed=1, job_set="a")
    alone = model.draw_failures(*args, [7], seed=1, job_set="a")
    assert together[7].tolist() == alone[0].tolist()
    others = [
        model.draw_failures(*args, range(10), seed=2, job_set="a"),
        model.draw_failures(*args, range(10), seed=1, job_set="b"),
    ]
    assert all((other != together).any() for other in others)


def test_a_higher_rate_gives_no_job_fewer_failures():
    low, high = (
        model.draw_failures([5, 7], [1, 2], rate, range(200), seed=1) for rate in (0.05, 0.2)
    )
    assert (low <= high).all()
    assert (low < high).any()


def test_without_errors_nothing_fails():
    assert not model.draw_failures([5, 7], [1, 2], 0, range(9), seed=1).any()
    assert model.draw_failures([5, 7], [1, 2], 0, [], seed=1).shape == (0, 2)


def test_jobs_that_practically_never_succeed_are_refused():
    with pytest.raises(InputError, match="job 1: would fail about 1e43 times"):
        model.draw_failures([1, 100], [1, 1], 1, range(1), seed=1)


def test_lower_bounds_are_exact():
    """They equal equations (5) and (6) in rational arithmetic, also beyond floats and 64 bits."""
    cases = [
        ([4, 3], [1, 2], [[0, 0], [0, 1], [9, 0]], 3),
        ([2**53 + 1, 3], [1, 2], [[0, 0], [1, 7]], 3),
        ([2**50, 2**51], [2**20, 3], [[0, 0], [5, 1]], 2**20),
    ]
    for times, sizes, failures, n_procs in cases:
        expected = [
            max(
                Fraction(max((f + 1) * t for f, t in zip(row, times, strict=True))),
                Fraction(
                    sum((f + 1) * t * p for f, t, p in zip(row, times, sizes, strict=True)), n_procs
                ),
            )
            for row in failures
        ]
        found = model.lower_bounds(times, sizes, failures, n_procs)
        assert found == [float(bound) for bound in expected]


def test_normalised_makespans():
    assert model.normalised([6, 9], [4, 9]).tolist() == [1.5, 1.0]


def test_synthetic_jobs_are_the_papers():
    """Section 5.1: 100 jobs of 50 to 2000 processors and 100 to 20,000 s."""
    times, sizes = model.synthetic_jobs(1, 0, 20_000)
    assert (sizes.min(), sizes.max()) == (50, 2000)
    assert 100 <= times.min() / 1e6 < 110
    assert 19_990 < times.max() / 1e6 <= 20_000
    assert times.mean() / 1e6 == pytest.approx(10_050, rel=0.02)
    first, second = (model.synthetic_jobs(1, job_set) for job_set in (0, 1))
    assert len(first[0]) == model.SYNTHETIC_JOBS
    assert (first[0] != second[0]).any()
    assert (first[0] == model.synthetic_jobs(1, 0)[0]).all()


@pytest.mark.parametrize("name", ["R-SHELF-B", "R-SHELF-NB"])
@pytest.mark.parametrize("n_procs", [1, 2, 10, 40])
def test_shelves_are_a_harmonic_number_from_the_optimum(name, n_procs):
    """Proposition 3: the makespan is P H_P, while greedy reaches the optimum P."""
    case = harmonic.harmonic_instance(n_procs)
    arguments = (case.times, case.sizes, np.arange(n_procs), case.failures)
    (shelf,) = resilient.makespans(name, *arguments, n_procs=n_procs).tolist()
    (greedy,) = resilient.makespans("R-LIST-0", *arguments, n_procs=n_procs).tolist()
    assert greedy == case.unit * n_procs
    assert Fraction(shelf, greedy) == sum(Fraction(1, j) for j in range(1, n_procs + 1))


def test_harmonic_instances_have_a_largest_size():
    with pytest.raises(InputError, match="1 to 40"):
        harmonic.harmonic_instance(41)


def test_the_open_questions_ratios():
    """Section 4.3 has the ratios 1.00005 and 1.07 for P = 10, with times 100 P / j."""
    for rate, ratio, digits in [(1e-7, 1.00005, 5), (1e-3, 1.07, 2)]:
        shelves, best = harmonic.expected_harmonic_makespans(10, rate, time_scale=100)
        assert round(shelves / best, digits) == ratio


def test_expected_harmonic_makespans_are_those_of_simulated_shelves():
    case, rate = harmonic.harmonic_instance(10), 0.05
    failures = model.draw_failures(case.times, case.sizes, rate / case.unit, range(20_000), seed=11)
    shelf = resilient.makespans(
        "R-SHELF-NB", case.times, case.sizes, np.arange(10), failures, n_procs=10
    )
    best = model.longest_chain(case.times, failures)
    expected = harmonic.expected_harmonic_makespans(10, rate)
    assert shelf.mean() / case.unit == pytest.approx(expected[0], rel=0.02)
    assert best.mean() / case.unit == pytest.approx(expected[1], rel=0.02)


def test_expected_harmonic_makespans_without_errors_and_with_too_many():
    assert harmonic.expected_harmonic_makespans(10, 0) == (10, 10)
    with pytest.raises(InputError, match="further from 1"):
        harmonic.expected_harmonic_makespans(10, 1e3)


class TestInAWorkload:
    """add_silent_errors writes a scenario into profiles, and nothing else."""

    def workload(self, *profiles: dict) -> Workload:
        made = {str(i): profile for i, profile in enumerate(profiles)}
        jobs = tuple(Job(f"j{i}", 2, 0, None, str(i)) for i in range(len(profiles)))
        return Workload("w", 4, jobs, made)

    def test_only_jobs_that_err_get_another_profile(self):
        before = self.workload({"type": "delay", "delay": 5}, {"type": "delay", "delay": 6})
        after = model.add_silent_errors(before, [0, 3])
        assert after.jobs[0] == before.jobs[0]
        assert after.profiles[after.jobs[1].profile] == {
            "type": "delay", "delay": 6, "ret": 1, "silent_errors": 3,
        }  # fmt: skip

    def test_a_vector_is_the_whole_scenario(self):
        before = self.workload({"type": "delay", "delay": 5, "ret": 7})
        after = model.add_silent_errors(before, [0])
        assert model.errors_left(after.profiles[after.jobs[0].profile]) == 0
        assert after.profiles[after.jobs[0].profile]["ret"] == 0

    def test_each_attempt_has_one_error_less(self):
        whole = {"type": "delay", "delay": 5, "ret": 1, "silent_errors": 2}
        second = model.retried_profile(whole, whole)
        third = model.retried_profile(whole, second)
        assert [(p["ret"], p["silent_errors"]) for p in (second, third)] == [(1, 1), (0, 0)]

    def test_a_rate_draws_what_draw_failures_draws(self):
        workload = self.workload(*({"type": "delay", "delay": t} for t in (5, 50, 500)))
        after = model.add_silent_errors(workload, 5e-3, seed=4, scenario=2)
        found = [model.errors_left(after.profiles[job.profile]) for job in after.jobs]
        jobs = b'[["j0",2,0],["j1",2,0],["j2",2,0]]'
        name = hashlib.sha256(jobs).hexdigest()
        drawn = model.draw_failures([5, 50, 500], [2, 2, 2], 5e-3, [2], seed=4, job_set=name)
        assert found == drawn[0].tolist()
        assert sum(found) > 0

    def test_the_name_of_a_file_changes_nothing(self):
        """Regression: a campaign key (of jobs, without the file's name) had two results."""
        jobs = self.workload(*({"type": "delay", "delay": t} for t in range(5, 500, 5)))
        renamed = msgspec.structs.replace(jobs, name="other")
        one, other = (model.add_silent_errors(w, 1e-3, seed=4).jobs for w in (jobs, renamed))
        assert one == other

    @pytest.mark.parametrize("errors", [[1], [1, 1, 1], [1, -1], -0.5, math.nan])
    def test_bad_scenarios_are_refused(self, errors):
        workload = self.workload({"type": "delay", "delay": 1}, {"type": "delay", "delay": 2})
        with pytest.raises(InputError):
            model.add_silent_errors(workload, errors)

    @pytest.mark.parametrize("left", [-1, 1.5, True, "2"])
    def test_a_field_that_is_no_count_is_refused(self, left):
        with pytest.raises(InputError, match="silent_errors"):
            model.errors_left({"silent_errors": left})


def test_bounds_on_failures_and_on_probabilities() -> None:
    """Values below a bound do not change: random numbers are the same with and without bounds."""
    times, sizes = [1, 10, 100], [1, 1, 1]
    free = model.draw_failures(times, sizes, 0.1, range(200), seed=1)
    few = model.draw_failures(times, sizes, 0.1, range(200), seed=1, most_failures=5)
    assert (few == np.minimum(free, 5)).all() and free.max() > 5
    likely = model.draw_failures(times, sizes, 0.1, range(200), seed=1, largest_probability=0.5)
    assert (likely[:, 0] == free[:, 0]).all()  # q is 0.095
    assert likely[:, 2].mean() == pytest.approx(1, abs=0.3)  # q / (1 - q)
