# SPDX-License-Identifier: Apache-2.0
"""Spare nodes of each job (Figure 1a of Prabhakaran, Neumann and Wolf 2018)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.core.traits import RIGID, Malleable, check_shape, shape_of
from rebat.models.checkpoint import add_perfect
from rebat.models.speedup import run_us, speedup_of
from rebat.workloads.flexible_load import FlexibleLoad, flexible_load, n_own_spares, with_own_spares
from rebat.workloads.load import load_workload
from tests.policies.test_flexible import story
from tests.policies.test_replacement import down
from tests.support.amount import few
from tests.support.flexible import (
    check_sizes_allowed,
    check_work,
    flexible,
    flexible_workloads,
    group_failures,
    malleable,
)
from tests.support.scenarios import check_run, run

STATIC = "sa:malleable=fixed,react=replacement,steps=local+wait"


def ran(workload, *events):
    """Run the jobs with perfect checkpoints under static spare nodes."""
    result = run(STATIC, add_perfect(workload), [event for pair in events for event in pair])
    check_run(result)
    return story(result)


def test_a_job_continues_without_delay_while_it_has_spare_nodes() -> None:
    """Figure 1a: job 1 needs four nodes and has two spare nodes; each of two failures takes one."""
    workload = with_own_spares(flexible(6, (4, 100, 0, None)), "2")
    assert ran(workload, down("0", 20, 500), down("5", 50, 500)) == {
        "1": (6, 0, 20), "1#1": (5, 20, 50), "1#2": (4, 50, 100),
    }  # fmt: skip


def test_a_job_without_spare_nodes_left_starts_again_with_all_its_spare_nodes() -> None:
    """The second failure takes two nodes and leaves three: the job waits until it has six.

    Attempt ``1#2`` would have the five nodes of ``1#1``, so it never runs.
    """
    workload = with_own_spares(flexible(7, (4, 100, 0, None)), "2")
    attempts = ran(workload, down("0", 20, 200), down("4-5", 50, 300))
    assert attempts == {"1": (6, 0, 20), "1#1": (5, 20, 50), "1#3": (6, 300, 350)}


def test_the_size_of_moldable_jobs_does_not_matter() -> None:
    """After the first failure the job has fewer nodes than requested; the plan uses the request."""
    workload = add_perfect(with_own_spares(flexible(6, (4, 100, 0, None)), "2"))
    events = [*down("0", 20, 200), *down("4-5", 50, 300)]
    attempts = [
        story(run(f"{STATIC},moldable={rule}", workload, events)) for rule in ("sa", "asked")
    ]
    assert attempts[0] == attempts[1]
    assert attempts[0]["1#3"] == (6, 300, 350)


def test_a_repaired_node_does_not_return_to_its_job() -> None:
    workload = with_own_spares(flexible(5, (4, 100, 0, None), (1, 30, 1, None)), "1")
    assert ran(workload, down("0", 20, 40)) == {
        "1": (5, 0, 20), "1#1": (4, 20, 100), "2": (2, 100, 130),
    }  # fmt: skip


def test_fixed_jobs_never_grow() -> None:
    workload = flexible(8, (2, 100, 0, malleable(1, 8)))
    assert story(run("sa:malleable=fixed", workload)) == {"1": (2, 0, 100)}
    assert story(run("dbes", workload))["1#1"][0] == 8


@given(workload=flexible_workloads(), spares=st.sampled_from(["1", "3", "50%"]))
def test_only_rigid_jobs_change_and_run_as_long_as_before(workload, spares) -> None:
    made = with_own_spares(workload, spares)
    for job, before in zip(made.jobs, workload.jobs, strict=True):
        shape = shape_of(job.extra)
        if shape_of(before.extra) != RIGID or job == before:
            assert job == before
            continue
        assert shape == Malleable(before.n_nodes, job.n_nodes)
        check_shape(shape, job.n_nodes, workload.n_nodes)
        wanted = before.n_nodes + n_own_spares(spares, before.n_nodes)
        assert job.n_nodes == min(wanted, workload.n_nodes)
        speedup = speedup_of(made.profiles[job.profile])
        for size in range(shape.min, shape.max + 1):
            assert run_us(speedup, 10**6, job.n_nodes, size) == 10**6
        assert (job.submit_us, job.walltime_us) == (before.submit_us, before.walltime_us)


@settings(max_examples=few(60))
@given(workload=flexible_workloads(), events=group_failures(), spares=st.integers(1, 4))
def test_every_job_ends_once_within_its_range(workload, events, spares) -> None:
    made = add_perfect(with_own_spares(workload, str(spares)))
    result = run(STATIC, made, events)
    check_run(result)
    check_sizes_allowed(result, made)
    check_work(result.ledger, made)


def test_a_generated_workload_has_the_same_jobs_with_and_without_spares() -> None:
    plain = flexible_load(3, FlexibleLoad(rigid=20))
    made = flexible_load(3, FlexibleLoad(rigid=20, own_spares="10%"))
    assert made == with_own_spares(plain, "10%")


@pytest.mark.parametrize("spares", ["", "-1", "0", "1.5", "many", "nan", "inf%", "%", "1e40"])
def test_an_invalid_number_is_an_error(spares: str) -> None:
    with pytest.raises(InputError, match="own spares"):
        with_own_spares(flexible(6, (4, 100, 0, None)), spares)


def test_the_command_writes_jobs_with_spares(tmp_path: Path, capsys) -> None:
    plain, made = tmp_path / "plain.json", tmp_path / "made.json"
    main(["workload", "generate", "cirne-berman:rigid=10", "-o", str(plain)])
    main(["workload", "flex", str(plain), "--own-spares", "2", "-o", str(made)])
    assert "10 jobs with 2 spare nodes each" in capsys.readouterr().out
    before, after = load_workload(plain), load_workload(made)
    assert [job.n_nodes - 2 for job in after.jobs] == [job.n_nodes for job in before.jobs]
    with pytest.raises(SystemExit) as exit_:
        main(["workload", "flex", str(plain), "--own-spares", "x", "-o", str(made)])
    assert exit_.value.code == 2
