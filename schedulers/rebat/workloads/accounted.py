# SPDX-License-Identifier: Apache-2.0
"""Attempts of jobs in accounting records (Slurm and OpenPBS) as the jobs of a trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import msgspec
import numpy as np

from rebat.core.numbers import exactly
from rebat.records.attempts import (
    AttemptsOfNodes,
    Correction,
    JoinedJobs,
    corrections_of,
    end_of,
    jobs_of,
    merged_downs,
)
from rebat.records.clock import check_same_clock, zone_of
from rebat.records.hosts import folded, sorted_names
from rebat.records.judge import (
    MAX_LISTED,
    down_note,
    early_note,
    eligible_note,
    of_cluster,
    runaway_note,
    stale_note,
)
from rebat.records.node_events import DownRow, NodeEvents, read_node_events
from rebat.records.open_records import (
    end_runaways,
    end_stale,
    open_nodes,
    renewed_nodes,
    runaways,
    stale_events,
)
from rebat.records.queues import ALL_NODES, read_queues
from rebat.records.reader import REFUSED
from rebat.records.table import Rows
from rebat.records.values import CUT, OPEN
from rebat.workloads.checkpoint_table import EARLIER
from rebat.workloads.recorded_dependencies import RecordedDependencies, recorded_dependencies
from rebat.workloads.trace import PlacedTrace, TraceColumns, TraceOptions, job_count


class AccountedJobs(NamedTuple):
    """The jobs of accounting records, with their attempts.

    ``cuts`` maps the row of an attempt to the failure that cuts the attempt. ``downs`` contains the
    down intervals of nodes. ``waits_s`` contains the recorded wait of each job by its line.
    ``dependencies`` is None if the record contains none.
    """

    trace: TraceColumns
    table: Rows
    jobs: JoinedJobs
    cuts: dict[int, Correction]
    downs: Sequence[DownRow]
    waits_s: dict[int, float]
    dependencies: RecordedDependencies | None


def accounted_jobs(
    table: Rows,
    options: TraceOptions,
    events: Path | None,
    strict: bool,
    partitions: Path | None = None,
) -> AccountedJobs:
    """Join the attempts of records to jobs, and cut attempts at failures of their nodes.

    ``partitions`` is a file with the declared partitions.
    """
    declared = read_queues(partitions) if partitions is not None else {}
    table = of_cluster(table, options.cluster)
    node_events = None
    if events is not None:
        node_events = read_node_events(events, zone_of(options.tz), strict, options.cluster)
        check_same_clock(
            [(table.where, table.clock.kinds), (str(events), node_events.kinds)], options.tz
        )
    jobs = jobs_of(table)
    dropped = _end_runaways(table, jobs, options)
    downs = _downs(table, jobs, node_events, options)
    cuts = corrections_of(table, jobs.attempts, downs)
    trace = _trace(table, jobs, cuts, options, dropped)
    machine = _machine(table, node_events, declared)
    if machine:
        n_nodes = len(sorted_names([machine["nodes"]]))
        if renewed := renewed_nodes(table, jobs.attempts):
            table.notes.append(renewed.note(float(jobs.submit_s.min())))
            machine["renewed"] = {
                "old": folded(renewed.old),
                "until_s": renewed.until_s,
                "new": folded(renewed.new),
                "from_s": renewed.from_s,
            }
        trace = replace(trace, machine=machine, n_nodes=n_nodes)
    for note in _notes(table, jobs, node_events, list(cuts.values())):
        trace = trace.noting(note)
    waits = _waits_s(table, jobs, trace) if machine else []
    waits_s = dict(zip(trace.lines.tolist(), waits, strict=True)) if machine else {}
    dependencies = recorded_dependencies(table, jobs)
    return AccountedJobs(trace, table, jobs, cuts, downs, waits_s, dependencies)


def _end_runaways(table: Rows, jobs: JoinedJobs, options: TraceOptions) -> set[int]:
    """End runaway attempts. Return the rows of those that are dropped."""
    rows = runaways(table, jobs.attempts)
    if not len(rows):
        return set()
    run_s, limit_s = (table.column(name)[rows] for name in ("run", "walltime"))
    note = runaway_note(table.text("id")[rows].tolist(), run_s, limit_s, options.runaway)
    table.notes.append(note)
    end_runaways(table, jobs.attempts, rows, options.runaway)
    return set(rows.tolist()) if options.runaway == "drop" else set()


def _downs(
    table: Rows, jobs: JoinedJobs, events: NodeEvents | None, options: TraceOptions
) -> list[DownRow]:
    if events is None:
        return []
    stale = stale_events(
        events.rows, AttemptsOfNodes(table, jobs.attempts, open_nodes(events.rows))
    )
    if stale:
        nodes = [event.node for event in stale.values()]
        table.notes.append(stale_note(nodes, len(stale), options.stale))
    return list(merged_downs(end_stale(events.rows, stale, options.stale)))


def _eligible(table: Rows, jobs: JoinedJobs) -> Any:
    """Return when each job was eligible to start: never before its submission.

    If the time is unknown, it is the submission. A job that started was eligible at its start.
    """
    eligible_s = np.fmax(jobs.eligible_s, jobs.submit_s)
    first = np.cumsum(jobs.n_attempts) - jobs.n_attempts
    starts = np.full(len(first), np.inf)
    ran = jobs.n_attempts > 0
    starts[ran] = table.column("start")[jobs.attempts[first[ran]]]
    return np.where(starts >= jobs.submit_s, np.fmin(eligible_s, starts), jobs.submit_s)


def _trace(
    table: Rows,
    jobs: JoinedJobs,
    cuts: dict[int, Correction],
    options: TraceOptions,
    dropped: set[int],
) -> TraceColumns:
    rows = jobs.last
    nodes = np.nan_to_num(table.column("nodes")[rows])
    ids, raws = table.text("id")[rows].tolist(), table.text("raw")[rows].tolist()
    eligible_s = _eligible(table, jobs)
    ran = jobs.n_attempts > 0
    later = options.submission == "eligible" and bool((eligible_s > jobs.submit_s).any())
    trace = TraceColumns(
        name=Path(table.where).name.removesuffix(".gz").rsplit(".", 1)[0],
        where=table.where,
        n_nodes=None,
        dated=True,
        lines=table.lines[rows],
        ids=np.array([*map(_id, ids, raws), ""], dtype=object)[:-1],
        submit_s=eligible_s if later else jobs.submit_s,
        submitted_s=jobs.submit_s if later else None,
        start_s=table.column("start")[rows],
        requested=nodes,
        allocated=nodes,
        run_s=_run_times(table, jobs, cuts),
        walltime_s=table.column("walltime")[rows],
        why_not=np.zeros(len(rows), dtype=np.int64),
        users=table.text("user")[rows],
        queues=table.text("queue")[rows],
        extras=_with_earlier(_extras(table, rows), table, jobs, cuts),
    )
    states = table.text("state")[rows]
    for state in sorted(set(states[~jobs.started])):
        trace = trace.marking(~jobs.started & (states == state), f"never started ({state})")
    if later:
        delay_s = eligible_s - jobs.submit_s
        trace = trace.noting(eligible_note(trace.ids[delay_s > 0].tolist(), delay_s.max()))
    first = table.column("start")[
        jobs.attempts[np.cumsum(jobs.n_attempts)[ran] - jobs.n_attempts[ran]]
    ]
    early_s = jobs.submit_s[ran] - first
    if (early_s > 0).any():
        table.notes.append(early_note(trace.ids[ran][early_s > 0].tolist(), early_s.max()))
    if dropped:
        runaway = np.array([row in dropped for row in rows.tolist()], dtype=bool)
        trace = trace.marking(runaway, "runaway jobs (--runaway drop)")
    return _without_cut_to_nothing(trace, rows, cuts)


def _without_cut_to_nothing(
    trace: TraceColumns, rows: Any, cuts: dict[int, Correction]
) -> TraceColumns:
    """Mark jobs whose last attempt is cut at its start, with a finding that lists them."""
    nothing = np.array(
        [row in cuts and not cuts[row].length_s for row in rows.tolist()], dtype=bool
    )
    if not nothing.any():
        return trace
    trace = trace.noting(down_note(trace.ids[nothing].tolist(), len(trace)))
    return trace.marking(nothing, "the last attempt is cut to 0 s, because a node was down")


def _run_times(table: Rows, jobs: JoinedJobs, cuts: dict[int, Correction]) -> Any:
    """Return the run time of each job until it ends, is cut at a failure, or the records end."""
    rows = jobs.last
    run_s = table.column("run")[rows].copy()
    missing = np.isnan(run_s) & jobs.started
    open_s = end_of(table) - table.column("start")[rows]
    open_s -= np.nan_to_num(table.column("suspended")[rows])
    run_s[missing] = np.maximum(open_s, 0)[missing]
    if cuts:
        for position, row in enumerate(rows.tolist()):
            if row in cuts:
                run_s[position] = min(run_s[position], cuts[row].length_s)
    run_s[~jobs.started] = -1.0
    return run_s


def _waits_s(table: Rows, jobs: JoinedJobs, trace: TraceColumns) -> Any:
    """Return for each job how long it held no nodes between submission and end (seconds)."""
    owner = np.repeat(np.arange(len(jobs.n_attempts)), jobs.n_attempts)
    queued_s = np.roll(table.column("end")[jobs.attempts], 1)
    first = np.diff(owner, prepend=-1) != 0
    queued_s[first] = trace.submit_s[owner[first]]
    gaps_s = np.nan_to_num(table.column("start")[jobs.attempts] - queued_s)
    return np.bincount(owner, np.maximum(gaps_s, 0.0), len(jobs.n_attempts)).tolist()


def with_wait(done: PlacedTrace, waits_s: dict[int, float]) -> PlacedTrace:
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
    return job if REFUSED.isdisjoint(job) and job.isprintable() else raw


def _extras(table: Rows, rows: Any) -> Any:
    """Return account, QOS, memory and reservation of each job. Jobs with equal values share a dict.

    The memory and the reservation are those that the job requested.
    """
    shared: dict[tuple[Any, ...], dict[str, Any]] = {}
    memory = np.nan_to_num(table.column("memory")[rows], nan=-1.0).tolist()
    texts = [table.text(name)[rows].tolist() for name in ("account", "qos", "reservation")]
    extras = np.empty(len(rows), dtype=object)
    for position, key in enumerate(zip(*texts, memory, strict=True)):
        if key not in shared:
            names = ("account", "qos", "reservation", "requested_memory_mb")
            fields = dict(zip(names, key, strict=True))
            shared[key] = {name: v for name, v in fields.items() if v not in ("", -1.0)}
        extras[position] = shared[key]
    return extras


def _machine(
    table: Rows, events: NodeEvents | None, declared: dict[str, dict[str, Any]]
) -> dict[str, Any] | None:
    """Return the machine that the records describe. Return None if they have no node names."""
    hosts, queues, lists = table.text("hosts"), table.text("queue"), table.host_lists
    groups = {
        name: lists.names_in(np.flatnonzero(queues == name))
        for name in sorted(set(queues[hosts != ""].tolist()))
    }
    listed = [row["nodes"] for row in declared.values() if row.get("nodes", ALL_NODES) != ALL_NODES]
    names = sorted_names([*lists.names, *(events.names if events else ()), *listed])
    if not names:
        return None
    machine: dict[str, Any] = {"nodes": folded(names)}
    per_node = table.column("cpus") / np.maximum(table.column("nodes"), 1)
    placed = hosts != ""
    if placed.any() and np.isfinite(per_node[placed]).any():
        machine["cores_per_node"] = int(np.ceil(np.nanmax(per_node[placed])))
    seen = {name: folded(group) for name, group in groups.items() if name}
    machine["partitions"] = {**seen, **_declared(declared, seen, machine["nodes"])}
    if "local" in table.clock.kinds:
        machine["time_zone"] = str(getattr(table.clock.zone, "key", "UTC"))
    return machine


def _declared(
    declared: dict[str, dict[str, Any]], seen: dict[str, str], nodes: str
) -> dict[str, dict[str, Any]]:
    """Return the declared partitions. If their nodes are not declared, those of jobs are used."""
    rows = {}
    for name, row in declared.items():
        if "nodes" in row:
            own = nodes if row["nodes"] == ALL_NODES else row["nodes"]
            rows[name] = {**row, "nodes": own}
        elif name in seen:
            rows[name] = {**row, "seen": seen[name]}
    return rows


def _with_earlier(extras: Any, table: Rows, jobs: JoinedJobs, cuts: dict[int, Correction]) -> Any:
    """Add the run times of earlier attempts to the fields of jobs with several attempts.

    If a job writes checkpoints, these attempts saved a part of its work.
    """
    ends = np.cumsum(jobs.n_attempts)
    start_s, end_s = table.column("start"), table.column("end")
    for position in np.flatnonzero(jobs.n_attempts > 1).tolist():
        end, count = int(ends[position]), int(jobs.n_attempts[position])
        earlier = [
            cuts[row].length_s if row in cuts else float(end_s[row] - start_s[row])
            for row in jobs.attempts[end - count : end - 1].tolist()
        ]
        if np.isfinite(earlier).all():
            extras[position] = {**extras[position], EARLIER: earlier}
    return extras


def _notes(
    table: Rows, jobs: JoinedJobs, events: NodeEvents | None, cuts: list[Correction]
) -> list[str]:
    notes = [
        f"{exactly(n, 'record')} dropped: {reason}" for reason, n in sorted(table.dropped.items())
    ]
    notes += [f"{n} {reason}: joined" for reason, n in sorted(jobs.dropped.items())]
    notes += table.notes
    restarted = int((jobs.n_attempts > 1).sum())
    if restarted:
        total = int(jobs.n_attempts.sum())
        notes.append(
            f"{job_count(restarted)} with several attempts ({total} attempts in total): each job "
            "is imported with the first submission and the run time of the last attempt"
        )
    if jobs.n_recycled:
        ids = f"{job_count(jobs.n_recycled)} with the id of an earlier job"
        notes.append(f"{ids} (another user, or submitted after its end): imported as other jobs")
    states = Counter(table.text("state")[jobs.last[jobs.started]].tolist())
    for group, text in (
        (OPEN, "still running: run time until the end of the records"),
        (CUT, "cut and never completed: run time until the cut"),
    ):
        if count := sum(states[state] for state in group):
            notes.append(f"{job_count(count)} {text}")
    if events is not None:
        notes += [
            f"events: {exactly(n, 'row')} dropped: {reason}" for reason, n in events.dropped.items()
        ]
        notes += [f"events: {note}" for note in events.notes]
    return notes + _corrected(cuts)


def _corrected(cuts: list[Correction]) -> list[str]:
    if not cuts:
        return []
    continued = exactly(len(cuts), "attempt continues", "attempts continue")
    notes = [f"{continued} after a failure of a node: cut at the failure"]
    for cut in cuts[:MAX_LISTED]:
        lost = "" if np.isinf(cut.end_s) else f", {cut.end_s - cut.cut_s:.0f} s before its end"
        notes.append(
            f"job {cut.job} ({cut.state}): cut {cut.length_s:.0f} s after its start{lost}: "
            f"{cut.node} failed"
        )
    if len(cuts) > MAX_LISTED:
        more = exactly(len(cuts) - MAX_LISTED, "more correction")
        notes.append(f"and {more}: import with --corrections FILE to write them all to a file")
    return notes
