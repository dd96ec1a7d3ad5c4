# SPDX-License-Identifier: Apache-2.0
"""Silent-error units of campaigns can be resumed, and all executors write the same bytes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from rebat.campaign.opening import open_campaign
from rebat.campaign.run import run_campaign
from rebat.campaign.store import Store
from rebat.cli.campaign import campaign as command
from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.models import resilient
from rebat.models.silent_errors import (
    draw_failures,
    error_rate,
    lower_bounds,
    synthetic_jobs,
)
from rebat.policies.queue_order import ranks
from rebat.runs.runner import lost
from rebat.shipped.campaigns.silent_errors.units import play
from rebat.workloads.batsim_json import write_workload
from tests.support.campaigns import contents, n_run, run_here, stored, stored_task
from tests.support.job_sets import SMALL, means, rows, small

# ---- the units


def test_a_unit_is_the_mean_and_maximum_over_its_scenarios(done) -> None:
    campaign, _ = done
    unit = next(u for u in campaign.units if u.labels["q"] == 0.5 and u.spec.jobs.name == "1")
    times, sizes = synthetic_jobs(3, 1, 12)
    failures = draw_failures(
        times, sizes, error_rate(times, sizes, 0.5), range(4), seed=3, job_set=1
    )
    rank = ranks("LA", times, sizes, n_procs=10_000)
    spans = resilient.makespans("R-SHELF-B", times, sizes, rank, failures, n_procs=10_000)
    ratios = spans / np.array(lower_bounds(times, sizes, failures, 10_000))
    found = play(unit)
    assert found["failures"] == failures.sum(axis=1).mean()
    assert {"heuristic": "R-SHELF-B", "rule": "LA", "mean": ratios.mean(), "max": ratios.max()} in (
        found["makespans"]
    )


def test_the_table_has_a_row_per_unit_heuristic_rule_and_metric(done) -> None:
    table = rows(done[1])
    by_metric = {
        metric: {
            tuple(row[name] for name in ("key", "heuristic", "rule")): row["value"]
            for row in table
            if row["metric"] == metric
        }
        for metric in ("jobs", "failures", "makespan_ratio_mean", "makespan_ratio_max")
    }
    mean, largest = by_metric["makespan_ratio_mean"], by_metric["makespan_ratio_max"]
    assert len(mean) == len(largest) == 4 * 5 * 7 + 4 * 2 * 2
    assert sum(map(len, by_metric.values())) == len(table)
    assert all(1 <= value <= largest[which] for which, value in mean.items())
    assert {row["reservations"] for row in table} == {"paper", "stale"}
    assert set(by_metric["jobs"].values()) == {12.0}
    failed = {row["value"] for row in table if row["metric"] == "failures" and row["q"] == 0}
    assert failed == {0.0}


def test_the_table_says_what_the_results_say(done) -> None:
    campaign, results = done
    store = Store(results)
    for unit in campaign.units:
        metrics = store.read(unit.key).metrics
        found = [row for row in means(results) if row["key"] == unit.key]
        assert [(row["heuristic"], row["rule"], row["value"]) for row in found] == [
            (cell["heuristic"], cell["rule"], cell["mean"]) for cell in metrics["makespans"]
        ]
        assert {(row["grid"], row["source"], row["set"]) for row in found} == {
            (unit.grid, "drawn", unit.spec.jobs.name)
        }


# ---- resuming


def test_a_second_start_plays_only_what_is_missing(tmp_path: Path, done) -> None:
    file, results = small(tmp_path), tmp_path / "r"
    assert n_run(run_here(file, results, limit=3)[1]) == 3
    status, told = run_here(file, results)
    assert n_run(told) == 5
    assert (status.total, status.ok, status.failed, status.missing) == (8, 8, 0, 0)
    assert contents(results) == contents(done[1])


@pytest.mark.slow
def test_a_killed_command_goes_on_where_it_was(tmp_path: Path) -> None:
    """The command is killed after its first result; the next one runs only the missing units."""
    file, results = (
        small(tmp_path, SMALL.replace("scenarios = 4", "scenarios = 60")),
        tmp_path / "r",
    )
    command = "from rebat.cli.campaign import campaign; campaign()"
    options = ["run", str(file), "--results", str(results), "--workers", "2"]
    process = subprocess.Popen([sys.executable, "-c", command, *options], stderr=subprocess.PIPE)
    try:
        end = time.monotonic() + 60
        while not stored(results) and time.monotonic() < end:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.005)
    finally:
        process.kill()
        process.communicate(timeout=20)
    had = len(stored(results))
    status, told = run_here(file, results)
    assert had >= 1
    assert (n_run(told), status.ok) == (8 - had, 8)
    run_here(file, tmp_path / "unbroken")
    assert contents(results) == contents(tmp_path / "unbroken")


def test_a_torn_result_is_played_again(tmp_path: Path, done) -> None:
    results = tmp_path / "r"
    shutil.copytree(done[1], results)
    torn = next((results / "runs").iterdir())
    torn.write_bytes(torn.read_bytes()[:-40])
    assert n_run(run_here(small(tmp_path), results)[1]) == 1
    assert contents(results) == contents(done[1])


def test_a_changed_file_plays_only_what_it_touches(tmp_path: Path, done) -> None:
    results = tmp_path / "r"
    shutil.copytree(done[1], results)
    renamed = SMALL.replace('"true"', '"figure 2"').replace("[0, 0.5]", "[0, 0.5, 0.7]", 1)
    assert n_run(run_here(small(tmp_path, renamed), results)[1]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_bytes_for_any_number_of_workers(tmp_path: Path, done, workers: int) -> None:
    status = run_campaign(open_campaign(small(tmp_path)), tmp_path / "r", workers=workers)
    assert status.ok == 8
    assert contents(tmp_path / "r") == contents(done[1])


def test_a_unit_that_cannot_be_played_does_not_stop_the_rest(tmp_path: Path) -> None:
    """A giant job among many small ones fails forever at the average job's failure probability."""
    jobs = [Job(str(i), 1, 0, None, "short") for i in range(400)]
    jobs.append(Job("giant", 400, 0, None, "long"))
    profiles = {"short": {"type": "delay", "delay": 1}, "long": {"type": "delay", "delay": 10**6}}
    write_workload(Workload("w", 400, tuple(jobs), profiles), tmp_path / "w.json")
    text = SMALL.replace("[[grid]]", '[days.trace]\nfile = "w.json"\n[[grid]]', 1)
    text = text.replace('sets = ["drawn"]', 'sets = ["trace"]', 1)
    file, results = small(tmp_path, text), tmp_path / "r"
    status, _ = run_here(file, results)
    assert (status.ok, status.failed) == (5, 1)
    (failure,) = json.loads((results / "campaign.json").read_text())["failures"]
    assert (failure["source"], failure["set"]) == ("trace", "day-0001")
    assert failure["error"].startswith("job 400: would fail")
    run = CliRunner().invoke(command, ["status", str(file), "--results", str(results)])
    assert "failed: true, trace day-0001, q-bar = 0.5" in run.output
    assert ": job 400: would fail" in run.output
    assert n_run(run_here(file, results)[1]) == 0


# ---- commands and executors of all campaigns


def call(verb: str, file: Path, results: Path, *more: str) -> str:
    """Return the output of `rebat campaign VERB`."""
    run = CliRunner().invoke(command, [verb, str(file), "--results", str(results), *more])
    assert run.exit_code == 0, run.output
    return run.output


@pytest.mark.slow
def test_the_same_bytes_on_dask(tmp_path: Path, done) -> None:
    pytest.importorskip("distributed")
    opened = open_campaign(small(tmp_path))
    assert run_campaign(opened, tmp_path / "r", workers=2, executor="dask").ok == 8
    assert contents(tmp_path / "r") == contents(done[1])


def test_status_says_how_far_each_grid_is(tmp_path: Path) -> None:
    file, results = small(tmp_path), tmp_path / "r"
    run_here(file, results, limit=5)
    told = call("status", file, results)
    assert "true: 4 of 4 runs done, 0 failed, 0 left" in told
    assert "stale: 1 of 4 runs done, 0 failed, 3 left" in told
    assert "all distinct runs: 5 of 8 runs done, 0 failed, 3 left" in told


def test_clean_removes_what_the_file_asks_for_no_more(tmp_path: Path, done) -> None:
    results = tmp_path / "r"
    shutil.copytree(done[1], results)
    file = small(tmp_path, SMALL.replace("[0, 0.5]", "[0.5]"))
    assert "4 results without a run" in call("status", file, results)
    assert "removed 4 results" in call("clean", file, results)
    assert len(stored(results)) == 4
    assert {row["q"] for row in rows(results)} == {0.5}
    assert n_run(run_here(file, results)[1]) == 0


def test_what_failed_is_played_again_on_request(tmp_path: Path, done) -> None:
    file, results = small(tmp_path), tmp_path / "r"
    opened = open_campaign(file)
    task = stored_task(opened.units[0], opened.kinds["silent-errors"].perform, results)
    assert lost(task, "the worker died").error
    status, told = run_here(file, results)
    assert (status.ok, status.failed, n_run(told)) == (7, 1, 7)
    status, told = run_here(file, results, retry_failed=True)
    assert (status.ok, status.failed, n_run(told)) == (8, 0, 1)
    assert contents(results) == contents(done[1])


def test_files_to_keep_are_refused_where_there_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--keep-runs: has no effect"):
        run_here(small(tmp_path), tmp_path / "r", keep_runs=True)
    assert not (tmp_path / "r").exists()


def test_a_folder_of_another_campaign_is_refused(tmp_path: Path) -> None:
    file, results = small(tmp_path), tmp_path / "r"
    run_here(file, results, limit=1)
    file.write_text(SMALL.replace('"small"', '"other"'))
    for verb in ("run", "status", "report", "clean"):
        with pytest.raises(InputError, match="results of campaign 'small'"):
            command.main([verb, str(file), "--results", str(results)], standalone_mode=False)


def test_results_hold_no_names(done) -> None:
    campaign, results = done
    stored = Store(results).read(campaign.units[0].key)
    assert stored is not None
    assert not {"grid", "source", "name"} & set(msgspec.to_builtins(stored.identity))
