# SPDX-License-Identifier: Apache-2.0
"""Tiers of checkpoints: own memory, local disk, memory of another node or group, remote storage.

If an interval is not set, the best interval is used. For one and two tiers this is the first-order
optimum (see `ettr_tiers`). For more tiers it is found by a search (see `ettr_levels`).
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise

import msgspec
import numpy as np

from rebat.core.errors import InputError, unknown_name
from rebat.core.job_table import Ints
from rebat.core.jobs import Workload
from rebat.core.table import Column
from rebat.core.units import FOREVER_US, parse_duration, to_s, to_us
from rebat.models.checkpoint import (
    LightCheckpoints,
    Survives,
    lengthened_workload,
    light_of,
    writing_us,
)
from rebat.models.ettr import Levels, best_pattern

SURVIVES: dict[str, Survives | None] = {
    "memory": "process",
    "disk": "process",
    "peer": "node",
    "group": "group",
    "remote": None,
}
"""Failures that each tier survives; None: all failures."""

USUAL = "peer=1s/30s+remote=30s/2min"
"""Default tiers: memory of a peer, and remote storage."""

FORM = "TIER=WRITE/LOAD or TIER=WRITE/LOAD@INTERVAL, joined by +, remote last: " + USUAL

RAREST = 0.01
"""Minimum share of failures that need a tier. With the share 0, a tier has no best interval."""

Shares = float | tuple[float, ...]
"""Share of the failures that the light tier survives.

With several light tiers, a share for each.
"""


class Tier(msgspec.Struct, frozen=True):
    """A tier: times to write and load a checkpoint, and work between checkpoints (s)."""

    name: str
    write_s: float
    load_s: float
    interval_s: float | None = None


class Tiers(msgspec.Struct, frozen=True):
    """Remote storage (``deep``) and light tiers.

    Each light tier survives more failures than the previous one.
    """

    deep: Tier
    lights: tuple[Tier, ...] = ()

    @property
    def all(self) -> tuple[Tier, ...]:
        """All tiers, from the lightest to the heaviest."""
        return (*self.lights, self.deep)


class TierPattern(msgspec.Struct, frozen=True):
    """A pattern of checkpoints: work (s) between checkpoints of the first tier, and counts.

    ``counts`` contains the number of checkpoints of each tier between two checkpoints of the next
    tier.
    """

    interval_s: float
    counts: tuple[int, ...] = ()

    @property
    def per_pattern(self) -> int:
        """Number of checkpoints of the first tier between two checkpoints of remote storage."""
        return math.prod(self.counts)


def parse_tiers(text: str) -> Tiers:
    """Return the tiers that a text describes.

    >>> parse_tiers("peer=1s/30s@2.6min+remote=30s/10min").lights
    (Tier(name='peer', write_s=1.0, load_s=30.0, interval_s=156.0),)
    """
    tiers = [_tier(part) for part in text.split("+")]
    last = tiers[-1]
    if SURVIVES[last.name] is not None:
        problem = f"{text!r}: {last.name} does not survive all failures"
        raise InputError(problem, expected="remote as the last tier")
    ranks = list(dict.fromkeys(SURVIVES.values()))
    for lighter, tier in pairwise(tiers):
        if ranks.index(SURVIVES[tier.name]) <= ranks.index(SURVIVES[lighter.name]):
            problem = f"{text!r}: {tier.name} survives no more failures than {lighter.name}"
            expected = "each tier at most once, in this order: memory or disk, peer, group, remote"
            raise InputError(problem, expected=expected)
    return Tiers(last, tuple(tiers[:-1]))


def _tier(text: str) -> Tier:
    name, _, rest = text.partition("=")
    if name not in SURVIVES:
        raise unknown_name("tier of checkpoints", name, SURVIVES)
    costs, at, interval = rest.partition("@")
    write, slash, load = costs.partition("/")
    if not slash:
        raise InputError(f"{text!r} is not a storage tier", expected=FORM)
    interval_s = parse_duration(interval) if at else None
    tier = Tier(name, parse_duration(write), parse_duration(load), interval_s)
    if tier.interval_s == 0 or (tier.interval_s is None and tier.write_s == 0):
        expected = "an interval above 0 after @, because writing takes no time"
        raise InputError(f"{text!r} has no interval", expected=expected)
    return tier


def pattern_of(tiers: Tiers, mtbf_s: float, light_share: Shares) -> TierPattern:
    """Return the intervals between checkpoints of each tier, for a job with this MTBF.

    For one or two tiers, these are the first-order optima. For more tiers, `best_pattern` finds
    them. ``light_share`` is the share of the failures that each light tier survives.
    """
    survived = light_share if isinstance(light_share, tuple) else (light_share,)
    shares = needed(survived[: len(tiers.lights)])
    pairs = zip(tiers.all, shares, strict=True)
    best_s = [_best_s(tier, mtbf_s, share) for tier, share in pairs]
    counts = [max(1, round(heavy_s / light_s)) for light_s, heavy_s in pairwise(best_s)]
    if len(tiers.lights) < 2:
        return TierPattern(best_s[0], tuple(counts))
    return _numerical(tiers, mtbf_s, shares, best_s)


def needed(survived: tuple[float, ...]) -> tuple[float, ...]:
    """Return the share of failures that need each tier, from the share that each light tier
    survives.

    >>> needed((0.25, 0.75))
    (0.25, 0.5, 0.25)
    """
    bounds = (0.0, *survived, 1.0)
    return tuple(high - low for low, high in pairwise(bounds))


def _numerical(
    tiers: Tiers, mtbf_s: float, shares: tuple[float, ...], start_s: list[float]
) -> TierPattern:
    """Return the best pattern for any number of tiers.

    Fixed intervals are kept (see `best_pattern`).
    """
    least = [max(share, RAREST) for share in shares]
    levels = Levels(
        mtbf_s=mtbf_s,
        shares=tuple(share / sum(least) for share in least),
        writes_s=tuple(tier.write_s for tier in tiers.all),
        loads_s=tuple(tier.load_s for tier in tiers.all),
    )
    fixed = tuple(tier.interval_s is not None for tier in tiers.all)
    interval_s, counts = best_pattern(levels, start_s, fixed)
    return TierPattern(interval_s, counts)


def _best_s(tier: Tier, mtbf_s: float, share: float) -> float:
    if tier.interval_s is not None:
        return tier.interval_s
    return math.sqrt(2 * tier.write_s * mtbf_s / max(share, RAREST))


def profile_fields(
    tiers: Tiers, pattern: TierPattern, software: str, group: int = 1
) -> tuple[dict[str, object], LightCheckpoints | None]:
    """Return the checkpoint fields of a job's profile, and the light checkpoints in them."""
    deep, fields = tiers.deep, dict[str, object]()
    part_us, columns = to_us(pattern.interval_s), []
    for tier, count in zip(tiers.lights, pattern.counts, strict=True):
        columns.append((to_s(part_us), tier.write_s, tier.load_s, SURVIVES[tier.name]))
        part_us = count * (part_us + to_us(tier.write_s))
    if columns:
        names = ("light_period", "light_cost", "light_recovery", "light_survives")
        fields = {
            name: column[0] if len(column) == 1 else list(column)
            for name, column in zip(names, zip(*columns, strict=True), strict=True)
        }
        fields["light_software"] = software
        if group > 1 and any(SURVIVES[tier.name] == "group" for tier in tiers.lights):
            fields["light_group"] = group
    period_s = to_s(part_us)
    fields |= {
        "checkpoint_period": period_s,
        "checkpoint_cost": deep.write_s,
        "recovery_cost": deep.load_s,
        "Tfirst": period_s,
        "Rfirst": 0.0,
        "checkpoint_rounding": "floor",
    }
    return fields, light_of(fields)


def add_tiers(
    workload: Workload,
    tiers: Tiers,
    *,
    n_nodes: int,
    mtbf_s: float,
    light_share: Shares,
    software: str,
    group: int = 1,
) -> Workload:
    """Return the workload with checkpoints of these tiers in all lengths and walltimes.

    Parameters
    ----------
    n_nodes : int
        Number of nodes of the machine.
    mtbf_s : float
        Mean time between failures of the machine in seconds.
    light_share : float, or tuple of float
        Share of the failures that the light tier survives. If there are several light tiers, this
        is a tuple with the share of each.
    software : str
        Causes of failures after which the node is still usable, joined by +.
    group : int
        Number of consecutive nodes that form a group, which can fail together.
    """

    @cache
    def fields_on(size: int) -> tuple[dict[str, object], LightCheckpoints | None]:
        pattern = pattern_of(tiers, mtbf_s * n_nodes / size, light_share)
        return profile_fields(tiers, pattern, software, group)

    def longer_us(lengths_us: Ints, sizes: Column) -> Ints:
        longer_us = lengths_us.copy()
        for size in np.unique(sizes).tolist():
            rows = (sizes == size) & (lengths_us < FOREVER_US)
            longer_us[rows] = _lengthened_us(lengths_us[rows], *fields_on(size))
        return longer_us

    return lengthened_workload(workload, lambda size: fields_on(size)[0], longer_us)


def _lengthened_us(
    work_us: Ints, fields: dict[str, object], light: LightCheckpoints | None
) -> Ints:
    """Return the lengths of work plus the checkpoints of its complete periods."""
    for tier in light.tiers if light else ():
        work_us = work_us + writing_us(work_us // tier.period_us, tier.cost_us)
    period_us = to_us(float(str(fields["checkpoint_period"])))
    cost_us = to_us(float(str(fields["checkpoint_cost"])))
    return work_us + writing_us(work_us // period_us, cost_us)
