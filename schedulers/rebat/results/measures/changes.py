# SPDX-License-Identifier: Apache-2.0
"""Resizes, replacements, migrations and drains of a run, and the use of spare nodes.

Sources: Prabhakaran et al. 2018 (resizes and replacements of failed nodes), and
Rodríguez-Pascual et al., "Job migration in HPC clusters by means of checkpoint/restart", 2019
(migrations).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Annotated

import msgspec
import numpy as np

from rebat.core.attempts import SPARE, Cause
from rebat.core.node_events import Outages
from rebat.core.units import FOREVER_US, US_PER_S, to_s
from rebat.results.measures.jobs import JobRows
from rebat.results.measures.platform import Window, of_jobs
from rebat.results.measures.recoveries import Span
from rebat.results.metric import Metric
from rebat.state.ledger import AttemptRecord, Ledger

_REPLACEMENTS = ("resizes_by_local", "resizes_by_idle", "resizes_by_remote", "resizes_by_restart")


class Resizes(msgspec.Struct, frozen=True):
    """Counts of resizes and replacements in a window."""

    # fmt: off
    molded: Annotated[int, Metric("jobs started with another size", "count", "", "", "moldable or malleable jobs that first started on another number of nodes than requested")]
    grown: Annotated[int, Metric("malleable jobs grown", "count", "", "", "resizes of running jobs to more nodes")]
    shrunk: Annotated[int, Metric("malleable jobs shrunk", "count", "", "", "resizes of running jobs to fewer nodes")]
    lent: Annotated[int, Metric("malleable jobs shrunk to replace nodes", "count", "", "", "resizes of running jobs to fewer nodes, so that the released nodes replace failed nodes of another job")]
    restarted: Annotated[int, Metric("moldable jobs restarted to free nodes for other jobs", "count", "low", "", "moldable jobs that restart from the beginning to give nodes to a job with failed nodes")]
    by_local: Annotated[int, Metric("  continued on fewer nodes", "count", "", "", "attempts hit by a failure that continued on fewer nodes")]
    by_idle: Annotated[int, Metric("  on idle or spare nodes", "count", "", "", "attempts hit by a failure that continued on idle or spare nodes")]
    by_remote: Annotated[int, Metric("  on nodes of malleable jobs", "count", "", "", "attempts hit by a failure that continued on nodes returned by malleable jobs")]
    by_restart: Annotated[int, Metric("  on nodes of moldable jobs", "count", "", "", "attempts hit by a failure that continued on nodes of moldable jobs, which restart from the beginning")]
    requeued: Annotated[int, Metric("  requeued", "count", "low", "", "attempts hit by a failure whose jobs were requeued or paused", only_with=_REPLACEMENTS)]
    jobs_hit: Annotated[int, Metric("jobs hit", "count", "", "", "jobs that a failure hit under a policy that resizes or replaces", listed=False)]
    mean_wait_s: Annotated[float, Metric("time without nodes, mean", "time", "low", "", "the mean time between submission and end during which a job held no nodes", listed=False)]
    # fmt: on


_WORDS = {
    "grow": "grown",
    "shrink": "shrunk",
    "lend": "lent",
    "restart for another": "restarted",
    "local": "by_local",
    "idle": "by_idle",
    "remote": "by_remote",
    "restart": "by_restart",
}
"""Field of `Resizes` that counts a stop, by the reason that the policy states."""


def resizes(ledger: Ledger, rows: JobRows, window: Window) -> Resizes:
    """Return the counts in a window. The mean wait includes all jobs of the run."""
    attempts = ledger.attempts
    end_us, molded = attempts.column("end_us"), attempts.having("cause", Cause.MOLDED)
    stopped = ~molded & (window[0] <= end_us) & (end_us < window[1])
    hit = stopped & attempts.having("cause", Cause.NODE_FAILURE)
    reasons = attempts.values("why")
    of_stops, of_hits = (
        dict(zip(reasons, np.bincount(of, minlength=len(reasons)).tolist(), strict=True))
        for of in (attempts.column("why")[mask] for mask in (stopped, hit))
    )
    counts = {name: of_stops.get(word, 0) for word, name in _WORDS.items()}
    counts["molded"] = int((molded & (attempts.column("number") == 0)).sum())
    counts["requeued"] = sum(n for word, n in of_hits.items() if word not in _WORDS)
    waits = rows.column("waiting_time")
    waits = waits[~np.isnan(waits)]
    mean_wait_s = float(np.cumsum(waits)[-1]) / len(waits) if len(waits) else 0.0
    jobs_hit = len({*attempts.column("job_serial")[hit].tolist()})
    return Resizes(**counts, jobs_hit=jobs_hit, mean_wait_s=mean_wait_s)


class Migrations(msgspec.Struct, frozen=True):
    """Attempts that were stopped and checkpointed in a window."""

    # fmt: off
    count: Annotated[int, Metric("checkpoints and restarts", "count", "", "", "attempts that were stopped and checkpointed")]
    cost: Annotated[float, Metric("  their cost", "node time", "low", "core time", "core time of writing checkpoint images and of restarting from them")]
    moved: Annotated[float, Metric("work moved", "node time", "", "", "core time of the work in checkpoint images, counted for each image", listed=False)]
    by: Annotated[dict[str, int], Metric("checkpoints and restarts: *", "count", "", "", "attempts that were stopped and checkpointed, by purpose", listed=False)]
    # fmt: on


class Drains(msgspec.Struct, frozen=True):
    """Drains in a window that the administrator requested (see ``models.operations``)."""

    # fmt: off
    nodes: Annotated[int, Metric("nodes drained", "count", "", "", "nodes that operations drained")]
    emptied: Annotated[int, Metric("  empty in time", "count", "high", "", "drained nodes that were empty before they returned to service")]
    mean_s: Annotated[float, Metric("  time until empty, mean", "time", "low", "", "the mean time from an operation's drain until the node is empty", of=lambda v: v["drains_mean_s", None] if v["drains_emptied", None] else None)]
    max_s: Annotated[float, Metric("  time until empty, max", "time", "low", "", "the longest time from an operation's drain until the node is empty", of=lambda v: v["drains_max_s", None] if v["drains_emptied", None] else None)]
    refused: Annotated[int, Metric("operations refused", "count", "low", "", "operations that were not carried out")]
    # fmt: on


def migrations(ledger: Ledger, window: Window) -> Migrations:
    """Return the metrics of checkpoints and restarts in a window."""
    first, last = window
    by: Counter[str] = Counter()
    cost_us, moved_us = 0, 0
    attempts = ledger.attempts
    imaged = attempts.column("imaged") != 0
    concerned = of_jobs(ledger, imaged) | (attempts.column("image_us") != 0)
    kept_us = dict.fromkeys((r.attempt.job_id for r in attempts.where(imaged)), 0)
    for record in attempts.where(concerned & (attempts.column("start_us") >= 0)):
        attempt, cores = record.attempt, record.attempt.n_nodes
        if record.checkpointing and record.image_us:
            paid = min(record.start_us + record.checkpointing.first_recovery_us, record.end_us)
            cost_us += max(0, min(paid, last) - max(record.start_us, first)) * cores
        if attempt.job_id in kept_us:
            kept_us[attempt.job_id] += (record.useful_us - record.lost_us) * cores
        if record.imaged and first <= record.end_us < last:
            by[record.why or str(record.cause)] += 1
            moved_us += kept_us[attempt.job_id]
    return Migrations(by.total(), cost_us / US_PER_S, moved_us / US_PER_S, dict(sorted(by.items())))


def drains(ledger: Ledger, window: Window, cores: int = 1) -> Drains:
    """Return the metrics of the drains in a window that the administrator requested."""
    drained = [
        drain
        for drain in ledger.drained
        if drain.why == "operation"
        and window[0] <= drain.since_us < window[1]
        and drain.until_us != drain.since_us  # a drain of length 0 was refused
    ]
    waits_s: list[float] = []
    start_us, end_us = map(ledger.attempts.column, ("start_us", "end_us"))
    for drain in drained:
        empty_us = dict.fromkeys((core // cores for core in drain.nodes), drain.since_us)
        running = (start_us <= drain.since_us) & (drain.since_us < end_us)
        for record in ledger.attempts.where(running):
            if record.nodes is not None and record.nodes.meets(drain.nodes):
                for node in {core // cores for core in record.nodes} & empty_us.keys():
                    empty_us[node] = max(empty_us[node], record.end_us)
        back = FOREVER_US if drain.until_us is None else drain.until_us
        waits_s += [to_s(us - drain.since_us) for us in empty_us.values() if us <= back]
    return Drains(
        nodes=sum(drain.nodes.size for drain in drained) // cores,
        emptied=len(waits_s),
        mean_s=sum(waits_s) / len(waits_s) if waits_s else 0.0,
        max_s=max(waits_s, default=0.0),
        refused=sum(window[0] <= at < window[1] for at in ledger.not_done),
    )


class Spares(msgspec.Struct, frozen=True):
    """Use of spare nodes within the window. Node time is in node-seconds.

    A spare node begins to replace a failed node when it leaves the reserve for the job that lost
    the failed node. The replacement ends when the failed node is up again, or when the job releases
    the spare node.
    """

    # fmt: off
    utilisation: Annotated[float, Metric("spare utilisation", "share", "", "time of spare nodes", "`spares_replacing` / (`spares_replacing` + `spares_ready`)")]
    ready: Annotated[float, Metric("spare nodes ready", "node time", "", "", "nodes that are reserved as spare nodes and up; part of `platform_idle`", listed=False)]
    replacing: Annotated[float, Metric("spare nodes in use", "node time", "", "", "time of spare nodes that replace a failed node. It begins when the spare node leaves the reserve for the job that lost the node. It ends when the failed node is up again, or when the job releases the spare node. Spare nodes that the policy lends to the queue count only if a job that lost nodes starts on them when they leave the reserve", listed=False)]
    # fmt: on


def spares(ledger: Ledger, window: Window) -> Spares | None:
    """Return the use of spare nodes, or None if the policy reserves no nodes.

    While a job that lost nodes waits, the policy releases all spare nodes to the queue. If this job
    starts on a released node at the time of the release, the node counts as `replacing`. The time
    of the other released nodes counts neither as `ready` nor as `replacing`.
    """
    reserved = [drain for drain in ledger.drained if drain.why == SPARE]
    if not reserved:
        return None
    outages = ledger.node_events.outages(FOREVER_US)
    of_node: dict[int, list[Span]] = defaultdict(list)
    for node, down_us, up_us in outages.rows():
        of_node[node].append((down_us, up_us))
    ready_us = 0
    for drain in reserved:
        span = drain.since_us, FOREVER_US if drain.until_us is None else drain.until_us
        down = [_common(outage, span) for node in drain.nodes for outage in of_node.get(node, ())]
        ready_us += drain.nodes.size * _within([span], window) - _within(down, window)
    replacing_us = _within(_replacing(ledger, outages), window)
    total_us = ready_us + replacing_us
    return Spares(
        utilisation=replacing_us / total_us if total_us else 0.0,
        ready=ready_us / US_PER_S,
        replacing=replacing_us / US_PER_S,
    )


def _replacing(ledger: Ledger, outages: Outages) -> Iterator[Span]:
    """Yield the times in which a spare node replaces a failed node."""
    released: dict[int, set[int]] = defaultdict(set)
    for at_us, back, nodes, why in ledger.drain_events:
        if back and why == SPARE:
            released[at_us].update(nodes)
    jobs: dict[str, list[AttemptRecord]] = defaultdict(list)
    for record in sorted(ledger.attempts, key=lambda r: r.start_us):
        if record.nodes is not None:
            jobs[record.attempt.job_id].append(record)
    for attempts in jobs.values():
        for number, (failed, record) in enumerate(pairwise(attempts), start=1):
            at_us = record.start_us
            if failed.cause != Cause.NODE_FAILURE or at_us not in released:
                continue
            assert failed.nodes is not None and record.nodes is not None
            taken = (node for node in released[at_us] if node in record.nodes)
            in_use = (_released_us(attempts[number:], node) for node in taken)
            now = outages.at((outages.down_us <= at_us) & (at_us < outages.up_us))
            down = (up_us for node, _, up_us in now.rows() if node in failed.nodes)
            # A spare node replaces a failed node until the first of release and repair. Pair the
            # latest releases with the latest repairs.
            pairs = zip(sorted(in_use, reverse=True), sorted(down, reverse=True), strict=False)
            yield from ((at_us, min(pair)) for pair in pairs)


def _released_us(attempts: Sequence[AttemptRecord], node: int) -> int:
    """Return the time at which a job releases a node on which ``attempts[0]`` starts.

    The job keeps the node if its next attempt starts on this node when the previous attempt ends.
    """
    until_us = attempts[0].start_us
    for record in attempts:
        if record.start_us != until_us or record.nodes is None or node not in record.nodes:
            break
        until_us = record.end_us
    return until_us


def _common(first: Span, second: Span) -> Span:
    return max(first[0], second[0]), min(first[1], second[1])


def _within(spans: Iterable[Span], window: Window) -> int:
    """Return the sum of the lengths of spans within a window."""
    parts = (_common(span, window) for span in spans)
    return sum(max(0, last - first) for first, last in parts)
