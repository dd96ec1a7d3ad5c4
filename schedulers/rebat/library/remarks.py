# SPDX-License-Identifier: Apache-2.0
"""What is to be known before a run and after it, for people: notes and warnings."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rebat.core.attempts import job_name
from rebat.core.jobs import Workload
from rebat.core.units import format_duration, to_s
from rebat.models.checkpoint import n_below_period
from rebat.models.failures.events import AVAILABLE, UNAVAILABLE, GenericEvent, read_event_file
from rebat.models.failures.trace import Trace
from rebat.models.operations import coincident
from rebat.models.overload import MANY_ATTEMPTS, WHAT_TO_DO, Hopeless, hopeless_jobs
from rebat.runs.options import FailureOptions
from rebat.runs.single import RunResult
from rebat.runs.spec import CheckpointModel, PerfectCheckpoints


class Remark(NamedTuple):
    """``kind`` is note or warning."""

    kind: str
    text: str


def of_input(workload: Workload, options: FailureOptions, n_nodes: int) -> Iterator[Remark]:
    """What the importer did, and what failures will or won't."""
    for note in workload.notes:
        yield Remark("note", note)
    law, mtbf_s = options.failure_law(), options.mtbf_s
    if isinstance(law, Trace):
        yield from _of_events(Path(law.file))
    elif law is not None and mtbf_s is not None:
        together = options.correlation
        found = hopeless_jobs(workload, n_nodes, mtbf_s, together.group, together.cascade)
        yield from _of_overload(workload, found)


def of_operations(file: Path | None, events: Sequence[GenericEvent]) -> Iterator[Remark]:
    """Of operations at the same time, which a real Batsim may report in several messages."""
    times_us = coincident(events)
    if times_us:
        yield Remark(
            "warning",
            f"{file}: several operations at the same time ({len(times_us)} times, the first "
            f"{to_s(times_us[0]):g} s). A real Batsim may report them in several messages, and the "
            "schedule may differ from this one: put them a second apart",
        )


def of_record(mtbf_s: float) -> Remark:
    """Of checkpoint periods for the MTBF that a failure record has itself."""
    text = f"checkpoint periods are for the record's own MTBF of the machine: {mtbf_s:.12g} s"
    return Remark("note", f"{text} ({format_duration(mtbf_s)}); --mtbf sets another one")


def of_checkpoints(
    workload: Workload, model: CheckpointModel | PerfectCheckpoints | None, n_nodes: int
) -> Iterator[Remark]:
    """How many jobs are too short for a checkpoint; ``workload`` is still without checkpoints."""
    if not isinstance(model, CheckpointModel) or not workload.jobs:
        return
    short = n_below_period(workload, n_nodes, model.mtbf_s, model.cost_s)
    share = f"{short} of {len(workload.jobs)} jobs ({short / len(workload.jobs):.1%})"
    what = "write none"
    if model.rounding == "ceil":
        what = "are longer by a last checkpoint (--checkpoint-rounding ceil)"
    yield Remark("note", f"{share} are shorter than one checkpoint period and {what}")


def _of_events(file: Path) -> Iterator[Remark]:
    """Of an event file in which nothing fails, and of events that are passed over."""
    found = read_event_file(file)
    if not found.machine_events:
        yield Remark("warning", f"{file} holds no failure")
    for kind, count in found.generic_types.items():
        near = difflib.get_close_matches(kind.lower(), (UNAVAILABLE, AVAILABLE), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        yield Remark("warning", f"{file}: {count} events of type {kind!r} passed over{hint}")


def _of_overload(workload: Workload, found: Sequence[Hopeless]) -> Iterator[Remark]:
    """Of jobs that such failures hardly ever let finish; see `models.overload`."""
    if found:
        worst = found[0]
        yield Remark(
            "warning",
            f"{len(found)} of {len(workload.jobs)} jobs cannot be expected to finish. The worst is "
            f"job {worst.job.id}: {worst.job.n_nodes} nodes, {format_duration(worst.span_s)} "
            f"between what is kept, some {worst.attempts} attempts expected, estimated as "
            "exp(failure rate of its nodes x that time); "
            f"reported from {MANY_ATTEMPTS:,} on. A job ends as failed after --max-attempts; "
            f"{WHAT_TO_DO}",
        )


def of_results(results: Sequence[RunResult]) -> Iterator[Remark]:
    """What makes a comparison mean less than it seems to."""
    for result in results:
        summary = result.summary
        if summary.rejected:
            yield Remark(
                "warning",
                f"{result.policy} rejected {summary.rejected} jobs "
                f"(larger than {summary.n_nodes} nodes, or without a walltime)",
            )
        if summary.given_up:
            yield Remark(
                "warning",
                f"{result.policy} gave up {summary.given_up} jobs, the first job "
                f"{job_name(result.ledger.given_up[0])}: failures interrupted them as often as "
                f"--max-attempts allows. They count as failed; {WHAT_TO_DO}",
            )
        if summary.window_s[0] >= summary.makespan_s:
            yield Remark(
                "warning",
                f"the window of {result.policy} is empty: it begins at "
                f"{format_duration(summary.window_s[0])}, the last job ended at "
                f"{format_duration(summary.makespan_s)} (see --window)",
            )
        if not summary.selected_jobs:
            yield Remark(
                "warning", f"{result.policy} has no job whose flow is measured (see --select)"
            )
