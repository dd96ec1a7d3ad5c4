# SPDX-License-Identifier: Apache-2.0
"""Which runs the compiled loop covers. All other runs use the engine and the session."""

from __future__ import annotations

from rebat.core.job_table import Jobs
from rebat.core.jobs import Workload
from rebat.core.options import SessionOptions
from rebat.core.traits import traits_of
from rebat.engine.options import EngineOptions
from rebat.policies.placement.plans import AnyOptions
from rebat.policies.planning.list_scheduling import ListOptions
from rebat.policies.point import Point
from rebat.policies.reactions.stealing import StealingOptions
from rebat.sim import loop

ORDERS = {
    "fcfs": loop.FCFS,
    "shortest": loop.SHORTEST,
    "largest": loop.LARGEST,
    "smallest": loop.SMALLEST,
    "priority": loop.BY_CLASS,
}
"""The queue orders that are functions of columns."""

VICTIM_RULES = {
    "fewest-nodes": loop.FEWEST_NODES,
    "latest-release": loop.LATEST_RELEASE,
    "least-lost-work": loop.LEAST_LOST_WORK,
    "fits": loop.FITS,
}
CRITERIA = {
    "fewer-nodes": loop.FEWER_NODES,
    "later-release": loop.LATER_RELEASE,
    "smaller-flow": loop.SMALLER_FLOW,
}
RELEASES = {"original": loop.OF_JOB, "resubmission": loop.OF_ATTEMPT}
TIES = {"order": loop.BY_RELEASE, "run-time": loop.BY_START}


def _first(reasons: dict[str, bool]) -> str:
    return next((reason for reason, applies in reasons.items() if applies), "")


def why_not_policy(point: Point) -> str:
    """Return why the loop does not cover a scheduler, or an empty text if it does."""
    common, dialect = point.common, point.dialect
    steals = [part for part in point.reactions if isinstance(part, StealingOptions)]
    return _first(
        {
            f"planning={point.planning.name}": not isinstance(point.planning, ListOptions),
            f"placement={point.placement.name}": not isinstance(point.placement, AnyOptions),
            f"react={point.values['react']}": len(point.reactions) > len(steals),
            f"order={common.order}": common.order not in ORDERS,
            "semantics=authors": dialect.semantics != "paper",
            "passes=two": dialect.two_passes,
            "digits=six": dialect.digits == "six",
            "chosen=once": dialect.chosen == "once",
            "k3=program": dialect.k3 == "program",
            f"tie={dialect.tie}": dialect.tie not in TIES,
            **{f"timing={part.timing}": part.timing != "now" for part in steals},
            **{f"victim={part.victim}": part.victim not in VICTIM_RULES for part in steals},
            **{f"criterion={part.criterion}": part.criterion not in CRITERIA for part in steals},
            "silent_errors=retry": common.silent_errors == "retry",
            "stages of recovery": point.recovery is not None,
        }
    )


def why_not_run(
    options: EngineOptions, session: SessionOptions, *, operations: bool, explain: bool
) -> str:
    """Return why the loop does not cover the circumstances of a run, or an empty text."""
    return _first(
        {
            "operations": operations,
            "--explain": explain,
            "checkpoints that options of the policy set": session.young_daly is not None,
            "options of the engine": options != EngineOptions(),
        }
    )


def why_not_workload(workload: Workload, jobs: Jobs) -> str:
    """Return why the loop does not cover a workload, or an empty text if it does."""
    used = [workload.profiles.get(name, {}) for name in jobs.profile_uses()]
    extras = jobs.extra_fields
    return _first(
        {
            "profiles other than delays": any(p.get("type") != "delay" for p in used),
            "checkpoints in several tiers": any("light_period" in p for p in used),
            "names of profiles with #": any("#" in name for name in workload.profiles),
            "ids of jobs with #": b"#" in jobs.ids.data,
            "jobs that are not rigid": any("shape" in extra for extra in extras),
            "eternal jobs": any(traits_of(extra).eternal for extra in extras),
        }
    )
