# SPDX-License-Identifier: Apache-2.0
"""Tiers of checkpoints: memory, a peer's memory, a local disk, remote storage.

Intervals that are not set are the best ones of first order (see `ettr_tiers`).
"""

from __future__ import annotations

import math

import msgspec

from rebat.core.errors import InputError, unknown_name
from rebat.core.jobs import Job, Workload
from rebat.core.units import FOREVER_US, parse_duration, to_s, to_us
from rebat.models.light import LightCheckpoints, Survives

SURVIVES: dict[str, Survives | None] = {
    "memory": "process",
    "disk": "process",
    "peer": "node",
    "remote": None,
}
"""Failures that each tier survives; None: all."""

USUAL = "peer=1s/30s+remote=30s/2min"
"""Tiers unless others are given: memory of a peer, and remote storage."""

FORM = "TIER=WRITE/LOAD or TIER=WRITE/LOAD@INTERVAL, joined by +, remote last: " + USUAL

RAREST = 0.01
"""Minimum share of failures of a tier; a tier without failures would have no best interval."""


class Tier(msgspec.Struct, frozen=True):
    """A tier: time to write and to load a checkpoint, and the work between two; in seconds."""

    name: str
    write_s: float
    load_s: float
    interval_s: float | None = None


class Tiers(msgspec.Struct, frozen=True):
    """One tier (remote), or a light tier and remote."""

    deep: Tier
    light: Tier | None = None


class TierPattern(msgspec.Struct, frozen=True):
    """Work between two light checkpoints in seconds, and their number between two deep ones."""

    interval_s: float
    per_pattern: int


def parse_tiers(text: str) -> Tiers:
    """Return the tiers of a text.

    >>> parse_tiers("peer=1s/30s@2.6min+remote=30s/10min").light
    Tier(name='peer', write_s=1.0, load_s=30.0, interval_s=156.0)

    Raises
    ------
    InputError
        For another form, for tiers that do not survive all failures, and for more than two tiers.
    """
    tiers = [_tier(part) for part in text.split("+")]
    last = tiers[-1]
    if SURVIVES[last.name] is not None:
        problem = f"{text!r}: {last.name} does not survive all failures"
        raise InputError(problem, expected="remote as the last tier")
    if len(tiers) > 2 or (len(tiers) == 2 and SURVIVES[tiers[0].name] is None):
        raise InputError(f"{text!r}: not a light tier and remote", expected=FORM)
    return Tiers(last, tiers[0] if len(tiers) == 2 else None)


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


def pattern_of(tiers: Tiers, mtbf_s: float, light_share: float) -> TierPattern:
    """Return the intervals of a job with this MTBF; the light tier survives this share."""
    deep, light = tiers.deep, tiers.light
    if light is None:
        return TierPattern(_best_s(deep, mtbf_s, 1.0), 1)
    interval_s = _best_s(light, mtbf_s, light_share)
    return TierPattern(
        interval_s, max(1, round(_best_s(deep, mtbf_s, 1 - light_share) / interval_s))
    )


def _best_s(tier: Tier, mtbf_s: float, share: float) -> float:
    if tier.interval_s is not None:
        return tier.interval_s
    return math.sqrt(2 * tier.write_s * mtbf_s / max(share, RAREST))


def profile_fields(
    tiers: Tiers, pattern: TierPattern, software: str
) -> tuple[dict[str, object], LightCheckpoints | None]:
    """Return the checkpoint fields of a profile, and the light checkpoints."""
    deep, light = tiers.deep, tiers.light
    part_us, checkpoints = to_us(pattern.interval_s), None
    fields: dict[str, object] = {}
    if light is not None:
        fields = {
            "light_period": to_s(part_us),
            "light_cost": light.write_s,
            "light_recovery": light.load_s,
            "light_survives": SURVIVES[light.name],
            "light_software": software,
        }
        write_us, load_us = to_us(light.write_s), to_us(light.load_s)
        checkpoints = LightCheckpoints(part_us, write_us, load_us, SURVIVES[light.name] or "node")
        part_us += write_us
    period_s = to_s(pattern.per_pattern * part_us)
    fields |= {
        "checkpoint_period": period_s,
        "checkpoint_cost": deep.write_s,
        "recovery_cost": deep.load_s,
        "Tfirst": period_s,
        "Rfirst": 0.0,
        "checkpoint_rounding": "floor",
    }
    return fields, checkpoints


def add_tiers(
    workload: Workload,
    tiers: Tiers,
    *,
    n_nodes: int,
    mtbf_s: float,
    light_share: float,
    software: str,
) -> Workload:
    """Return the workload with checkpoints of these tiers in all lengths and walltimes.

    Parameters
    ----------
    n_nodes, mtbf_s : int, float
        Number of nodes of the machine, and its mean time between failures in seconds.
    light_share : float
        Share of the failures that the light tier survives.
    software : str
        Causes of failures that keep their node, joined by +.
    """
    jobs, profiles = [], {}
    for job in workload.jobs:
        profile = workload.profiles[job.profile]
        if profile.get("type") != "delay":
            problem = f"checkpoints need a delay profile, not {profile.get('type')!r}"
            raise InputError(problem, f"job {job.id}")
        pattern = pattern_of(tiers, mtbf_s * n_nodes / job.n_nodes, light_share)
        fields, light = profile_fields(tiers, pattern, software)
        name = f"{job.profile}@{job.n_nodes}"
        delay_us = _lengthened_us(to_us(profile["delay"]), fields, light)
        profiles[name] = profile | fields | {"delay": to_s(delay_us)}
        jobs.append(_with_walltime(job, name, fields, light))
    return msgspec.structs.replace(workload, jobs=tuple(jobs), profiles=profiles)


def _with_walltime(
    job: Job, profile: str, fields: dict[str, object], light: LightCheckpoints | None
) -> Job:
    walltime_us = job.walltime_us
    if walltime_us is not None and walltime_us < FOREVER_US:
        walltime_us = _lengthened_us(walltime_us, fields, light)
    return msgspec.structs.replace(job, walltime_us=walltime_us, profile=profile)


def _lengthened_us(work_us: int, fields: dict[str, object], light: LightCheckpoints | None) -> int:
    """Return the length of work with the checkpoints of its complete periods."""
    if light is not None:
        work_us += work_us // light.period_us * light.cost_us
    period_us = to_us(float(str(fields["checkpoint_period"])))
    return work_us + work_us // period_us * to_us(float(str(fields["checkpoint_cost"])))
