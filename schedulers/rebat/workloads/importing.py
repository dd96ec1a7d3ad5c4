# SPDX-License-Identifier: Apache-2.0
"""Imports of jobs: a record in any format becomes a workload, with its recorded schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rebat.core.errors import InputError
from rebat.core.jobs import Workload
from rebat.records import detect
from rebat.records.alcf import read_alcf
from rebat.records.clock import Floats, zone_of
from rebat.records.foreign import FIRST_LINES
from rebat.records.forms import ALCF, AUTO, PBS, SACCT, SWF, TABLE
from rebat.records.judge import early_note
from rebat.records.mapping import TableMapping
from rebat.records.pbs import read_pbs
from rebat.records.sacct import read_sacct
from rebat.records.slurm_rules import read_rules
from rebat.records.sources import PARQUET, kind_of, opened
from rebat.records.swf import THINK_TIME, is_partial, read_swf
from rebat.records.table import Rows
from rebat.records.tables import read_table
from rebat.workloads.accounted import AccountedJobs, accounted_jobs, with_wait
from rebat.workloads.recorded import ImportedWorkload, accounted_schedule, trace_schedule
from rebat.workloads.recorded_dependencies import preceding_jobs, with_dependencies
from rebat.workloads.recorded_rules import reservations_of, with_rules
from rebat.workloads.trace import TraceColumns, TraceOptions, checked, placed, trace_options

READERS: dict[str, Callable[..., Rows]] = {
    SWF: read_swf,
    ALCF: read_alcf,
    SACCT: read_sacct,
    PBS: read_pbs,
    TABLE: read_table,
}
"""The reader of each format."""


def read_jobs(path: Path, form: str = AUTO, **options: Any) -> Workload:
    """Return the workload of a record, see `import_jobs`."""
    return import_jobs(path, form, **options).workload


def import_jobs(
    path: Path,
    form: str = AUTO,
    *,
    mapping: str | Path | None = None,
    events: Path | None = None,
    partitions: Path | None = None,
    rules: Sequence[Path] = (),
    strict: bool = False,
    schedule: bool = False,
    **options: Any,
) -> ImportedWorkload:
    """Read a record of jobs as a workload.

    Parameters
    ----------
    path : Path
        The record, plain or .gz.
    form : str
        A format of `rebat.workloads.load.ABOUT`, or "auto".
    mapping : str or Path, optional
        For a table: its mapping, see `rebat.records.tables.read_table`.
    events : Path, optional
        For accounting records: node events (``sacctmgr -P show event``). If a node fails during an
        attempt, the attempt is cut at the failure.
    partitions : Path, optional
        For accounting records: the declared partitions (``scontrol show partition``, or ``qstat
        -Qf``).
    rules : sequence of Path
        For Slurm: outputs of the commands `rebat.records.slurm_rules.EXPORT_RULES`, with the queue
        order, limits and reservations of the site.
    strict : bool
        Whether the first invalid row is an error. Otherwise invalid rows are dropped and counted.
    schedule : bool
        Whether to return the recorded schedule as well. If the record has no node names, rebat
        assigns nodes.
    **options
        See `rebat.workloads.trace.TraceOptions`. ``tz`` is the time zone of local times.
    """
    chosen, path = trace_options(options), Path(path)
    if form == AUTO:
        form = TABLE if mapping is not None else detected(path)
    more = {} if mapping is None else {"mapping": mapping}
    rows = READERS[form](path, zone_of(chosen.tz), strict, **more)
    if form in ACCOUNTING:
        record: AccountedJobs | None = accounted_jobs(rows, chosen, events, strict, partitions)
        assert record is not None
        stated = read_rules(rules, zone_of(chosen.tz)) if rules else None
        reserved = reservations_of(record, stated) if stated else None
        trace = checked(reserved.trace if reserved else record.trace, rows.problems)
        waits_s, cuts = record.waits_s, tuple(record.cuts.values())
        dependencies = record.dependencies
        del rows
        record = record if schedule else None  # without a schedule, free the memory of the rows
        for note in stated.notes if stated else ():
            trace = trace.noting(note)
        done = with_dependencies(with_wait(placed(trace, chosen), waits_s), dependencies)
        if stated and reserved:
            workload = with_rules(done.workload, stated.options, reserved.rows, done.origin_s)
            done = done._replace(workload=workload)
        attempts = None if record is None else accounted_schedule(record, done)
        return ImportedWorkload(done.workload, attempts, cuts)
    trace = checked(_with_notes(jobs_of_rows(rows, chosen), rows), rows.problems)
    done = with_dependencies(placed(trace, chosen), preceding_jobs(rows))
    return ImportedWorkload(done.workload, trace_schedule(trace, done) if schedule else None)


def jobs_of_rows(rows: Rows, options: TraceOptions) -> TraceColumns:
    """Return the jobs of a record that has a row for each job.

    Rows that are not jobs are marked.
    """
    submit_s, start_s, run_s = _times(rows)
    requested, allocated = _sizes(rows)
    has_run = "run" in rows.numbers
    name = Path(rows.where).name.removesuffix(".gz")
    trace = TraceColumns(
        name=name.rsplit(".", 1)[0] or name,
        where=rows.where,
        n_nodes=rows.facts.get("n_nodes"),
        dated=rows.facts["dated"],
        lines=rows.lines,
        ids=rows.text("id"),
        submit_s=submit_s,
        start_s=start_s,
        requested=requested,
        allocated=allocated,
        run_s=run_s if has_run else np.where(run_s < 0, np.nan, run_s),
        walltime_s=rows.column("walltime"),
        why_not=np.zeros(len(rows), dtype=np.int64),
        users=rows.text("user"),
        queues=rows.text("queue"),
        extras=_extras(rows),
        states=None if "mapping" in rows.facts else rows.text("state"),
        machine=rows.facts.get("machine"),
        unclear_size=rows.facts.get("unclear_size") or "",
    )
    if "status" in rows.numbers:
        reason = "records of partial executions (status 2, 3, 4)"
        return trace.marking(is_partial(rows), reason, held=False)
    trace = trace.marking(np.isnan(submit_s), "no submission time")
    mapping = rows.facts.get("mapping")
    if mapping is not None:
        trace = _marked(trace, rows, mapping)
    trace = _with_early(trace)
    return trace if has_run else trace.marking(run_s < 0, "end before start")


def _with_early(trace: TraceColumns) -> TraceColumns:
    early_s = trace.submit_s - trace.start_s
    early = trace.is_job & (early_s > 0)
    if not early.any():
        return trace
    return trace.noting(early_note(trace.ids[early].tolist(), early_s[early].max()))


def _with_notes(trace: TraceColumns, rows: Rows) -> TraceColumns:
    for note in rows.notes:
        trace = trace.noting(note)
    return trace


def _times(rows: Rows) -> tuple[Floats, Floats, Floats]:
    """Return submission times, start times and run times in seconds. Unknown times are NaN."""
    submit_s, start_s = rows.column("submit"), rows.column("start")
    if "status" in rows.numbers:
        return submit_s, start_s, rows.column("run")
    start_s = np.where(np.isnan(start_s), submit_s + rows.column("wait"), start_s)
    end_s = rows.column("end")
    run_s = rows.column("run") if "run" in rows.numbers else end_s - start_s
    start_s = np.where(np.isnan(start_s), end_s - run_s, start_s)
    return submit_s, start_s, run_s


def _sizes(rows: Rows) -> tuple[Floats, Floats]:
    """Return requested and allocated nodes. Unknown numbers are 0.

    If the record has only one of the two columns, it is used for both.
    """
    columns = [
        np.nan_to_num(rows.column(field), nan=0.0)
        for field in ("requested", "allocated")
        if field in rows.numbers
    ]
    return columns[0], columns[-1]


def _extras(rows: Rows) -> Any:
    """Return further fields of each job. Jobs with equal values share a dict."""
    columns: dict[str, list[Any]] = {
        field: rows.texts[field].tolist() for field in ("account", "qos") if field in rows.texts
    }
    if "memory" in rows.numbers:
        memory = np.nan_to_num(rows.column("memory"), nan=-1.0)
        columns["requested_memory_mb"] = memory.tolist()
    if "think" in rows.numbers:
        columns[THINK_TIME] = np.nan_to_num(rows.column("think"), nan=-1.0).tolist()
    if not columns:
        return None
    shared: dict[tuple[Any, ...], dict[str, Any]] = {}
    extras = np.empty(len(rows), dtype=object)
    for position, values in enumerate(zip(*columns.values(), strict=True)):
        if values not in shared:
            pairs = zip(columns, values, strict=True)
            shared[values] = {name: value for name, value in pairs if value not in ("", -1.0)}
        extras[position] = shared[values]
    return extras


def _marked(trace: TraceColumns, rows: Rows, mapping: TableMapping) -> TraceColumns:
    """Mark the rows that are not jobs according to the mapping of a table."""
    rules = mapping.columns.state
    if rules is not None and "state" in rows.texts:
        states = rows.text("state")
        for names, reason in ((rules.never_ran, "never ran"), (rules.running, "no end")):
            for state in names:
                trace = trace.marking(states == state, f"{reason} ({state})", held=False)
    return trace


def check_options(
    form: str,
    events: Path | None,
    mapping: str | None,
    partitions: Path | None = None,
    rules: Sequence[Path] = (),
) -> None:
    """Check that options belong to a format."""
    if mapping is not None and form != TABLE:
        raise InputError(f"has no effect with --format {form}", "--mapping", f"--format {TABLE}")
    if rules and form != SACCT:
        raise InputError(f"has no effect with --format {form}", "--rules", f"--format {SACCT}")
    for option, file in (("--events", events), ("--partitions", partitions)):
        if file is not None and form not in ACCOUNTING:
            expected = f"--format {' or '.join(ACCOUNTING)}"
            raise InputError(f"has no effect with --format {form}", option, expected)


ABOUT = {
    SWF: "Standard Workload Format of the Parallel Workloads Archive.",
    ALCF: "ALCF's DIM_JOB_COMPOSITE CSV.",
    SACCT: "Slurm's sacct -P with any field order and delimiter, or sacct --json.",
    PBS: "OpenPBS accounting logs of one or more days.",
    TABLE: "A table of jobs with any columns, in CSV, JSON or Parquet, and a mapping.",
}


ACCOUNTING = (SACCT, PBS)


def detected(path: Path) -> str:
    """Return the format of a record of jobs, detected from its name and its first lines.

    A file is detected as a table of jobs if it is a Parquet file, a JSON list, or a CSV file with
    the columns of a mapping that rebat includes.
    """
    form = detect.detected(path)
    if form not in ABOUT:
        expected = f"--format {', '.join(ABOUT)}"
        with opened(path) as text:
            why = detect.unusual(next((line for line in text if line.strip()), ""))
        problem = "its format is not recognised" + (f": {why}" if why else "")
        raise InputError(problem, str(path), expected)
    return form


def detected_text(path: Path) -> str | None:
    """Return the format of jobs in a file that is neither JSON nor Parquet, or None."""
    with opened(path) as text:
        lines = [line[:100_000] for _, line in zip(range(FIRST_LINES), text, strict=False)]
    first = next((line for line in lines if line.strip()), "")
    form = None if first.lstrip().startswith(("{", "[")) else detect.form_of(lines)
    return form if form in ABOUT else None


def is_parquet(path: Path) -> bool:
    """Return whether a file is a Parquet file."""
    return kind_of(path) == PARQUET
