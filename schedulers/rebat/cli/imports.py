# SPDX-License-Identifier: Apache-2.0
"""``rebat workload import`` and ``rebat failures import``: records of jobs and of failures."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from rebat.cli.command import Values, command, options_of
from rebat.cli.options import File, Folder, NewFile, OutFile, OutWorkload
from rebat.core.declared import extra
from rebat.core.errors import InputError
from rebat.core.folders import atomic_folder
from rebat.core.numbers import counted, duration
from rebat.core.units import FOREVER_US, parse_duration, to_s, to_us
from rebat.models.failures.records.formats import FORMATS, ReaderOptions
from rebat.records.forms import AUTO, TABLE
from rebat.records.options import Strict
from rebat.workloads.importing import ABOUT
from rebat.workloads.trace import TraceOptions

if TYPE_CHECKING:
    from rebat.core.jobs import Workload
    from rebat.models.failures.events import MachineEvent
    from rebat.models.failures.records.record import Record
    from rebat.records.attempts import Correction
    from rebat.records.node_events import DownRow
    from rebat.workloads.recorded import RecordedSchedule


def _formats_of_jobs(formatter: click.HelpFormatter) -> None:
    """Write the formats, the mappings, and the commands that export records."""
    from rebat.records.foreign import EXPORT, EXPORT_EVENTS
    from rebat.records.mapping import open_mapping, shipped_mappings
    from rebat.records.queues import EXPORT_PARTITIONS
    from rebat.records.slurm_rules import EXPORT_RULES

    with formatter.section("Formats (--format)"):
        formatter.write_dl(list(ABOUT.items()))
    with formatter.section("Mappings (--mapping)"):
        formatter.write_dl([(name, open_mapping(name).title) for name in shipped_mappings()])
    formatter.write("\nExport from Slurm, as a user who may see all jobs:\n")
    for line in (EXPORT, EXPORT_EVENTS, EXPORT_PARTITIONS, *EXPORT_RULES):
        formatter.write(f"  {line}\n")


@command(_formats_of_jobs, "import")
def import_jobs(
    trace: File,
    *,
    out: OutWorkload,
    force: Annotated[
        bool, "Replace existing files, and an earlier result in the folder --schedule."
    ] = False,
    form: Annotated[
        str,
        "--format",
        "Format of TRACE, see the list below; auto detects the format.",
        extra(choices=(AUTO, *ABOUT)),
    ] = AUTO,
    mapping: Annotated[
        str | None,
        "table: mapping of columns to fields, a name of the list below or a TOML file (default: the mapping of the list that fits the columns).",
        extra(metavar="NAME|FILE"),
    ] = None,
    events: Annotated[
        File | None,
        "With the format sacct or pbs: file with node events of Slurm. An attempt ends at the first failure of one of its nodes.",
    ] = None,
    partitions: Annotated[
        File | None,
        "With the format sacct or pbs: file with the declared partitions, from 'scontrol show partition' (Slurm) or 'qstat -Qf' (PBS). Slurm declares nodes, tiers and limits, PBS only tiers and limits. The nodes of other partitions are those on which their jobs ran.",
    ] = None,
    rules: Annotated[
        tuple[File, ...],
        "With the format sacct: file with rules of Slurm, from one of the last three commands below; may be repeated. A policy with the axis rules=all has the queue order, shares, limits and reservations of these files.",
    ] = (),
    corrections: Annotated[
        NewFile | None,
        "With --events: write a CSV file of all attempts whose recorded end the import corrects.",
    ] = None,
    schedule: Annotated[
        Folder | None,
        "Also write the recorded schedule to this folder, in the format of 'rebat run --out'. It contains all attempts of the jobs. With --events it also contains the node failures. In these files the name of the policy is 'recorded'.",
    ] = None,
    strict: Strict = False,
    selection: Annotated[Values, options_of(TraceOptions)],
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
    options = selection | {"months": selection["months"] or None}
    with ExitStack() as files:
        trace = files.enter_context(regular(trace))
        events = events and files.enter_context(regular(events))
        if form == AUTO and mapping is None:
            reject_failures(trace)
        if form == AUTO:
            form = TABLE if mapping is not None else detected(trace)
        check_options(form, events, mapping, partitions, rules)
        options |= {
            "mapping": mapping, "events": events, "strict": strict, "partitions": partitions,
            "rules": rules,
        }  # fmt: skip
        _import_jobs(form, trace, out, corrections, schedule, force, options)


def _import_jobs(
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
        click.echo(f"next: rebat calibrate {out} {schedule} --out calibration")
    else:
        click.echo(f"next: rebat workload describe {out}")


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
    from rebat.api.recorded import recorded_result

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
    from rebat.api.remarks import of_names
    from rebat.console.output import print_remarks

    print_remarks(of_names(imported))
    for note in imported.notes:
        click.echo(f"  {note}")
    click.echo(f"{out}: {counted(len(imported.jobs), 'job')}, {counted(imported.n_nodes, 'node')}")


def _formats_of_failures(formatter: click.HelpFormatter) -> None:
    with formatter.section("Formats (--format)"):
        formatter.write_dl([(name, form.about) for name, form in FORMATS.items()])


@command(_formats_of_failures, "import")
def import_failures(
    trace: File,
    *,
    form: Annotated[
        str,
        "--format",
        "Format of the record, see the list below; auto detects the format from the first lines.",
    ] = "auto",
    reader: Annotated[
        Values,
        options_of(
            ReaderOptions,
            "system",
            "platform",
            "downtime_s",
            "maintenance",
            "maintained",
            "zone",
            "strict",
            "cluster",
            "stale",
        ),
    ],
    workload: Annotated[
        File | None,
        "With the format sacctmgr, sacct or csv: workload imported from the same cluster. The event file then uses the node numbers and the time origin of this workload.",
    ] = None,
    jobs: Annotated[Values, options_of(ReaderOptions, "attempts", "slurmd_timeout_s")],
    begin: Annotated[
        str | None,
        "Start at this date, or at this duration after the start of the record. This moment becomes time 0. Nodes that are down at this moment fail at time 0. Not with --workload, which sets time 0.",
    ] = None,
    end: Annotated[
        str | None,
        "Drop failures from this date on, or from this duration after the start of the record.",
    ] = None,
    names: Annotated[
        NewFile | None,
        "Write a CSV table of the node numbers and their names to this file, with the columns node,name (formats csv, fta, sacctmgr and sacct only).",
    ] = None,
    out: OutFile,
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
    from rebat.records.sources import regular

    options = reader | jobs
    if names is not None and names.resolve() == out.resolve():
        raise InputError("is the same file as --out", "--names", "a different file")
    if workload is not None and begin is not None:
        raise InputError("sets time 0, as --workload does", "--begin", "only one of them")
    with ExitStack() as files:
        trace = files.enter_context(regular(trace))
        if options["attempts"]:
            options["attempts"] = files.enter_context(regular(options["attempts"]))
        _import_failures(form, trace, out, begin, end, names, workload, options)


def _import_failures(
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
    from rebat.models.failures.records.formats import read_record

    if form == AUTO:
        reject_jobs(trace)
    with at_work(f"reading {trace.name}"):
        machine = None
        if workload is not None:
            machine, zone, options["absent"] = _machine_of(workload)
            if form in (AUTO, "sacctmgr", "sacct"):
                options["zone"] = options["zone"] or zone
        record = read_record(form, trace, ReaderOptions(**options, workload=machine))
        if names is not None and not record.names:
            raise InputError("has no effect: the record identifies nodes by number", "--names")
        events = windowed(record, begin, end)
        write_events(events, out)
    if names is not None:
        write_names(record.names, names)
    head = f"{out}: {failures_in(events)} from {time_zero(record, begin)}"
    for line in (head, *_record_lines(record), *left_out(record, events)):
        click.echo(line)
    step = f"rebat calibrate {workload} PAST --failures {out} --out calibration"
    click.echo(f"next: {step if workload else f'rebat failures describe {out}'}")


def _machine_of(
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


def failures_in(events: list[MachineEvent]) -> str:
    length = duration(to_s(events[-1].at_us)) if events else "0 s"
    return f"{counted(sum(not event.available for event in events), 'failure')} in {length}"


def _record_lines(record: Record) -> list[str]:
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


OF_BOTH = ("sacct", "csv")
"""Formats of failure records that may also contain jobs."""


def reject_failures(path: Path) -> None:
    """Raise InputError if a file for 'rebat workload import' contains failures or a workload."""
    from rebat.models.failures.records.formats import detected
    from rebat.records.forms import EVENTS

    if _is_workload(path):
        raise _misplaced(path, "a workload", "a trace; 'rebat run' reads workloads directly")
    try:
        form = detected(path)
    except InputError:
        return
    if form == EVENTS and _is_event(path):
        raise _misplaced(path, "an event file", "jobs; 'rebat run --failures' reads event files")
    if form not in (EVENTS, *OF_BOTH):
        expected = "jobs; 'rebat failures import' reads failures"
        raise _misplaced(path, f"a failure record ({form})", expected)


def reject_jobs(path: Path) -> None:
    """Raise InputError if a file for 'rebat failures import' contains jobs."""
    from rebat.workloads.importing import ACCOUNTING, detected

    if _is_workload(path):
        raise _misplaced(path, "a workload", "a failure record")
    if _is_event(path):
        return
    try:
        form = detected(path)
    except InputError:
        return
    if form != ACCOUNTING[0]:
        expected = "failures; 'rebat workload import' reads jobs"
        raise _misplaced(path, f"a trace of jobs ({form})", expected)


def _misplaced(path: Path, kind: str, expected: str) -> InputError:
    return InputError(f"is {kind}", str(path), expected)


def _start(path: Path) -> str:
    """Return the first characters of a text file. For other files, return an empty text."""
    from rebat.records.sources import opened

    try:
        with opened(path) as text:
            return text.read(4096)
    except InputError:
        return ""


def _is_workload(path: Path) -> bool:
    from rebat.workloads.importing import is_parquet
    from rebat.workloads.parquet_workload import is_workload

    return is_workload(path) if is_parquet(path) else '"nb_res"' in _start(path)


def _is_event(path: Path) -> bool:
    first = _start(path).lstrip().partition("\n")[0]
    return first.startswith("{") and '"type"' in first and '"timestamp"' in first


def windowed(record: Record, begin: str | None, end: str | None) -> list[MachineEvent]:
    """Return the events of the record between two times."""
    from rebat.models.failures.outages import window

    if begin is None and end is None:
        return record.events
    begin_us = 0 if begin is None else _date_us(begin, record.origin, "--begin")
    end_us = FOREVER_US if end is None else _date_us(end, record.origin, "--end")
    if end_us <= begin_us:
        raise InputError("is not after --begin", "--end", "a later time")
    events = window(record.events, begin_us, end_us)
    if not events and record.events:
        options = "--begin and --end" if begin and end else "--begin" if begin else "--end"
        last = time_of(record, record.events[-1].at_us)
        expected = f"a period with failures; the record is from {time_of(record, 0)} to {last}"
        raise InputError("no failure is in this period", options, expected)
    return events


def left_out(record: Record, events: list[MachineEvent]) -> list[str]:
    """Describe how many node outages are outside the period of ``events``."""
    from rebat.models.failures.outages import outages_of

    n = record.n_outages - record.n_joined - len(outages_of(events).node)
    return [f"  {counted(n, 'node outage')} dropped: outside --begin and --end"] if n else []


def time_zero(record: Record, begin: str | None) -> str:
    """Return the date of time 0 of the event file, as text."""
    if record.origin is None:
        return "time 0" if begin is None else f"{begin} after its start"
    return time_of(record, 0 if begin is None else _date_us(begin, record.origin, "--begin"))


def time_of(record: Record, at_us: int) -> str:
    """Return a time of the record as a date, or as a duration if the record has no dates."""
    if record.origin is None:
        return duration(to_s(at_us))
    return str(record.origin + timedelta(microseconds=at_us))


def _date_us(text: str, origin: datetime | None, option: str) -> int:
    """Convert a date, or a time since the start of the record, to microseconds since its start."""
    try:
        return to_us(parse_duration(text))
    except InputError:
        pass
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        expected = "a date like 2018-09-01, or a duration like 400d"
        raise InputError(f"is {text[:40]!r}", option, expected) from None
    if origin is None or date.tzinfo is not None:
        expected = "a duration like 400d" if origin is None else "a date without a time zone"
        raise InputError(f"is {text[:40]!r}", option, expected)
    if date < origin:
        raise InputError(f"is before the record, which begins at {origin}", option, "a later date")
    return to_us((date - origin).total_seconds())
