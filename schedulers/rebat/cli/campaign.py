# SPDX-License-Identifier: Apache-2.0
"""``rebat campaign``: run the evaluations in a file in parallel. Runs can be resumed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rebat.cli.job_options import job_options, with_jobs
from rebat.cli.json_output import json_option, print_json
from rebat.cli.types import CAMPAIGN, FILE, FOLDER, NODES
from rebat.console.output import print_line, warn
from rebat.console.progress import campaign_bar
from rebat.core.errors import InputError
from rebat.core.formatting import counted

if TYPE_CHECKING:
    from rebat.campaign.opening import Campaign
    from rebat.campaign.store import Status

FILE_ARGUMENT = click.argument("file", type=CAMPAIGN)
RESULTS = click.option(
    "--results",
    type=FOLDER,
    help="Results folder (default: out/campaigns/NAME, where NAME is the name in FILE).",
)
LEFT_OUT = "this run counts as missing; 'rebat campaign run' repeats it"
TRACE = click.option(
    "--trace", type=FILE, help="Use this trace or workload file instead of the one that FILE names."
)


def _with_file(command: Callable[..., None]) -> Callable[..., None]:
    """Add the arguments that all subcommands have: campaign file, results folder and trace."""
    return FILE_ARGUMENT(RESULTS(TRACE(command)))


@click.group()
def campaign() -> None:
    """Run, watch and report campaigns: many parallel runs from one file, which can be resumed.

    A campaign runs all combinations of workloads, policies and failures, or of job sets, heuristics
    and silent errors.

    \b
    Example (a few minutes on two cores):
      rebat campaign run campaigns/node-stealing/quick.toml --workers 2
      rebat campaign report campaigns/node-stealing/quick.toml
    """


@campaign.command()
@_with_file
@click.option(
    "--workers",
    type=NODES,
    help=(
        "Total number of workers (default: one per core of this machine, or with a batch "
        "system as many as run in one batch job)."
    ),
)
@click.option(
    "--executor",
    help="Where runs execute: processes, threads, dask, a batch system (slurm, pbs, sge, lsf), or inline (in this process, for debugging). [default: threads for runs on the compiled loop if this is faster, processes for others]",
)
@click.option(
    "--address",
    help="With --executor dask: address of the Dask scheduler, like tcp://127.0.0.1:8786 (default: start a local cluster).",
)
@job_options
@click.option("--limit", type=NODES, help="Maximum number of runs in this call (default: all).")
@click.option(
    "--keep-runs", is_flag=True, help="Keep the files of each run in RESULTS/folders/KEY."
)
@click.option("--retry-failed", is_flag=True, help="Repeat runs that failed earlier.")
def run(file: Path, results: Path | None, trace: Path | None, **options: Any) -> None:
    """Execute the runs of FILE that have no result yet. You can interrupt or kill the command at
    any time, and start it again. Only the runs in progress are lost. The exit status is 1 if a run
    failed.

    \b
    Example:
      rebat campaign run campaigns/node-stealing/quick.toml --workers 2
    """
    from rebat.campaign.run import run_campaign
    from rebat.campaign.store import TABLE
    from rebat.runs.labels import rejections

    if options["address"] is not None and options["executor"] != "dask":
        raise InputError("has no effect without Dask", "--address", "--executor dask as well")
    options = with_jobs(options)
    opened, folder = _open(file, results, trace)
    with campaign_bar() as on_progress:
        status = run_campaign(opened, folder, on_progress=on_progress, **options)
    click.echo(f"{status.sentence}; results in {folder}")
    if text := rejections(folder / TABLE):
        warn(text)
    if status.failed:
        _show_failures(opened, folder)
        raise SystemExit(1)


@campaign.command()
@_with_file
@json_option
def status(file: Path, results: Path | None, trace: Path | None, as_json: bool) -> None:
    """Print the progress of each grid, and the failed runs.

    \b
    Example:
      rebat campaign status campaigns/node-stealing/quick.toml
    """
    from rebat.campaign.run import warn_of_damage
    from rebat.campaign.store import Store

    opened, folder = _open(file, results, trace)
    store = Store(folder)
    store.check_owner(opened.owner)
    warn_of_damage(store, store.states(opened.units), LEFT_OUT)
    parts = {
        grid: store.status([unit for unit in opened.units if unit.grid == grid])
        for grid in dict.fromkeys(unit.grid for unit in opened.units)
    }
    total = store.status(opened.units)
    if as_json:
        print_json(_status_record(parts, total, _failed(opened, folder), folder))
        return
    for grid, part in parts.items():
        click.echo(f"{grid}: {part.sentence}")
    stale = (
        f"; {counted(total.stale, 'result')} without a run in the file (see 'rebat campaign clean')"
        if total.stale
        else ""
    )
    click.echo(f"all distinct runs: {total.sentence}{stale}")
    _show_failures(opened, folder)


def _status_record(
    parts: dict[str, Status], total: Status, failed: list[tuple[str, str]], folder: Path
) -> dict[str, Any]:
    return {
        "runs": total.total,
        "done": total.ok,
        "failed": total.failed,
        "left": total.missing,
        "stale": total.stale,
        "grids": [
            {
                "grid": grid,
                "runs": part.total,
                "done": part.ok,
                "failed": part.failed,
                "left": part.missing,
            }
            for grid, part in parts.items()
        ],
        "errors": [{"run": run, "error": error} for run, error in failed],
        "results": folder,
    }


@campaign.command()
@click.argument("file", type=CAMPAIGN, required=False)
@RESULTS
@TRACE
@click.option(
    "--from",
    "table",
    type=FILE,
    help=(
        "Write the report from the results.parquet of an earlier report. Do not use FILE, "
        "--results and --trace with this option."
    ),
)
@click.option(
    "--out",
    type=FOLDER,
    help=(
        "Folder of the report (default: RESULTS/report; with --from, the folder that contains the "
        "file)."
    ),
)
def report(
    file: Path | None,
    results: Path | None,
    trace: Path | None,
    table: Path | None,
    out: Path | None,
) -> None:
    """Write the report of FILE: tables and figures. Use the same --trace as for the runs. The
    command writes a results.parquet next to the report. With --from, this file is enough to write
    the report again.

    \b
    Examples:
      rebat campaign report campaigns/node-stealing/quick.toml
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
    """Write the tables and the report of a results folder."""
    from rebat.campaign.reporting import write_report
    from rebat.campaign.run import warn_of_damage
    from rebat.campaign.store import Store
    from rebat.campaign.tables import write_tables

    if file is None:
        raise InputError("is missing", "FILE", "a campaign file, or --from TABLE")
    opened, folder = _open(file, results, trace)
    if not (folder / "runs").is_dir():
        raise InputError(
            "contains no results", str(folder), "'rebat campaign run' before the report"
        )
    store = Store(folder)
    store.check_owner(opened.owner)
    warn_of_damage(store, store.states(opened.units), LEFT_OUT)
    write_tables(store, opened)  # a killed campaign has no results.parquet yet
    return write_report(opened, folder, out or folder / "report")


@campaign.command()
@_with_file
def clean(file: Path, results: Path | None, trace: Path | None) -> None:
    """Delete the results of runs that are no longer in FILE.

    \b
    Example:
      rebat campaign clean campaigns/node-stealing/quick.toml
    """
    from rebat.campaign.store import Store
    from rebat.campaign.tables import write_tables

    opened, folder = _open(file, results, trace)
    store = Store(folder)
    if not store.folder.is_dir():
        raise InputError("does not exist: no results to clean", str(store.folder))
    with store.locked(opened.owner):
        removed = store.clean(opened.units)
        write_tables(store, opened)
    click.echo(
        f"removed {counted(removed, 'result')} without a run in the file from {store.folder}"
    )


def _open(file: Path, results: Path | None, trace: Path | None) -> tuple[Campaign, Path]:
    """Open a campaign and print its notes. Return the campaign and its results folder."""
    from rebat.campaign.opening import open_campaign

    opened = open_campaign(file, trace)
    for note in opened.notes:
        print_line(note)
    return opened, results or Path("out") / "campaigns" / opened.owner.name


def _failed(opened: Campaign, folder: Path) -> list[tuple[str, str]]:
    """Return a description and the error of each failed run."""
    from rebat.campaign.store import Store
    from rebat.campaign.tables import failures

    return failures(opened, Store(folder))


def _show_failures(opened: Campaign, folder: Path, most: int = 10) -> None:
    failed = _failed(opened, folder)
    for label, error in failed[:most]:
        print_line(f"  failed: {label}: {error}")
    if len(failed) > most:
        print_line(f"  ... and {len(failed) - most} more, see campaign.json")
