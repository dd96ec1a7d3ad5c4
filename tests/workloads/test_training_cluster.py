# SPDX-License-Identifier: Apache-2.0
"""Jobs of a training cluster: the published shares of jobs and of time."""

from __future__ import annotations

import numpy as np
import pytest

from rebat.core.errors import InputError
from rebat.workloads.generate import generator
from rebat.workloads.training_cluster import FLAGSHIP, MEAN_H, SHARES, SMALL_GPUS


def columns(workload):
    """Return nodes and run times (h) of the jobs."""
    nodes = np.array([job.n_nodes for job in workload.jobs])
    run_h = np.array([workload.profiles[job.profile]["delay"] for job in workload.jobs]) / 3600
    return nodes, run_h


def test_the_shares_are_those_of_the_reference():
    gpus, shares = np.array(list(SHARES)), np.array(list(SHARES.values()))
    hours = np.where(gpus <= SMALL_GPUS, *MEAN_H)
    gpu_h = gpus * hours * shares
    assert shares.sum() == pytest.approx(1, abs=1e-9)
    assert gpu_h.sum() == pytest.approx(45.8, abs=0.05)
    assert shares[gpus <= 8].sum() == pytest.approx(0.920, abs=5e-4)
    assert gpu_h[gpus <= 8].sum() / gpu_h.sum() == pytest.approx(0.088, abs=5e-4)
    assert gpu_h[gpus == 4096].sum() / gpu_h.sum() == pytest.approx(0.125, abs=5e-4)
    assert gpu_h[gpus >= 256].sum() / gpu_h.sum() == pytest.approx(0.666, abs=5e-4)


def test_a_month():
    workload = generator("training-cluster:days=10")(0)
    nodes, run_h = columns(workload)
    assert workload.n_nodes == 2000
    assert 0.7 < (nodes @ run_h) / (2000 * 240) < 0.96  # few large jobs have most of the node time
    assert run_h.max() <= 7 * 24
    assert run_h[nodes > 1].mean() == pytest.approx(4, rel=1e-3)
    assert run_h[nodes == 1].mean() == pytest.approx(1.2, rel=1e-3)
    assert all(
        job.walltime_us / 3.6e9 > hours for job, hours in zip(workload.jobs, run_h, strict=True)
    )
    assert max(job.submit_us for job in workload.jobs) <= 10 * 86_400e6


def test_a_flagship_job_is_first():
    workload = generator("training-cluster:nodes=64,days=1,flagship=32,flagship_days=2")(0)
    flagship = workload.jobs[0]
    assert (flagship.id, flagship.n_nodes, flagship.submit_us) == (FLAGSHIP, 32, 0)
    assert workload.profiles[FLAGSHIP]["delay"] == 2 * 86_400
    assert len(workload.jobs) > 10
    alone = generator("training-cluster:nodes=64,load=0,flagship=64")(0)
    assert len(alone.jobs) == 1


def test_same_seed_same_jobs():
    text = "training-cluster:nodes=64,days=1"
    assert generator(text)(3) == generator(text)(3)
    assert generator(text)(3) != generator(text)(4)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("nodes=4,flagship=5", "flagship: is 5"),
        ("load=0", "load 0 is too low"),
        ("days=-1", "days"),
        ("classes=0", "classes"),
        ("urgent=5", "urgent: has no effect .expected classes of at least 2"),
        ("gpu=8", "unknown option of training-cluster 'gpu'"),
    ],
)
def test_bad_options(options, error):
    with pytest.raises(InputError, match=error):
        generator(f"training-cluster:{options}")(0)


def test_malleable_jobs_have_the_same_sizes_and_run_times():
    text = "training-cluster:nodes=64,days=1,flagship=32,flagship_days=2"
    rigid, malleable = generator(text)(0), generator(f"{text},malleable=100")(0)
    assert all(
        np.array_equal(*pair) for pair in zip(columns(rigid), columns(malleable), strict=True)
    )
    assert not any("malleable" in str(job.extra) for job in rigid.jobs)
    assert all("malleable" in str(job.extra) for job in malleable.jobs)
    with pytest.raises(InputError, match="malleable"):
        generator(f"{text},malleable=101")


def classes_of(workload) -> np.ndarray:
    return np.array([job.extra.get("priority_class", -1) for job in workload.jobs])


def test_priority_classes_rise_with_the_size():
    text = "training-cluster:nodes=512,days=4,flagship=32"
    plain, classed = generator(text)(0), generator(f"{text},classes=3")(0)
    assert set(classes_of(plain)) == {-1}
    assert all(np.array_equal(*pair) for pair in zip(columns(plain), columns(classed), strict=True))
    classes, (nodes, _) = classes_of(classed)[1:], columns(classed)
    assert set(classes) == {0, 1, 2}
    assert all(nodes[1:][classes == k].max() < nodes[1:][classes == k + 1].min() for k in (0, 1))
    assert classes_of(classed)[0] == 2  # the flagship job
    assert (classes == 0).mean() > 0.92


def test_urgent_jobs_are_in_the_highest_class():
    text = "training-cluster:nodes=512,days=4,classes=3"
    plain, urgent = (classes_of(generator(t)(0)) for t in (text, f"{text},urgent=20"))
    raised = (urgent == 2) & (plain < 2)
    assert (urgent[~raised] == plain[~raised]).all()
    n_lower = (plain < 2).sum()
    assert abs(raised.sum() - 0.2 * n_lower) < 4 * (0.16 * n_lower) ** 0.5
