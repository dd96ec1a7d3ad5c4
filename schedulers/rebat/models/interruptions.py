# SPDX-License-Identifier: Apache-2.0
"""Rules of interruptions, and numbers with six digits, for all who stop attempts.

The rules of stops are sections 7.2.2 and 7.2.3 (Figures 14 to 18) of Du, Marchal, Pallez and
Robert, "Improving Batch Schedulers with Node Stealing for Failed Jobs", CCPE 2024.

The rules of failures that light checkpoints survive number the tiers: 0 is regular checkpoints, 1
the heaviest light tier. Their argument ``tiers`` contains the light tiers from the lightest to the
heaviest, as `rebat.models.checkpoint.LightTier` or as rows of `rebat.state.tables.Tier`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rebat.kernels.jit import inlined_rule, rule

NOW, PROACTIVE, NEXT = range(3)
"""Timings of stops: T1, T2, T3 of section 7.1."""

PROCESS, NODE, GROUP, ALL_FAIL = range(4)
"""The failures that a tier survives: of software, of a node, of a group of nodes, and others."""

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


# ---- tiers of checkpoints


@inlined_rule
def level_of(is_software: bool, first: int, last: int, group: int) -> int:
    """Return which failure this is. ``first`` and ``last`` are the extreme nodes that failed.

    ``group`` is the number of consecutive nodes that form a group.
    """
    if is_software:
        return PROCESS
    if first == last:
        return NODE
    return GROUP if first // group == last // group else ALL_FAIL


@rule
def surviving_tier(tiers: Any, level: int) -> int:
    """Return the number of the lightest tier that survives a failure."""
    for i in range(len(tiers)):
        if tiers[i].level >= level:
            return len(tiers) - i
    return 0


@rule
def contained(tiers: Any, tier: int, worked: int) -> int:
    """Return the progress in the last checkpoint of a light tier or of a heavier light tier.

    ``worked`` is the progress in a period of the regular checkpoints.
    """
    done, rest = 0, worked
    for i in range(len(tiers) - 1, len(tiers) - tier - 1, -1):
        part = tiers[i].period_us + tiers[i].cost_us
        done += rest // part * part
        rest = min(rest % part, tiers[i].period_us)  # lighter checkpoints come first
    return done


@rule
def contained_own(tiers: Any, tier: int, begin: int, own: int) -> int:
    """Return the progress of an attempt at its last checkpoint of a tier, or 0 if there is none.

    The attempt began its own work at the position ``begin`` in the period. Regular checkpoints are
    only at the end of a period.
    """
    return max(0, contained(tiers, tier, begin + own) - begin) if tier else 0


@inlined_rule
def with_losses(at_risk: int, useful: Any, first: Any) -> Any:
    """Return the progress that is kept and the first period, given the work at risk before.

    If an attempt keeps none of its own work, the work at risk is lost too. The job repeats this
    work before its first checkpoint.
    """
    if at_risk and useful <= 0:
        return -at_risk, first + at_risk
    return useful, first


@inlined_rule
def at_risk_after(saved: int, before: int, keeps: int, lost: int) -> int:
    """Return the work at risk in a tier. ``saved`` is the attempt's last checkpoint in it.

    The attempt keeps ``keeps`` of its own work, and loses ``lost`` of the older work at risk.
    """
    return keeps - saved if saved else max(0, before + keeps - lost)


@rule
def position_of(
    n_tiers: int, period: int, cost: int, first: int, recovery: int, run: int
) -> tuple[int, int, bool]:
    """Return the position of an attempt that has loaded its checkpoint.

    It consists of the attempt's own progress without an incomplete regular checkpoint, the position
    in the period at which this work began, and whether no regular checkpoint is complete. If there
    is a single light tier, its parts are counted from the start of the attempt.
    """
    if run <= recovery + first + cost:
        return min(run - recovery, first), period - first if n_tiers > 1 else 0, True
    return min((run - recovery - first - cost) % (period + cost), period), 0, False


@rule
def paused(
    n_tiers: int, period: int, cost: int, first: int, recovery: int, run: int
) -> tuple[int, int, int]:
    """Return what remains of an attempt that loses no work: the progress, the first period, and
    the rest of the recovery.

    An incomplete regular checkpoint is written again.
    """
    if run <= recovery:
        return 0, first, recovery - run
    own, _, is_first = position_of(n_tiers, period, cost, first, recovery, run)
    if is_first:
        return own, first - own, 0
    beyond = run - recovery - first - cost
    return run - recovery - beyond % (period + cost) + own, period - own, 0


@rule
def after_light(
    tiers: Any, tier: int, period: int, cost: int, load: int, first: int, recovery: int, run: int,
    before: Any, after: Any,
) -> Any:  # fmt: skip
    """Return what remains after a failure that a light tier, and no lighter one, survives.

    The job continues from its last checkpoint of this tier or of a heavier tier. The work since the
    last checkpoint of each heavier tier stays at risk until the next checkpoint of this tier. The
    values are the progress that is kept, the first period, the first recovery, and the number of
    the tier. ``before`` is the work at risk in each tier when the attempt started, ``after`` that
    of the resubmission.
    """
    n = len(tiers)
    if run <= recovery:
        loaded = 0  # the tier of the checkpoint that the attempt loads
        for i in range(n):
            loaded += before[i] > 0
        if tier >= loaded:  # the job loads the same checkpoint again
            for i in range(n):
                after[i] = before[i]
            return 0, first, tiers[n - loaded].recovery_us if loaded else load, loaded
        own, begin, is_first, useful, left = 0, 0, True, 0, first
    else:
        own, begin, is_first = position_of(n, period, cost, first, recovery, run)
        useful, left = own, (first if is_first else period) - own
        if not is_first:
            useful += (run - recovery - first - cost) // (period + cost) * (period + cost)
            useful += first + cost
    keeps = contained_own(tiers, tier, begin, own)
    lost = int(before[tier]) if is_first and not keeps and tier < n else 0
    undone = own - keeps + lost
    for i in range(n):
        after[i] = 0
        if i < tier:
            saved = contained_own(tiers, i, begin, own)
            after[i] = at_risk_after(saved, int(before[i]) if is_first else 0, keeps, lost)
    return useful - undone, left + undone, tiers[n - tier].recovery_us, tier


# ---- numbers with six digits


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
