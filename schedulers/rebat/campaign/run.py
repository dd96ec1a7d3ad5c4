# SPDX-License-Identifier: Apache-2.0
"""Execution of the units of a campaign that have no result yet, and its progress."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from rebat.campaign.opening import Campaign
from rebat.campaign.store import State, Status, Store, store_result
from rebat.campaign.tables import write_tables
from rebat.console.output import warn
from rebat.console.progress import CampaignProgress, OnCampaignProgress
from rebat.core.errors import InputError, not_installed
from rebat.executors.cluster import SYSTEMS
from rebat.executors.resources import Jobs, Resources
from rebat.executors.table import Executor
from rebat.executors.table import executor as executor_named
from rebat.executors.threads import on_this_machine
from rebat.runs.runner import Outcome, Task, lost, perform
from rebat.runs.unit import Unit

MOST_NAMED = 10
"""Maximum number of damaged results that a warning lists."""


def run_campaign(
    campaign: Campaign,
    results_dir: Path,
    *,
    workers: int | None = None,
    executor: str | None = None,
    address: str | None = None,
    jobs: Jobs | None = None,
    on_progress: OnCampaignProgress | None = None,
    keep_runs: bool = False,
    retry_failed: bool = False,
    limit: int | None = None,
) -> Status:
    """Perform all units without a result, then write the tables.

    Parameters
    ----------
    campaign : Campaign
        From `opening.open_campaign`.
    results_dir : Path
        The results folder (see `store`). With Dask and batch systems, this folder and the input
        files must have the same paths on all workers.
    workers : int, optional
        Number of workers. The default is one per core. With a batch system, the default is
        the number of workers in one job.
    executor : str, optional
        A key of `executors.table.EXECUTORS`. The default is threads for runs on the compiled loop
        (if this is faster) and processes for all others.
    address : str, optional
        Address of a Dask scheduler.
    jobs : Jobs, optional
        Options of the jobs of a batch system.
    on_progress : callable, optional
        Called with the progress at the start and after each unit.
    keep_runs : bool
        Whether to write the files of each unit as well. Units whose files are missing are performed
        again.
    retry_failed : bool
        Whether to repeat units that failed earlier.
    limit : int, optional
        Maximum number of units in this call.
    """
    chosen: Executor | None = executor_named(executor) if executor else None
    _check_pyarrow()
    if keep_runs and not any(campaign.kinds[unit.kind].files for unit in campaign.units):
        raise InputError("has no effect: the runs of this campaign write no files", "--keep-runs")
    store = Store(results_dir)
    try:
        with store.locked(campaign.owner):
            store.sweep()
            states = store.states(campaign.units)
            warn_of_damage(store, states, "the run is repeated")
            todo = missing(campaign, store, states, keep_runs, retry_failed)[:limit]
            tasks = [_task(campaign, unit, store, keep_runs) for unit in todo]
            store.merge()
            n_workers = _workers(workers, executor)
            n_started = 0 if executor in SYSTEMS else n_workers
            tally = Tally(_others(states, todo), len(states), len(tasks), n_started, on_progress)
            resources = Resources(
                workers=n_workers,
                address=address,
                jobs=jobs or Jobs(),
                folder=store.folder,
                on_crew=tally.crew,
            )
            if tasks:
                _check_inputs(campaign, todo)
                if chosen is None:
                    chosen = partial(
                        on_this_machine, in_thread=_in_threads(campaign, todo, n_workers)
                    )
                try:
                    # Without this, an interrupt outside the executor would not end the executor.
                    with closing(chosen(tasks, perform, lost, resources)) as outcomes:
                        for outcome in outcomes:
                            store.log_time(outcome.key, outcome.seconds)
                            tally.count(outcome)
                finally:
                    store.sweep()  # remove incomplete files of terminated workers
                store.merge()
            write_tables(store, campaign)
            return store.status(campaign.units)
    except OSError as error:
        raise InputError(f"cannot write the results: {error}", str(results_dir)) from None


def _task(campaign: Campaign, unit: Unit, store: Store, keep_runs: bool) -> Task:
    kind = campaign.kinds[unit.kind]
    folder = store.run_folder(unit.key) if keep_runs and kind.files else None
    stored = partial(store_result, store.folder)
    return Task(unit, kind.perform, folder=folder, store=stored)


def missing(
    campaign: Campaign,
    store: Store,
    states: Mapping[str, State],
    keep_runs: bool,
    retry_failed: bool,
) -> list[Unit]:
    """Return the distinct units to perform, in the order of the file."""

    def lacks(unit: Unit) -> bool:
        state = states[unit.key]
        if state != "ok":
            return state != "failed" or retry_failed
        return keep_runs and not store.has_files(unit.key, campaign.kinds[unit.kind].files)

    return [unit for unit in campaign.distinct.values() if lacks(unit)]


def _others(states: Mapping[str, State], todo: Sequence[Unit]) -> Counter[State]:
    """Return the number of units in each state, without the units that are still to perform."""
    keys = {unit.key for unit in todo}
    return Counter(state for key, state in states.items() if key not in keys)


def warn_of_damage(store: Store, states: Mapping[str, State], remedy: str) -> None:
    """Warn of damaged results. The text ``remedy`` states what happens to them."""
    damaged = store.damaged(states)
    for place in damaged[:MOST_NAMED]:
        warn(f"{place}: does not match its checksum, or has no checksum; {remedy}")
    if len(damaged) > MOST_NAMED:
        warn(f"{len(damaged) - MOST_NAMED} more damaged lines in {store.folder / 'runs'}; {remedy}")


def _check_inputs(campaign: Campaign, units: Sequence[Unit]) -> None:
    """Check the inputs."""
    for kind in campaign.kinds.values():
        kind.check([unit for unit in units if unit.kind == kind.name])


def _in_threads(campaign: Campaign, units: Sequence[Unit], workers: int) -> Callable[[Task], bool]:
    """Return a function that returns whether a thread of this process performs a task."""
    keys: set[str] = set()
    for kind in campaign.kinds.values():
        keys |= kind.in_threads([unit for unit in units if unit.kind == kind.name], workers)
    return lambda task: task.unit.key in keys


def _workers(workers: int | None, executor: str | None) -> int:
    """Return the number of workers. The default is one per core, or 0 for a batch system."""
    if workers is not None:
        return max(1, workers)
    return 0 if executor in SYSTEMS else len(os.sched_getaffinity(0))


def _check_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise not_installed("pyarrow", "campaign") from None


class Tally:
    """A counter of outcomes that reports progress.

    The campaign has ``total`` units. This call performs ``n_tasks`` of them. ``others`` contains
    the number of all other units by state.
    """

    def __init__(
        self,
        others: Counter[State],
        total: int,
        n_tasks: int,
        workers: int,
        on_progress: OnCampaignProgress | None,
    ) -> None:
        self.total, self.n_tasks, self.workers = total, n_tasks, workers
        self.done, self.failed, self.ended = others["ok"], others["failed"], 0
        self.began, self.on_progress, self.note = time.monotonic(), on_progress, ""
        self._report()

    def count(self, outcome: Outcome) -> None:
        """Count the outcome of a task."""
        self.ended += 1
        self.done += outcome.error is None
        self.failed += outcome.error is not None
        self._report()

    def crew(self, workers: int, note: str) -> None:
        """Update the number of workers."""
        self.workers, self.note = workers, note
        self._report()

    def _report(self) -> None:
        if self.on_progress is None:
            return
        now = self.n_tasks - self.ended
        running = min(now, self.workers)
        pace_s = (time.monotonic() - self.began) / self.ended if self.ended else None
        self.on_progress(
            CampaignProgress(
                total=self.total,
                done=self.done,
                failed=self.failed,
                running=running,
                left=self.total - self.done - self.failed,
                eta_s=None if pace_s is None else pace_s * now,
                note=self.note,
            )
        )
