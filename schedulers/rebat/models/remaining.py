# SPDX-License-Identifier: Apache-2.0
"""What remains of a job after a stop, in microseconds.

The stop is an interruption (``interruptions``), a resize, an image, or an interruption with perfect
checkpoints (Prabhakaran, Neumann and Wolf 2018).
"""

from __future__ import annotations

import msgspec

from rebat.core.attempts import When
from rebat.core.dialect import Semantics
from rebat.models.checkpoint import NEVER, Checkpointing
from rebat.models.interruptions import INTERRUPTIONS
from rebat.models.six_digits import Written


class Remaining(msgspec.Struct, frozen=True):
    """What remains of an attempt after a stop.

    Attributes
    ----------
    useful_us : int
        The part of the length that is kept (t_useful). It is negative if work of earlier attempts,
        which no checkpoint contains, is lost.
    first_period_us, first_recovery_us : int
        First period and first recovery of the resubmission.
    wait_us : int
        Delay between the decision and the interruption (t_checkpoint).
    at_risk_us : int
        The part of the kept work that no checkpoint contains yet, after a resize.
    imaged : bool
        Whether an image contains all the kept work.
    written : Written, optional
        The rounded numbers with which the resubmission is registered; None: not rounded.
    """

    useful_us: int
    first_period_us: int
    first_recovery_us: int
    wait_us: int = 0
    at_risk_us: int = 0
    imaged: bool = False
    written: Written | None = None


def resized(c: Checkpointing | None, run_us: int, at_risk_us: int = 0) -> Remaining:
    """Return what remains when a malleable job changes its nodes, without loss or cost.

    The job finishes its recovery on the new nodes, and writes an incomplete checkpoint again.
    ``at_risk_us`` is the work that no checkpoint contained when the attempt started.
    """
    if c is None:
        return Remaining(run_us, 0, 0, at_risk_us=at_risk_us + run_us)
    in_first = run_us - c.first_recovery_us
    if in_first <= 0:
        return Remaining(0, c.first_period_us, -in_first, at_risk_us=at_risk_us)
    if run_us <= c.first_end_us:
        worked_us = min(in_first, c.first_period_us)
        left_us = c.first_period_us - worked_us
        return Remaining(worked_us, left_us, 0, at_risk_us=at_risk_us + worked_us)
    position_us = (run_us - c.first_end_us) % c.cycle_us
    worked_us = min(position_us, c.period_us)
    kept_us = in_first - (position_us - worked_us)
    return Remaining(kept_us, c.period_us - worked_us, 0, at_risk_us=worked_us)


def imaged(c: Checkpointing | None, run_us: int, price_us: int) -> Remaining:
    """Return what remains when an image of the job is written; ``price_us`` is the cost.

    The cost includes a full restart, so an incomplete recovery is not continued. An incomplete
    regular checkpoint is written again.
    """
    remaining = resized(c or NEVER, run_us)
    return Remaining(remaining.useful_us, remaining.first_period_us, price_us, imaged=True)


def _all_but_recovery(c: Checkpointing, run_us: int) -> Remaining:
    """Return what remains with perfect checkpoints: everything except the recovery."""
    paid_us = min(run_us, c.first_recovery_us)
    return Remaining(run_us - paid_us, c.first_period_us, c.first_recovery_us - paid_us)


def untouched(c: Checkpointing | None) -> Remaining:
    """Return what remains of an attempt that has not run: the entire attempt."""
    return Remaining(0, c.first_period_us, c.first_recovery_us) if c else Remaining(0, 0, 0)


def remaining_after(
    c: Checkpointing | None, run_us: int, when: When, semantics: Semantics, at_risk_us: int = 0
) -> Remaining:
    """Return what remains after a stop; a job without checkpoints starts over, at no cost.

    ``at_risk_us`` is the work that no checkpoint contained when the attempt started, at the speed
    of the attempt. If the attempt keeps nothing of its own work, this work is lost too. It is
    repeated before the first checkpoint.
    """
    if c is not None and c.perfect:
        return _all_but_recovery(c, run_us)
    if when == When.RESIZE:
        return resized(c, run_us, at_risk_us)
    if c is None:
        return Remaining(-at_risk_us, 0, 0)
    if c.never:  # the job restarts from the beginning or from its last image
        return Remaining(-at_risk_us, NEVER.first_period_us, c.image_us)
    remaining = Remaining(*INTERRUPTIONS[when](c.pattern, run_us, semantics))
    if not at_risk_us or remaining.useful_us > 0:
        return remaining
    return msgspec.structs.replace(
        remaining,
        useful_us=-at_risk_us,
        first_period_us=remaining.first_period_us + at_risk_us,
    )


def after_light_failure(c: Checkpointing, run_us: int, at_risk_us: int) -> Remaining:
    """Return what remains after a failure that the light checkpoints survive.

    The job continues from its last light checkpoint. Work since the last regular checkpoint is at
    risk: a failure that light checkpoints do not survive loses it.
    """
    assert c.light is not None
    if run_us <= c.first_recovery_us:  # it loads the same checkpoint again
        recovery_us = c.light.recovery_us if at_risk_us else c.recovery_us
        return Remaining(0, c.first_period_us, recovery_us, at_risk_us=at_risk_us)
    left = resized(c, run_us, at_risk_us)
    part_us = left.at_risk_us - (at_risk_us if run_us <= c.first_end_us else 0)
    undone_us = part_us - c.light.complete_us(part_us)
    return msgspec.structs.replace(
        left,
        useful_us=left.useful_us - undone_us,
        first_period_us=left.first_period_us + undone_us,
        first_recovery_us=c.light.recovery_us,
        at_risk_us=left.at_risk_us - undone_us,
    )


def resumed(c: Checkpointing | None, remaining: Remaining) -> Checkpointing | None:
    """Return the checkpointing of the resubmission.

    Until the job writes a checkpoint, each restart is from the image and has the same cost.
    """
    if c is None and not remaining.imaged:
        return None
    c = c or NEVER
    image_us = c.image_us if remaining.at_risk_us >= remaining.useful_us else 0
    return msgspec.structs.replace(
        c,
        image_us=remaining.first_recovery_us if remaining.imaged else image_us,
        first_period_us=remaining.first_period_us,
        first_recovery_us=remaining.first_recovery_us,
    )


def resumed_length_us(length_us: int, c: Checkpointing | None, remaining: Remaining) -> int:
    """Return the remaining length or walltime, t' = R'_first + (t - R_first) - t_useful (eq. 4)."""
    recovery_us = c.first_recovery_us if c else 0
    return remaining.first_recovery_us + (length_us - recovery_us) - remaining.useful_us
