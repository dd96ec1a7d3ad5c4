# SPDX-License-Identifier: Apache-2.0
"""Rules of interruptions, and numbers with six digits, for all who stop attempts.

The rules are sections 7.2.2 and 7.2.3 (Figures 14 to 18) of Du, Marchal, Pallez and Robert,
"Improving Batch Schedulers with Node Stealing for Failed Jobs", CCPE 2024.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rebat.kernels.jit import rule

NOW, PROACTIVE, NEXT = range(3)
"""Timings of stops: T1, T2, T3 of section 7.1."""

TENS = np.array([float(f"1e{power}") for power in range(23)])
"""The powers of ten that a double represents exactly."""

HALVES = 2.0**27 + 1
"""Factor that splits a double into two halves (Veltkamp)."""


@rule
def interrupted(  # noqa: PLR0911 (a case each)
    period: Any, cost: Any, load: Any, restart: Any, first: Any, recovery: Any, run: Any,
    timing: int, authors: bool, moment: Any,
) -> Any:  # fmt: skip
    """Return the progress that is kept, the first period, the first recovery and the wait.

    ``load`` is the time to load a checkpoint, and ``restart`` that to restart from the state with
    which the execution began. ``moment`` is the time after which the authors' program stops a
    victim that still recovers (timing T2). The values are integers (microseconds) or floats
    (seconds), as the arguments.
    """
    nothing, first_end, cycle = 0 * run, recovery + first + cost, period + cost
    if timing == NOW:
        if run <= first_end:
            return nothing, first, recovery if authors else restart, nothing
        return first + cost + (run - first_end) // cycle * cycle, period, load, nothing
    if timing == PROACTIVE:
        in_first = run - recovery
        if in_first <= 0:
            return nothing, first, restart, moment if authors else nothing
        if in_first <= first:
            return in_first, first - in_first, load, cost
        if run <= first_end:
            return first + cost, period, load, first_end - run
        cycles, position = (run - first_end) // cycle, (run - first_end) % cycle
        if position <= period:
            return in_first, period - position, load, cost
        return first + cost + (cycles + 1) * cycle, period, load, cycle - position
    if run <= recovery and not authors:
        return nothing, first, restart, nothing
    useful = first + cost + max(nothing, -((first_end - run) // cycle)) * cycle
    return useful, period, load, recovery + useful - run


@rule
def written(seconds: float) -> float:
    """Return a number rounded to six significant digits, exactly as text (``%.6g``) would be.

    >>> written(80906.155), written(2545.584412)
    (80906.2, 2545.58)
    """
    if seconds <= 0:
        return -written(-seconds) if seconds < 0 else 0.0
    power = 5 - math.floor(math.log10(seconds))
    if power < 0:
        unit = TENS[-power]
        whole = math.floor(seconds / unit)
        above, error = seconds - (whole + 0.5) * unit, 0.0
    else:
        unit = TENS[power]
        product = seconds * unit
        big = seconds * HALVES
        high = big - (big - seconds)
        big = unit * HALVES
        unit_high = big - (big - unit)
        low, unit_low = seconds - high, unit - unit_high
        error = ((high * unit_high - product) + high * unit_low + low * unit_high) + low * unit_low
        whole = math.floor(product)
        above = product - whole - 0.5
    if above > 0 or (above == 0 and (error > 0 or (error == 0 and whole % 2 == 1))):
        whole += 1
    return float(whole * unit if power < 0 else whole / unit)
