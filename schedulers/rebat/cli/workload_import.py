# SPDX-License-Identifier: Apache-2.0
"""``rebat workload import``: traces and accounting records as workloads."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rebat.cli.input_kind import reject_failures
from rebat.cli.output_file import output_file
from rebat.cli.record_options import cluster_option, stale_option, strict_option, zone_option
from rebat.cli.types import DURATION, FILE, FOLDER, MACHINE, NODES, WORKLOAD_OUT
from rebat.core.errors import InputError
from rebat.core.folders import atomic_folder
from rebat.core.formatting import counted
from rebat.records.detect import AUTO, TABLE
from rebat.workloads.importing import ABOUT

if TYPE_CHECKING:
    from rebat.core.jobs import Workload
    from rebat.records.attempts import Correction
    from rebat.workloads.recorded import RecordedSchedule


class TraceCommand(click.Command):
    """A command whose help lists formats, mappings, and the commands that export records."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from rebat.records.mapping import open_mapping, shipped_mappings
        from rebat.records.sacct import EXPORT, EXPORT_EVENTS

        with formatter.section("Formats (--format)"):
            formatter.write_dl(list(ABOUT.items()))
        with formatter.section("Mappings (--mapping)"):
            formatter.write_dl([(name, open_mapping(name).title) for name in shipped_mappings()])
        formatter.write("\nExport from Slurm, as a user who may see all jobs:\n")
        for command in (EXPORT, EXPORT_EVENTS):
            formatter.write(f"  {command}\n")


@click.command("import", cls=TraceCommand)
@click.argument("trace", type=FILE)
@output_file(
    "Workload to write (.json, .json.gz or .parquet).",
    WORKLOAD_OUT,
    "corrections",
    folder="schedule",
)
@click.option(
    "--format",
    "form",
    type=click.Choice([AUTO, *ABOUT]),
    default=AUTO,
    show_default=True,
    help="Format of TRACE, see the list below; auto detects the format.",
)
@click.option(
    "--mapping",
    metavar="NAME|FILE",
    help="table: mapping of columns to fields, a name of the list below or a TOML file (default: the mapping of the list that fits the columns).",
)
@click.option(
    "--events",
    type=FILE,
    help=(
        "With the format sacct or pbs: file with node events of Slurm. An attempt ends at the "
        "first failure of one of its nodes."
    ),
)
@click.option(
    "--corrections",
    type=FILE,
    help="With --events: write a CSV file of all attempts whose recorded end the import corrects.",
)
@click.option(
    "--schedule",
    type=FOLDER,
    help="Also write the recorded schedule to this folder, in the format of 'rebat run --out'. It contains all attempts of the jobs. With --events it also contains the node failures. In these files the name of the policy is 'recorded'.",
)
@strict_option
@click.option(
    "--month",
    "months",
    multiple=True,
    metavar="YYYY-MM",
    help="Keep the jobs of this month; may be repeated (default: all jobs).",
)
@click.option(
    "--by",
    type=click.Choice(["submit", "start"]),
    default="submit",
    show_default=True,
    help="With --month: whether the submission or the start of a job must be in the month.",
)
@zone_option("--tz", default="UTC", more="The months of --month are also in this zone.")
@click.option(
    "--nodes",
    "n_nodes",
    type=MACHINE,
    help="Number of nodes of the machine (default: from the trace).",
)
@click.option(
    "--size",
    type=click.Choice(["requested", "allocated"]),
    default="requested",
    show_default=True,
    help="Preferred field for the number of nodes of a job.",
)
@click.option(
    "--cap",
    type=NODES,
    help="Reduce larger jobs to this size (the node-stealing paper: 49000 on Mira).",
)
@click.option(
    "--overrun",
    type=click.Choice(["raise-walltime", "clamp", "drop", "keep"]),
    default="raise-walltime",
    show_default=True,
    help="How to import jobs that ran longer than their walltime. raise-walltime: set the walltime to run time + 1 s; clamp: shorten the run; drop: leave the job out; keep: Batsim kills the job at its walltime.",
)
@click.option(
    "--missing-walltime",
    type=click.Choice(["run", "none", "drop"]),
    default="run",
    show_default=True,
    help="How to import jobs without walltime. run: set the walltime to run time + 1 s; none: no walltime; drop: leave the job out.",
)
@click.option(
    "--origin",
    type=click.Choice(["first-job", "month"]),
    default="first-job",
    show_default=True,
    help="Time 0 of the workload: the first submission, or the start of the month.",
)
@click.option("--first", "first_s", type=DURATION, help="Keep jobs submitted from this time on.")
@click.option("--last", "last_s", type=DURATION, help="Keep jobs submitted before this time.")
@click.option(
    "--all",
    "all_jobs",
    is_flag=True,
    help="Keep jobs that were submitted long before the submissions of the record begin (default: leave them out, unless --month, --first or --last is set).",
)
@click.option(
    "--submission",
    type=click.Choice(["eligible", "submitted"]),
    default="eligible",
    show_default=True,
    help="Submission of a job that could not start at first because of a dependency, a begin time, a hold or an array limit. eligible: the time from which the job could start; submitted: the time at which the user submitted the job.",
)
@cluster_option
@click.option(
    "--runaway",
    type=click.Choice(["next", "limit", "drop", "keep"]),
    default="next",
    show_default=True,
    help="What to do with jobs without an end that ran more than twice their limit and one hour. next: end them at the next start of a job on their nodes, and at their limit at the latest; limit: end them at their limit; drop: leave them out; keep: use the recorded run time.",
)
@stale_option
@click.option("--max-jobs", type=NODES, help="Maximum number of jobs; later jobs are left out.")
def import_(
    trace: Path,
    out: Path,
    form: str,
    mapping: str | None,
    events: Path | None,
    corrections: Path | None,
    schedule: Path | None,
    force: bool,
    strict: bool,
    **options: Any,
) -> None:
    """Convert a trace, accounting records or a table of jobs to a workload.

    'rebat view', 'rebat validate' and 'rebat compare' read the recorded schedule that --schedule
    writes. Its times and job ids are the same as in the workload.

    \b
    A month of Mira, as in the node-stealing paper:
      rebat workload import mira.swf.gz --month 2018-11 --cap 49000 -o november.json.gz
    A Slurm cluster:
      rebat workload import jobs.txt --format sacct --events events.txt -o jobs.json.gz
    The same cluster, with its recorded schedule:
      rebat workload import jobs.txt --events events.txt -o jobs.json.gz --schedule past
    A month of Fugaku:
      rebat workload import 24_04.parquet --mapping f-data -o fugaku.json.gz
    """
    from rebat.records.sources import regular
    from rebat.workloads.importing import check_options, detected

    _check_outputs(out, corrections, events, schedule)
    options |= {"months": options["months"] or None, "stale": options["stale"] or "next"}
    with ExitStack() as files:
        trace = files.enter_context(regular(trace))
        events = events and files.enter_context(regular(events))
        if form == AUTO and mapping is None:
            reject_failures(trace)
        if form == AUTO:
            form = TABLE if mapping is not None else detected(trace)
        check_options(form, events, mapping)
        options |= {"mapping": mapping, "events": events, "strict": strict}
        _import(form, trace, out, corrections, schedule, force, options)


def _import(
    form: str,
    trace: Path,
    out: Path,
    corrections: Path | None,
    schedule: Path | None,
    force: bool,
    options: dict[str, Any],
) -> None:
    from rebat.console.progress import at_work
    from rebat.workloads.importing import import_jobs
    from rebat.workloads.load import save_workload

    with atomic_folder(schedule, force) if schedule else nullcontext() as folder:
        with at_work(f"reading {trace.name}"):
            imported = import_jobs(trace, form, schedule=schedule is not None, **options)
        lines = []
        if folder and imported.schedule:
            lines = _write_schedule(imported.schedule, folder, form, trace, out, options["events"])
        with _corrections_in(corrections, imported.corrections):
            save_workload(imported.workload, out)
    _print_import(imported.workload, out)
    for line in lines:
        click.echo(f"  {line}")
    if schedule:
        click.echo(f"{schedule}: the recorded schedule")


def _check_outputs(
    out: Path, corrections: Path | None, events: Path | None, schedule: Path | None
) -> None:
    if corrections is not None and corrections.resolve() == out.resolve():
        raise InputError("is the same file as --out", "--corrections", "a different file")
    if corrections is not None and events is None:
        raise InputError("has no effect", "--corrections", "--events as well")
    for file in filter(None, (out, corrections)):
        if schedule is not None and schedule.resolve() in file.resolve().parents:
            raise InputError(f"contains {file}", "--schedule", "a folder for the schedule only")


def _write_schedule(
    schedule: RecordedSchedule,
    folder: Path,
    form: str,
    trace: Path,
    out: Path,
    events: Path | None,
) -> list[str]:
    """Write the result of a recorded schedule. Return lines of text about it."""
    from rebat.library.recorded import recorded_result

    recorded = recorded_result(schedule, form, trace, out, events)
    recorded.result.write_into(folder)
    return recorded.lines


def _corrections_in(
    path: Path | None, cuts: tuple[Correction, ...]
) -> AbstractContextManager[None]:
    """Return a context that writes the corrections to a file if the block succeeds."""
    from rebat.core.files import text_if_successful
    from rebat.core.formatting import csv_line

    if path is None:
        return nullcontext()
    header = ("job", "start_s", "end_s", "cut_s", "node", "state")
    return text_if_successful(path, "".join(map(csv_line, [header, *cuts])))


def _print_import(imported: Workload, out: Path) -> None:
    for note in imported.notes:
        click.echo(f"  {note}")
    click.echo(f"{out}: {counted(len(imported.jobs), 'job')}, {counted(imported.n_nodes, 'node')}")
