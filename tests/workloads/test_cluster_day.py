# SPDX-License-Identifier: Apache-2.0
"""The generator of a cluster's day, as in Rodríguez-Pascual et al. 2019."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.core.errors import InputError
from rebat.core.jobs import duration_us
from rebat.workloads.cluster_day import ClusterDay, cluster_day
from rebat.workloads.describe import describe
from rebat.workloads.generate import generator
from tests.support.amount import few


def area_us(workload) -> float:
    """Return the core-microseconds that jobs need, without eternal jobs."""
    jobs = [job for job in workload.jobs if "eternal" not in job.extra]
    return sum(job.n_nodes * duration_us(workload.profiles, job.profile) for job in jobs)


@settings(max_examples=few(40))
@given(
    load=st.floats(1, 150), nodes=st.integers(1, 40), cores=st.integers(1, 32),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_the_area_is_reached_and_no_job_too_many(load, nodes, cores, seed) -> None:
    asked = ClusterDay(load=load, nodes=nodes, cores=cores, hours=8)
    workload = cluster_day(seed, asked)
    sizes = [job.n_nodes for job in workload.jobs]
    assert area_us(workload) >= asked.area_us
    assert max(sizes) <= nodes * cores
    assert workload == cluster_day(seed, asked)
    submissions = [job.submit_us for job in workload.jobs]
    assert submissions == sorted(submissions)
    assert 0 <= submissions[0] <= submissions[-1] <= 8 * 3600 * 10**6


def test_laws_are_exponential() -> None:
    """The mean of the rounded-up parallelism is 1 / (1 - exp(-1 / m)), that of run times 900 s."""
    workload = generator("cluster-day:load=75,hours=240,parallelism=4,length_s=900")(3)
    sizes = np.array([job.n_nodes for job in workload.jobs])
    runs = np.array([duration_us(workload.profiles, job.profile) for job in workload.jobs]) / 1e6
    assert sizes.mean() == pytest.approx(1 / (1 - np.exp(-1 / 4)), rel=0.02)
    assert runs.mean() == pytest.approx(900, rel=0.02)
    assert (runs > 900).mean() == pytest.approx(np.exp(-1), abs=0.01)
    assert abs(np.corrcoef(sizes, runs)[0, 1]) < 0.03


def test_walltimes_follow_the_accuracy() -> None:
    workload = cluster_day(0, ClusterDay(accuracy=0.5))
    for job in workload.jobs:
        run_us = duration_us(workload.profiles, job.profile)
        assert job.walltime_us == 2 * run_us + 10**6


def test_eternal_jobs_are_told_apart() -> None:
    workload = generator("cluster-day:load=30,eternal=7,memory_mb=250")(0)
    eternal = [job for job in workload.jobs if job.extra.get("eternal")]
    assert [job.extra["partition"] for job in eternal] == ["eternal"] * 7
    assert all(job.walltime_us is None and job.n_nodes == 1 for job in eternal)
    assert {job.extra["memory_mb"] for job in workload.jobs} == {250.0}
    facts = describe(workload, 86_400)
    assert facts["eternal"] == 7
    assert facts["jobs"] == len(workload.jobs)
    assert facts["stress"] == pytest.approx(0.3, rel=0.05)
    assert facts["without_walltime"] == 0


@pytest.mark.parametrize(
    "text",
    ["load=0", "nodes=0", "cores=0", "hours=-1", "accuracy=2", "accuracy=1e-300",
     "memory_mb=-1", "eternal=-1",
     "load=900,hours=90000,length_s=1", "weather=good"],
)  # fmt: skip
def test_what_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        generator(f"cluster-day:{text}")(0)


def test_the_overhead_lengthens_each_job_and_changes_nothing_else() -> None:
    plain, slower = (cluster_day(4, ClusterDay(load=75, overhead=x)) for x in (0.0, 2.0))
    lengths = [
        [duration_us(day.profiles, job.profile) for job in day.jobs] for day in (plain, slower)
    ]
    assert lengths[1] == [round(length * 1.02) for length in lengths[0]]
    facts = [[(job.n_nodes, job.submit_us) for job in day.jobs] for day in (plain, slower)]
    assert facts[0] == facts[1]
    with pytest.raises(InputError, match="overhead"):
        ClusterDay(overhead=-1)
