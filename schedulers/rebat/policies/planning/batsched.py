# SPDX-License-Identifier: Apache-2.0
"""Options of plannings that use walltimes, and Batsched's rejection of jobs without walltime.

Other rules of Batsched need no code in this module. Conservative backfilling with compression on a
``NamedPlan`` is Batsched's ``conservative_bf``. EASY backfilling on a ``NamedPlan`` has the same
results as Batsched's ``easy_bf``. When jobs arrive, ``easy_bf`` plans only the new jobs.
``NamedPlan`` plans the entire queue, with the same result, because an arrival frees no node.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

from rebat.contract import Changes, Proposal, Reject, View
from rebat.core.units import to_us
from rebat.policies.composition import Planning, Wrapping
from rebat.policies.context import Context, PlanningOptions
from rebat.policies.partitions import PartitionsOption
from rebat.policies.variants import choice, number


class NeedsWalltime(Wrapping):
    """A planning that rejects jobs without a walltime and passes other jobs to another planning."""

    def plan(self, view: View, changes: Changes) -> Iterable[Proposal]:
        """Return the queued attempts to start or to reject now."""
        endless = [attempt for attempt in changes.arrived if not attempt.has_walltime]
        if not endless:
            return self._planning.plan(view, changes)
        timed = [attempt for attempt in changes.arrived if attempt.has_walltime]
        others = msgspec.structs.replace(changes, arrived=timed)
        rejected = [Reject(attempt.id, "has no walltime") for attempt in endless]
        return [*rejected, *self._planning.plan(view, others)]


class TimedOptions(PlanningOptions, frozen=True):
    """Options of a planning that uses walltimes."""

    margin: Annotated[
        float,
        number(
            -1e6,
            1e6,
            "seconds",
            "Seconds that plans add to each walltime; a negative value shortens walltimes.",
        ),
    ] = 0.0
    walltimes: Annotated[
        str,
        choice(
            ("optional", "required"),
            "Whether jobs without a walltime are accepted (optional) or rejected (required).",
        ),
    ] = "optional"
    partitions: PartitionsOption = ""

    def idle(self) -> frozenset[str]:
        """Return the options without an effect."""
        return frozenset() if self.partitions else frozenset({"partitions"})

    @property
    def margin_us(self) -> int:
        """The margin in microseconds."""
        return to_us(self.margin)

    def make(self, context: Context) -> Planning:
        """Return the planning. If walltimes are required, it rejects jobs without a walltime."""
        planning: Planning = self.kind(self, context)
        return NeedsWalltime(planning) if self.walltimes == "required" else planning
