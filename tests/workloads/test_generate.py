# SPDX-License-Identifier: Apache-2.0
"""Generated workloads have the published numbers, which ``describe`` prints."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.workloads.describe import describe
from rebat.workloads.generate import NAMES, generator, mira_like, synthetic
from rebat.workloads.published import PUBLISHED_MONTHS

US = 1_000_000
# Du et al. 2024, Table 2, as printed: intervals from 1 node to 2^15, then the whole machine, total
TABLE_2 = {
    "june-2017": [8, 2, 6, 10, 74, 2103, 809, 269, 22, 8, 3311],
    "march-2018": [31, 3, 6, 69, 117, 2481, 923, 350, 31, 13, 4024],
    "intrepid-june-2013": [0, 0, 0, 0, 0, 2001, 574, 362, 31, 2, 2970],
}
# Table 3 (min in s; max, mean, median in h) and the stress of section 5.2
TABLE_3 = {
    "june-2017": (55, 49.88, 2.64, 0.88, 0.8963),
    "march-2018": (26, 24.02, 2.79, 1.07, 0.9778),
    "intrepid-june-2013": (26, 47.08, 2.55, 0.42, 0.8955),
}


@pytest.mark.slow
@pytest.mark.parametrize("month", sorted(PUBLISHED_MONTHS))
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_generated_month_has_the_published_numbers(month, seed):
    data = PUBLISHED_MONTHS[month]
    summary = describe(mira_like(month, seed), period_s=data.length_s)
    least, most, mean, median, stress = TABLE_3[month]
    assert [*summary["size_classes"].values(), summary["jobs"]] == TABLE_2[month]
    assert summary["run_time_s"] == pytest.approx(
        {"min": least, "max": most * 3600, "mean": mean * 3600, "median": median * 3600}, abs=1e-3
    )
    assert summary["stress"] == pytest.approx(stress, rel=1e-6)
    assert summary["over_walltime"] == summary["without_walltime"] == summary["too_large"] == 0
    assert 0.98 * data.length_s < summary["span_s"] < data.length_s


@pytest.mark.slow
@pytest.mark.parametrize("month", sorted(PUBLISHED_MONTHS))
def test_walltimes_are_multiples_of_five_minutes_above_the_run_time(month):
    workload = mira_like(month, 0)
    for job in workload.jobs:
        assert job.walltime_us % (300 * US) == 0
        assert job.walltime_us > workload.profiles[job.profile]["delay"] * US
    assert max(job.n_nodes for job in workload.jobs) == PUBLISHED_MONTHS[month].cap


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(NAMES))
def test_the_seed_decides(name):
    assert generator(name)(3) == generator(name)(3)
    assert generator(name)(3) != generator(name)(4)


def test_an_unknown_month_lists_the_choices():
    with pytest.raises(InputError, match="intrepid-june-2013, june-2017, march-2018"):
        mira_like("may-1968", 0)


def test_the_synthetic_workload_follows_section_6_3():
    workload = synthetic(0)
    sizes = Counter(job.n_nodes for job in workload.jobs)
    assert sizes == {1: 504, 2: 198, 4: 108, 8: 65, 16: 55, 32: 42, 64: 28}
    runs = [workload.profiles[job.profile]["delay"] for job in workload.jobs]
    ratios = [j.walltime_us / US / run for j, run in zip(workload.jobs, runs, strict=True)]
    assert min(runs) >= 60
    assert max(runs) <= 7140
    assert min(ratios) > 1
    assert max(ratios) <= 5.000001
    assert sum(ratios) / 1000 == pytest.approx(3, abs=0.15)
    assert workload.n_nodes == 128
    # in random order: large jobs are not all at one end
    ranks = [n for n, job in enumerate(workload.jobs) if job.n_nodes == 64]
    assert 300 < sum(ranks) / len(ranks) < 700


def test_the_synthetic_stress_and_arrivals_are_the_papers_on_average():
    spans, stresses = [], []
    for seed in range(30):
        summary = describe(synthetic(seed), period_s=1000 * 174)
        spans.append(summary["span_s"] / 999)
        stresses.append(summary["stress"])
    assert sum(spans) / 30 == pytest.approx(174, rel=0.03)
    assert sum(stresses) / 30 == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("n_jobs", [1, 7, 999, 2500])
def test_other_numbers_of_jobs_scale_table_6(n_jobs):
    workload = synthetic(1, n_jobs)
    assert len(workload.jobs) == n_jobs
    assert sum(job.n_nodes == 1 for job in workload.jobs) == pytest.approx(0.504 * n_jobs, abs=1)


def test_no_jobs_are_refused():
    with pytest.raises(InputError, match="number of jobs is 0"):
        synthetic(0, 0)


def test_describe_in_plain_numbers():
    profiles = {"d": {"type": "delay", "delay": 10}, "s": {"type": "composed", "seq": ["d", "d"]}}
    jobs = (Job("a", 4, 0, 20 * US, "d"), Job("b", 1, 50 * US, None, "s"), Job("c", 9, 0, US, "d"))
    summary = describe(Workload("w", 4, jobs, profiles, ("a note",)), period_s=100)
    assert summary["node_seconds"] == 40 + 20 + 90
    assert summary["stress"] == 150 / 400
    assert summary["span_s"] == 50
    assert summary["run_time_s"] == {"min": 10, "max": 20, "mean": 40 / 3, "median": 10}
    assert summary["walltime_s"]["max"] == 20
    assert (summary["without_walltime"], summary["over_walltime"]) == (1, 1)
    assert (summary["too_large"], summary["size_classes"]["whole machine"]) == (1, 2)
    assert summary["walltime_accuracy"] == {"mean": 5.25, "median": 5.25}
    assert summary["notes"] == ["a note"]


def test_describe_knows_flexible_jobs():
    downey = {"model": "downey", "parallelism": 4, "sigma": 1}
    profiles = {
        "d": {"type": "delay", "delay": 10},
        "s": {"type": "delay", "delay": 10, "speedup": downey},
        "l": {"type": "delay", "delay": 10, "speedup": {"model": "linear"}},
    }
    shapes = [
        {}, {"kind": "moldable", "sizes": [2, 3]}, {"kind": "malleable", "min": 1, "max": 7},
        {"kind": "malleable", "min": 3, "max": 5},
    ]  # fmt: skip
    jobs = tuple(
        Job(str(n), 4, 0, 20 * US, profile, {"shape": shape} if shape else {})
        for n, (shape, profile) in enumerate(zip(shapes, "dssl", strict=True))
    )
    summary = describe(Workload("w", 8, jobs, profiles))
    assert summary["shapes"] == {
        "rigid": {"jobs": 1, "min": 4, "max": 4},
        "moldable": {"jobs": 1, "min": 2, "max": 4},
        "malleable": {"jobs": 2, "min": 1, "max": 7},
    }
    assert summary["speedups"] == {"downey": 2, "linear": 1}


def test_describe_without_run_times():
    profiles = {"p": {"type": "parallel", "cpu": [1], "com": [0]}}
    summary = describe(Workload("w", 4, (Job("a", 1, 0, None, "p"),), profiles))
    assert summary["run_time_s"] is summary["stress"] is summary["over_walltime"] is None
    assert summary["jobs"] == 1


@pytest.mark.parametrize("load", [60, 80, 95])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_torus_load_offers_what_is_asked(load, seed):
    workload = generator(f"torus-load:load={load}")(seed)
    assert describe(workload, period_s=30 * 86_400)["stress"] == pytest.approx(load / 100, rel=1e-5)
    assert workload.jobs[-1].submit_us < 30 * 86_400 * US
    sizes = Counter(job.n_nodes for job in workload.jobs)
    assert sorted(sizes) == [16, 32, 64, 128, 256, 512, 1024, 2048]
    # weights 1 / sqrt(size): 31.2 % of 16 nodes (0.25 of 0.800), half as many of 64
    assert sizes[16] / len(workload.jobs) == pytest.approx(0.3124, abs=0.05)
    assert sizes[64] / sizes[16] == pytest.approx(0.5, abs=0.12)


def test_a_torus_loads_times_are_as_documented():
    workload = generator("torus-load")(0)
    runs = [workload.profiles[job.profile]["delay"] for job in workload.jobs]
    assert min(runs) >= 600
    assert max(runs) <= 172_800
    middle = sum(run < (600 * 172_800) ** 0.5 for run in runs) / len(runs)
    assert middle == pytest.approx(0.5, abs=0.05)
    ratios = [j.walltime_us / US / run for j, run in zip(workload.jobs, runs, strict=True)]
    assert min(ratios) >= 1.1
    assert max(ratios) <= 2.0 + 1 / 600
    gaps = [b.submit_us - a.submit_us for a, b in pairwise(workload.jobs)]
    mean = sum(gaps) / len(gaps)
    # exponential gaps: the standard deviation is the mean
    assert (sum((g - mean) ** 2 for g in gaps) / len(gaps)) ** 0.5 == pytest.approx(mean, rel=0.1)


def test_a_torus_load_of_another_machine():
    workload = generator("torus-load:load=50,nodes=64,days=10")(0)
    assert workload.n_nodes == 64
    assert {job.n_nodes for job in workload.jobs} == {1, 2, 4, 8, 16, 32}
    smaller = generator("torus-load:load=20,days=2,largest=128")(0)
    assert {job.n_nodes for job in smaller.jobs} == {16, 32, 64, 128}


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("torus-load:load=0", "load: is 0"),
        ("torus-load:load=nan", "nan"),
        ("torus-load:nodes=100", "nodes: is 100"),
        ("torus-load:days=x", "days"),
        ("torus-load:largest=48", "largest: is 48"),
        ("torus-load:largest=8192", "largest: is 8192"),
        ("torus-load:size=3", "option of torus-load"),
        ("torus-load:load=", "is not PARAMETER=VALUE"),
        ("torus-load:load=1,load=2", "parameter load has two values"),
        ("synthetic:load=3", "option of synthetic"),
        ("torus-load:load=0.01", "load 0.01 needs only 0 jobs"),
        ("nothing", "generator"),
    ],
)
def test_a_generator_that_cannot_be(text, match):
    with pytest.raises(InputError, match=match):
        generator(text)(0)


def _log_sizes(name: str, seed: int) -> np.ndarray:
    return np.log2([job.n_nodes for job in generator(name)(seed).jobs])


def _lag_1(values: np.ndarray) -> float:
    off = values - values.mean()
    return float((off[1:] * off[:-1]).sum() / (off**2).sum())


@pytest.mark.slow
def test_sessions_make_successive_jobs_similar() -> None:
    """Mira's correlations from September to December 2018 are 0.39 to 0.47."""
    random = [_lag_1(_log_sizes("june-2017", seed)) for seed in range(3)]
    similar = [_lag_1(_log_sizes("june-2017:order=sessions", seed)) for seed in range(3)]
    assert max(map(abs, random)) < 0.06
    assert 0.39 <= np.mean(similar) <= 0.50


@pytest.mark.parametrize("options", ["order=sessions", "order=sessions,walltimes=mira"])
def test_a_month_with_sessions_has_the_published_numbers_too(options: str) -> None:
    plain, similar = generator("june-2017")(1), generator(f"june-2017:{options}")(1)
    pairs = [
        sorted((job.n_nodes, work.profiles[job.profile]["delay"]) for job in work.jobs)
        for work in (plain, similar)
    ]
    assert pairs[0] == pairs[1]
    submitted = [job.submit_us for job in similar.jobs]
    assert submitted == sorted(submitted)


@pytest.mark.slow
def test_walltimes_follow_the_chosen_accuracy() -> None:
    """Only jobs above 1 h are compared, because exact walltimes are rounded up to 5 min."""
    for name, low, high in (("exact", 0.9, 1.0), ("mira", 0.4, 0.75), ("uniform", 0.4, 0.65)):
        work = generator(f"june-2017:walltimes={name}")(0)
        run_s = np.array([work.profiles[job.profile]["delay"] for job in work.jobs])
        walltime_s = np.array([job.walltime_us / 1e6 for job in work.jobs])
        long = run_s > 3600
        assert low <= np.mean(run_s[long] / walltime_s[long]) <= high
        assert (walltime_s > run_s).all()


def test_options_of_months_are_checked() -> None:
    with pytest.raises(InputError, match="Invalid enum value 'never'"):
        generator("june-2017:order=never")
    with pytest.raises(InputError, match="option of june-2017"):
        generator("june-2017:load=9")
