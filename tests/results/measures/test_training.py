# SPDX-License-Identifier: Apache-2.0
"""Effective training time and time to failure by class of job size."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.cli.main import main
from rebat.models.tiers import add_tiers, parse_tiers
from rebat.results.measures.jobs import size_classes
from rebat.results.measures.summary import as_json
from rebat.results.metric import flat_metrics
from tests.oracles.effective_time import Timed, effective_time
from tests.support.scenarios import fails, failures, machine, run

N_NODES = 10
POLICIES = ("easy:detect=3", "easy:detect=2,init=1", "training-requeue:detect=1", "greedy:init=4")
TIERS = ("remote=2/5@7", "peer=1/3@5+remote=2/4@10", "memory=1/2@4+remote=3/1@12")


def tiered(tiers: str, *jobs: tuple):
    """Return jobs of (nodes, work, submission) with checkpoints in tiers and long walltimes."""
    workload = machine(N_NODES, *((*job, 100_000) for job in jobs))
    return add_tiers(
        workload, parse_tiers(tiers), n_nodes=N_NODES, mtbf_s=100, light_share=0.5, software=""
    )


def timed(result, jobs) -> list[Timed]:
    """Return the oracle's input from a run; all times are whole seconds."""
    runs: dict[str, list[tuple[int, int, int]]] = {}
    for record in sorted(result.ledger.attempts, key=lambda r: r.start_us):
        times_us = record.attempt.queued_us, record.start_us, record.end_us
        assert not any(us % 1_000_000 for us in times_us)
        queued, start, end = (us // 1_000_000 for us in times_us)
        runs.setdefault(record.attempt.job_id, []).append((queued, start, end))
    return [Timed(*job, runs[f"w0!{number}"]) for number, job in enumerate(jobs, 1)]


def of_class(measured) -> tuple | None:
    return (measured.ettr, measured.ettr_queued, measured.mttf_s) if measured else None


JOBS = st.lists(
    st.tuples(st.integers(1, N_NODES), st.integers(1, 40), st.integers(0, 60)),
    min_size=1, max_size=8,
)  # fmt: skip


@given(JOBS, failures(N_NODES), st.sampled_from(POLICIES), st.sampled_from(TIERS))
def test_the_measures_are_those_of_the_slow_oracle(jobs, events, policy, tiers) -> None:
    result = run(policy, tiered(tiers, *jobs), events)
    summary = result.summary
    if summary.recoveries is None:
        assert summary.training_classes == {}
        return
    measured = timed(result, jobs)
    everything = effective_time(measured)
    assert of_class(summary.training_classes["all"]) == pytest.approx(everything)
    overall = summary.recoveries
    assert (overall.ettr_queued, overall.mttf_s) == pytest.approx(everything[1:])
    for low, high in size_classes(N_NODES):
        group = [job for job in measured if low <= job.n_nodes < high]
        expected = pytest.approx(effective_time(group)) if group else None
        assert of_class(summary.training_classes[f"[{low}, {high})"]) == expected


def test_a_class_without_failures_has_no_time_to_failure() -> None:
    """A job of four nodes fails at 25 s, hangs for 5 s and restarts; a job of two nodes never
    fails.
    """
    jobs, events = machine(6, (4, 100, 0, 999), (2, 10, 0, 999)), fails(0, 25, 26)
    summary = run("easy:detect=5", jobs, events).summary
    small, large = (summary.training_classes[name] for name in ("[2, 4)", "[4, 8)"))
    assert of_class(small) == (1, 1, None)
    assert of_class(large) == (100 / 130, 100 / 130, 130)
    assert of_class(summary.training_classes["all"]) == (420 / 540, 420 / 540, 140)
    values = {(name, of): value for name, of, value in flat_metrics(as_json(summary))}
    assert ("training_mttf_s", "[2, 4)") not in values
    assert values["training_mttf_s", "[4, 8)"] == 130


def test_runs_without_causes_and_stages_have_no_such_measures() -> None:
    summary = run("easy", machine(2, (2, 100)), fails(0, 25, 26)).summary
    assert summary.failures_hit == 1
    assert "training_classes" not in as_json(summary)


def test_only_measured_jobs_count(tmp_path, capsys) -> None:
    """The failure of the toy example hits a job that is not selected."""
    options = ["run", "toy", "-p", "easy:detect=5", "--failures", "toy", "--out"]
    columns = "training_ettr,training_ettr_queued,training_mttf_s"
    main([*options, str(tmp_path / "all"), "--columns", columns])
    assert "MTTF of" in capsys.readouterr().out
    main([*options, str(tmp_path / "some"), "--select", "0:0.2:count"])
    everything, first = (
        json.loads(next((tmp_path / name).rglob("summary.json")).read_text())["metrics"]
        for name in ("all", "some")
    )
    assert everything["selected_jobs"] == 5
    assert first["selected_jobs"] == 1
    assert everything["training_classes"]["all"]["mttf_s"] is not None
    assert first["training_classes"]["all"] == {"ettr": 1.0, "ettr_queued": 1.0, "mttf_s": None}


def test_seeds_and_data_frames_have_them(tmp_path) -> None:
    import rebat

    failures_ = rebat.failures(mtbf="30s", downtime="5s", seed=0)
    result = rebat.run("toy", ["easy:detect=5"], failures=failures_, seeds=3, workers=1)
    names = set(result.metrics.reset_index()["metric"])
    assert {"training_ettr", "training_ettr_queued", "training_mttf_s"} <= names
