# SPDX-License-Identifier: Apache-2.0
"""First come, first served, by the rules (`rebat.rules.fifo`)."""

from __future__ import annotations

from typing import ClassVar

from rebat.policies.context import PlanningOptions
from rebat.policies.partitions import PartitionsOption


class FifoOptions(PlanningOptions, frozen=True, tag="fifo"):
    """First come, first served, without backfilling; walltimes have no effect."""

    places: ClassVar[bool] = True
    boxless: ClassVar[str] = "only a plan can keep the unused nodes of a box reserved"

    partitions: PartitionsOption = ""
