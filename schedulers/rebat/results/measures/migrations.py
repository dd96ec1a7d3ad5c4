# SPDX-License-Identifier: Apache-2.0
"""Metrics of drains, and of checkpoints and restarts (number, purpose, cost).

Source: Rodríguez-Pascual et al., "Job migration in HPC clusters by means of checkpoint/restart",
2019.
"""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np

from rebat.core.units import US_PER_S, to_s
from rebat.results.measures.platform import Window, of_jobs
from rebat.session.ledger import AttemptRecord, Drained, Ledger


class Migrations(msgspec.Struct, frozen=True):
    """Attempts that were stopped and checkpointed in a window.

    Attributes
    ----------
    count
        Number of attempts that were stopped and checkpointed.
    cost
        Core-seconds spent on checkpoints and restarts.
    moved
        Core-seconds of work that the checkpoints contain.
    by
        Number of attempts for each purpose that the policy stated.
    """

    count: int
    cost: float
    moved: float
    by: dict[str, int]


class Drains(msgspec.Struct, frozen=True):
    """Drains in a window that the administrator requested (see ``models.operations``).

    Attributes
    ----------
    nodes
        Number of drained nodes.
    emptied
        Number of drained nodes that were empty before they returned to service.
    mean_s, max_s
        Mean and maximum time, in seconds, from the drain of a node until it was empty. Only emptied
        nodes are included.
    refused
        Number of operations that were not carried out.
    """

    nodes: int
    emptied: int
    mean_s: float
    max_s: float
    refused: int


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
        then = np.flatnonzero((start_us <= drain.since_us) & (drain.since_us < end_us))
        waits_s += _waits_s([ledger.attempts[at] for at in then.tolist()], drain, cores)
    return Drains(
        nodes=sum(drain.nodes.size for drain in drained) // cores,
        emptied=len(waits_s),
        mean_s=sum(waits_s) / len(waits_s) if waits_s else 0.0,
        max_s=max(waits_s, default=0.0),
        refused=sum(window[0] <= at < window[1] for at in ledger.not_done),
    )


def _waits_s(running: list[AttemptRecord], drain: Drained, cores: int) -> list[float]:
    """Return the time from a drain until each of its nodes was empty, in seconds.

    Nodes that returned to service before they were empty are omitted. ``running`` contains the
    attempts that ran at the time of the drain.
    """
    until = dict.fromkeys((core // cores for core in drain.nodes), drain.since_us)
    for record in running:
        if record.nodes is not None and record.nodes.meets(drain.nodes):
            for node in {core // cores for core in record.nodes} & until.keys():
                until[node] = max(until[node], record.end_us)
    back = drain.until_us
    return [to_s(end - drain.since_us) for end in until.values() if back is None or end <= back]
