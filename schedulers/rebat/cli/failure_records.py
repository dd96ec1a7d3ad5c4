# SPDX-License-Identifier: Apache-2.0
"""``rebat failures import``, ``map`` and ``export``: failure records as event files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rebat.cli.input_kind import reject_jobs
from rebat.cli.output_file import output_file
from rebat.cli.record_options import cluster_option, stale_option, strict_option, zone_option
from rebat.cli.record_window import left_out, time_zero, windowed
from rebat.cli.types import DURATION, FILE, MACHINE, SEED
from rebat.core.errors import InputError
from rebat.core.formatting import counted
from rebat.core.units import format_duration, to_s

if TYPE_CHECKING:
    from rebat.models.failures.events import MachineEvent
    from rebat.models.failures.recorded import MappedRecord
    from rebat.models.failures.records.record import Record
    from rebat.records.node_events import DownRow


class FormatCommand(click.Command):
    """A command whose help ends with the formats of records."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from rebat.models.failures.records.formats import FORMATS

        with formatter.section("Formats (--format)"):
            formatter.write_dl([(name, form.about) for name, form in FORMATS.items()])


@click.command("import", cls=FormatCommand)
@click.argument("trace", type=FILE)
@click.option(
    "--format",
    "form",
    default="auto",
    show_default=True,
    help="Format of the record, see the list below; auto detects the format from the first lines.",
)
@click.option(
    "--system",
    type=int,
    help="With the format lanl: number of the system, if the record has several.",
)
@click.option(
    "--platform",
    type=int,
    help="With the format fta: number of the platform, if the table has several.",
)
@click.option(
    "--downtime",
    "downtime_s",
    type=DURATION,
    help="With the format mira-ras: minimum duration of an outage (default: 1h). The record contains no repair times. An outage is longer only if the messages of its event span a longer time.",
)
@click.option(
    "--maintenance",
    type=FILE,
    help="With the format mira-ras: file with the maintenance periods of the machine, START,END per line.",
)
@click.option(
    "--maintained",
    type=click.Choice(("leave-out", "down")),
    help=(
        "With --maintenance: what happens in a maintenance period. leave-out (default): the "
        "machine stays up, and events that begin in the period are left out, because no job was "
        "running. down: the entire machine is down, and all running jobs are killed."
    ),
)
@zone_option(
    default="the zone of --workload, or UTC",
    more="With the format csv and Unix times: time zone of the midnight that is time 0.",
)
@strict_option
@cluster_option
@stale_option
@click.option(
    "--workload",
    type=FILE,
    help="With the format sacctmgr or sacct: workload imported from the same cluster. The event file then uses the node numbers and the time origin of this workload.",
)
@click.option(
    "--attempts",
    type=FILE,
    help="With the format sacctmgr: file with the output of sacct -P -X -D. Adds failures that have no Slurm event but ended an attempt with NODE_FAIL. A later job on the node also ends an event without an end (--stale).",
)
@click.option(
    "--slurmd-timeout",
    "slurmd_timeout_s",
    type=DURATION,
    help="With --attempts: SlurmdTimeout of the cluster (default: 5min, as in Slurm). This is the maximum length of an outage without an event, because Slurm records an event for each longer outage.",
)
@click.option(
    "--begin",
    help="Start at this date, or at this duration after the start of the record. This moment becomes time 0. Nodes that are down at this moment fail at time 0. Not with --workload, which sets time 0.",
)
@click.option(
    "--end",
    help="Drop failures from this date on, or from this duration after the start of the record.",
)
@click.option(
    "--names",
    type=FILE,
    help="Write a CSV table of the node numbers and their names to this file, with the columns node,name (formats csv, fta, sacctmgr and sacct only).",
)
@output_file("File to write (.gz: compressed).", FILE, "names")
def import_(
    trace: Path,
    form: str,
    out: Path,
    begin: str | None,
    end: str | None,
    names: Path | None,
    workload: Path | None,
    **options: Any,
) -> None:
    """Convert a failure record to an event file.

    Prints the numbers of lines read and used, the number of lines dropped for each reason, and the
    number of outages outside --begin and --end. Joins outages of a node that overlap or are adjacent.

    \b
    Examples (a machine of 512 nodes and its fitted laws; Mira; your own table):
      rebat failures import LA-UR-05-7318.csv.xz --system 20 -o 20.events
      rebat failures fit 20.events --nodes 512 --until 16000h -o nodes.csv
      rebat failures import mira.cor.gz --format mira-ras -o mira.events
      rebat failures import mine.csv --format csv --names names.csv -o mine.events
      rebat failures import events.txt --workload jobs.json.gz -o site.events
      rebat failures import events.txt --attempts jobs.txt -o site.events
    """
    from contextlib import ExitStack

    from rebat.records.sources import regular

    if names is not None and names.resolve() == out.resolve():
        raise InputError("is the same file as --out", "--names", "a different file")
    if workload is not None and begin is not None:
        raise InputError("sets time 0, as --workload does", "--begin", "only one of them")
    with ExitStack() as files:
        trace = files.enter_context(regular(trace))
        if options["attempts"]:
            options["attempts"] = files.enter_context(regular(options["attempts"]))
        _import(form, trace, out, begin, end, names, workload, options)


def _import(
    form: str,
    trace: Path,
    out: Path,
    begin: str | None,
    end: str | None,
    names: Path | None,
    workload: Path | None,
    options: dict[str, Any],
) -> None:
    from rebat.console.progress import at_work
    from rebat.models.failures.events import write_events
    from rebat.models.failures.outages import write_names
    from rebat.models.failures.records.formats import ReaderOptions, read_record
    from rebat.records.detect import AUTO

    if form == AUTO:
        reject_jobs(trace)
    with at_work(f"reading {trace.name}"):
        machine = None
        if workload is not None:
            machine, zone, options["absent"] = _machine(workload)
            if form in (AUTO, "sacctmgr", "sacct"):
                options["zone"] = options["zone"] or zone
        record = read_record(form, trace, ReaderOptions(**options, workload=machine))
        if names is not None and not record.names:
            raise InputError("has no effect: the record identifies nodes by number", "--names")
        events = windowed(record, begin, end)
        write_events(events, out)
    if names is not None:
        write_names(record.names, names)
    head = f"{out}: {_summary(events)} from {time_zero(record, begin)}"
    for line in (head, *_lines(record), *left_out(record, events)):
        click.echo(line)


def _machine(
    path: Path,
) -> tuple[tuple[tuple[str, ...], float], str | None, tuple[DownRow, ...]]:
    """Return node names and time 0 (Unix time) of an imported workload.

    Also return the time zone of local times, and times in which nodes were not in service.
    """
    from rebat.records.hosts import check_list, sorted_names
    from rebat.workloads.load import load_workload

    machine = load_workload(path).machine or {}
    nodes, origin_s = machine.get("nodes"), machine.get("origin_s")
    if not isinstance(nodes, str) or not isinstance(origin_s, int | float):
        raise InputError("has no node names", str(path), "a workload from sacct or pbs")
    check_list(nodes)
    zone = machine.get("time_zone")
    named = sorted_names([nodes]), float(origin_s)
    return named, zone if isinstance(zone, str) else None, _absent(machine, float(origin_s))


def _absent(machine: dict[str, Any], origin_s: float) -> tuple[DownRow, ...]:
    """Return the times in which renewed nodes of a machine were not in service."""
    from rebat.records.hosts import check_list, expanded
    from rebat.records.node_events import DownRow

    renewed = machine.get("renewed")
    if not isinstance(renewed, dict):
        return ()
    until_s, from_s = float(renewed["until_s"]), float(renewed["from_s"])
    check_list(renewed["old"] + "," + renewed["new"])
    kind = "not in service"
    old = [DownRow(name, until_s, math.inf, kind, "") for name in expanded(renewed["old"])]
    new = [DownRow(name, origin_s, from_s, kind, "") for name in expanded(renewed["new"])]
    return (*old, *new)


def _summary(events: list[MachineEvent]) -> str:
    length = format_duration(to_s(events[-1].at_us)) if events else "0 s"
    return f"{counted(sum(not event.available for event in events), 'failure')} in {length}"


def _lines(record: Record) -> list[str]:
    """Describe how many lines were used and dropped, and how many outages were joined."""
    taken = ", ".join(f"{n} {kind}" for kind, n in sorted(record.taken.items()))
    lines = [f"  {record.n_lines} lines read, {record.taken.total()} used (kinds: {taken})"]
    for reason, n in sorted(record.dropped.items()):
        lines.append(f"  {n} dropped: {reason}")
    outages = f"  {record.n_outages} node outages, {record.n_joined} joined to others"
    lines.append(f"{outages} that overlap or touch")
    if record.sources:
        shown = ", ".join(f"{n} {source}" for source, n in record.sources.items())
        lines.append(f"  outages by source: {shown}")
    return [*lines, *(f"  {note}" for note in record.notes)]


@click.command("map")
@click.argument("events", type=FILE)
@click.option(
    "--from-nodes",
    type=MACHINE,
    help="Number of nodes of the recorded machine (default: up to the largest node that fails).",
)
@click.option("--nodes", type=MACHINE, required=True, help="Number of nodes of the new machine.")
@click.option(
    "--by",
    default="rank",
    show_default=True,
    help="How nodes are mapped: rank, share or rate (see above).",
)
@click.option(
    "--turn",
    is_flag=True,
    help="Start at a random time of the record and wrap around at its end.",
)
@click.option(
    "--seed",
    type=SEED,
    default=0,
    show_default=True,
    help="Seed for the random choices of '--by rate' and of --turn.",
)
@output_file()
def map_(
    events: Path,
    from_nodes: int | None,
    nodes: int,
    by: str,
    turn: bool,
    seed: int,
    out: Path,
) -> None:
    """Map a failure record of M nodes to a machine of N nodes.

    \b
    rank   Node i becomes node i*N/M. The failure rate of the machine is unchanged, and
           neighbours stay neighbours. If several nodes map to the same node, it is down
           while any of them is down.
    share  As rank, but node i becomes all nodes from i*N/M to (i+1)*N/M. Each failure
           takes down the same share of the machine.
    rate   The failure rate of a node is unchanged. The machine fails N/M times as often.
           A smaller machine consists of random nodes of the record. A larger machine
           consists of copies of the record: each copy after the first starts at a random
           time of the record, and the last copy uses random nodes.

    Overlapping outages of a node are joined.

    \b
    Example (failures of 512 nodes on the 49,152 nodes of Mira):
      rebat failures map 20.events --from-nodes 512 --nodes 49152 --by rate -o mira20.events
    """
    from rebat.console.progress import at_work
    from rebat.models.failures.events import write_events
    from rebat.models.failures.recorded import mapped

    with at_work(f"mapping {events.name}"):
        source = _source(events, from_nodes)
        record = mapped(source, nodes, by, seed, turn)
        write_events(record, out)
    click.echo(f"{out}: {_summary(record)}, mapped from {source.n_nodes} to {nodes} nodes by {by}")


def _source(file: Path, n_nodes: int | None) -> MappedRecord:
    from rebat.models.failures.events import read_events
    from rebat.models.failures.recorded import source_of

    events = read_events(file)
    try:
        return source_of(events, n_nodes)
    except InputError as error:
        raise error.at(str(file)) from None


@click.command()
@click.argument("events", type=FILE)
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "batsim4", "batsim5"]),
    default="csv",
    show_default=True,
    help="Format of the file: a table, or an event file of Batsim 4 or 5.",
)
@output_file()
def export(events: Path, form: str, out: Path) -> None:
    """Write an event file as a CSV table, or in the form of Batsim 4 or 5.

    csv: a table with the columns node, down and up. Times are in seconds. 'rebat failures import
    --format csv' converts the table to an event file with the same failures.

    batsim4: an event file for the option --events of Batsim 4.

    batsim5: an event file for the option --ee of Batsim 5. Batsim 5 does not simulate failures: it
    sends the text of each line to the scheduler.

    All rebat commands read both forms (Batsim 4 and 5). The command also converts files of
    operations.

    \b
    Examples:
      rebat failures export f.events -o outages.csv
      rebat failures export f.events --format batsim5 -o failures5.events
    """
    from rebat.console.progress import at_work
    from rebat.models.failures.events import (
        read_event_file,
        read_events,
        write_events4,
        write_events5,
    )
    from rebat.models.failures.outages import write_plain

    with at_work(f"writing {out.name}"):
        if form == "csv":
            count = write_plain(read_events(events), out)
            click.echo(f"{out}: {count} node outages")
            return
        content = read_event_file(events).events
        (write_events5 if form == "batsim5" else write_events4)(content, out)
    click.echo(f"{out}: {len(content)} events, {form}")
