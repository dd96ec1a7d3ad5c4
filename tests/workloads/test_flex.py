# SPDX-License-Identifier: Apache-2.0
"""Rigid jobs that become moldable and malleable."""

from __future__ import annotations

import json
import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.core.traits import Malleable, Moldable, Rigid, check_shape, kind_of, shape_of
from rebat.models.speedup import Downey, run_us, speedup_of
from rebat.workloads.flexible_load import flex, useful_to
from rebat.workloads.generate import synthetic
from tests.support.amount import few

SHARES = st.tuples(st.floats(0, 1), st.floats(0, 1)).filter(lambda two: sum(two) <= 1)
US = 1_000_000


def workload(sizes, machine: int) -> Workload:
    jobs = tuple(Job(str(n), size, 0, 20 * US, "d") for n, size in enumerate(sizes))
    return Workload("w", machine, jobs, {"d": {"type": "delay", "delay": 10}})


def kinds(made: Workload) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {"rigid": set(), "moldable": set(), "malleable": set()}
    for job in made.jobs:
        found[kind_of(shape_of(job.extra))].add(job.id)
    return found


@given(
    sizes=st.lists(st.integers(1, 200), min_size=1, max_size=30), machine=st.integers(1, 150),
    shares=SHARES, seed=st.integers(0, 5), sigma=st.none() | st.floats(0, 4),
)  # fmt: skip
def test_shapes_lie_around_what_was_asked_for(sizes, machine, shares, seed, sigma) -> None:
    given_ = workload(sizes, machine)
    made = flex(given_, malleable=shares[0], moldable=shares[1], seed=seed, sigma=sigma)
    for job, before in zip(made.jobs, given_.jobs, strict=True):
        shape, n = shape_of(job.extra), job.n_nodes
        same = msgspec.structs.replace(job, profile="d", extra={})
        assert same == before  # size, submission and walltime are unchanged
        profile = made.profiles[job.profile]
        if isinstance(shape, Rigid):
            assert (job, profile) == (before, given_.profiles["d"])
            continue
        check_shape(shape, n, machine)
        assert n <= machine
        if isinstance(shape, Malleable):
            assert (shape.min, shape.max) == (max(1, n // 4), min(2 * n, machine))
            most = shape.max
        else:
            expected = {n / 4, n / 2, n, 2 * n}
            assert set(shape.sizes) == {s for s in expected if s == int(s) and s <= machine}
            most = max(shape.sizes)
        speedup = speedup_of(profile)
        assert isinstance(speedup, Downey)
        assert speedup.n_nodes_max >= most - 1e-9
        assert math.floor(speedup.n_nodes_max + 1e-9) <= max(most, 1)
        assert sigma is None or speedup.sigma == round(sigma, 6)
        assert run_us(speedup, 10 * US, n, most) <= 10 * US
        assert profile["delay"] == 10


@settings(max_examples=few(30))
@given(small=SHARES, large=SHARES, seed=st.integers(0, 9))
def test_a_larger_share_keeps_the_jobs_of_a_smaller_one(small, large, seed) -> None:
    given_ = workload([4] * 60, 64)
    less = flex(given_, malleable=small[0], moldable=small[1], seed=seed)
    more = flex(given_, malleable=large[0], moldable=large[1], seed=seed)
    for at, kind in enumerate(("malleable", "moldable")):
        one, other = kinds(less)[kind], kinds(more)[kind]
        assert one <= other if small[at] <= large[at] else other <= one
    same = {job.id: (job, less.profiles[job.profile]) for job in less.jobs}
    for job in more.jobs:
        if shape_of(job.extra) == shape_of(same[job.id][0].extra):
            assert (job, more.profiles[job.profile]) == same[job.id]


def test_shares_are_met() -> None:
    made = flex(workload([4] * 20_000, 64), malleable=0.3, moldable=0.2, seed=1)
    counts = {kind: len(ids) / 20_000 for kind, ids in kinds(made).items()}
    spread = 4 * math.sqrt(0.25 / 20_000)
    assert counts == pytest.approx({"rigid": 0.5, "moldable": 0.2, "malleable": 0.3}, abs=spread)


@pytest.mark.parametrize(("most", "sigma"), [(1, 0), (31, 0.5), (31, 1), (46, 2), (7, 3.3)])
def test_a_speedup_is_useful_to_the_last_node_and_no_further(most, sigma) -> None:
    assert useful_to(most, sigma).n_nodes_max == pytest.approx(most, abs=1e-5)
    assert useful_to(most, sigma).n_nodes_max >= most - 1e-12


def test_what_cannot_scale_stays_rigid() -> None:
    profiles = {
        "d": {"type": "delay", "delay": 10},
        "l": {"type": "delay", "delay": 10, "speedup": {"model": "linear"}},
        "p": {"type": "parallel", "cpu": [1], "com": [1]},
        "c": {"type": "composed", "seq": ["d", "d"]},
        "d-flex-1": {"type": "delay", "delay": 3},
    }
    mine = {"shape": {"kind": "moldable", "sizes": [2]}, "note": "mine"}
    jobs = (
        Job("1", 4, 0, None, "d"), Job("2", 4, 0, None, "p"), Job("3", 9, 0, None, "d"),
        Job("4", 4, 0, None, "d", mine), Job("5", 4, 0, None, "l", {"note": "x"}),
        Job("6", 4, 0, None, "c"),
    )  # fmt: skip
    made = flex(Workload("w", 8, jobs, profiles), malleable=1.0)
    assert kinds(made)["malleable"] == {"1", "5", "6"}
    assert made.jobs[1:4] == jobs[1:4]
    assert made.jobs[4].profile == "l"  # the job has a speedup
    assert made.jobs[4].extra["note"] == "x"
    assert made.jobs[0].profile == "d-flex-1+"
    assert {name: made.profiles[name] for name in profiles} == profiles
    assert made.profiles["c-flex-6"]["seq"] == ["d", "d"]
    assert made.notes == ("3 jobs made malleable, 0 jobs moldable (shares 1 and 0, seed 0)",)


def test_none_and_all() -> None:
    given_ = synthetic(0, 40)
    assert flex(given_).jobs == given_.jobs
    for kind, shape in (("malleable", Malleable), ("moldable", Moldable)):
        made = flex(given_, **{kind: 1.0})
        assert all(isinstance(shape_of(job.extra), shape) for job in made.jobs)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"malleable": 1.5}, "malleable: is 1.5"),
        ({"moldable": -0.1}, "moldable: is -0.1"),
        ({"malleable": math.nan}, "malleable: is nan"),
        ({"malleable": 0.7, "moldable": 0.5}, "a sum of at most 1"),
        ({"malleable": 0.5, "sigma": -1.0}, "sigma: is -1"),
        ({"malleable": 0.5, "sigma": math.nan}, "sigma: is nan"),
    ],
)
def test_options_that_cannot_be(options, match) -> None:
    with pytest.raises(InputError, match=match):
        flex(workload([4], 8), **options)


TRACE = "; MaxProcs: 64\n" + "".join(
    f"{n} {10 * n} 0 60 8 -1 -1 8 120 -1 1 {'-1 ' * 7}\n" for n in range(1, 41)
)

TOO_MUCH = ["--malleable", "0.8", "--moldable", "0.5"]


def test_the_command(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.swf").write_text(TRACE)
    flexed = ["workload", "flex", "t.swf", "--malleable", "0.4", "--moldable", "0.3", "--seed", "1"]
    for out in ("a.json", "b.json"):
        main([*flexed, "-o", out])
    assert Path("a.json").read_bytes() == Path("b.json").read_bytes()
    main([*flexed, "--sigma", "1.5", "-o", "c.json"])
    speedups = [p["speedup"] for p in json.loads(Path("c.json").read_text())["profiles"].values()
                if "speedup" in p]  # fmt: skip
    assert {one["sigma"] for one in speedups} == {1.5}
    capsys.readouterr()
    main(["workload", "describe", "a.json"])
    assert "malleable jobs" in capsys.readouterr().out
    main(["run", "a.json", "-p", "easy", "--out", "out"])
    for options, told in (([], "no change is requested"), (TOO_MUCH, "at most 1")):
        with pytest.raises(SystemExit) as left:
            main(["workload", "flex", "t.swf", *options, "-o", "d.json"])
        assert left.value.code == 2
        assert told in capsys.readouterr().err
    assert not Path("d.json").exists()
