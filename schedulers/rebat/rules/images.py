# SPDX-License-Identifier: Apache-2.0
"""Rules: images of jobs, which the batch system writes when operations stop them.

The argument ``operations`` is a `rebat.state.operations.Operations`, or None without operations.
Until an attempt writes a checkpoint, each restart loads the image with which the attempt began.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels.jit import inlined_rule
from rebat.models.checkpoint import NEVER
from rebat.models.interruptions import paused
from rebat.state import codes
from rebat.state.operations import N_NOTES, N_STARTS, PRICE

ENDLESS_US = NEVER.period_us
"""The period of a job that writes no checkpoint."""


@inlined_rule
def note_start(operations: Any, a: int) -> None:
    """Note the place of an attempt among all starts."""
    if operations is not None:
        operations.own[N_STARTS] += 1
        operations.started[a] = operations.own[N_STARTS]


@inlined_rule
def add_note(
    operations: Any, operation: int, why: int, attempt: int, detail: int, now: int
) -> None:  # fmt: skip
    """Add a note. The decision to report it is the caller's."""
    if operations is not None:
        row = operations.notes[operations.own[N_NOTES]]
        row.at, row.operation, row.why = now, operation, why
        row.attempt, row.detail = attempt, detail
        operations.own[N_NOTES] += 1


@inlined_rule
def note_stay(operations: Any, a: int, node: int, now: int) -> None:
    """Note that a stopped attempt cannot move, because a node is not free."""
    add_note(operations, -1, codes.NOT_MOVED, a, node, now)


@inlined_rule
def restart_of(operations: Any, a: int, restart: int) -> int:
    """Return the cost to restart from the state with which an attempt began."""
    if operations is not None and operations.image[a] > 1:
        return int(operations.image[a]) - 1
    return restart


@inlined_rule
def without_checkpoints(operations: Any, a: int, first: int) -> Any:
    """Return the first period and the recovery of a job that writes none, after an interruption."""
    if operations is not None and operations.image[a] > 0:
        return ENDLESS_US, int(operations.image[a]) - 1
    return first, 0


@inlined_rule
def imaged(
    operations: Any, j: int, writes: bool, period: int, cost: int, first: int, recovery: int,
    run: int,
) -> Any:  # fmt: skip
    """Return what remains of an attempt after its image is written (`rebat.rules.stops`)."""
    if operations is not None:
        if not writes:
            period, cost = ENDLESS_US, 0
            first = first if first > 0 else ENDLESS_US
        useful, left, _ = paused(0, period, cost, first, recovery, run)
        return useful, left, int(operations.jobs[j, PRICE]), 0
    return 0, first, recovery, 0


@inlined_rule
def is_imaged(operations: Any, a: int) -> bool:
    """Return whether an attempt began with an image."""
    if operations is not None:
        return bool(operations.image[a] > 0)
    return False


@inlined_rule
def note_image(
    operations: Any, a: int, b: int, timing: int, saved: int, recovery: int
) -> bool:  # fmt: skip
    """Note the image with which the next attempt ``b`` begins. Return whether there is one.

    ``saved`` is the progress of attempt ``a`` that a regular checkpoint contains.
    """
    if operations is not None:
        if timing == codes.IMAGE:
            operations.image[b] = recovery + 1
        elif saved <= 0:
            operations.image[b] = operations.image[a]
    return is_imaged(operations, b)
