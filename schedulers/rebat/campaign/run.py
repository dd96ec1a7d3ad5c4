"""Run what a campaign file asks for and its results folder lacks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from rebat.campaign.execute import executor as executor_named
from rebat.campaign.grid import expand, read_campaign
from rebat.campaign.keys import Run, keyed, scheduler_of
from rebat.campaign.single import simulate
from rebat.campaign.store import Owner, Status, Store
from rebat.campaign.worker import Outcome, Task, lost, perform
from rebat.core.errors import InputError, RebatError
from rebat.kernels.jit import is_compiled
from rebat.models.failures.authors import Authors
from rebat.models.failures.law import generate_events
from rebat.workloads.generate import synthetic


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a campaign is, in distinct runs, those of earlier starts and beyond a limit too.

    ``eta_s`` is how long the runs of this start will still take.
    """

    total: int
    done: int
    failed: int
    running: int
    left: int
    eta_s: float | None


OnProgress = Callable[[Progress], None]


class Campaign(msgspec.Struct, frozen=True):
    """A campaign file's runs, and what its results folder carries as a sign of it."""

    owner: Owner
    runs: list[Run]

    @property
    def distinct(self) -> dict[str, Run]:
        """The runs by key: grids may share some."""
        return {run.key: run for run in reversed(self.runs)}


def open_campaign(file: Path, trace: Path | None = None) -> Campaign:
    """Read a campaign file and the inputs that it names; see `grid.read_campaign`."""
    read = read_campaign(file, trace)
    return Campaign(Owner(read.name, file.name), keyed(expand(read)))


def run_campaign(
    file: Path,
    results_dir: Path,
    *,
    workers: int | None = None,
    executor: str = "processes",
    address: str | None = None,
    on_progress: OnProgress | None = None,
    keep_runs: bool = False,
    retry_failed: bool = False,
    limit: int | None = None,
    trace: Path | None = None,
) -> Status:
    """Run every run that has no result yet, then write the tables.

    Parameters
    ----------
    file, results_dir : Path
        The campaign file; the results folder (see `store`). With Dask, its workers must see it
        and the input files under the same paths.
    workers : int, optional
        Worker processes; otherwise one per core.
    executor, address : str
        A key of `execute.EXECUTORS`; the address of a Dask scheduler.
    on_progress : callable, optional
        Told how far it is at the start and after every run.
    keep_runs : bool
        Write each run's own files too (`single.write_run`); runs that lack them are run again.
    retry_failed : bool
        Run again what failed before.
    limit : int, optional
        At most so many runs now.
    trace : Path, optional
        See `grid.read_campaign`.

    Raises
    ------
    InputError
        For a bad file, before anything runs; for results that cannot be written.
    """
    chosen = executor_named(executor)
    _check_pyarrow()
    campaign, store = open_campaign(file, trace), Store(results_dir)
    try:
        with store.locked(campaign.owner):
            store.sweep()
            todo = missing(campaign, store, keep_runs, retry_failed)[:limit]
            tasks = [Task(run, store.folder, keep_runs) for run in todo]
            others = store.status(_without(campaign.runs, todo))
            total = len(campaign.distinct)
            tally = Tally(total, others, len(tasks), _workers(workers), on_progress)
            if tasks:
                _warm_up(todo)
                for outcome in chosen(tasks, perform, lost, tally.workers, address):
                    store.log_time(outcome.key, outcome.seconds)
                    tally.count(outcome)
            store.write_tables(campaign.owner, campaign.runs)
            return store.status(campaign.runs)
    except OSError as error:
        raise InputError(f"cannot write the results: {error}", str(results_dir)) from None


def missing(campaign: Campaign, store: Store, keep_runs: bool, retry_failed: bool) -> list[Run]:
    """The distinct runs that have to be run, in the order of the file."""

    def lacks(run: Run) -> bool:
        result = store.read(run.key)
        if result is None or result.status == "failed":
            return result is None or retry_failed
        return keep_runs and not store.has_folder(run.key)

    runs = campaign.distinct
    return [
        runs[key] for key in dict.fromkeys(run.key for run in campaign.runs) if lacks(runs[key])
    ]


def _warm_up(runs: Sequence[Run]) -> None:
    """Compile the kernels once, here, rather than in every worker at the same time."""
    if is_compiled():
        return
    jobs = synthetic(0, 50)
    events = generate_events(Authors(1800, 600), jobs.n_nodes, horizon_s=1e4)
    for run in {run.spec.policy: run for run in runs}.values():
        try:
            simulate(jobs, scheduler_of(run.spec), machine_events=events)
        except RebatError:
            continue  # its own runs will say what is wrong with it


class Tally:
    """Counts outcomes and tells, for any campaign.

    ``others`` is what was there of ``total`` before this start's ``n_tasks``.
    """

    def __init__(
        self, total: int, others: Status, n_tasks: int, workers: int,
        on_progress: OnProgress | None,
    ) -> None:  # fmt: skip
        self.total, self.n_tasks, self.workers = total, n_tasks, workers
        self.done, self.failed, self.ended = others.ok, others.failed, 0
        self.began, self.on_progress = time.monotonic(), on_progress
        self._tell()

    def count(self, outcome: Outcome) -> None:
        """Take in how one task ended."""
        self.ended += 1
        self.done += outcome.error is None
        self.failed += outcome.error is not None
        self._tell()

    def _tell(self) -> None:
        if self.on_progress is None:
            return
        now = self.n_tasks - self.ended
        running = min(now, self.workers)
        pace_s = (time.monotonic() - self.began) / self.ended if self.ended else None
        self.on_progress(
            Progress(
                total=self.total,
                done=self.done,
                failed=self.failed,
                running=running,
                left=self.total - self.done - self.failed - running,
                eta_s=None if pace_s is None else pace_s * now,
            )
        )


def _without(runs: Sequence[Run], some: Sequence[Run]) -> list[Run]:
    keys = {run.key for run in some}
    return [run for run in runs if run.key not in keys]


def _workers(workers: int | None) -> int:
    return max(1, workers if workers is not None else len(os.sched_getaffinity(0)))


def _check_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise InputError("pyarrow is not installed", "campaign", "rebat[campaign]") from None
