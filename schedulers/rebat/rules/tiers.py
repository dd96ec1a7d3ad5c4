# SPDX-License-Identifier: Apache-2.0
"""Rules: checkpoints in several tiers.

A failure has a level (`rebat.models.interruptions`), which depends on its cause and on the nodes of
the attempt that fail at one time. The job continues from its last checkpoint in a tier that
survives this level. What heavier tiers do not contain yet is at risk: a later failure of a higher
level loses it. The rules are those of `rebat.models.interruptions.after_light`.

The argument ``tiers`` is a `rebat.state.tables.Tiers`, or None if no profile has such checkpoints.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels.jit import inlined_rule
from rebat.models.interruptions import after_light, level_of, surviving_tier
from rebat.state.tables import MOST_TIERS, TIER


@inlined_rule
def note_failure(tiers: Any, state: Any, changed: Any, first_hit: int, cause: int) -> None:
    """Note which tier survives the failure of nodes, for the attempts that it is the first to hit.

    These are the rows of ``hits`` from ``first_hit`` on.
    """
    if tiers is not None:
        for i in range(first_hit, state.n.n_hit):
            a, first, last = state.hits[i].attempt, -1, -1
            for k in range(len(changed)):
                if state.owner[changed[k]] == a + 1:
                    node = int(tiers.original[changed[k]])
                    first = node if first < 0 else min(first, node)
                    last = max(last, node)
            light = tiers.profiles[state.jobs[state.attempts[a].job].profile]
            is_software = False
            for k in range(light.first_cause, light.first_cause + light.n_causes):
                is_software |= tiers.causes[k] == cause
            level = level_of(is_software, first, last, light.group)
            rows = tiers.tiers[light.first : light.first + light.n]
            state.hits[i].tier = surviving_tier(rows, level)


@inlined_rule
def note_tier(tiers: Any, a: int, tier: int) -> None:
    """Note from which tier the job of a failed attempt continues."""
    if tiers is not None:
        tiers.at_risk[a, TIER] = tier


@inlined_rule
def tier_of(tiers: Any, a: int) -> int:
    """Return from which tier a failed attempt continues. 0: from regular checkpoints.

    The work at risk after the last stop is forgotten.
    """
    if tiers is not None:
        for i in range(MOST_TIERS):
            tiers.after[i] = 0
        return int(tiers.at_risk[a, TIER])
    return 0


@inlined_rule
def at_risk_of(tiers: Any, a: int) -> int:
    """Return the work that no regular checkpoint contained when an attempt started."""
    if tiers is not None:
        return int(tiers.at_risk[a, 0])
    return 0


@inlined_rule
def continued(
    tiers: Any, p: int, a: int, period: int, cost: int, load: int, first: int, recovery: int,
    run: int,
) -> Any:  # fmt: skip
    """Return the progress, the first period and the first recovery after a failure of an attempt.

    ``p`` is its profile. The work at risk is then in ``tiers.after``.
    """
    if tiers is not None:
        light = tiers.profiles[p]
        rows, tier = tiers.tiers[light.first : light.first + light.n], int(tiers.at_risk[a, TIER])
        useful, first, recovery, _ = after_light(
            rows, tier, period, cost, load, first, recovery, run, tiers.at_risk[a], tiers.after
        )
        return useful, first, recovery
    return 0, first, recovery


@inlined_rule
def at_risk_now(tiers: Any) -> int:
    """Return the work that no regular checkpoint contains after the last stop."""
    if tiers is not None:
        return int(tiers.after[0])
    return 0


@inlined_rule
def pass_on(tiers: Any, b: int) -> None:
    """Give the work at risk after the last stop to the next attempt ``b`` of the job."""
    if tiers is not None:
        for i in range(MOST_TIERS):
            tiers.at_risk[b, i] = tiers.after[i]
