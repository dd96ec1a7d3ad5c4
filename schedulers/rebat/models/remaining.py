# SPDX-License-Identifier: Apache-2.0
"""What remains of a job after a stop, and when the stop takes place.

A stop is one of: an interruption, a resize, an image, or an interruption with perfect checkpoints
(Prabhakaran, Neumann and Wolf 2018). The rules of interruptions are sections 7.2.2 and 7.2.3
(Figures 14 to 18) of Du, Marchal, Pallez and Robert, "Improving Batch Schedulers with Node Stealing
for Failed Jobs", CCPE 2024. They are valid in any unit of time: the session uses whole
microseconds, the arithmetic of the authors' program (`digits=six`) uses seconds.

The authors' program represents times as floating-point numbers (double). It writes every number of
a resubmission with six significant digits (C's %g). The next resubmission is computed from these
rounded numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Generic, NamedTuple

import msgspec

from rebat.core.attempts import When
from rebat.core.options import Semantics
from rebat.core.units import to_s, to_us
from rebat.models.checkpoint import NEVER, Checkpointing, CheckpointPattern, Time
from rebat.models.interruptions import (
    NEXT,
    NOW,
    PROACTIVE,
    after_light,
    at_risk_after,
    contained_own,
    interrupted,
    paused,
    position_of,
    with_losses,
    written,
)


class RemainingTimes(NamedTuple, Generic[Time]):
    """What remains of a job after an interruption.

    Attributes
    ----------
    useful
        The part of the job's length that is kept (t_useful).
    first_period, first_recovery
        First period and first recovery of the resubmission.
    wait
        Delay until the interruption takes place (t_checkpoint).
    """

    useful: Time
    first_period: Time
    first_recovery: Time
    wait: Time


def _interrupted(
    p: CheckpointPattern[Time], run: Time, timing: int, semantics: Semantics
) -> RemainingTimes[Time]:
    authors = semantics != "paper"
    return RemainingTimes(
        *interrupted(
            p.period, p.cost, p.recovery, p.restart, p.first_period, p.first_recovery, run, timing,
            authors, p.moment,
        )
    )  # fmt: skip


def since_last_checkpoint(
    p: CheckpointPattern[Time], run: Time, semantics: Semantics
) -> RemainingTimes[Time]:
    """Interrupt a failed job, or a victim with timing T1, immediately (section 7.2.2).

    If the first checkpoint is not complete, no work is kept. In this case, the paper's resubmission
    begins with a recovery. The authors' program does not change R_first, which is 0 for a job that
    was not resubmitted.
    """
    return _interrupted(p, run, NOW, semantics)


def after_proactive_checkpoint(
    p: CheckpointPattern[Time], run: Time, semantics: Semantics
) -> RemainingTimes[Time]:
    """Write a checkpoint now, then interrupt the victim: timing T2 (Figures 14 and 15).

    In the fifth case of the figures, the current checkpoint counts as complete, as in the sum in
    the text and in the program. (Both round up; the formula in Figure 15 rounds down.)
    """
    return _interrupted(p, run, PROACTIVE, semantics)


def after_next_checkpoint(
    p: CheckpointPattern[Time], run: Time, semantics: Semantics
) -> RemainingTimes[Time]:
    """Wait for the victim's next regular checkpoint, then interrupt it: timing T3 (Figure 16).

    If the victim is still recovering, the paper interrupts it immediately. The authors' program
    waits for the victim's first checkpoint.
    """
    return _interrupted(p, run, NEXT, semantics)


Interruption = Callable[[CheckpointPattern[Any], Any, Semantics], RemainingTimes[Any]]

INTERRUPTIONS: dict[When, Interruption] = {
    When.NOW: since_last_checkpoint,
    When.CHECKPOINT: after_proactive_checkpoint,
    When.NEXT_CHECKPOINT: after_next_checkpoint,
}
"""The rule for each timing of an interruption: T1, T2, T3 of section 7.1."""


AtRisk = tuple[int, ...]
"""Work at risk (us): work that no checkpoint of a tier or of a heavier tier contains.

The first value is for regular checkpoints. The other values are for the light tiers except the
lightest. An empty tuple means that no work is at risk. A resize counts as a checkpoint in the
lightest tier, so the lightest tier needs no value.
"""


class Remaining(msgspec.Struct, frozen=True):
    """What remains of an attempt after a stop.

    Attributes
    ----------
    useful_us : int
        The part of the length that is kept (t_useful). It is negative if the stop also loses work
        of earlier attempts that no checkpoint contains.
    first_period_us, first_recovery_us : int
        First period and first recovery of the resubmission.
    wait_us : int
        Delay between the decision and the interruption (t_checkpoint).
    at_risk : tuple of int
        The part of the kept work that no checkpoint contains yet (see `AtRisk`). Work is at risk
        after a resize, and after a failure that light checkpoints survive.
    imaged : bool
        Whether an image contains all the kept work.
    written : Written, optional
        The rounded numbers of the resubmission, or None if numbers are not rounded.
    tier : int
        Number of the tier from which the job continues. 0 means regular checkpoints.
    """

    useful_us: int
    first_period_us: int
    first_recovery_us: int
    wait_us: int = 0
    at_risk: AtRisk = ()
    imaged: bool = False
    written: Written | None = None
    tier: int = 0

    @property
    def at_risk_us(self) -> int:
        """The part of the kept work that no regular checkpoint contains yet."""
        return self.at_risk[0] if self.at_risk else 0


def _risks(at_risk: AtRisk, n_tiers: int) -> tuple[int, ...]:
    """Return the work at risk with a value for each tier but the lightest."""
    n_values = max(1, n_tiers)
    return (*at_risk, *(0,) * n_values)[:n_values]


def resized(c: Checkpointing | None, run_us: int, at_risk: AtRisk = ()) -> Remaining:
    """Return what remains of a malleable job that moves to other nodes without loss or cost.

    On the new nodes, the job finishes its recovery, and repeats a checkpoint that was not complete.
    ``at_risk`` is the work that no checkpoint contained when the attempt started.
    """
    if c is None:
        return Remaining(run_us, 0, 0, at_risk=(sum(at_risk) + run_us,))
    tiers = c.light.tiers if c.light else ()
    times_us = c.period_us, c.cost_us, c.first_period_us, c.first_recovery_us
    kept_us, period_us, recovery_us = paused(len(tiers), *times_us, run_us)
    if run_us <= c.first_recovery_us:
        return Remaining(kept_us, period_us, recovery_us, at_risk=at_risk)
    own_us, begin_us, is_first = position_of(len(tiers), *times_us, run_us)
    after = tuple(
        at_risk_after(contained_own(tiers, tier, begin_us, own_us), us, own_us, 0)
        for tier, us in enumerate(_risks(at_risk if is_first else (), len(tiers)))
    )
    return Remaining(kept_us, period_us, 0, at_risk=after)


def imaged(c: Checkpointing | None, run_us: int, price_us: int) -> Remaining:
    """Return what remains when an image of the job is written.

    The cost ``price_us`` includes a full restart, so the rest of an incomplete recovery is skipped.
    An incomplete regular checkpoint is written again.
    """
    remaining = resized(c or NEVER, run_us)
    return Remaining(remaining.useful_us, remaining.first_period_us, price_us, imaged=True)


def _all_but_recovery(c: Checkpointing, run_us: int) -> Remaining:
    """Return what remains with perfect checkpoints.

    All the work is kept; only the recovery is repeated.
    """
    paid_us = min(run_us, c.first_recovery_us)
    return Remaining(run_us - paid_us, c.first_period_us, c.first_recovery_us - paid_us)


def untouched(c: Checkpointing | None) -> Remaining:
    """Return what remains of an attempt that has not run: the entire attempt."""
    return Remaining(0, c.first_period_us, c.first_recovery_us) if c else Remaining(0, 0, 0)


def remaining_after(
    c: Checkpointing | None, run_us: int, when: When, semantics: Semantics, at_risk: AtRisk = ()
) -> Remaining:
    """Return what remains after a stop. A job without checkpoints restarts from the beginning.

    ``at_risk`` is the work that no checkpoint contained when the attempt started, measured at the
    speed of the attempt. If the attempt keeps none of its own work, it is lost too.
    """
    if c is not None and c.perfect:
        return _all_but_recovery(c, run_us)
    if when == When.RESIZE:
        return resized(c, run_us, at_risk)
    at_risk_us = at_risk[0] if at_risk else 0
    if c is None:
        return Remaining(-at_risk_us, 0, 0)
    if c.never:  # the job restarts from the beginning or from its last image
        return Remaining(-at_risk_us, NEVER.first_period_us, c.image_us)
    useful_us, first_us, *others_us = INTERRUPTIONS[when](c.pattern, run_us, semantics)
    return Remaining(*with_losses(at_risk_us, useful_us, first_us), *others_us)


def after_light_failure(c: Checkpointing, run_us: int, at_risk: AtRisk, tier: int) -> Remaining:
    """Return what remains after a failure that a light tier, and no lighter one, survives.

    See `rebat.models.interruptions.after_light`.
    """
    assert c.light is not None
    n_tiers = len(c.light.tiers)
    after = [0] * n_tiers
    useful_us, first_us, recovery_us, loaded = after_light(
        c.light.tiers, tier, c.period_us, c.cost_us, c.recovery_us, c.first_period_us,
        c.first_recovery_us, run_us, _risks(at_risk, n_tiers), after,
    )  # fmt: skip
    return Remaining(useful_us, first_us, recovery_us, at_risk=tuple(after), tier=loaded)


def resumed(c: Checkpointing | None, remaining: Remaining) -> Checkpointing | None:
    """Return the checkpointing of the resubmission.

    Until the job writes a checkpoint, each restart loads the image and has the same cost.
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


RJMS_DELAY_S = 5.0
"""Seconds that Batsched adds to every walltime when it plans (Batsched's option rjms_delay)."""


class Written(msgspec.Struct, frozen=True):
    """The numbers of a resubmission with six digits, and the unrounded wait before the stop."""

    delay_s: float
    walltime_s: float
    period_s: float
    cost_s: float
    recovery_s: float
    first_period_s: float
    first_recovery_s: float
    wait_s: float


def written_us(us: int) -> int:
    """Return a time in microseconds, rounded to six significant digits in seconds."""
    return to_us(written(to_s(us)))


def period_as_forwarded_s(period_s: float, cost_s: float, n_nodes: int) -> float:
    """Return the checkpoint period in seconds, as the program computes it from a rounded rate.

    T = sqrt(2C / (lambda p)), where lambda has six decimals in units of 1e-8 per second.

    >>> round(period_as_forwarded_s(3600.0, 300.0, 8192), 5)
    3600.00107
    """
    rate = round(2e8 * cost_s / (period_s**2 * n_nodes), 6)
    return math.sqrt(2 * cost_s / (rate * 1e-8 * n_nodes)) if rate else period_s


def in_seconds(c: Checkpointing, period_s: float) -> CheckpointPattern[float]:
    """Return the pattern of an execution in seconds.

    ``period_s`` is the unrounded period of the execution.
    """
    first_s = period_s if c.first_period_us == c.period_us else to_s(c.first_period_us)
    return CheckpointPattern(
        period_s,
        to_s(c.cost_us),
        to_s(c.recovery_us),
        first_s,
        to_s(c.first_recovery_us),
        to_s(c.restart_us),
        0.1,
    )


def resubmission(
    p: CheckpointPattern[float],
    delay_s: float,
    walltime_s: float,
    run_s: float,
    when: When,
    semantics: Semantics,
) -> Written:
    """Return the numbers of a resubmission after an attempt that ran for ``run_s``."""
    left = INTERRUPTIONS[when](p, run_s, semantics)
    recovery = left.first_recovery
    bare_walltime_s = (walltime_s + RJMS_DELAY_S - p.first_recovery) - RJMS_DELAY_S
    return Written(
        written(recovery + (delay_s - p.first_recovery) - left.useful),
        written(recovery + bare_walltime_s - left.useful),
        written(p.period),
        written(p.cost),
        written(p.recovery),
        written(left.first_period),
        written(recovery),
        left.wait,
    )
