# SPDX-License-Identifier: Apache-2.0
"""A run: a workload, a policy and machine events on the embedded engine, and its files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.contract import Policy
from rebat.core.errors import InputError, PolicyError, RebatError
from rebat.core.files import write_json, write_lines, write_text
from rebat.core.job_table import Jobs
from rebat.core.jobs import Workload
from rebat.core.options import MAX_ATTEMPTS, SessionOptions
from rebat.core.table import Table, distinct
from rebat.core.traits import OWNERS, traits_of
from rebat.core.version import rebat_version
from rebat.drive.choose import compiled_outcome, how_of
from rebat.drive.messages import Messages
from rebat.drive.outcome import Outcome
from rebat.drive.plan_record import PlanRecord, PlanRecorder
from rebat.drive.simulate import events_of
from rebat.engine.engine import Engine, EngineOptions, OnProgress
from rebat.engine.jobs import EndedJob
from rebat.models.failures.events import GenericEvent, MachineEvent
from rebat.models.failures.outages import node_events
from rebat.models.operations import announces
from rebat.models.overload import stuck_job
from rebat.policies.own import OwnCode
from rebat.policies.own_policy import OwnPolicy
from rebat.policies.partitions import open_to
from rebat.policies.presets import Preset
from rebat.results.files.batsim_csv import (
    jobs_columns,
    jobs_csv,
    jobs_csv5,
    schedule_csv,
    schedule_json,
)
from rebat.results.files.run_csv import (
    attempt_columns,
    groups_csv,
    holds_csv,
    node_events_csv,
    recoveries_csv,
    row_columns,
    rows_csv,
)
from rebat.results.files.run_folder import write_plans
from rebat.results.files.tables import write_table
from rebat.results.measures.jobs import SIZE_COLUMNS, JobRows, Owners
from rebat.results.measures.nodetime import repeated_us
from rebat.results.measures.recoveries import hung_on_dead
from rebat.results.measures.summary import Layout, Measures, RunSummary, as_json, summarise
from rebat.state.ledger import Ledger

RUN_FILES = (
    "jobs.csv",
    "schedule.csv",
    "rebat_jobs.csv",
    "rebat_attempts.csv",
    "node_events.csv",
    "summary.json",
)
"""Files that `write_run` always writes."""


class Runnable(Protocol):
    """A factory of policies: a preset or a user-defined policy."""

    @property
    def name(self) -> str: ...
    @property
    def session(self) -> SessionOptions: ...
    def make(self) -> Policy: ...


OnWarning = Callable[[str], None]


class RunResult(msgspec.Struct):
    """The results of a run: summary, a row per job, the session's ledger, and the engine's jobs.

    ``plans`` is the record of plans, or None if the run did not record them. ``dead_us`` is the
    node time of jobs on nodes that were down.
    """

    policy: str
    summary: RunSummary
    rows: JobRows
    ledger: Ledger
    jobs: Table[EndedJob]
    plans: PlanRecord | None = None
    dead_us: int = 0


def simulate(
    workload: Workload,
    preset: Runnable,
    *,
    n_nodes: int | None = None,
    machine_events: Iterable[MachineEvent] = (),
    measures: Measures | None = None,
    on_progress: OnProgress | None = None,
    engine_options: EngineOptions | None = None,
    uptime_us: npt.NDArray[np.int64] | None = None,
    cores_per_node: int = 1,
    operations: Sequence[GenericEvent] = (),
    max_attempts: int = MAX_ATTEMPTS,
    on_warning: OnWarning | None = None,
    explain: bool = False,
    how: str | None = None,
) -> RunResult:
    """Run one policy to the end of the workload.

    Parameters
    ----------
    uptime_us : array, optional
        Uptime of each node at the start, in microseconds (default: 0).
    cores_per_node : int
        Number of consecutive hosts that form a node. If above 1, hosts are cores.
    operations
        Operations of an administrator (see `models.operations`). Their numbers are nodes, not
        cores.
    max_attempts : int
        A job ends as failed after this number of interrupted attempts.
    on_warning : callable, optional
        Called once, while the simulation runs, if a job is unlikely to complete.
    explain : bool
        Whether to record the plans (see `drive.plan_record`).
    how : str, optional
        Way to simulate: auto, compiled or interpreted (see `drive.choose`). The results are equal.
    """
    engine_options = engine_options or EngineOptions()
    if operations and isinstance(preset, Preset | OwnPolicy):
        preset = preset.carrying_out()
        if isinstance(preset, Preset) and announces(operations):
            preset = preset.awaiting_announcements()
    if operations:
        engine_options = msgspec.structs.replace(engine_options, forward_unknown_events=True)
    count, events = n_nodes or workload.n_nodes, events_of(machine_events)
    fits = uptime_us is None or len(uptime_us) * cores_per_node == count
    if uptime_us is not None and fits:
        uptime_us = np.repeat(uptime_us, cores_per_node)
    outcome = (
        None
        if not fits
        else compiled_outcome(
            workload,
            preset,
            events,
            how=how_of(how),
            n_nodes=count,
            cores_per_node=cores_per_node,
            max_attempts=max_attempts,
            options=engine_options,
            operations=operations,
            uptime_us=uptime_us,
            explain=explain,
            on_progress=on_progress,
        )
    )
    if outcome is None:
        from rebat.drive.drivers import driver_for  # few runs ask a policy

        engine = Engine(
            workload,
            n_nodes=n_nodes,
            events=events.all,
            operations=operations,
            options=engine_options,
        )
        options = msgspec.structs.replace(
            preset.session, cores_per_node=cores_per_node, max_attempts=max_attempts
        )
        recorder = PlanRecorder() if explain else None
        eternal = any(traits_of(each).eternal for each in Jobs.of(workload.jobs).extra_fields)
        session = driver_for(preset, options, engine.began(), uptime_us, recorder, eternal)
        engine.run(session.handle, _watching(session, on_progress, on_warning))
        plans = recorder.result() if recorder else None
        outcome = Outcome(session.ledger, engine.ended, plans, engine.dead_us)
        del engine, session  # free memory before the summary is computed
    else:
        outcome.dead_us = sum(up_us - down_us for down_us, up_us in hung_on_dead(outcome.ledger))
        if on_warning and (text := stuck_job(outcome.ledger.interrupted, max_attempts)):
            on_warning(text)
    layout = Layout(cores_per_node=cores_per_node, owners=owners_of(workload))
    if isinstance(preset, Preset):
        layout = layout_of(preset, workload, count, layout)
    summary, rows = summarise(outcome.ledger, count, measures or Measures(), layout)
    return RunResult(
        preset.name, summary, rows, outcome.ledger, outcome.jobs, outcome.plans, outcome.dead_us
    )


def _watching(
    session: Messages, on_progress: OnProgress | None, on_warning: OnWarning | None
) -> OnProgress:
    """Return a callback that reports progress, and warns once of a job with many interruptions."""
    warned = on_warning is None

    def watch(now_us: int, ended: int, total: int) -> None:
        nonlocal warned
        if on_progress:
            on_progress(now_us, ended, total)
        most = session.options.max_attempts
        if not warned and (text := stuck_job(session.interrupted, most)):
            warned = True
            assert on_warning is not None
            on_warning(text)

    return watch


def owners_of(workload: Workload) -> Owners:
    """Return the user and the queue of each job for which they are known."""
    jobs = Jobs.of(workload.jobs)
    traits = [traits_of(extra) for extra in jobs.extra_fields]
    owners = [(each.user, each.queue) for each in traits]
    if not any(map(any, owners)):
        return {}
    codes = zip(jobs.ids, jobs.extra_codes.tolist(), strict=True)
    return {job_id: owners[code] for job_id, code in codes if any(owners[code])}


def layout_of(preset: Preset, workload: Workload, n_nodes: int, layout: Layout) -> Layout:
    """Add to a layout a preset's partitions, node power, and the node counts it allocates."""
    places = preset.partitions(n_nodes, layout.cores_per_node)
    requested = {}
    if places:
        jobs = Jobs.of(workload.jobs)
        first, codes = distinct(jobs.extra_codes, jobs.n_nodes, jobs.walltime_us)
        kinds = map(jobs.at, first.tolist())
        open_ = [
            open_to(places, traits_of(job.extra), job.n_nodes, job.walltime_us) for job in kinds
        ]
        names = [rows[0].name if preset.parted or len(rows) == 1 else None for rows in open_]
        for job_id, code in zip(jobs.ids, codes.tolist(), strict=True):
            if name := names[code]:
                requested[f"w0!{job_id}"] = name
    return msgspec.structs.replace(
        layout,
        allotted=preset.allotted(n_nodes),
        partitions={place.name: place.nodes for place in places},
        states=bool(places) and not preset.parted,
        partition_of=requested,
        power=preset.power,
    )


def write_run(
    folder: Path, result: RunResult, provenance: dict[str, Any], form: str = "csv"
) -> None:
    """Write the files of a run. Each file is either complete or absent.

    ``form`` is the format of the three large tables (see `results.files.tables`). If the run was on
    Batsim, ``jobs`` is empty, and Batsim writes jobs.csv and schedule.csv.
    """
    n_nodes, ledger = result.summary.n_nodes, result.ledger
    if result.jobs:
        uncounted_us = repeated_us(ledger) + result.dead_us
        totals = schedule_csv(result.jobs, n_nodes, ledger.node_events, uncounted_us)
        write_table(folder, "jobs", jobs_columns(result.jobs), len(result.jobs), form)
        write_text(folder / "schedule.csv", totals)
    write_table(folder, "rebat_jobs", row_columns(result.rows), len(result.rows), form)
    write_table(folder, "rebat_attempts", attempt_columns(ledger), len(ledger.attempts), form)
    for owner in OWNERS:
        if (result.rows.column(owner) != "").any():
            write_lines(folder / f"rebat_{owner}s.csv", groups_csv(result.rows, owner))
    if result.summary.resizes.molded or result.rows.column("resizes").any():
        write_lines(folder / "rebat_sizes.csv", rows_csv(result.rows, SIZE_COLUMNS))
    if result.ledger.attempts.column("hit").any():
        write_lines(folder / "rebat_recoveries.csv", recoveries_csv(result.ledger))
    write_lines(folder / "node_events.csv", node_events_csv(result.ledger))
    if any(hold.until_us != hold.since_us for hold in result.ledger.holds):
        write_lines(folder / "rebat_holds.csv", holds_csv(result.ledger))
    if result.plans is not None:
        write_plans(folder, result.plans)
    summary = {
        "policy": result.policy,
        "rebat_version": rebat_version(),
        **provenance,
        "metrics": as_json(result.summary),
    }
    write_json(folder / "summary.json", summary)


def write_batsim_files(prefix: str, engine: Engine, events: list[MachineEvent]) -> list[Path]:
    """Write PREFIX_jobs.csv and PREFIX_schedule.csv in the format of Batsim."""
    jobs, schedule = Path(f"{prefix}_jobs.csv"), Path(f"{prefix}_schedule.csv")
    write_lines(jobs, jobs_csv(engine.ended))
    totals = schedule_csv(engine.ended, engine.n_nodes, node_events(events), engine.dead_us)
    write_text(schedule, totals)
    return [jobs, schedule]


def write_batsim5_files(
    prefix: str, engine: Engine, events: list[MachineEvent], schedule: bool = True
) -> list[Path]:
    """Write PREFIXjobs.csv and, if ``schedule`` is True, PREFIXschedule.json, as Batsim 5 does."""
    jobs, totals = Path(f"{prefix}jobs.csv"), Path(f"{prefix}schedule.json")
    write_lines(jobs, jobs_csv5(engine.ended))
    if not schedule:
        return [jobs]
    write_text(totals, schedule_json(engine.ended, engine.n_nodes, node_events(events)))
    return [jobs, totals]


# ---- several policies


class PolicyRuns(msgspec.Struct):
    """The results of several policies."""

    results: list[RunResult] = []
    """Completed runs."""
    failures: dict[str, str] = {}
    """Error message of each failed policy."""
    sources: list[tuple[OwnCode, ...]] = []
    """Files with user-defined code of each completed run."""


class Sourced(Runnable, Protocol):
    """A policy that can run, with its source files."""

    @property
    def sources(self) -> tuple[OwnCode, ...]: ...


def run_each(policies: Iterable[Sourced], run: Callable[[Runnable], RunResult]) -> PolicyRuns:
    """Run all policies. If a policy fails, the other policies still run."""
    done, first = PolicyRuns(), ""
    for policy in policies:
        first = first or policy.name
        try:
            done.results.append(run(policy))
            done.sources.append(policy.sources)
        except RebatError as error:
            if isinstance(error, InputError) and not done.results:
                raise
            done.failures[policy.name] = str(error)
    if not done.results:
        raise PolicyError("; ".join(failure_lines(done.failures)))
    if first in done.failures:
        done.failures[first] += f"; ratios are to {done.results[0].policy}"
    return done


def failure_lines(failures: Mapping[str, str]) -> list[str]:
    """Return a line for each failed policy."""
    return [f"policy {name}: {reason}" for name, reason in failures.items()]


LONGEST_NAME = 200
"""Maximum number of bytes of a folder's name. File systems allow 255."""


def folders_of(policies: Sequence[str]) -> list[str]:
    """Return the name of each policy's folder.

    A name that is too long, or that an earlier policy has, ends with a hash of the policy.

    >>> folders_of(["easy:order=age/size", "easy:order=age+size"])
    ['easy+order=age+size', 'easy+order=age+size-2dc26862d090a409']
    """
    names: list[str] = []
    for policy in policies:
        name = policy.replace(":", "+").replace("/", "+")
        if len(encoded := name.encode()) > LONGEST_NAME or name in names:
            digest = hashlib.sha256(policy.encode()).hexdigest()[:16]
            name = f"{encoded[:LONGEST_NAME].decode(errors='ignore')}-{digest}"
        names.append(name)
    return names
