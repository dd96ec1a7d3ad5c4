# SPDX-License-Identifier: Apache-2.0
"""Use of spare nodes, counted second by second from the history of a run."""

from __future__ import annotations

from rebat.core.attempts import Cause
from rebat.state.ledger import AttemptRecord, Ledger

US = 1_000_000


def spare_use(ledger: Ledger, seconds: int) -> tuple[int, int]:
    """Return node-seconds of ready spare nodes, and of spare nodes that replace a failed node."""
    ready = replacing = 0
    reserved, down = set[int](), set[int]()
    groups: list[tuple[AttemptRecord, set[int], set[int]]] = []  # attempt, spares, lost nodes
    for at_us in (second * US for second in range(seconds)):
        for _, up, nodes in (event for event in ledger.node_events if event[0] == at_us):
            down = down - {*nodes} if up else down | {*nodes}
        released = set[int]()
        for _, back, nodes, why in (event for event in ledger.drain_events if event[0] == at_us):
            if why == "spare":
                reserved = reserved - {*nodes} if back else reserved | {*nodes}
                released |= {*nodes} if back else set()
        groups = [
            (after, spares & {*after.nodes}, lost & down)
            for record, spares, lost in groups
            if (after := _then(ledger, record, at_us)) is not None
        ]
        for record in (r for r in ledger.attempts if r.start_us == at_us):
            before = _before(ledger, record)
            if before is not None and before.cause == Cause.NODE_FAILURE:
                groups.append((record, released & {*record.nodes}, {*before.nodes} & down))
        ready += len(reserved - down)
        replacing += sum(min(len(spares), len(lost)) for _, spares, lost in groups)
    return ready, replacing


def _then(ledger: Ledger, record: AttemptRecord, at_us: int) -> AttemptRecord | None:
    """Return the attempt if it still runs, or its job's next one if it starts at its end."""
    if at_us < record.end_us:
        return record
    job = record.attempt.job_id
    return next(
        (r for r in ledger.attempts if r.attempt.job_id == job and r.start_us == record.end_us),
        None,
    )


def _before(ledger: Ledger, record: AttemptRecord) -> AttemptRecord | None:
    job = record.attempt.job_id
    earlier = [
        r for r in ledger.attempts
        if r.attempt.job_id == job and 0 <= r.start_us < record.start_us
    ]  # fmt: skip
    return max(earlier, key=lambda r: r.start_us, default=None)
