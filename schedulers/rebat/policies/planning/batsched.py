# SPDX-License-Identifier: Apache-2.0
"""What Batsched's schedulers do beside planning on named machines: what they reject.

Its conservative and EASY backfilling need no rules of their own. Conservative backfilling with
compression, on a ``NamedPlan``, is its ``conservative_bf``. Its ``easy_bf`` spares itself work (an
arrival makes it try the new jobs only, the head's reservation standing), but what it leaves out
could not change anything while nothing is freed; so EASY on a ``NamedPlan`` gives the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

from rebat.contract import Changes, Proposal, Reject, View
from rebat.core.units import to_us
from rebat.policies.composition import Planning
from rebat.policies.context import Context, PlanningOptions
from rebat.policies.variants import choice, number


class NeedsWalltime:
    """A planning that rejects every job without walltime; another plans the others."""

    def __init__(self, planning: Planning) -> None:
        self._planning = planning

    def plan(self, view: View, changes: Changes) -> Iterable[Proposal]:
        """Which queued attempts to start, or to reject, now."""
        endless = [attempt for attempt in changes.arrived if not attempt.has_walltime]
        if not endless:
            return self._planning.plan(view, changes)
        timed = [attempt for attempt in changes.arrived if attempt.has_walltime]
        others = msgspec.structs.replace(changes, arrived=timed)
        rejected = [Reject(attempt.id, "has no walltime") for attempt in endless]
        return [*rejected, *self._planning.plan(view, others)]


class TimedOptions(PlanningOptions, frozen=True):
    """A planning that goes by walltimes."""

    margin: Annotated[
        float,
        number(
            -1e6, 1e6, "seconds",
            "Seconds added to every walltime in the plan; below 0: the slack that walltimes hold.",
        ),
    ] = 0.0  # fmt: skip
    walltimes: Annotated[
        str,
        choice(("optional", "required"), "If required, jobs without a walltime are rejected."),
    ] = "optional"

    @property
    def margin_us(self) -> int:
        """The margin in microseconds."""
        return to_us(self.margin)

    def make(self, context: Context) -> Planning:
        """Return the planning; where a walltime is required it rejects jobs without."""
        planning: Planning = self.kind(self, context)
        return NeedsWalltime(planning) if self.walltimes == "required" else planning
