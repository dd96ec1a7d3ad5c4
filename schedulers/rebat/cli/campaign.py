# SPDX-License-Identifier: Apache-2.0
"""``rebat campaign``: whole evaluations from one file, parallel and resumable."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rebat.cli.job_options import job_options, with_jobs
from rebat.cli.types import CAMPAIGN, FILE, FOLDER, NODES
from rebat.console.output import tell
from rebat.console.progress import campaign_bar
from rebat.core.errors import InputError

if TYPE_CHECKING:
    from rebat.campaign.opening import Campaign

FILE_ARGUMENT = click.argument("file", type=CAMPAIGN)
RESULTS = click.option("--results", type=FOLDER, help="Results folder (default: out/campaigns/NAME, NAME being the file's).")  # fmt: skip
LEFT_OUT = "its run counts as left; 'rebat campaign run' repeats it"
TRACE = click.option("--trace", type=FILE, help="Use this trace or workload file in place of the one that FILE names.")  # fmt: skip


def _with_file(command: Callable[..., None]) -> Callable[..., None]:
    """What every subcommand takes: the campaign file, its results folder, and a trace."""
    return FILE_ARGUMENT(RESULTS(TRACE(command)))


@click.group()
def campaign() -> None:
    """Whole evaluations: workloads x policies x failures, or job sets x heuristics x silent errors;
    parallel and resumable.

    \b
    Example, a few minutes on two cores:
      rebat campaign run campaigns/node-stealing/quick.toml --workers 2
      rebat campaign report campaigns/node-stealing/quick.toml
    """


@campaign.command()
@_with_file
@click.option("--workers", type=NODES, help="Worker processes (default: one per core; with a batch system, those of one job).")  # fmt: skip
@click.option("--executor", default="processes", show_default=True, help="processes, dask, a batch system (slurm, pbs, sge, lsf), or inline (no workers, to debug).")  # fmt: skip
@click.option("--address", help="Dask scheduler to use, like tcp://127.0.0.1:8786 (default: a cluster of its own on this machine).")  # fmt: skip
@job_options
@click.option("--limit", type=NODES, help="At most so many runs now.")
@click.option("--keep-runs", is_flag=True, help="Keep each run's files too, in RESULTS/folders/KEY.")  # fmt: skip
@click.option("--retry-failed", is_flag=True, help="Run again what failed before.")
def run(file: Path, results: Path | None, trace: Path | None, **options: Any) -> None:
    """Run what FILE asks for and has no result yet.

    It may be interrupted or killed at any moment and started again: only the runs that were being
    simulated are lost. Exit status 1 when some run failed.
    """
    from rebat.campaign.run import run_campaign

    if options["address"] is not None and options["executor"] != "dask":
        raise InputError("is for Dask", "--address", "--executor dask")
    options = with_jobs(options)
    opened, folder = _open(file, results, trace)
    with campaign_bar() as on_progress:
        status = run_campaign(opened, folder, on_progress=on_progress, **options)
    click.echo(f"{status.sentence}; results in {folder}")
    if status.failed:
        _show_failures(opened, folder)
        raise SystemExit(1)


@campaign.command()
@_with_file
def status(file: Path, results: Path | None, trace: Path | None) -> None:
    """Say how far FILE is: by grid, and which runs failed."""
    from rebat.campaign.run import warn_of_damage
    from rebat.campaign.store import Store

    opened, folder = _open(file, results, trace)
    store = Store(folder)
    store.check_owner(opened.owner)
    warn_of_damage(store, opened, LEFT_OUT)
    for grid in dict.fromkeys(unit.grid for unit in opened.units):
        part = store.status([unit for unit in opened.units if unit.grid == grid])
        click.echo(f"{grid}: {part.sentence}")
    whole = store.status(opened.units)
    stale = f"; {whole.stale} results of other runs (see clean)" if whole.stale else ""
    click.echo(f"all, each run once: {whole.sentence}{stale}")
    _show_failures(opened, folder)


@campaign.command()
@click.argument("file", type=CAMPAIGN, required=False)
@RESULTS
@TRACE
@click.option("--from", "table", type=FILE, help="Write it of this results.parquet, which a report left beside it: no FILE, no results, no trace.")  # fmt: skip
@click.option("--out", type=FOLDER, help="Where the report goes (default: RESULTS/report, or the folder of --from).")  # fmt: skip
def report(
    file: Path | None, results: Path | None, trace: Path | None, table: Path | None,
    out: Path | None,
) -> None:  # fmt: skip
    """Write tables and figures of FILE's results; give the same --trace as to run.

    The results.parquet beside the report is all that it takes to write it again:
    rebat campaign report --from DIR/results.parquet
    """
    from rebat.campaign.reporting import write_pages

    if table is None:
        paths = _report_of_runs(file, results, trace, out)
    else:
        _check_alone(FILE=file, **{"--results": results, "--trace": trace})
        paths = write_pages(table, out or table.parent)
    for path in paths:
        click.echo(f"wrote {path}")


def _check_alone(**others: Path | None) -> None:
    for name, value in others.items():
        if value is not None:
            raise InputError("has no effect with --from", name)


def _report_of_runs(
    file: Path | None, results: Path | None, trace: Path | None, out: Path | None
) -> list[Path]:
    """The tables and the report of a results folder."""
    from rebat.campaign.reporting import write_report
    from rebat.campaign.run import warn_of_damage
    from rebat.campaign.store import Store
    from rebat.campaign.tables import write_tables

    if file is None:
        raise InputError("is missing", "FILE", "a campaign's file, or --from TABLE")
    opened, folder = _open(file, results, trace)
    if not (folder / "runs").is_dir():
        raise InputError("no results yet", str(folder), "rebat campaign run first")
    store = Store(folder)
    store.check_owner(opened.owner)
    warn_of_damage(store, opened, LEFT_OUT)
    write_tables(store, opened)  # also of a campaign that was killed
    return write_report(opened, folder, out or folder / "report")


@campaign.command()
@_with_file
def clean(file: Path, results: Path | None, trace: Path | None) -> None:
    """Remove results that belong to no run of FILE any more."""
    from rebat.campaign.store import Store
    from rebat.campaign.tables import write_tables

    opened, folder = _open(file, results, trace)
    store = Store(folder)
    if not store.folder.is_dir():
        raise InputError("no results there", str(store.folder))
    with store.locked(opened.owner):
        removed = store.clean(opened.units)
        write_tables(store, opened)
    click.echo(f"removed {removed} results of other runs from {store.folder}")


def _open(file: Path, results: Path | None, trace: Path | None) -> tuple[Campaign, Path]:
    """The campaign and its results folder; says what is left out."""
    from rebat.campaign.opening import open_campaign

    opened = open_campaign(file, trace)
    for note in opened.notes:
        tell(note)
    return opened, results or Path("out") / "campaigns" / opened.owner.name


def _show_failures(opened: Campaign, folder: Path, most: int = 10) -> None:
    from rebat.campaign.store import Store
    from rebat.campaign.tables import failures

    store = Store(folder)
    failed = failures(opened, {key: store.read(key) for key in opened.distinct})
    for what, error in failed[:most]:
        tell(f"  failed: {what}: {error}")
    if len(failed) > most:
        tell(f"  ... and {len(failed) - most} more, see campaign.json")
