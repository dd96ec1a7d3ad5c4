# SPDX-License-Identifier: Apache-2.0
"""Small campaigns for tests: their files, and the contents of results folders."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from functools import cache, partial
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from rebat.campaign.opening import Campaign, open_campaign
from rebat.campaign.run import run_campaign
from rebat.campaign.store import Status, Store, store_result
from rebat.cli.main import main
from rebat.console.progress import CampaignProgress
from rebat.runs.runner import Task
from rebat.runs.unit import RunSpec, Unit
from rebat.workloads.batsim_json import write_workload
from rebat.workloads.generate import synthetic

WORKLOADS = """
[workloads.one]
file = "one.json"

[workloads.two]
file = "two.json"
"""

GRID = """
[[grid]]
name = "small"
workloads = ["one", "two"]
policies = ["baseline", "sfsj"]
failure_free = ["baseline"]
[grid.failures]
mtbf = "30min"
downtime = "10min"
seeds = [0, 1]
horizon = "10d"
[grid.checkpoint]
model = "young-daly"
"""
"""2 workloads x (2 policies x 2 seeds + 1 without failures) = 10 runs."""

SIX_SEEDS = GRID.replace("seeds = [0, 1]", "seeds = [0, 1, 2, 3, 4, 5]")
"""2 workloads x (2 policies x 6 seeds + 1 without failures) = 26 runs."""


def campaign_file(folder: Path, grids: str = GRID, jobs: int = 30, report: str = "") -> Path:
    """Write a campaign on two synthetic workloads, with all files in one folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate(("one", "two")):
        write_workload(synthetic(seed, jobs), folder / f"{name}.json")
    file = folder / "small.toml"
    named = f'report = "{report}"\n' if report else ""
    file.write_text(named + WORKLOADS + grids)
    return file


def contents(results: Path) -> dict[str, bytes]:
    """Return every file of a results folder except the log of times and the lock."""
    return {
        str(path.relative_to(results)): path.read_bytes()
        for path in sorted(results.rglob("*"))
        if path.is_file() and path.name not in ("timings.csv", ".lock")
    }


def run_here(file: Path, results: Path, **options) -> tuple[Status, list[CampaignProgress]]:
    """Run a campaign in this process; return its status and its progress reports."""
    told: list[CampaignProgress] = []
    options = {"executor": "inline"} | options
    status = run_campaign(open_campaign(file), results, on_progress=told.append, **options)
    return status, told


def campaign_of(folder: Path, text: str) -> tuple[Path, Path]:
    """Run a campaign with this text, which must not fail; return its file and its results."""
    file = folder / "campaign.toml"
    file.write_text(text)
    status, _ = run_here(file, folder / "results")
    assert status.failed == 0
    return file, folder / "results"


def n_run(told: list[CampaignProgress]) -> int:
    """Return the number of units that were run."""
    return len(told) - 1


def specs_of(campaign: Campaign) -> list[RunSpec]:
    """Return the specifications of the simulations of a campaign."""
    return [unit.spec for unit in campaign.units]


def keys_of_log(folder: Path) -> list[str]:
    """Return the runs in the log. The log can be absent if the campaign was killed."""
    if not (folder / "timings.csv").exists():
        return []
    return [line.split(",")[0] for line in (folder / "timings.csv").read_text().splitlines()]


def stored(results: Path) -> set[str]:
    """Return the keys of all complete results in a folder, also while a campaign runs."""
    return set(Store(results).lines)


def stored_task(unit: Unit, perform: Callable[..., Any], results: Path) -> Task:
    """Return the task of a unit whose outcome is stored in a folder."""
    return Task(unit, perform, store=partial(store_result, results))


def start_and_kill(file: Path, results: Path, seed: int, n_done: Callable[[Path], int]) -> bool:
    """Start a campaign of 26 runs; kill its process after a random number of runs.

    Return whether it was still running. ``n_done`` counts the runs in its results.
    """
    rng = random.Random(seed)
    wanted, later = rng.randrange(0, 26), rng.uniform(0, 0.06)
    executor = ("processes", "inline", "threads")[seed % 3]
    arguments = [str(file), "--results", str(results), "--workers", "2", "--executor", executor]
    process = forks().Process(target=perform_quietly, args=(arguments,))
    process.start()
    until = time.monotonic() + 60
    while process.is_alive() and time.monotonic() < until:
        if n_done(results) >= wanted:
            time.sleep(later)
            break
        time.sleep(0.01)
    process.kill()
    process.join()
    return process.exitcode == -signal.SIGKILL


def forks() -> ForkServerContext:
    """Return a context whose processes start with rebat imported.

    The import takes longer than these campaigns.
    """
    with START:  # simultaneous threads would restore each other's environment
        return started()


START = Lock()


@cache
def started() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["rebat.cli.campaign", __name__])
    with pytest.MonkeyPatch.context() as patch:
        # Without compiled kernels runs take longer, so a kill hits a run more often.
        patch.setenv("NUMBA_DISABLE_JIT", "1")
        forkserver.ensure_running()
    return context


def perform_quietly(arguments: list[str]) -> None:
    """Run ``rebat campaign run`` without output, as the target of a process."""
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    main(["campaign", "run", *arguments])
