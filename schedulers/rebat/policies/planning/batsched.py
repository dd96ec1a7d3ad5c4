# SPDX-License-Identifier: Apache-2.0
"""Options of plannings that use walltimes.

With ``walltimes=required`` and the placement ``named``, conservative backfilling with compression
is Batsched's ``conservative_bf``. EASY backfilling then has the same results as Batsched's
``easy_bf``. When jobs arrive, ``easy_bf`` plans only the new jobs. Here, the entire queue is
planned, with the same result, because an arrival frees no node.
"""

from __future__ import annotations

from typing import Annotated

from rebat.core.units import to_us
from rebat.policies.context import PlanningOptions
from rebat.policies.partitions import PartitionsOption
from rebat.policies.variants import choice, number


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
