# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of the node-stealing authors' program (`digits=six`).

The program represents times as floating-point numbers (double) in seconds. It writes every number
of a resubmission with six significant digits (C's %g). The next resubmission is computed from these
rounded numbers.
"""

from __future__ import annotations

import math

import msgspec

from rebat.core.attempts import When
from rebat.core.options import Semantics
from rebat.core.units import to_s, to_us
from rebat.models.checkpoint import Checkpointing
from rebat.models.interruptions import INTERRUPTIONS, CheckpointPattern

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


def written(seconds: float) -> float:
    """Return a number rounded to six significant digits.

    >>> written(80906.155), written(2545.584412)
    (80906.2, 2545.58)
    """
    return float(f"{seconds:.6g}")


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
