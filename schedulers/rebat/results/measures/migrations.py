# SPDX-License-Identifier: Apache-2.0
"""Checkpoints and restarts: how many, for what, and what they cost; drains and how long they took.

After Rodríguez-Pascual et al., "Job migration in HPC clusters by means of checkpoint/restart",
2019.
"""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np

from rebat.core.units import US_PER_S, to_s
from rebat.results.measures.platform import Window, column
from rebat.session.ledger import AttemptRecord, Drained, Ledger


class Migrations(msgspec.Struct, frozen=True):
    """Of a window: attempts that were checkpointed in it, and what followed.

    ``cost`` are core-seconds of checkpoints and restarts, ``moved`` core-seconds of work that the
    images held; ``by`` counts what they were for, in the words of the policy.
    """

    count: int
    cost: float
    moved: float
    by: dict[str, int]


class Drains(msgspec.Struct, frozen=True):
    """Operations of a window: nodes drained, how many of them got empty before they
    were taken back, and how long that took in the mean and at the most (s); ``refused`` counts the
    operations that were not carried out."""

    nodes: int
    emptied: int
    mean_s: float
    max_s: float
    refused: int


def migrations(ledger: Ledger, window: Window) -> Migrations:
    """Count checkpoints and restarts."""
    first, last = window
    by: Counter[str] = Counter()
    cost_us, moved_us = 0, 0
    kept_us = dict.fromkeys((r.attempt.job_id for r in ledger.attempts if r.imaged), 0)
    for record in ledger.attempts:  # those of a job in their order
        attempt, cores = record.attempt, record.attempt.n_nodes
        if record.start_us < 0:
            continue
        if record.checkpointing and record.checkpointing.image_us:
            paid = min(record.start_us + record.checkpointing.first_recovery_us, record.end_us)
            cost_us += max(0, min(paid, last) - max(record.start_us, first)) * cores
        if attempt.job_id in kept_us:
            kept_us[attempt.job_id] += (record.useful_us - record.lost_us) * cores
        if record.imaged and first <= record.end_us < last:
            by[record.why or str(record.cause)] += 1
            moved_us += kept_us[attempt.job_id]
    return Migrations(by.total(), cost_us / US_PER_S, moved_us / US_PER_S, dict(sorted(by.items())))


def drains(ledger: Ledger, window: Window, cores: int = 1) -> Drains:
    """How long drained nodes took to get empty."""
    asked = [
        one
        for one in ledger.drained
        if one.why == "operation"
        and window[0] <= one.since_us < window[1]
        and one.until_us != one.since_us  # it was refused
    ]
    waits_s: list[float] = []
    start_us, end_us = (column(ledger.attempts, name) for name in ("start_us", "end_us"))
    for one in asked:
        then = np.flatnonzero((start_us <= one.since_us) & (one.since_us < end_us))
        waits_s += _waits_s([ledger.attempts[at] for at in then.tolist()], one, cores)
    return Drains(
        nodes=sum(one.nodes.size for one in asked) // cores,
        emptied=len(waits_s),
        mean_s=sum(waits_s) / len(waits_s) if waits_s else 0.0,
        max_s=max(waits_s, default=0.0),
        refused=sum(window[0] <= at < window[1] for at in ledger.not_done),
    )


def _waits_s(ran: list[AttemptRecord], one: Drained, cores: int) -> list[float]:
    """Of the nodes that got empty, how long each took; ``ran`` when they were drained."""
    until = dict.fromkeys((core // cores for core in one.nodes), one.since_us)
    for record in ran:
        if record.nodes is not None and record.nodes.meets(one.nodes):
            for node in {core // cores for core in record.nodes} & until.keys():
                until[node] = max(until[node], record.end_us)
    back = one.until_us
    return [to_s(end - one.since_us) for end in until.values() if back is None or end <= back]
