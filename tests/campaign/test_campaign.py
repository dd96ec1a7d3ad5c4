# SPDX-License-Identifier: Apache-2.0
"""Campaigns can be resumed at any time, and each way of running them writes the same bytes."""

from __future__ import annotations

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import current_thread, main_thread

import pytest

from rebat.campaign import run as campaign_run
from rebat.campaign import simulations
from rebat.campaign.opening import open_campaign
from rebat.campaign.run import run_campaign
from rebat.campaign.simulations import KIND
from rebat.campaign.store import Store
from rebat.cli.campaign import campaign
from rebat.core.errors import InputError
from rebat.drive import choose
from rebat.executors.processes import TRIES, on_processes
from rebat.executors.resources import Resources
from rebat.runs import simulating
from rebat.runs.runner import Outcome, Task, lost
from rebat.runs.simulating import simulate_run
from rebat.runs.single import RunResult
from rebat.runs.unit import Unit
from rebat.workloads.batsim_json import write_workload
from rebat.workloads.generate import synthetic
from tests.support.asked import asked
from tests.support.campaigns import (
    GRID,
    SIX_SEEDS,
    campaign_file,
    contents,
    keys_of_log,
    n_run,
    run_here,
    start_and_kill,
    stored,
    stored_task,
)


def test_a_second_start_runs_only_what_is_missing(tmp_path: Path, unbroken) -> None:
    file, expected = unbroken
    results = tmp_path / "r"
    _, told = run_here(file, results, limit=4)
    assert n_run(told) == 4
    first = keys_of_log(results)
    status, told = run_here(file, results)
    assert n_run(told) == 6
    assert (status.total, status.ok, status.missing) == (10, 10, 0)
    assert not set(first) & set(keys_of_log(results)[4:])
    assert contents(results) == expected
    assert n_run(run_here(file, results)[1]) == 0


def test_a_changed_input_runs_again_just_what_it_touches(tmp_path: Path) -> None:
    file, results = campaign_file(tmp_path), tmp_path / "r"
    run_here(file, results)
    write_workload(synthetic(7, 30), tmp_path / "two.json")
    status, told = run_here(file, results)
    assert n_run(told) == 5
    assert status.stale == 5
    file.write_text(file.read_text().replace("seeds = [0, 1]", "seeds = [1, 2]"))
    assert n_run(run_here(file, results)[1]) == 4
    file.write_text(file.read_text().replace('name = "small"', 'name = "renamed"'))
    assert n_run(run_here(file, results)[1]) == 0


@pytest.mark.parametrize("executor", ["inline", "threads", "processes"])
def test_a_failed_run_is_recorded_and_the_rest_is_done(executor: str, tmp_path: Path) -> None:
    """Runs fail because one profile needs a network model, which does not exist here."""
    file, results = campaign_file(tmp_path), tmp_path / "r"
    big = json.loads((tmp_path / "two.json").read_text())
    big["jobs"][0]["profile"] = "network"
    big["profiles"]["network"] = {"type": "parallel", "cpu": [1], "com": [1]}
    (tmp_path / "two.json").write_text(json.dumps(big))
    status, told = run_here(file, results, workers=2, executor=executor)
    assert (status.ok, status.failed, status.missing) == (5, 5, 0)
    assert (told[-1].done, told[-1].failed, told[-1].left) == (5, 5, 0)
    failures = json.loads((results / "campaign.json").read_text())["failures"]
    assert {f["workload"] for f in failures} == {"two"}
    assert all("profile" in f["error"] for f in failures)
    assert str(tmp_path) not in (results / "campaign.json").read_text()
    assert n_run(run_here(file, results)[1]) == 0
    assert n_run(run_here(file, results, retry_failed=True)[1]) == 5


def test_an_input_that_changes_meanwhile_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = campaign_file(tmp_path)

    def perform_late(task: Task) -> Outcome:
        write_workload(synthetic(9, 30), tmp_path / "one.json")
        return perform(task)

    perform = campaign_run.perform
    monkeypatch.setattr(campaign_run, "perform", perform_late)
    status, _ = run_here(file, tmp_path / "r")
    assert (status.ok, status.failed) == (5, 5)


def test_run_folders_on_request(tmp_path: Path, unbroken) -> None:
    file, expected = unbroken
    results = tmp_path / "r"
    run_here(file, results, limit=3)
    _, told = run_here(file, results, keep_runs=True)
    assert n_run(told) == 10
    folders = list((results / "folders").iterdir())
    assert len(folders) == 10
    assert all((folder / "rebat_jobs.csv").exists() for folder in folders)
    found = contents(results)
    assert {name: found[name] for name in expected} == expected


def test_progress_adds_up(unbroken, tmp_path: Path) -> None:
    _, told = run_here(unbroken[0], tmp_path / "r", workers=3)
    assert all(p.done + p.failed + p.left == p.total == 10 for p in told)
    assert [p.running for p in told[-4:]] == [3, 2, 1, 0]
    assert told[0].eta_s is None
    assert told[-1].eta_s == 0


def test_progress_counts_earlier_starts_and_what_a_limit_leaves(unbroken, tmp_path: Path) -> None:
    first, second = (run_here(unbroken[0], tmp_path / "r", limit=n)[1] for n in (3, 4))
    assert [(p.done, p.left) for p in (first[0], first[-1])] == [(0, 10), (3, 7)]
    assert [(p.done, p.left) for p in (second[0], second[-1])] == [(3, 7), (7, 3)]
    assert second[-1].running == 0


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["processes", "threads", "dask", None])
def test_all_executors_give_the_same_bytes(executor, tmp_path: Path, unbroken) -> None:
    if executor == "dask":
        pytest.importorskip("distributed")
    run_campaign(open_campaign(unbroken[0]), tmp_path / "r", workers=2, executor=executor)
    assert contents(tmp_path / "r") == unbroken[1]


MIXED = GRID.replace('"sfsj"', '"easy:order=random"')


@pytest.mark.slow
def test_covered_runs_are_in_threads_and_others_in_processes(tmp_path: Path, monkeypatch) -> None:
    file, in_threads = campaign_file(tmp_path, MIXED), []
    run_here(file, tmp_path / "unbroken")

    def noted(unit: Unit) -> RunResult:
        in_threads.append((unit.spec.policy, current_thread() is main_thread()))
        return simulate_run(unit)

    monkeypatch.setattr(simulations, "simulate_run", noted)
    monkeypatch.setattr(choose, "PAYS", 0)
    run_campaign(open_campaign(file), tmp_path / "r", workers=2)
    assert in_threads == [("baseline", False)] * 6
    assert contents(tmp_path / "r") == contents(tmp_path / "unbroken")
    monkeypatch.setattr(choose, "START_S", -1e9)
    run_campaign(open_campaign(file), tmp_path / "p", workers=2)
    assert len(in_threads) == 6
    assert contents(tmp_path / "p") == contents(tmp_path / "r")
    monkeypatch.undo()
    with asked():
        assert simulating.in_threads(open_campaign(file).units, 2) == set()


def test_a_dask_scheduler_that_is_not_there(tmp_path: Path, monkeypatch) -> None:
    distributed = pytest.importorskip("distributed")

    def refuse(*_args, **_options):
        raise OSError("Timed out")

    monkeypatch.setattr(distributed, "Client", refuse)
    address = "tcp://127.0.0.1:9"
    with pytest.raises(InputError, match=address):
        run_campaign(
            open_campaign(campaign_file(tmp_path)),
            tmp_path / "r",
            executor="dask",
            address=address,
            limit=1,
        )


def die_on_three(number: int) -> str:
    """Run a task that kills its worker if its number is 3."""
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"done {number}"


def was_lost(number: int, reason: str) -> str:
    return f"lost {number}: {reason}"


@pytest.mark.slow
def test_a_worker_that_dies_does_not_stop_the_rest() -> None:
    outcomes = sorted(on_processes(range(6), die_on_three, was_lost, Resources(workers=2)))
    lost = f"lost 3: the worker died (signal 9), {TRIES} times"
    assert outcomes == [*(f"done {n}" for n in (0, 1, 2, 4, 5)), lost]


def test_a_lost_run_is_recorded_as_failed(tmp_path: Path, unbroken) -> None:
    opened = open_campaign(unbroken[0])
    outcome = lost(stored_task(opened.units[0], KIND.perform, tmp_path / "r"), "the worker died")
    assert outcome.error == "the worker died"
    assert Store(tmp_path / "r").status(opened.units).failed == 1


# ---- the command line ----------------------------------------------------------------------------


def command(*arguments: object) -> None:
    """Run `rebat campaign ...` in this process."""
    campaign.main([str(a) for a in arguments], standalone_mode=False)


def test_the_command_line_runs_says_how_far_it_is_and_cleans(tmp_path: Path, capsys) -> None:
    file, results = campaign_file(tmp_path), tmp_path / "r"
    where = (file, "--results", results)
    command("run", *where, "--executor", "inline", "--limit", 4)
    assert "4 of 10 runs done, 0 failed, 6 left" in capsys.readouterr().out
    command("run", *where, "--executor", "inline")
    assert "10/10 done | 0 running | 0 failed | 0 left" in capsys.readouterr().err
    file.write_text(file.read_text().replace("seeds = [0, 1]", "seeds = [0]"))
    command("status", *where)
    out = capsys.readouterr().out
    assert "small: 6 of 6 runs done" in out
    assert "4 results without a run" in out
    command("clean", *where)
    assert "removed 4 results" in capsys.readouterr().out
    assert len(stored(results)) == 6


def test_the_exit_status_is_one_when_some_run_failed(tmp_path: Path, capsys) -> None:
    file = campaign_file(tmp_path)
    (tmp_path / "two.json").write_text("{")
    with pytest.raises(SystemExit) as left:
        command("run", file, "--results", tmp_path / "r", "--executor", "inline")
    assert left.value.code == 1
    printed = capsys.readouterr()
    assert "5 of 10 runs done, 5 failed, 0 left" in printed.out
    assert "failed: small, two, baseline" in printed.err


def test_a_report_needs_results(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contains no results"):
        command("report", campaign_file(tmp_path), "--results", tmp_path / "r")


def test_a_report_of_failed_runs_names_the_failure(tmp_path: Path) -> None:
    file = campaign_file(tmp_path)
    for name in ("one.json", "two.json"):
        (tmp_path / name).write_text("{")
    run_here(file, tmp_path / "r")
    with pytest.raises(
        InputError, match=r"5 runs failed .*; the first is small, one, baseline.*JSON"
    ):
        command("report", file, "--results", tmp_path / "r")


# ---- policies and rules from files ---------------------------------------------------------------

OWN = """
from rebat.contract import Policy, Start

def longest(attempt):
    return -attempt.walltime_us

class Mine(Policy):
    def plan(self, view, changes):
        free = view.n_free
        for attempt in sorted(view.queue.values(), key=lambda a: (-a.priority, a.serial)):
            if attempt.n_nodes <= free:
                free -= attempt.n_nodes
                yield Start(attempt.id)
"""


def own_campaign(folder: Path) -> Path:
    own = GRID.replace('"sfsj"]', '"code/own.py:Mine", "easy:order=code/own.py:longest"]')
    (folder / "code").mkdir(parents=True)
    (folder / "code/own.py").write_text(OWN)
    return campaign_file(folder, own)


@pytest.mark.slow
def test_policies_and_rules_from_files_beside_the_campaign(tmp_path: Path, monkeypatch) -> None:
    file = own_campaign(tmp_path / "a")
    monkeypatch.chdir("/")
    status = run_campaign(open_campaign(file), tmp_path / "r", workers=2)
    assert (status.ok, status.total) == (14, 14)
    policies = {unit.spec.policy for unit in open_campaign(file).units}
    assert policies == {"baseline", "code/own.py:Mine", "easy:order=code/own.py:longest"}
    assert n_run(run_here(own_campaign(tmp_path / "elsewhere"), tmp_path / "r")[1]) == 0
    (tmp_path / "a/code/own.py").write_text(OWN + "\n# changed")
    assert n_run(run_here(file, tmp_path / "r")[1]) == 8


def test_a_policy_that_changes_meanwhile_is_noticed(tmp_path: Path, monkeypatch) -> None:
    file = own_campaign(tmp_path)
    opened = open_campaign(file)
    (tmp_path / "code/own.py").write_text(OWN + "\n# changed")
    own = next(unit for unit in opened.units if "own.py" in unit.spec.policy)
    outcome = campaign_run.perform(stored_task(own, KIND.perform, tmp_path / "r"))
    assert outcome.error == "code/own.py:Mine: changed while the campaign ran"


def test_a_policy_of_ones_own_that_is_not_there_is_refused_at_reading(tmp_path: Path) -> None:
    file = own_campaign(tmp_path)
    file.write_text(file.read_text().replace(":Mine", ":Yours"))
    with pytest.raises(InputError, match=r"grid 'small': policies: .*own\.py: has no 'Yours'"):
        open_campaign(file)


# ---- killed at any moment ------------------------------------------------------------------------


def n_stored(results: Path) -> int:
    return len(stored(results))


def wait_for_workers(results: Path) -> None:
    """Wait until the workers of a killed campaign end; check that they write nothing afterwards."""
    time.sleep(0.1)
    before = contents(results / "runs")
    time.sleep(0.2)
    assert contents(results / "runs") == before


def killed_and_resumed(file: Path, results: Path, seed: int) -> tuple[bool, dict[str, bytes]]:
    """Kill a campaign and resume it; check that no finished run is repeated, and return the
    results."""
    killed = start_and_kill(file, results, seed, n_stored)
    if not results.exists():
        results.mkdir()
    wait_for_workers(results)
    before = Store(results)
    finished = {key: before.read(key) for key in before.lines}
    assert all(result.status == "ok" for result in finished.values())
    _, told = run_here(file, results)
    assert n_run(told) == 26 - len(finished)
    assert all(Store(results).read(key) == result for key, result in finished.items())
    return killed, contents(results)


@pytest.mark.slow
def test_twenty_campaigns_killed_at_random_moments_end_as_an_unbroken_one(tmp_path: Path) -> None:
    file = campaign_file(tmp_path, SIX_SEEDS, jobs=20)
    run_here(file, tmp_path / "unbroken")
    expected = contents(tmp_path / "unbroken")
    assert len(expected) == 3
    with ThreadPoolExecutor(2) as pool:
        ended = list(
            pool.map(lambda seed: killed_and_resumed(file, tmp_path / f"r{seed}", seed), range(20))
        )
    assert sum(killed for killed, _ in ended) >= 15  # the others ended first
    assert all(found == expected for _, found in ended)
