# SPDX-License-Identifier: Apache-2.0
"""What remains of a job after it was stopped, in microseconds: interrupted (``interruptions``),
resized or with perfect checkpoints (Prabhakaran, Neumann and Wolf 2018), or as an image.
"""

from __future__ import annotations

import msgspec

from rebat.core.attempts import When
from rebat.core.dialect import Semantics
from rebat.models.checkpoint import NEVER, Checkpointing
from rebat.models.interruptions import INTERRUPTIONS
from rebat.models.six_digits import Written


class Remaining(msgspec.Struct, frozen=True):
    """What an interruption leaves: ``useful_us`` of the length is kept (t_useful).

    ``first_period_us`` and ``first_recovery_us`` are those of the resubmission, and ``wait_us`` is
    how long after the decision the interruption takes place (t_checkpoint). ``at_risk_us`` of what
    is kept is in no checkpoint yet: a job that is resized takes it along. Where that is lost after
    all, ``useful_us`` is below 0. ``imaged``: an image holds all that is kept. ``written``: with
    what the resubmission is registered, where that is not the same to the last digit.
    """

    useful_us: int
    first_period_us: int
    first_recovery_us: int
    wait_us: int = 0
    at_risk_us: int = 0
    imaged: bool = False
    written: Written | None = None


def resized(c: Checkpointing | None, run_us: int, at_risk_us: int = 0) -> Remaining:
    """A malleable job gives or takes nodes and computes on: nothing is lost, nothing is paid.

    What it has still to recover it recovers on the other nodes; a checkpoint that is being written
    is written anew. ``at_risk_us`` is what it brought along that was in no checkpoint.
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
    into = (run_us - c.first_end_us) % c.cycle_us
    worked_us = min(into, c.period_us)
    kept_us = in_first - (into - worked_us)
    return Remaining(kept_us, c.period_us - worked_us, 0, at_risk_us=worked_us)


def imaged(c: Checkpointing | None, run_us: int, price_us: int) -> Remaining:
    """A job is checkpointed as it is, whatever it does itself, and restarted for a price.

    What it had still to recover it does not recover: the price is that of a whole restart. A
    regular checkpoint that is being written is written anew.
    """
    kept = resized(c or NEVER, run_us)
    return Remaining(kept.useful_us, kept.first_period_us, price_us, imaged=True)


def _all_but_recovery(c: Checkpointing, run_us: int) -> Remaining:
    """Perfect checkpoints keep all; a recovery is the price of a resize."""
    paid_us = min(run_us, c.first_recovery_us)
    return Remaining(run_us - paid_us, c.first_period_us, c.first_recovery_us - paid_us)


def untouched(c: Checkpointing | None) -> Remaining:
    """What remains of an attempt that has not run: all of it."""
    return Remaining(0, c.first_period_us, c.first_recovery_us) if c else Remaining(0, 0, 0)


def remaining_after(
    c: Checkpointing | None, run_us: int, when: When, semantics: Semantics, at_risk_us: int = 0
) -> Remaining:
    """What remains after a stop; a job without checkpoints starts over, at no cost.

    ``at_risk_us`` is what the attempt brought along that was in no checkpoint, at its own speed:
    where it has kept nothing itself, that is lost, too, and to be done before its first checkpoint.
    """
    if c is not None and c.perfect:
        return _all_but_recovery(c, run_us)
    if when == When.RESIZE:
        return resized(c, run_us, at_risk_us)
    if c is None:
        return Remaining(-at_risk_us, 0, 0)
    if c.never:  # it begins anew, or from its last image
        return Remaining(-at_risk_us, NEVER.first_period_us, c.image_us)
    remaining = Remaining(*INTERRUPTIONS[when](c.pattern, run_us, semantics))
    if not at_risk_us or remaining.useful_us > 0:
        return remaining
    return msgspec.structs.replace(
        remaining,
        useful_us=-at_risk_us,
        first_period_us=remaining.first_period_us + at_risk_us,
    )


def resumed(c: Checkpointing | None, remaining: Remaining) -> Checkpointing | None:
    """The checkpointing of the resubmission.

    It goes back to its image, for the same price each time, until it writes a checkpoint.
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
    """t' = R'_first + (t - R_first) - t_useful, for a length or a walltime (eq. 4)."""
    recovered = c.first_recovery_us if c else 0
    return remaining.first_recovery_us + (length_us - recovered) - remaining.useful_us
