# SPDX-License-Identifier: Apache-2.0
"""Notes and warnings about the input and the results of a run."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rebat.core.attempts import job_name
from rebat.core.job_table import Jobs
from rebat.core.jobs import Workload
from rebat.core.numbers import counted, duration, share
from rebat.core.traits import traits_of
from rebat.core.units import to_s
from rebat.drive.choose import covers, how_of, is_tiered, only_plain, ready
from rebat.models.checkpoint import n_below_period
from rebat.models.failures.events import AVAILABLE, UNAVAILABLE, GenericEvent, read_event_file
from rebat.models.failures.law import Law
from rebat.models.failures.recorded import Recorded, Trace
from rebat.models.operations import KINDS, coincident
from rebat.models.overload import MANY_ATTEMPTS, WHAT_TO_DO, Hopeless, hopeless_jobs
from rebat.policies.presets import Preset
from rebat.records.findings import MARK, is_finding
from rebat.runs.scenario import CheckpointModel, Checkpoints, ScenarioOptions
from rebat.runs.single import RunResult
from rebat.workloads.batsim_json import NAME, mistakable
from rebat.workloads.machine import partitions_in_use, stated_partitions

OFFSET_S = 60.0
"""Time in seconds that is added to a wait before its logarithm is computed."""

LATE = 0.1
"""Share of a failure record by which the submissions must be longer, for a note."""

MOST = 5
"""Maximum number of partitions that a note lists."""

FAR = 2.0
"""Ratio of a simulated and a recorded mean wait (each plus one minute) from which a note is due."""

SLOW_S = 10.0
"""Time of the simulations of a command from which a note on the compiled loop is due."""

SLURM = ("sacctmgr", "sacct")
"""Formats of failure records that rebat can import together with a workload."""


class Remark(NamedTuple):
    """A note or warning."""

    kind: str
    """``note``, ``warning``, or ``check``: a finding about the record."""
    text: str


def of_names(workload: Workload) -> Iterator[Remark]:
    """Yield a note if Batsim would take ids of jobs for complete ids."""
    if ids := mistakable(Jobs.of(workload.jobs)):
        yield Remark(
            "note",
            f"{counted(len(ids), 'job')} of the file have complete ids (first: {NAME}!{ids[0]}), "
            f"because Batsim aborts if an id contains {NAME}; its output has the id {ids[0]}",
        )


def of_input(workload: Workload, options: ScenarioOptions, n_nodes: int) -> Iterator[Remark]:
    """Yield the importer's notes, and warnings about the event file and frequent failures."""
    yield from map(_of_note, workload.notes)
    yield from of_speed(workload)
    yield from _of_slurm_record(options.single_law())
    law, mtbf_s = options.failure_law(), options.mtbf_s
    if isinstance(law, Trace):
        yield from _of_events(Path(law.file))
    elif law is not None and mtbf_s is not None:
        together = options.correlation
        jobs = hopeless_jobs(workload, n_nodes, mtbf_s, together.group, together.cascade)
        yield from _of_overload(workload, jobs)


def of_engine(workload: Workload, policies: Sequence[Any], took_s: float) -> Iterator[Remark]:
    """Note that compiling the loop would have paid, after simulations that took this time."""
    if took_s < SLOW_S or how_of() != "auto":
        return
    covered = [p for p in policies if covers(workload, p) and not only_plain(p.point)]
    slow = [p for p in covered if not (is_tiered(workload) or ready(p.point))]
    if slow:
        command = " ".join(["rebat warmup", *(policy.name for policy in slow)])
        yield Remark("note", f"'{command}' compiles a faster loop for such runs, once per machine")


def of_findings(workload: Workload) -> Iterator[Remark]:
    """Yield the importer's findings about the record of a workload."""
    yield from map(_of_note, filter(is_finding, workload.notes))


def of_speed(workload: Workload) -> Iterator[Remark]:
    """Note that profiles that compute run at an assumed speed, because there is no platform."""
    names = [name for name, profile in workload.profiles.items() if "cpu" in profile]
    if names:
        computes = "computes" if len(names) == 1 else "compute"
        yield Remark(
            "note",
            f"{counted(len(names), 'profile')} {computes} (the first is {names[0]!r}): their run "
            "times are computed with hosts of 1 Gf. 'rebat simulate --platform' uses the speed of "
            "a platform",
        )


def of_users(workload: Workload, policies: Sequence[Any]) -> Iterator[Remark]:
    """Note that no job has a user, although a policy predicts run times of users."""
    points = [policy.point for policy in policies if isinstance(policy, Preset)]
    predicts = any(point.values.get("predict") == "recent" for point in points)
    extras = Jobs.of(workload.jobs).extra_fields
    if predicts and not any(traits_of(extra).user for extra in extras):
        yield Remark("note", "no job has a user, so predict=recent plans with the walltimes")


def of_partitions(workload: Workload, n_nodes: int | None = None) -> Iterator[Remark]:
    """Note in which partitions jobs run, or why the machine is a single pool of nodes.

    ``n_nodes`` is the number of nodes of the simulated machine (default: that of the workload).
    """
    stated = stated_partitions(workload.machine)
    if len({row.nodes.intervals.tobytes() for row in stated}) < 2:
        return
    largest = sorted(stated, key=lambda row: -row.nodes.size)
    listed = ", ".join(f"{row.name}: {counted(row.nodes.size, 'node')}" for row in largest[:MOST])
    more = f", and {len(stated) - MOST} more" if len(stated) > MOST else ""
    many = f"the record has {len(stated)} partitions with different nodes ({listed}{more})"
    resized = n_nodes is not None and n_nodes != workload.n_nodes
    if resized:
        yield Remark(
            "note",
            f"{many}, but the simulated machine is a single pool of nodes, because it has "
            f"{counted(n_nodes or 0, 'node')} instead of {workload.n_nodes}. The option partitions "
            "of a policy sets other partitions",
        )
        return
    if partitions_in_use(workload):
        yield Remark(
            "note",
            f"{many}: under policies that can have partitions, a job starts only on nodes of its "
            "partition. The option partitions=none simulates a single pool of nodes",
        )
        return
    yield Remark(
        "note",
        f"{many}, but the simulated machine is a single pool of nodes, because partitions share "
        "nodes or a job does not fit in its partition. So simulated waits can be much shorter than "
        "in reality. With Slurm, import with --partitions to state the nodes of each partition",
    )


def of_waits(recorded_s: float | None, simulated_s: Mapping[str, float | None]) -> Iterator[Remark]:
    """Note that the recorded mean wait is far from the simulated mean waits of all policies.

    Parameters
    ----------
    recorded_s : float, optional
        Recorded mean wait.
    simulated_s : dict of float
        Simulated mean wait of each policy.
    """
    waits = {name: wait_s for name, wait_s in simulated_s.items() if wait_s is not None}
    if recorded_s is None or not waits:
        return
    ratios = [(wait_s + OFFSET_S) / (recorded_s + OFFSET_S) for wait_s in waits.values()]
    if all(max(ratio, 1 / ratio) >= FAR for ratio in ratios):
        listed = ", ".join(f"{duration(w)} under {name}" for name, w in waits.items())
        yield Remark(
            "note",
            f"the recorded mean wait of the jobs is {duration(recorded_s)}, but the "
            f"simulated mean wait is {listed}. The simulation lacks something that decides waits "
            "in reality, for example partitions, priorities or limits of users. 'rebat calibrate' "
            "finds a configuration that is nearer to the record",
        )


def of_operations(file: Path | None, events: Sequence[GenericEvent]) -> Iterator[Remark]:
    """Warn if operations have equal times, because Batsim may report these in separate messages."""
    times_us = coincident(events)
    if times_us:
        yield Remark(
            "warning",
            f"{file}: several operations have the same time. This occurs at "
            f"{counted(len(times_us), 'time')}, first at {to_s(times_us[0]):g} s. A real "
            "Batsim may report them in several messages, and its schedule may then differ. "
            "Separate the operations by one second",
        )


def of_law_mtbf(mtbf_s: float, source: str) -> Remark:
    """Note that the checkpoint periods are computed from the MTBF of a failure law or file."""
    text = f"checkpoint periods use the MTBF of {source}: {mtbf_s:.12g} s"
    return Remark("note", f"{text} ({duration(mtbf_s)}); --mtbf overrides it")


def of_record_end(
    file: str, mtbf_s: float, last_s: float, workload: Workload, begin_s: float, option: str
) -> Iterator[Remark]:
    """Note that jobs are submitted long after the last event of a failure record.

    An event file does not state how long failures were recorded. So its MTBF is the mean over the
    time until its last event. There is no note if a longer record would hardly change the MTBF.

    Parameters
    ----------
    mtbf_s, last_s : float
        MTBF of the record, and the time of its last event.
    begin_s : float
        Time of the record at which the workload begins.
    option : str
        Option that sets the correct value: ``--mtbf``, or ``--end`` for the end of the record.
    """
    until_s = begin_s + max((to_s(job.submit_us) for job in workload.jobs), default=0.0)
    if last_s <= 0 or until_s - last_s <= max(mtbf_s, LATE * last_s):
        return
    longer_s = mtbf_s * until_s / last_s
    value = math.ceil(until_s - begin_s) if option == "--end" else round(longer_s)
    yield Remark(
        "note",
        f"{file}: the last event is at {duration(last_s)}, but jobs are submitted until "
        f"{duration(until_s)}. The MTBF of {duration(mtbf_s)} is the mean until the "
        f"last event. If failures were recorded until the last submission, the MTBF is "
        f"{duration(longer_s)}: set {option} {value}",
    )


def of_checkpoints(workload: Workload, model: Checkpoints | None, n_nodes: int) -> Iterator[Remark]:
    """Note how many jobs are too short for a checkpoint. ``workload`` has no checkpoints yet."""
    if not isinstance(model, CheckpointModel) or not workload.jobs:
        return
    short = n_below_period(workload, n_nodes, model.mtbf_s, model.cost_s)
    jobs = counted(len(workload.jobs), "job")
    part = f"{short:,} of {jobs} ({share(short / len(workload.jobs))})"
    are, write, their = ("is", "writes", "its") if short == 1 else ("are", "write", "their")
    effect = f"{write} no checkpoint"
    if model.rounding == "ceil":
        effect = f"{write} one checkpoint at {their} end (--checkpoint-rounding ceil)"
    yield Remark("note", f"{part} {are} shorter than one checkpoint period and {effect}")


def _of_note(note: str) -> Remark:
    if is_finding(note):
        return Remark("check", note.removeprefix(MARK))
    return Remark("note", note)


def _of_events(file: Path) -> Iterator[Remark]:
    """Warn if an event file has no failures, or if it contains events that are ignored."""
    jobs = read_event_file(file)
    if not jobs.machine_events:
        yield Remark("warning", f"{file} contains no failure")
    kinds = jobs.generic_types
    operations = sum(kinds.pop(kind, 0) for kind in KINDS)
    if operations:
        yield Remark(
            "warning",
            f"{file}: rebat ignores {counted(operations, 'operation')}: write operations into a "
            "separate file, and pass it with --operations. Batsim also needs a separate file (a "
            "second --events), because it does not keep the order of lines with the same time",
        )
    for kind, count in kinds.items():
        near = difflib.get_close_matches(kind.lower(), (UNAVAILABLE, AVAILABLE), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        yield Remark(
            "warning", f"{file}: rebat ignores {counted(count, 'event')} of type {kind!r}{hint}"
        )


def _of_slurm_record(law: Law | None) -> Iterator[Remark]:
    """Note that a raw record of Slurm has other node numbers and times than its workload."""
    if isinstance(law, Recorded) and law.form in SLURM:
        yield Remark(
            "note",
            f"{law.file} is a record of Slurm ({law.form}): its node numbers and its time 0 are "
            "not those of a workload. To fail the same nodes at the same times as in the workload, "
            f"convert it with 'rebat failures import {law.file} --workload WORKLOAD'",
        )


def _of_overload(workload: Workload, jobs: Sequence[Hopeless]) -> Iterator[Remark]:
    """Warn of jobs that are unlikely to complete between failures (see `models.overload`)."""
    if jobs:
        worst = jobs[0]
        which = "are unlikely to complete: on average they need"
        if len(jobs) == 1:
            which = "is unlikely to complete: on average it needs"
        yield Remark(
            "warning",
            f"{len(jobs)} of {counted(len(workload.jobs), 'job')} {which} "
            f"{MANY_ATTEMPTS:,} attempts or more. The worst is job {worst.job.id}: about "
            f"{worst.attempts} attempts on {counted(worst.job.n_nodes, 'node')}, estimated as "
            f"exp(failure rate of its nodes x {duration(worst.span_s)} without a "
            f"checkpoint). A job ends as failed after --max-attempts attempts; {WHAT_TO_DO}",
        )


def of_results(results: Sequence[RunResult]) -> Iterator[Remark]:
    """Yield warnings about properties of the results that limit a comparison."""
    for result in results:
        summary = result.summary
        if summary.rejected:
            yield Remark(
                "warning",
                f"{result.policy} rejected {counted(summary.rejected, 'job')}"
                f"{_first_rejection(result)}",
            )
        if summary.given_up:
            yield Remark(
                "warning",
                f"{result.policy} gave up {counted(summary.given_up, 'job')} (the first is job "
                f"{job_name(result.ledger.given_up[0])}), because failures interrupted each of "
                f"them --max-attempts times. They count as failed; {WHAT_TO_DO}",
            )
        if summary.window_s[0] >= summary.makespan_s:
            yield Remark(
                "warning",
                f"the window of {result.policy} is empty: it begins at "
                f"{duration(summary.window_s[0])}, but the last job ended at "
                f"{duration(summary.makespan_s)} (see --window)",
            )
        if not summary.selected_jobs:
            yield Remark(
                "warning", f"--select matches no job of {result.policy}, so no flow is measured"
            )


def _first_rejection(result: RunResult) -> str:
    """Return a clause that states the first rejected job and the reason, or '' without a reason."""
    for attempt_id, reason in result.ledger.rejections:
        return f"; the first is job {job_name(attempt_id)}: {reason}"
    return ""
