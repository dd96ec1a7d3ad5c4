# SPDX-License-Identifier: Apache-2.0
"""``rebat campaign``: run the evaluations in a file in parallel. Runs can be resumed."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from rebat.api.figure_files import FigureWidth, Formats, file_forms
from rebat.cli.command import command, group, used_options
from rebat.cli.options import CampaignFile, File, Folder, Json, print_json
from rebat.console.output import print_line, warn
from rebat.console.progress import campaign_bar
from rebat.core.declared import Count, extra
from rebat.core.errors import InputError
from rebat.core.files import names
from rebat.core.formatting import TableForm
from rebat.core.numbers import counted
from rebat.executors.resources import Jobs

if TYPE_CHECKING:
    from rebat.campaign.opening import Campaign
    from rebat.campaign.reporting import ReportFiles
    from rebat.campaign.store import Status


LEFT_OUT = "this run counts as missing; 'rebat campaign run' repeats it"
Results = Annotated[
    Folder | None,
    "Results folder (default: out/campaigns/NAME, where NAME is the name in FILE).",
]
TraceFile = Annotated[
    File | None, "Use this trace or workload file instead of the one that FILE names."
]


@command()
def run(
    file: CampaignFile,
    *,
    results: Results = None,
    trace: TraceFile = None,
    workers: Annotated[
        Count | None,
        "Total number of workers (default: one per core of this machine, or with a batch system as many as run in one batch job).",
    ] = None,
    executor: Annotated[
        str | None,
        "Where runs execute: processes, threads, dask, a batch system (slurm, pbs, sge, lsf), or inline (in this process, for debugging). [default: threads for runs on the compiled loop if this is faster, processes for others]",
    ] = None,
    address: Annotated[
        str | None,
        "With --executor dask: address of the Dask scheduler, like tcp://127.0.0.1:8786 (default: start a local cluster).",
    ] = None,
    jobs: Jobs,
    limit: Annotated[Count | None, "Maximum number of runs in this call (default: all)."] = None,
    keep_runs: Annotated[bool, "Keep the files of each run in RESULTS/folders/KEY."] = False,
    retry_failed: Annotated[bool, "Repeat runs that failed earlier."] = False,
) -> None:
    """Execute the runs of FILE that have no result yet. You can interrupt or kill the command at
    any time, and start it again. Only the runs in progress are lost. The exit status is 1 if a run
    failed.

    \b
    Example:
      rebat campaign run campaigns/node_stealing/quick.toml --workers 2
    """
    from rebat.campaign.run import run_campaign
    from rebat.campaign.store import TABLE
    from rebat.runs.labels import rejections

    if address is not None and executor != "dask":
        raise InputError("has no effect without Dask", "--address", "--executor dask as well")
    _check_jobs(executor)
    opened, folder = _open(file, results, trace)
    with campaign_bar() as on_progress:
        status = run_campaign(
            opened,
            folder,
            workers=workers,
            executor=executor,
            address=address,
            jobs=jobs,
            limit=limit,
            keep_runs=keep_runs,
            retry_failed=retry_failed,
            on_progress=on_progress,
        )
    click.echo(f"{status.sentence}; results in {folder}")
    if text := rejections(folder / TABLE):
        warn(text)
    if status.failed:
        _show_failures(opened, folder)
        raise SystemExit(1)
    options = [("--results", results), ("--trace", trace)]
    shipped = {path: name for name, path in names("campaigns", ".toml").items()}
    words = [
        shipped.get(file, str(file)),
        *(str(word) for pair in options if pair[1] for word in pair),
    ]
    print_line(f"rebat: next: rebat campaign report {shlex.join(words)}")


def _check_jobs(executor: str | None) -> None:
    """Raise InputError if an option of cluster jobs is used without a batch system."""
    from rebat.executors.cluster import SYSTEMS

    if executor in SYSTEMS:
        return
    for name, option in used_options().items():
        if name in Jobs.__struct_fields__:
            raise InputError("needs a batch system", option, f"--executor {', '.join(SYSTEMS)}")


@command()
def status(
    file: CampaignFile,
    *,
    results: Results = None,
    trace: TraceFile = None,
    as_json: Json = False,
) -> None:
    """Print the progress of each grid, and the failed runs.

    \b
    Example:
      rebat campaign status campaigns/node_stealing/quick.toml
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


@command()
def report(
    file: CampaignFile | None = None,
    *,
    results: Results = None,
    trace: TraceFile = None,
    table: Annotated[
        File | None,
        "--from",
        "Write the report from the results.parquet of an earlier report. Do not use --results and --trace with this option.",
    ] = None,
    out: Annotated[
        Folder | None,
        "Folder of the report (default: RESULTS/report; with --from, the folder that contains the file).",
    ] = None,
    figures: Annotated[
        Formats,
        extra(without_value="svg,pdf"),
        "Also write each figure to the folder figures. FORMATS is a list like pdf,svg of png, svg, pdf and eps. Without a list, the formats are svg and pdf. With --from, figures of single runs are only SVG, for the screen.",
    ] = None,
    figure_width: FigureWidth = None,
    tables: Annotated[
        TableForm | None,
        "--table",
        "Also write each table of the report to the folder tables: LaTeX (package booktabs), Markdown or CSV.",
    ] = None,
) -> None:
    """Write the report of FILE: tables and figures. Use the same --trace as for the runs. The
    command writes a results.parquet next to the report. With --from, this file is enough to write
    the report again. Only if the report is your own code, FILE is needed as well.

    \b
    Examples:
      rebat campaign report campaigns/node_stealing/quick.toml
      rebat campaign report --from DIR/results.parquet
    """
    from rebat.campaign.reporting import ReportFiles, write_pages

    forms = file_forms(figures, figure_width)
    if table is None:
        paths = _report_of_runs(file, results, trace, out, ReportFiles(forms, tables))
    else:
        for name, value in (("--results", results), ("--trace", trace)):
            if value is not None:
                raise InputError("has no effect with --from", name)
        paths = write_pages(table, out or table.parent, file, ReportFiles(forms, tables))
    for path in paths:
        click.echo(f"wrote {path}")


def _report_of_runs(
    file: Path | None,
    results: Path | None,
    trace: Path | None,
    out: Path | None,
    files: ReportFiles,
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
    return write_report(opened, folder, out or folder / "report", files)


@command()
def clean(
    file: CampaignFile,
    *,
    results: Results = None,
    trace: TraceFile = None,
) -> None:
    """Delete the results of runs that are no longer in FILE.

    \b
    Example:
      rebat campaign clean campaigns/node_stealing/quick.toml
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


campaign = group(
    "campaign",
    """
    Run, watch and report campaigns: many parallel runs from one file, which can be resumed.

    A campaign runs all combinations of workloads, policies and failures, or of job sets, heuristics
    and silent errors.

    \b
    Example (a few minutes on two cores):
      rebat campaign run campaigns/node_stealing/quick.toml --workers 2
      rebat campaign report campaigns/node_stealing/quick.toml
    """,
    run,
    status,
    report,
    clean,
)
