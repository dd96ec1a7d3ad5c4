# SPDX-License-Identifier: Apache-2.0
"""Rigid, moldable and malleable jobs as in Prabhakaran et al. 2018: laws, shares, arrivals."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from rebat.core.errors import InputError
from rebat.core.traits import Malleable, Moldable, check_shape, shape_of
from rebat.models.speedup import Downey, speedup_of
from rebat.workloads import cirne_berman as laws
from rebat.workloads.batsim_json import read_workload, write_workload
from rebat.workloads.describe import describe
from rebat.workloads.generate import generator

US = 1_000_000
N = 200_000


def joint_law(least: float, parallelism: float) -> float:
    """Return P(least size <= least, mean parallelism <= parallelism) by equation (6)."""
    x, y = float(np.log2(least)), float(np.log2(parallelism))
    return laws.PHI * x * y + laws.GAMMA * x + laws.ETA * y + laws.RHO


def uniform(seed: int, count: int = N) -> np.ndarray:
    return np.random.default_rng(seed).random(count)


def within(share: float, expected: float, count: int = N) -> bool:
    """Whether a share is within four standard deviations: 1 test in 16,000 fails by chance."""
    return abs(share - expected) <= 4 * math.sqrt(expected * (1 - expected) / count)


# Table I and II: P(N = 1) is the intercept; the maximum is 2 ** ((1 - intercept) / slope), rounded
# up: 101.6, 41.6 and 18.8.
@pytest.mark.parametrize(
    ("law", "of_one", "most"),
    [(laws.SIZE, 0.20, 102), (laws.LEAST_SIZE, 0.6279, 42), (laws.REQUESTS, 0.1876, 19)],
)
def test_whole_values_are_log_uniform(law, of_one, most) -> None:
    drawn = law.integers(uniform(1))
    assert (drawn.min(), drawn.max()) == (1, most)
    assert within((drawn == 1).mean(), of_one)
    for n in range(2, most):  # equation (4), at every whole number
        assert within((drawn <= n).mean(), law.slope * math.log2(n) + law.intercept)


def test_sizes_are_often_powers_of_two() -> None:
    sizes = laws.rigid_sizes(uniform(1), uniform(2), 500)
    assert (sizes.min(), sizes.max()) == (1, 128)  # 2 ** round(6.67)
    powers = (sizes & (sizes - 1)) == 0
    plain = laws.SIZE.integers(uniform(1))
    by_chance = ((plain & (plain - 1)) == 0).mean()
    assert within(powers.mean(), 0.75 + 0.25 * by_chance)
    assert laws.rigid_sizes(uniform(1), uniform(2), 60).max() == 60


def test_estimates_are_log_uniform() -> None:
    estimates_s = 2 ** laws.ESTIMATE_S.exponents(uniform(3))
    assert estimates_s.min() >= 181
    assert estimates_s.max() <= 185_364
    for bound_s in (300, 3600, 36_000, 100_000):  # Table I: slope 0.10, intercept -0.75
        assert within((estimates_s <= bound_s).mean(), 0.10 * math.log2(bound_s) - 0.75)


# Golden numbers: equation (6) with the parameters of Table II.
@pytest.mark.parametrize(
    ("least", "parallelism", "probability"), [(8, 64, 0.5544), (32, 256, 0.8763)]
)
def test_least_sizes_and_parallelisms_follow_the_joint_law(least, parallelism, probability) -> None:
    assert joint_law(least, parallelism) == pytest.approx(probability, abs=5e-5)
    sizes = laws.LEAST_SIZE.integers(uniform(4))
    means = laws.parallelisms(sizes, uniform(5))
    assert within(((sizes <= least) & (means <= parallelism)).mean(), probability)
    assert within((means[sizes == 1] < 2 ** (0.3 / 0.07468)).mean(),
                  (0.3 - 0.009198) / 0.6279, int((sizes == 1).sum()))  # fmt: skip
    # 5.5 % of the mean parallelisms are below the least size before they are raised to it
    assert within((means < sizes).mean(), 0.055, N // 2)


@pytest.mark.parametrize(("least", "most"), [(1, 1), (3, 3), (1, 500), (5, 7), (16, 64)])
def test_sizes_between_stay_there(least: int, most: int) -> None:
    sizes = np.array(laws.sizes_between(least, most, uniform(6, 20_000), uniform(7, 20_000)))
    assert sizes.min() >= least
    assert sizes.max() <= most
    plain = laws.sizes_between(least, most, uniform(6, 20_000), np.ones(20_000))
    counts, width = Counter(plain), math.log2((most + 1) / least)
    for n in range(least, min(most, least + 5) + 1):
        assert within(counts[n] / 20_000, math.log2((n + 1) / n) / width, 20_000)


def test_a_thousand_rigid_jobs_fill_the_machine_for_11_days() -> None:
    """E[size] x E[estimate] x 1000 is 4.75e8 processor-seconds, or 265 h of 500 processors.

    The standard deviation for 200,000 jobs is 0.7 %.
    """
    estimates_s = 2 ** laws.ESTIMATE_S.exponents(uniform(8))
    work = laws.rigid_sizes(uniform(9), uniform(10), 500) @ estimates_s / N * 1000
    assert work == pytest.approx(4.75e8, rel=0.03)
    assert work / 500 / 3600 == pytest.approx(265, rel=0.03)


# Table III
@pytest.mark.parametrize(
    ("mix", "counts"),
    [
        ("mixed", {"rigid": 400, "moldable": 300, "malleable": 300}),
        ("moldable-rigid", {"rigid": 500, "moldable": 500}),
        ("malleable-rigid", {"rigid": 500, "malleable": 500}),
    ],
)
def test_mixes_are_those_of_the_paper(mix, counts) -> None:
    facts = describe(generator(f"cirne-berman:mix={mix}")(0))
    assert {kind: of["jobs"] for kind, of in facts["shapes"].items()} == counts
    assert (facts["nodes"], facts["jobs"], facts["span_s"]) == (500, 1000, 0)
    assert facts["over_walltime"] == facts["without_walltime"] == facts["too_large"] == 0


def test_numbers_of_jobs_are_said_by_kind_or_scaled() -> None:
    by_kind = generator("cirne-berman:rigid=1,malleable=4,processors=32")(0)
    assert {k: v["jobs"] for k, v in describe(by_kind)["shapes"].items()} == {
        "rigid": 1, "malleable": 4,
    }  # fmt: skip
    assert by_kind.n_nodes == 32
    scaled = describe(generator("cirne-berman:jobs=55")(0))["shapes"]
    assert {k: v["jobs"] for k, v in scaled.items()} == {
        "rigid": 23, "moldable": 16, "malleable": 16,
    }  # fmt: skip


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("processors", [500, 30])
def test_every_job_can_run(seed: int, processors: int) -> None:
    workload = generator(f"cirne-berman:processors={processors}")(seed)
    for job in workload.jobs:
        shape, profile = shape_of(job.extra), workload.profiles[job.profile]
        check_shape(shape, job.n_nodes, processors)
        assert job.walltime_us >= profile["delay"] * US + US  # Batsim kills at equality
        speedup = speedup_of(profile)
        if isinstance(shape, Moldable):
            assert job.n_nodes in shape.sizes
            assert list(shape.sizes) == sorted(set(shape.sizes))
            assert len(shape.sizes) <= 19
        if isinstance(shape, Malleable):
            assert isinstance(speedup, Downey)
            most = max(min(math.floor(speedup.n_nodes_max), processors), shape.min)
            assert shape.max == most
        if isinstance(shape, Malleable | Moldable):
            assert job.profile == f"flexible{job.id}"
            assert speedup.sigma <= 2


def test_accuracy_is_run_time_over_estimate() -> None:
    exact, half = (generator(f"cirne-berman:jobs=50,accuracy={a}")(3) for a in (1, 0.5))
    for whole, part in zip(exact.jobs, half.jobs, strict=True):
        estimate_us = whole.walltime_us - US
        assert part.walltime_us == estimate_us
        assert half.profiles[part.profile]["delay"] * US == estimate_us / 2
        assert exact.profiles[whole.profile]["delay"] * US == estimate_us


def test_what_is_written_is_read(tmp_path: Path) -> None:
    workload = generator("cirne-berman")(2)
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    write_workload(workload, one)
    write_workload(generator("cirne-berman")(2), other)
    assert one.read_bytes() == other.read_bytes()
    assert read_workload(one).jobs == workload.jobs
    assert read_workload(one).profiles == workload.profiles


def gaps_s(workload) -> np.ndarray:
    return np.diff([job.submit_us for job in workload.jobs]) / US


def test_poisson_arrivals_have_a_mean_gap() -> None:
    gaps = gaps_s(generator("cirne-berman:jobs=4000,arrivals=poisson,gap_s=600")(0))
    assert gaps.mean() == pytest.approx(600, rel=4 / math.sqrt(4000))
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.1)  # exponential


@pytest.mark.parametrize("load", [50, 90.5])
def test_arrivals_are_scaled_to_a_load(load: float) -> None:
    workload = generator(f"cirne-berman:jobs=300,arrivals=poisson,load={load}")(1)
    assert describe(workload)["stress"] == pytest.approx(load / 100, rel=1e-6)
    assert workload.jobs[0].submit_us == 0
    whole = generator("cirne-berman:jobs=300")(1)  # the jobs are the same
    assert [job.n_nodes for job in workload.jobs] == [job.n_nodes for job in whole.jobs]


DATES = (0, 10, 10, 40, 100)


def trace(folder: Path, dates=DATES) -> Path:
    """Write an SWF trace whose header does not state the size of the machine."""
    file = folder / "t.swf"
    file.write_text("".join(
        f"{n} {date} 0 10 4 -1 -1 4 60 -1 1 {'-1 ' * 7}\n" for n, date in enumerate(dates, 1)
    ))  # fmt: skip
    return file


def test_arrivals_may_be_those_of_a_trace(tmp_path: Path) -> None:
    text = f"cirne-berman:jobs=5,arrivals={trace(tmp_path)}"
    recorded = np.diff(DATES)
    assert gaps_s(generator(text)(0)).tolist() == recorded.tolist()
    assert gaps_s(generator(f"{text},gap_s=50")(0)).tolist() == (2 * recorded).tolist()
    loaded = generator(f"{text},load=70")(0)
    assert "arrivals t.swf, seed 0" in loaded.notes[0]  # the name without the folder
    assert describe(loaded)["stress"] == pytest.approx(0.7, rel=1e-6)
    ratios = gaps_s(loaded)[recorded > 0] / recorded[recorded > 0]
    assert ratios == pytest.approx(ratios[0], abs=1e-3)
    write_workload(loaded, tmp_path / "w.json")
    again = generator(f"cirne-berman:jobs=5,arrivals={tmp_path / 'w.json'}")(0)
    assert [job.submit_us for job in again.jobs] == [job.submit_us for job in loaded.jobs]


def test_a_trace_that_does_not_do(tmp_path: Path) -> None:
    file = trace(tmp_path)
    with pytest.raises(InputError, match="has 5 jobs"):
        generator(f"cirne-berman:jobs=6,arrivals={file}")(0)
    with pytest.raises(InputError, match="arrive at the same time"):
        generator(f"cirne-berman:jobs=3,arrivals={trace(tmp_path, (5, 5, 5))},load=80")(0)
    with pytest.raises(InputError, match=r"no\.swf"):
        generator(f"cirne-berman:jobs=6,arrivals={tmp_path}/no.swf")(0)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("mix=odd", "unknown mix 'odd'"),
        ("mix=mixed,rigid=3", "mix: has no effect"),
        ("jobs=10,rigid=3", "jobs: has no effect"),
        ("jobs=0", "0 rigid, 0 moldable, 0 malleable"),
        ("rigid=-1,moldable=5", "-1 rigid"),
        ("processors=0", "processors: is 0"),
        ("accuracy=0", "accuracy: is 0"),
        ("accuracy=1.5", "accuracy: is 1.5"),
        ("accuracy=nan", "accuracy: is nan"),
        ("load=80", "load: has no effect"),
        ("gap_s=80", "gap_s: has no effect"),
        ("arrivals=poisson", "either gap_s or load"),
        ("arrivals=poisson,gap_s=3,load=80", "either gap_s or load"),
        ("arrivals=poisson,load=0", "load: is 0"),
        ("arrivals=poisson,load=nan", "load: is nan"),
        ("arrivals=later", "arrivals: is 'later'"),
        ("rigid=many", "Expected `int"),
        ("size=3", "option of cirne-berman"),
    ],
)
def test_a_load_that_cannot_be(text: str, match: str) -> None:
    with pytest.raises(InputError, match=match):
        generator(f"cirne-berman:{text}")(0)
