# SPDX-License-Identifier: Apache-2.0
"""Which runs the rules simulate without a session. In all other runs, a session asks a policy.

`rebat.drive.choose.only_plain` states which of these runs need plain Python.
"""

from __future__ import annotations

import msgspec

from rebat.core.job_table import Jobs
from rebat.core.jobs import Workload
from rebat.core.options import SessionOptions
from rebat.core.traits import traits_of
from rebat.core.units import to_us
from rebat.drive.hangs import least_hang_us
from rebat.drive.keys import needs_python
from rebat.engine.engine import EngineOptions
from rebat.policies.own import is_own
from rebat.policies.partitions import read_partitions
from rebat.policies.placement.cores import ClusterOptions
from rebat.policies.placement.plans import AnyOptions, NamedOptions
from rebat.policies.placement.torus import LinearOptions
from rebat.policies.planning.fifo import FifoOptions
from rebat.policies.planning.list_scheduling import ListOptions
from rebat.policies.planning.shelves import ShelfOptions
from rebat.policies.point import Point
from rebat.policies.reactions.exclusion import ExclusionOptions
from rebat.policies.reactions.operations import DRAINS
from rebat.policies.reactions.preemption import PreemptionOptions
from rebat.policies.reactions.replacement import ReplacementOptions
from rebat.policies.reactions.stealing import StealingOptions
from rebat.rules import steals
from rebat.state import codes

VICTIM_RULES = {name: number for number, name in enumerate(steals.VICTIMS)}
CRITERIA = {name: number for number, name in enumerate(steals.CRITERIA)}
TIES = {name: number for number, name in enumerate(steals.TIES)}
PREDICT = {
    "walltime": codes.OF_WALLTIME,
    "recent": codes.OF_RECENT,
    "actual": codes.ACTUAL,
}
RELEASES = {"original": codes.OF_JOB, "resubmission": codes.OF_ATTEMPT}
TIMINGS = {"now": codes.NOW, "proactive": codes.PROACTIVE, "next": codes.NEXT}
DIALECT = {
    "authors": ("semantics", "authors"),
    "two_passes": ("passes", "two"),
    "lowest_held": ("held", "lowest"),
    "others_first": ("ended", "others-first"),
    "hit_as_victim": ("hit", "victim"),
    "chosen_once": ("chosen", "once"),
    "program_k3": ("k3", "program"),
    "six_digits": ("digits", "six"),
}
"""Parameters of the rules that are choices of the dialect: option and value."""

MOST_HITS = 100
"""Maximum number of failures after which nodes are excluded, because all are kept in memory."""


def _first(reasons: dict[str, bool]) -> str:
    return next((reason for reason, applies in reasons.items() if applies), "")


def why_not_policy(point: Point) -> str:
    """Return why the rules do not cover a scheduler, or an empty text if they do."""
    planning, placement = point.planning, point.placement
    stealing = [part for part in point.reactions if isinstance(part, StealingOptions)]
    replaces = [part for part in point.reactions if isinstance(part, ReplacementOptions)]
    operating = [
        part for part in point.reactions if isinstance(part, ExclusionOptions | PreemptionOptions)
    ]
    is_fifo = isinstance(planning, FifoOptions)
    reacts = f"react={point.values['react']}"
    tiers = {row.options.get("tier", 1) for row in read_partitions(point.partitions)}
    placements = AnyOptions | NamedOptions | ClusterOptions | LinearOptions
    covered = ListOptions | FifoOptions | ShelfOptions
    return _first(
        {
            f"planning={planning.name}": not isinstance(planning, covered),
            f"placement={placement.name}": planning.places
            and not isinstance(placement, placements),
            f"partitions with placement={placement.name}": point.parted
            and (point.chooses_nodes or (isinstance(placement, NamedOptions) and not is_fifo)),
            "planning=fifo with partitions of several tiers": is_fifo and len(tiers) > 1,
            f"planning=fifo with partitions and {reacts}": is_fifo
            and point.parted
            and bool(point.reactions),
            f"placement={placement.name} with {reacts}": bool(point.reactions)
            and (point.chooses_nodes or isinstance(placement, ClusterOptions)),
            **_why_not_operating(point),
            reacts: len(point.reactions) > max(len(stealing), len(replaces), len(operating)),
            "partitions with react=replacement": bool(replaces) and point.parted,
            f"planning={planning.name} with react=replacement": bool(replaces)
            and not isinstance(planning, ListOptions),
            "wait=hold": any(part.holds for part in replaces),
            **{f"victim={part.victim}": part.victim not in VICTIM_RULES for part in stealing},
            **{f"criterion={part.criterion}": part.criterion not in CRITERIA for part in stealing},
            f"limits={point.common.limits}": is_own(point.common.limits),
            **_why_not_stages(point, bool(replaces)),
        }
    )


def _why_not_operating(point: Point) -> dict[str, bool]:
    """Return why the rules neither preempt jobs nor exclude nodes, and whether this applies."""
    reacts, is_list = f"react={point.values['react']}", type(point.planning) is ListOptions
    reasons: dict[str, bool] = {}
    for part in point.reactions:
        if isinstance(part, PreemptionOptions | ExclusionOptions):
            reasons[f"partitions with {reacts}"] = point.parted
            reasons[f"planning={point.planning.name} with {reacts}"] = not is_list
        if isinstance(part, PreemptionOptions):
            reasons[f"an order in Python with {reacts}"] = needs_python(point)
            reasons[f"the order of {reacts}"] = part is not point.reactions[-1]
        elif isinstance(part, ExclusionOptions):
            is_short = to_us(part.excluded_for) < codes.UNKNOWN_LAG_US
            reasons[f"hits={part.hits}"] = part.hits > MOST_HITS
            reasons["exclusions shorter than 1 ms"] = is_short
    return reasons


def _late(point: Point) -> str:
    """Return the timing of steals that wait for a checkpoint, or an empty text."""
    steals_at = [part.timing for part in point.reactions if isinstance(part, StealingOptions)]
    return next((timing for timing in steals_at if timing != "now"), "")


def _why_not_stages(point: Point, replaces: bool) -> dict[str, bool]:
    """Return why the rules do not cover the stages of recovery, and whether this applies."""
    recovery, timing = point.recovery, _late(point)
    if recovery is None:
        return {}
    return {
        "stages of recovery with random durations": recovery.random,
        f"stages of recovery with timing={timing}": bool(timing),
        "stages of recovery with digits=six": point.dialect.digits == "six",
        "stages of recovery with react=replacement": replaces,
        # before its first kill, a session requests no earlier call
        "stages of recovery shorter than 1 ms": 0 < least_hang_us(recovery) < codes.UNKNOWN_LAG_US,
    }


def operates(point: Point) -> bool:
    """Return whether a scheduler carries out operations."""
    return DRAINS.get(point.common.drain) is not None


def why_not_operations(point: Point) -> str:
    """Return why the rules do not carry out operations, or an empty text if they do."""
    if not operates(point):
        return ""
    replaces = any(isinstance(part, ReplacementOptions) for part in point.reactions)
    return _first(
        {
            "operations with partitions": point.parted,
            "operations with react=replacement": replaces,
            "operations with digits=six": point.dialect.digits == "six",
        }
    )


def why_not_tiers(point: Point) -> str:
    """Return why the rules do not cover checkpoints in several tiers, or an empty text."""
    timing = _late(point)
    return _first(
        {
            f"checkpoints in several tiers with timing={timing}": bool(timing),
            "checkpoints in several tiers with digits=six": point.dialect.digits == "six",
        }
    )


def why_not_run(
    point: Point, options: EngineOptions, session: SessionOptions, *, operations: bool
) -> str:
    """Return why the rules do not cover the circumstances of a run, or an empty text."""
    if operations:  # then the engine forwards them
        options = msgspec.structs.replace(options, forward_unknown_events=False)
        if reason := why_not_operations(point):
            return reason
    return _first(
        {
            "checkpoints that options of the policy set": session.young_daly is not None,
            "options of the engine": options != EngineOptions(),
        }
    )


def why_not_workload(workload: Workload) -> str:
    """Return why the rules do not cover a workload, or an empty text if they do."""
    jobs = Jobs.of(workload.jobs)
    used = [workload.profiles.get(name, {}) for name in jobs.profile_names]
    extras = jobs.extra_fields
    return _first(
        {
            "profiles other than delays": any(p.get("type") != "delay" for p in used),
            "names of profiles with #": any("#" in name for name in workload.profiles),
            "ids of jobs with #": b"#" in jobs.ids.data,
            "jobs that are not rigid": any("shape" in extra for extra in extras),
            "eternal jobs": any(traits_of(extra).eternal for extra in extras),
        }
    )
