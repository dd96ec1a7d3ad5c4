# SPDX-License-Identifier: Apache-2.0
"""Classes, tables and pages in notebooks and scripts."""

from __future__ import annotations

import html
import pickle
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rebat
from rebat.api.result import Page
from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.executors.processes import by_value, on_processes
from rebat.executors.resources import Resources

SCRIPT = """
import sys, random
from typing import ClassVar
import msgspec, rebat
from rebat.core.nodes import NodeSet
from rebat.models.failures.law import Law, Outage

class Smallest(rebat.Policy):
    def plan(self, view, changes):
        free = view.n_free
        for attempt in sorted(view.queue.values(), key=lambda a: (a.n_nodes, a.job_serial)):
            if attempt.n_nodes <= free:
                free -= attempt.n_nodes
                yield rebat.Start(attempt.id)

class Metronome(Law, frozen=True):
    gap_s: float = 3600.0
    repairs: ClassVar[int] = 600_000_000

    @property
    def mtbf_s(self):
        return self.gap_s

    def outages(self, n_nodes, seed):
        rng, at = random.Random(seed), 0
        while True:
            at += round(self.gap_s * 1e6 * rng.uniform(0.5, 1.5))
            yield Outage(at, at + self.repairs, NodeSet.of([rng.randrange(n_nodes)]))

if __name__ == "__main__":
    failures = rebat.failures(Metronome(gap_s=1800.0))
    result = rebat.run("synthetic-small", ["baseline", Smallest], failures=failures, seeds=3,
                       workers=int(sys.argv[1]))
    print(result.metrics.to_csv())
    print(result.provenance["options"]["law"])
"""


@pytest.mark.slow
def test_classes_of_a_script_work_with_seeds_on_several_workers(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    alone, together = (
        subprocess.check_output([sys.executable, script, workers], text=True)
        for workers in ("1", "2")
    )
    assert "Smallest" in alone and "'name': 'Metronome'" in alone
    assert alone == together


@pytest.mark.slow
def test_a_class_of_a_notebook_runs_with_seeds() -> None:
    class Eager(rebat.Policy):
        def plan(self, view, changes):
            for attempt in view.queue.values():
                if attempt.n_nodes <= view.n_free:
                    yield rebat.Start(attempt.id)
                return

    result = rebat.run("toy", Eager, failures=rebat.failures(mtbf="1h"), seeds=2, workers=2)
    assert set(result.metrics.policy) == {"Eager"}


STRUCTS = """
import msgspec

class Base(msgspec.Struct, frozen=True):
    a: int

class Local(Base, frozen=True, kw_only=False):
    b: list = msgspec.field(default_factory=list)
    c: float = 2.5

    def __post_init__(self):
        if self.c < 0:
            raise ValueError("c")

    @staticmethod
    def double(x):
        return 2 * x

    @property
    def total(self):
        return self.a + self.c
"""


def test_structs_of_a_script_arrive_whole_in_another_process() -> None:
    module = types.ModuleType("__main__")
    exec(STRUCTS, module.__dict__)
    content = by_value(module.Local(1, c=3.0))
    code = (
        "import pickle, sys; x = pickle.loads(sys.stdin.buffer.read());"
        "print(x, x.total, x.double(4), type(x).__mro__[1].__name__, type(x)(1).b);"
        "type(x)(1, [], -1.0)"
    )
    done = subprocess.run([sys.executable, "-c", code], input=content, capture_output=True,
                          check=False)  # fmt: skip
    assert done.stdout.decode() == "Local(a=1, b=[], c=3.0) 4.0 8 Base []\n"
    assert b"ValueError: c" in done.stderr
    assert pickle.loads(by_value({"plain": 1})) == {"plain": 1}


def test_an_object_that_no_other_process_can_read_is_an_error(tmp_path: Path) -> None:
    with (
        (tmp_path / "file").open("w") as file,
        pytest.raises(InputError, match="cannot send a task"),
    ):
        list(on_processes([file], print, lambda task, reason: None, Resources(workers=1)))


# ---- tables


@st.composite
def workloads(draw) -> Workload:
    times = st.integers(0, 10**6)
    jobs, profiles = [], {}
    for number in range(draw(st.integers(1, 6))):
        run = draw(st.integers(1, 10**6)) / draw(st.sampled_from([1, 4]))
        run = int(run) if run == int(run) else run
        walltime = draw(st.none() | st.integers(1, 10**7))
        extra = draw(st.dictionaries(st.sampled_from(["user", "queue"]), st.sampled_from("ab")))
        profiles[f"delay{run}"] = {"type": "delay", "delay": run}
        jobs.append(Job(f"j{number}", draw(st.integers(1, 8)), draw(times) * 10**6,
                        walltime and walltime * 10**6, f"delay{run}", extra))  # fmt: skip
    return Workload("table", 8, tuple(jobs), profiles)


@given(workload=workloads())
def test_the_table_of_a_workload_is_this_workload(workload) -> None:
    from rebat.api.workloads import LoadedWorkload

    frame = LoadedWorkload(**{n: getattr(workload, n) for n in Workload.__struct_fields__}).frame
    again = rebat.load_workload(frame, n_nodes=8)
    assert (again.jobs, again.profiles) == (workload.jobs, workload.profiles)


def test_a_table_runs_like_its_file() -> None:
    toy = rebat.load_workload("toy")
    table = rebat.load_workload(toy.frame, n_nodes=toy.n_nodes, name="mine")
    assert "<workload mine: 5 jobs" in repr(table)
    failures = rebat.failures(file="toy")
    ours, theirs = (rebat.run(w, "sfsj", failures=failures).jobs for w in (table, toy))
    pd.testing.assert_frame_equal(ours, theirs)


GOOD = pd.DataFrame(
    {"job_id": ["a", "b"], "size": [1, 2], "submission_time": [0, 1.5], "run_time": [10, 20]}
)


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (GOOD.drop(columns="size"), {"n_nodes": 4}, "has no column 'size'"),
        (GOOD, {}, "n_nodes"),
        (GOOD, {"n_nodes": 4.5}, "n_nodes"),
        (GOOD, {"n_nodes": 0}, "nb_res"),
        (
            GOOD,
            {"n_nodes": 4, "months": "2018-11"},
            "months: unknown option for a workload given as a DataFrame",
        ),
        (GOOD.assign(size=[1, 0]), {"n_nodes": 4}, "job b: res"),
        (GOOD.assign(size=[1, np.nan]), {"n_nodes": 4}, "job b: res: is missing"),
        (GOOD.assign(run_time=[1, np.nan]), {"n_nodes": 4}, "job b: run_time: is missing"),
        (GOOD.assign(run_time=["x", "y"]), {"n_nodes": 4}, "delay"),
        (GOOD.assign(submission_time=[-1, 0]), {"n_nodes": 4}, "job a: subtime"),
        (GOOD.assign(submission_time=[0, np.inf]), {"n_nodes": 4}, "job b: subtime"),
        (GOOD.assign(job_id=["a", "a"]), {"n_nodes": 4}, "duplicate job id"),
        (GOOD.assign(walltime=[0, 5]), {"n_nodes": 4}, "job a: walltime"),
        (GOOD.head(0), {"n_nodes": 4}, "contains no job"),
        ([1, 2], {"n_nodes": 4}, "is a list"),
    ],
)
def test_an_invalid_table_is_an_error_that_names_the_job(table, options, message) -> None:
    with pytest.raises(InputError, match=message) as error:
        rebat.load_workload(table, **options)
    assert "\n" not in str(error.value)


# ---- pages


@pytest.mark.slow
def test_notebooks_display_pages(tmp_path: Path) -> None:
    result = rebat.run("toy", ["baseline", "sfsj"], failures=rebat.failures(file="toy"))
    for shown in (result.explore(), result.to_html()):
        assert isinstance(shown, Page)
        frame = shown._repr_html_()
        inside = frame.partition('srcdoc="')[2].partition('" style=')[0]
        assert html.unescape(inside) == str(shown)
        assert len(repr(shown)) < 80
