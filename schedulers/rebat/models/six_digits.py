# SPDX-License-Identifier: Apache-2.0
"""Numbers as the node-stealing authors' program has them (`digits=six`).

It computes in doubles, in seconds, and writes every number of a resubmission with six significant
digits (C's %g); the next resubmission starts from what was written.
"""

from __future__ import annotations

import math

import msgspec

from rebat.core.attempts import When
from rebat.core.dialect import Semantics
from rebat.core.units import to_s, to_us
from rebat.models.checkpoint import Checkpointing
from rebat.models.interruptions import INTERRUPTIONS, CheckpointPattern

RJMS_DELAY_S = 5.0
"""What Batsched adds to every walltime when it plans (its option rjms_delay)."""


class Written(msgspec.Struct, frozen=True):
    """A resubmission as it is written, six digits each, and how long its stop waits (unrounded)."""

    delay_s: float
    walltime_s: float
    period_s: float
    cost_s: float
    recovery_s: float
    first_period_s: float
    first_recovery_s: float
    wait_s: float


def written(seconds: float) -> float:
    """A number with six significant digits.

    >>> written(80906.155), written(2545.584412)
    (80906.2, 2545.58)
    """
    return float(f"{seconds:.6g}")


def written_us(us: int) -> int:
    """The same of microseconds, written in seconds."""
    return to_us(written(to_s(us)))


def period_as_forwarded_s(period_s: float, cost_s: float, n_nodes: int) -> float:
    """T = sqrt(2C / (lambda p)), lambda with six decimals in units of 1e-8 a second.

    >>> round(period_as_forwarded_s(3600.0, 300.0, 8192), 5)
    3600.00107
    """
    rate = round(2e8 * cost_s / (period_s**2 * n_nodes), 6)
    return math.sqrt(2 * cost_s / (rate * 1e-8 * n_nodes)) if rate else period_s


def in_seconds(c: Checkpointing, period_s: float) -> CheckpointPattern[float]:
    """How an execution checkpoints, in doubles; ``period_s`` stands for its rounded period."""
    first_s = period_s if c.first_period_us == c.period_us else to_s(c.first_period_us)
    return CheckpointPattern(
        period_s, to_s(c.cost_us), to_s(c.recovery_us), first_s,
        to_s(c.first_recovery_us), to_s(c.restart_us), 0.1,
    )  # fmt: skip


def resubmission(
    p: CheckpointPattern[float], delay_s: float, walltime_s: float, run_s: float, when: When,
    semantics: Semantics,
) -> Written:  # fmt: skip
    """What the program writes of an attempt that is stopped after having run so long."""
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
