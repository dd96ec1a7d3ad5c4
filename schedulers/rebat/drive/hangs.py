# SPDX-License-Identifier: Apache-2.0
"""The tables of attempts that hang after a failure, and their records."""

from __future__ import annotations

from typing import Any

import numpy as np

from rebat.core.options import ANY, HUNG, Recovery
from rebat.drive.tiers import NumberOf
from rebat.state import tables
from rebat.state.ledger import Ledger
from rebat.state.rows import array_of

NO_CAUSE = -1
"""The number of a cause that no failure has."""


def causes_of(recovery: Recovery) -> list[str]:
    """Return the causes for which a stage has a duration, and `ANY`."""
    named = (cause for stage in recovery.stages.values() for cause, _ in stage.by_cause)
    return [*dict.fromkeys([ANY, *named])]


def hangs_for(
    recovery: Recovery, number_of: NumberOf, n_attempts: int, compiled: bool = False
) -> tables.Hangs:
    """Return the tables for stages of constant durations, with space for a number of attempts."""
    rows = []
    for cause in causes_of(recovery):
        times_us = recovery.drawn_us(recovery.stages, cause)
        hung_us = sum(times_us.get(name, 0) for name in HUNG)
        number = NO_CAUSE if cause == ANY else number_of(cause)
        rows.append(tables.Stage(number, hung_us, times_us.get("init", 0)))
    attempts = np.zeros((n_attempts, tables.ENDED + 1), dtype=np.int64)
    return tables.Hangs(array_of(tables.Stage, rows) if compiled else rows, attempts)


def least_hang_us(recovery: Recovery) -> int:
    """Return the shortest time above 0 for which an attempt hangs, or 0 if none hangs."""
    rows = hangs_for(recovery, lambda _: 0, 0).stages
    return min((row.hung for row in rows if row.hung), default=0)


def dead_us(ledger: Ledger) -> int:
    """Return the node time of attempts on nodes that were down, while they hung."""
    attempts, total_us = ledger.attempts, 0
    hung = np.flatnonzero(attempts.column("hung_us") > 0)
    end_us = attempts.column("end_us")
    outages = ledger.node_events.outages(int(end_us.max(initial=0)))
    for place in hung.tolist():
        record = attempts[place]
        since_us, until_us = record.end_us - record.hung_us, record.end_us
        overlaps = (outages.down_us < until_us) & (outages.up_us > since_us)
        for node, down_us, up_us in outages.at(overlaps).rows():
            if record.nodes and node in record.nodes:
                total_us += min(up_us, until_us) - max(down_us, since_us)
    return total_us


def stages_of(recovery: Recovery, causes: list[str], numbers: Any) -> list[dict[str, int]]:
    """Return the durations of the stages (us) after failures with these numbers of causes."""
    stages = recovery.stages
    by_number = {
        number: recovery.drawn_us(stages, causes[number]) for number in {*numbers.tolist()}
    }
    return [by_number[number] for number in numbers.tolist()]
