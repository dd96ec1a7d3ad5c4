# SPDX-License-Identifier: Apache-2.0
"""One run: a workload, a policy and machine events on the embedded engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

import rebat
from rebat.contract import Policy
from rebat.core.files import write_lines, write_text
from rebat.core.jobs import Workload
from rebat.core.options import MAX_ATTEMPTS, SessionOptions
from rebat.core.traits import OWNERS, traits_of
from rebat.engine.engine import Engine, OnProgress
from rebat.engine.jobs import EngineJob
from rebat.engine.options import EngineOptions
from rebat.models.failures.events import GenericEvent, MachineEvent
from rebat.models.overload import stuck_job
from rebat.policies.own_policy import OwnPolicy
from rebat.policies.partitions import open_to
from rebat.policies.presets import Preset
from rebat.results.files.batsim_csv import jobs_csv, schedule_csv
from rebat.results.files.run_csv import (
    attempts_csv,
    groups_csv,
    holds_csv,
    node_events_csv,
    rows_csv,
)
from rebat.results.measures.jobs import SIZE_COLUMNS, JobRows, Owners
from rebat.results.measures.summary import Layout, Measures, RunSummary, as_json, summarise
from rebat.session.ledger import Ledger
from rebat.session.session import Session

RUN_FILES = (
    "jobs.csv", "schedule.csv", "rebat_jobs.csv", "rebat_attempts.csv", "node_events.csv",
    "summary.json",
)  # fmt: skip
"""What `write_run` writes."""


class Runnable(Protocol):
    """Anything with a policy to make: a preset, or one's own."""

    @property
    def name(self) -> str: ...
    @property
    def session(self) -> SessionOptions: ...
    def make(self) -> Policy: ...


OnWarning = Callable[[str], None]


class RunResult(msgspec.Struct):
    """What one run gave: summary, a row per job, the session's ledger, the engine's jobs."""

    policy: str
    summary: RunSummary
    rows: JobRows
    ledger: Ledger
    jobs: list[EngineJob]


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
) -> RunResult:
    """Run one policy to the end of the workload.

    ``uptime_us`` is how long each node has been up when it begins (default: 0). With
    ``cores_per_node`` the machine's nodes are cores, of which so many make up a node;
    ``operations`` (see `models.operations`) name whole nodes. A job ends as failed when failures
    have interrupted ``max_attempts`` of its attempts; ``on_warning`` hears of such a job earlier,
    while the run goes on.

    Raises
    ------
    InputError
        For a workload or events that cannot be run on this machine.
    Abort
        When jobs can never start (more nodes asked for than will ever be up).
    """
    given = engine_options or EngineOptions()
    if operations and isinstance(preset, Preset | OwnPolicy):
        preset = preset.carrying_out()
    if operations:
        given = msgspec.structs.replace(given, forward_unknown_events=True)
    engine = Engine(
        workload, n_nodes=n_nodes, events=machine_events, operations=operations, options=given
    )
    options = msgspec.structs.replace(
        preset.session, cores_per_node=cores_per_node, max_attempts=max_attempts
    )
    session = Session(preset.make(), options, uptime_us)
    engine.run(session.handle, _watching(session, on_progress, on_warning))
    layout = Layout(cores_per_node=cores_per_node, owners=owners_of(workload))
    if isinstance(preset, Preset):
        layout = layout_of(preset, workload, engine.n_nodes, layout)
    n_nodes, ledger, ended = engine.n_nodes, session.ledger, engine.ended
    del engine, session  # the room is needed for what is made of the records
    summary, rows = summarise(ledger, n_nodes, measures or Measures(), layout)
    return RunResult(preset.name, summary, rows, ledger, ended)


def _watching(
    session: Session, on_progress: OnProgress | None, on_warning: OnWarning | None
) -> OnProgress:
    """Report progress, and once the job that failures do not let finish."""
    warned = on_warning is None

    def watch(now_us: int, ended: int, known: int) -> None:
        nonlocal warned
        if on_progress:
            on_progress(now_us, ended, known)
        if not warned and (text := stuck_job(session.ledger.interrupted, session.max_attempts)):
            warned = True
            assert on_warning is not None
            on_warning(text)

    return watch


def owners_of(workload: Workload) -> Owners:
    """User and queue of the jobs that have one."""
    found = {}
    for job in workload.jobs:
        if job.extra:
            traits = traits_of(job.extra)
            if traits.user or traits.queue:
                found[f"w0!{job.id}"] = traits.user, traits.queue
    return found


def layout_of(preset: Preset, workload: Workload, n_nodes: int, known: Layout) -> Layout:
    """What metrics are to know of a scheduler on a machine, beside what is ``known``."""
    places = preset.partitions(n_nodes, known.cores_per_node)
    asked = {}
    for job in workload.jobs if places else ():
        found = open_to(places, traits_of(job.extra), job.n_nodes)
        if len(found) == 1:
            asked[f"w0!{job.id}"] = found[0].name
    return msgspec.structs.replace(
        known,
        allotted=preset.allotted(n_nodes),
        partitions={place.name: place.nodes for place in places},
        partition_of=asked,
        power=preset.power,
    )


def write_run(folder: Path, result: RunResult, provenance: dict[str, Any]) -> None:
    """Write a run's files; each is there whole or not at all.

    Without ``jobs`` (of a simulator on the wire, which writes them) there are no Batsim files.
    """
    n_nodes = result.summary.n_nodes
    if result.jobs:
        write_lines(folder / "jobs.csv", jobs_csv(result.jobs))
        write_text(
            folder / "schedule.csv", schedule_csv(result.jobs, n_nodes, result.ledger.node_events)
        )
    write_lines(folder / "rebat_jobs.csv", rows_csv(result.rows))
    write_lines(folder / "rebat_attempts.csv", attempts_csv(result.ledger))
    for owner in OWNERS:
        if result.rows.column(owner).any():
            write_lines(folder / f"rebat_{owner}s.csv", groups_csv(result.rows, owner))
    if result.summary.resizes.molded or result.rows.column("resizes").any():
        write_lines(folder / "rebat_sizes.csv", rows_csv(result.rows, SIZE_COLUMNS))
    write_lines(folder / "node_events.csv", node_events_csv(result.ledger))
    if any(hold.until_us != hold.since_us for hold in result.ledger.holds):
        write_lines(folder / "rebat_holds.csv", holds_csv(result.ledger))
    summary = {
        "policy": result.policy,
        "rebat_version": rebat.__version__,
        **provenance,
        "metrics": as_json(result.summary),
    }
    text = msgspec.json.format(msgspec.json.encode(summary), indent=2).decode()
    write_text(folder / "summary.json", text + "\n")


def write_batsim_files(prefix: str, engine: Engine, events: list[MachineEvent]) -> list[Path]:
    """PREFIX_jobs.csv and PREFIX_schedule.csv, as Batsim names and fills them."""
    node_events = [(event.at_us, event.available, event.nodes) for event in events]
    jobs, schedule = Path(f"{prefix}_jobs.csv"), Path(f"{prefix}_schedule.csv")
    write_lines(jobs, jobs_csv(engine.ended))
    write_text(schedule, schedule_csv(engine.ended, engine.n_nodes, node_events))
    return [jobs, schedule]
