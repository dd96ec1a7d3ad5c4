# SPDX-License-Identifier: Apache-2.0
"""The option ``load``: the same jobs arrive in less or more time."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

import rebat
from rebat.core.job_table import Jobs
from rebat.policies.presets import preset
from rebat.results.measures.platform import PAPER_WINDOW
from rebat.results.measures.summary import Measures
from rebat.runs.scenario import Scenario
from rebat.runs.staging import prepared, staged
from tests.support.scenarios import machine


def test_submissions_are_divided_and_nothing_else_changes() -> None:
    workload = machine(4, (1, 10), (2, 10), (1, 30))
    times = Jobs.of(workload.jobs)
    times.submit_us = np.array([0, 7_000_000, 10_000_000])
    later = prepared(replace(workload, jobs=times), Scenario(load=2.5))
    jobs = Jobs.of(later.jobs)
    assert jobs.submit_us.tolist() == [0, 2_800_000, 4_000_000]
    assert times.submit_us.tolist() == [0, 7_000_000, 10_000_000]
    assert (jobs.n_nodes == times.n_nodes).all() and (jobs.walltime_us == times.walltime_us).all()


@pytest.mark.parametrize("engine", ["compiled", "interpreted"])
def test_a_month_keeps_its_window_and_its_jobs(engine: str, monkeypatch) -> None:
    """At every load, the window contains the same submissions."""
    monkeypatch.setenv("REBAT_ENGINE", engine)
    workload = rebat.load_workload("mira-like-june-2017")
    small = replace(workload, jobs=Jobs.of(workload.jobs[::40]))
    for load in (0.5, 2.0):
        stage = staged(prepared(small, Scenario(load=load)), Scenario(load=load))
        assert stage.measures == Measures(load=load)
        summary = stage.run(preset("easy")).summary
        total_us = (PAPER_WINDOW[1] - PAPER_WINDOW[0]) / load * workload.n_nodes
        assert summary.platform.total == pytest.approx(total_us / 1e6)


def test_a_higher_load_means_longer_waits() -> None:
    waits = [
        rebat.run("synthetic-small", ["easy"], load=load).runs[0].summary.service.wait_mean_s
        for load in (0.25, 1.0, 4.0)
    ]
    assert waits == sorted(waits) and waits[0] < waits[2]
