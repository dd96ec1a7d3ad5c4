# SPDX-License-Identifier: Apache-2.0
"""Run what a campaign asks for and its results folder lacks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rebat.campaign.kinds import KINDS
from rebat.campaign.opening import Campaign
from rebat.campaign.store import Status, Store
from rebat.campaign.tables import write_tables
from rebat.campaign.tally import Tally
from rebat.campaign.worker import Task, lost, perform
from rebat.console.output import warn
from rebat.console.progress import OnCampaignProgress
from rebat.core.errors import InputError
from rebat.executors.resources import Jobs, Resources
from rebat.executors.systems import SYSTEMS
from rebat.executors.table import executor as executor_named
from rebat.runs.unit import Unit

MOST_NAMED = 10
"""Damaged results that are named one by one."""


def run_campaign(
    campaign: Campaign,
    results_dir: Path,
    *,
    workers: int | None = None,
    executor: str = "processes",
    address: str | None = None,
    jobs: Jobs | None = None,
    on_progress: OnCampaignProgress | None = None,
    keep_runs: bool = False,
    retry_failed: bool = False,
    limit: int | None = None,
) -> Status:
    """Perform every unit that has no result yet, then write the tables.

    Parameters
    ----------
    campaign : Campaign
        From `opening.open_campaign`.
    results_dir : Path
        The results folder (see `store`). With Dask and on clusters, workers must see it and the
        input files under the same paths.
    workers : int, optional
        Worker processes; otherwise one per core, and on a cluster those of one job.
    executor, address : str
        A key of `execute.EXECUTORS`; the address of a Dask scheduler.
    jobs : Jobs, optional
        What to ask a batch system for.
    on_progress : callable, optional
        Told how far it is at the start and after every unit.
    keep_runs : bool
        Write each unit's own files too, where its kind has any; units that lack them are performed
        again.
    retry_failed : bool
        Perform again what failed before.
    limit : int, optional
        At most so many units now.

    A result that is not as it was written is performed again; a warning names its file.

    Raises
    ------
    InputError
        For options that fit nothing, before anything runs; for results that cannot be written.
    """
    chosen = executor_named(executor)
    _check_pyarrow()
    if keep_runs and not any(KINDS[unit.kind].files for unit in campaign.units):
        raise InputError("has no effect: these runs leave no files", "--keep-runs")
    store = Store(results_dir)
    try:
        with store.locked(campaign.owner):
            store.sweep()
            warn_of_damage(store, campaign, "the run is repeated")
            todo = missing(campaign, store, keep_runs, retry_failed)[:limit]
            tasks = [Task(unit, store.folder, keep_runs) for unit in todo]
            others = store.status(_without(campaign.units, todo))
            total = len(campaign.distinct)
            n_workers = _workers(workers, executor)
            there = 0 if executor in SYSTEMS else n_workers
            tally = Tally(total, others, len(tasks), there, on_progress)
            resources = Resources(
                workers=n_workers, address=address, jobs=jobs or Jobs(), folder=store.folder,
                on_crew=tally.crew,
            )  # fmt: skip
            if tasks:
                _prepare(todo)
                try:
                    for outcome in chosen(tasks, perform, lost, resources):
                        store.log_time(outcome.key, outcome.seconds)
                        tally.count(outcome)
                finally:
                    store.sweep()  # what a worker was writing that was ended
            write_tables(store, campaign)
            return store.status(campaign.units)
    except OSError as error:
        raise InputError(f"cannot write the results: {error}", str(results_dir)) from None


def missing(campaign: Campaign, store: Store, keep_runs: bool, retry_failed: bool) -> list[Unit]:
    """The distinct units that have to be performed, in the order of the file."""

    def lacks(unit: Unit) -> bool:
        result = store.read(unit.key)
        if result is None or result.status == "failed":
            return result is None or retry_failed
        return keep_runs and not store.has_files(unit.key, KINDS[unit.kind].files)

    return [unit for unit in campaign.distinct.values() if lacks(unit)]


def warn_of_damage(store: Store, campaign: Campaign, remedy: str) -> None:
    """Name the results that are not as they were written."""
    found = store.damaged(campaign.units)
    for path in found[:MOST_NAMED]:
        warn(f"{path}: does not match its checksum, or has none; {remedy}")
    if len(found) > MOST_NAMED:
        warn(f"{len(found) - MOST_NAMED} more such files in {store.folder / 'runs'}; {remedy}")


def _prepare(units: Sequence[Unit]) -> None:
    """Check the inputs; compile the kernels once, here, rather than in every worker."""
    by = [(kind, [unit for unit in units if unit.kind == kind.name]) for kind in KINDS.values()]
    for kind, own in by:
        kind.check(own)
    for kind, own in by:
        if own:
            kind.warm_up(own)


def _without(units: Sequence[Unit], some: Sequence[Unit]) -> list[Unit]:
    keys = {unit.key for unit in some}
    return [unit for unit in units if unit.key not in keys]


def _workers(workers: int | None, executor: str) -> int:
    """As many as asked for; otherwise one per core, and on a cluster 0: those of one job."""
    if workers is not None:
        return max(1, workers)
    return 0 if executor in SYSTEMS else len(os.sched_getaffinity(0))


def _check_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise InputError("pyarrow is not installed", "campaign", "rebat[campaign]") from None
