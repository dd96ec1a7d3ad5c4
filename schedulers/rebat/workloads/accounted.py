# SPDX-License-Identifier: Apache-2.0
"""Accounting records of Slurm and OpenPBS as workloads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
import numpy as np

from rebat.accounting.attempts import (
    Correction,
    JoinedJobs,
    corrections_of,
    end_of,
    jobs_of,
    merged_downs,
)
from rebat.accounting.hosts import folded, sorted_names
from rebat.accounting.node_events import NodeEvents, read_node_events
from rebat.accounting.pbs import read_pbs
from rebat.accounting.sacct import read_sacct
from rebat.accounting.table import AttemptTable
from rebat.accounting.values import CUT, OPEN
from rebat.core.counted import counted as several
from rebat.workloads.accounted_schedule import AccountedAttempts, accounted_schedule
from rebat.workloads.calendar import zone
from rebat.workloads.columns import TraceColumns, counted
from rebat.workloads.recorded import ImportedWorkload
from rebat.workloads.trace import PlacedTrace, placed, trace_options

MAX_LISTED = 10
"""Maximum number of corrections that the notes list."""

READ: dict[str, Callable[..., AttemptTable]] = {"sacct": read_sacct, "pbs": read_pbs}


def import_accounting(
    form: str,
    path: Path,
    *,
    events: Path | None = None,
    strict: bool = False,
    schedule: bool = False,
    **options: Any,
) -> ImportedWorkload:
    """Read accounting records as a workload with one job per job id.

    Parameters
    ----------
    form : {"sacct", "pbs"}
    path : Path
        The output of sacct or the accounting log, plain or .gz. A job has the run time of its last
        attempt.
    events : Path, optional
        Node events (``sacctmgr -P show event``). If a node fails during an attempt, the attempt is
        cut at the failure.
    strict : bool
        Whether the first invalid line is an error.
    schedule : bool
        Whether to return the recorded schedule as well, with all attempts.
    **options
        See `rebat.workloads.trace.TraceOptions`. ``tz`` is the time zone of local times.

    Raises
    ------
    InputError
        If a file is invalid, if no job remains, or if the attempts need a larger machine.
    """
    chosen = trace_options(options)
    tz = zone(chosen.tz)
    table = READ[form](Path(path), tz, strict)
    node_events = None if events is None else read_node_events(events, tz, strict)
    jobs = jobs_of(table)
    downs = [] if node_events is None else list(merged_downs(node_events.rows))
    cuts = corrections_of(table, jobs.attempts, downs)
    trace = _trace(table, jobs, cuts)
    machine = _machine(table, node_events)
    if machine:
        n_nodes = len(sorted_names([machine["nodes"]]))
        trace = replace(trace, machine=machine, n_nodes=n_nodes)
    for note in _notes(table, jobs, node_events, list(cuts.values())):
        trace = trace.noting(note)
    waits = dict(zip(trace.lines.tolist(), _waits_s(table, jobs), strict=True)) if machine else {}
    record = AccountedAttempts(table, jobs, cuts, downs) if schedule else None
    del table, jobs  # free the memory of these columns
    done = _with_wait(placed(trace, chosen), waits)
    attempts = None if record is None else accounted_schedule(record, done)
    return ImportedWorkload(done.workload, attempts, tuple(cuts.values()))


def _trace(table: AttemptTable, jobs: JoinedJobs, cuts: dict[int, Correction]) -> TraceColumns:
    rows, texts = jobs.last, table.texts
    run_s = _run_times(table, jobs, cuts)
    nodes = np.where(np.isnan(table.column("nodes")[rows]), 0.0, table.column("nodes")[rows])
    name = Path(table.where).name.removesuffix(".gz")
    trace = TraceColumns(
        name=name.rsplit(".", 1)[0],
        where=table.where,
        n_nodes=None,
        dated=True,
        lines=np.frombuffer(table.lines, dtype=np.int64)[rows],
        ids=np.array([_id(texts["job"][row], texts["raw"][row]) for row in rows], dtype=object),
        submit_s=jobs.submit_s,
        start_s=table.column("start_s")[rows],
        requested=nodes,
        allocated=nodes,
        run_s=run_s,
        walltime_s=table.column("limit_s")[rows],
        why_not=np.zeros(len(rows), dtype=np.int64),
        users=np.array([texts["user"][row] for row in rows], dtype=object),
        queues=np.array([texts["partition"][row] for row in rows], dtype=object),
        extras=_extras(table, rows),
    )
    states = np.array([texts["state"][row] for row in rows], dtype=object)
    for state in sorted(set(states[~jobs.started])):
        trace = trace.marking(~jobs.started & (states == state), f"never started ({state})")
    return _without_cut_to_nothing(trace, rows, cuts)


def _without_cut_to_nothing(
    trace: TraceColumns, rows: Any, cuts: dict[int, Correction]
) -> TraceColumns:
    """Mark jobs whose last attempt is cut at its start, with a reason that lists them."""
    nothing = np.array(
        [row in cuts and not cuts[row].length_s for row in rows.tolist()], dtype=bool
    )
    if not nothing.any():
        return trace
    names = trace.ids[nothing].tolist()
    listed = ", ".join(names[:MAX_LISTED]) + (", ..." if len(names) > MAX_LISTED else "")
    jobs = "job" if len(names) == 1 else "jobs"
    reason = (
        f"a node was down at the start of the last attempt, which is cut to 0 s ({jobs} {listed})"
    )
    return trace.marking(nothing, reason)


def _run_times(table: AttemptTable, jobs: JoinedJobs, cuts: dict[int, Correction]) -> Any:
    """Return the run time of each job until it ends, is cut at a failure, or the records end."""
    rows = jobs.last
    run_s = table.column("elapsed_s")[rows].copy()
    missing = np.isnan(run_s) & jobs.started
    run_s[missing] = end_of(table) - table.column("start_s")[rows][missing]
    if cuts:
        for position, row in enumerate(rows.tolist()):
            if row in cuts:
                run_s[position] = min(run_s[position], cuts[row].length_s)
    run_s[~jobs.started] = -1.0
    return run_s


def _waits_s(table: AttemptTable, jobs: JoinedJobs) -> Any:
    """Return for each job how long it held no nodes between submission and end (seconds)."""
    owner = np.repeat(np.arange(len(jobs.n_attempts)), jobs.n_attempts)
    queued_s = np.roll(table.column("end_s")[jobs.attempts], 1)
    first = np.diff(owner, prepend=-1) != 0
    queued_s[first] = jobs.submit_s[owner[first]]
    gaps_s = np.nan_to_num(table.column("start_s")[jobs.attempts] - queued_s)
    return np.bincount(owner, np.maximum(gaps_s, 0.0), len(jobs.n_attempts)).tolist()


def _with_wait(done: PlacedTrace, waits_s: dict[int, float]) -> PlacedTrace:
    """Return a workload whose machine states the recorded mean wait of the jobs."""
    if not waits_s or done.workload.machine is None:
        return done
    mean_s = fmean(waits_s[line] for line in done.jobs.lines.tolist())
    machine = {**done.workload.machine, "mean_wait_s": round(mean_s, 3)}
    return done._replace(workload=msgspec.structs.replace(done.workload, machine=machine))


def _id(job: str, raw: str) -> str:
    """Return the id that users see.

    If Batsim rejects a character of this id, return the internal id of the batch system.
    """
    return raw if any(c in "(),|}!" or not c.isprintable() for c in job) else job


def _extras(table: AttemptTable, rows: Any) -> Any:
    """Return account, QOS and requested memory of each job. Jobs with equal values share a dict."""
    shared: dict[tuple[str, str, float], dict[str, Any]] = {}
    memory = np.nan_to_num(table.column("memory_mb"), nan=-1.0)
    extras = np.empty(len(rows), dtype=object)
    for position, row in enumerate(rows.tolist()):
        key = table.texts["account"][row], table.texts["qos"][row], float(memory[row])
        if key not in shared:
            fields = {"account": key[0], "qos": key[1], "requested_memory_mb": key[2]}
            shared[key] = {name: v for name, v in fields.items() if v not in ("", -1.0)}
        extras[position] = shared[key]
    return extras


def _machine(table: AttemptTable, events: NodeEvents | None) -> dict[str, Any] | None:
    """Return the machine that the records describe. Return None if they have no node names."""
    lists: dict[str, set[str]] = {}
    for partition, hosts in set(zip(table.texts["partition"], table.texts["hosts"], strict=True)):
        if hosts:
            lists.setdefault(partition, set()).add(hosts)
    names = sorted_names(
        {text for group in lists.values() for text in group} | set(events.names if events else ())
    )
    if not names:
        return None
    machine: dict[str, Any] = {"nodes": folded(names)}
    per_node = table.column("cpus") / np.maximum(table.column("nodes"), 1)
    placed = np.array([bool(hosts) for hosts in table.texts["hosts"]], dtype=bool)
    if placed.any() and np.isfinite(per_node[placed]).any():
        machine["cores_per_node"] = int(np.ceil(np.nanmax(per_node[placed])))
    machine["partitions"] = {
        name: folded(sorted_names(group)) for name, group in sorted(lists.items()) if name
    }
    return machine


def _notes(
    table: AttemptTable, jobs: JoinedJobs, events: NodeEvents | None, cuts: list[Correction]
) -> list[str]:
    notes = [
        f"{several(n, 'record')} dropped: {reason}" for reason, n in sorted(table.dropped.items())
    ]
    notes += [f"{n} {reason}: joined" for reason, n in sorted(jobs.dropped.items())]
    notes += table.notes
    restarted = int((jobs.n_attempts > 1).sum())
    if restarted:
        total = int(jobs.n_attempts.sum())
        notes.append(
            f"{counted(restarted)} with several attempts ({total} attempts in total): each job "
            "is imported with the first submission and the run time of the last attempt"
        )
    states = Counter(table.texts["state"][row] for row in jobs.last[jobs.started])
    for group, text in (
        (OPEN, "still running: run time until the end of the records"),
        (CUT, "cut and never completed: run time until the cut"),
    ):
        if count := sum(states[state] for state in group):
            notes.append(f"{counted(count)} {text}")
    if events is not None:
        notes += [
            f"events: {several(n, 'row')} dropped: {reason}" for reason, n in events.dropped.items()
        ]
        notes += [f"events: {note}" for note in events.notes]
    return notes + _corrected(cuts)


def _corrected(cuts: list[Correction]) -> list[str]:
    if not cuts:
        return []
    continued = several(len(cuts), "attempt continues", "attempts continue")
    notes = [f"{continued} after a failure of a node: cut at the failure"]
    for cut in cuts[:MAX_LISTED]:
        lost = "" if np.isinf(cut.end_s) else f", {cut.end_s - cut.cut_s:.0f} s before its end"
        notes.append(
            f"job {cut.job} ({cut.state}): cut {cut.length_s:.0f} s after its start{lost}: "
            f"{cut.node} failed"
        )
    if len(cuts) > MAX_LISTED:
        notes.append(f"and {several(len(cuts) - MAX_LISTED, 'more correction')}")
    return notes
