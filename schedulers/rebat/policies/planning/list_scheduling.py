# SPDX-License-Identifier: Apache-2.0
"""Options of list scheduling with reservations: greedy, EASY and conservative backfilling.

`rebat.rules.plan` reserves nodes in queue order, and starts attempts that are due.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, ClassVar

from rebat.core.errors import InputError
from rebat.policies.planning.batsched import TimedOptions
from rebat.policies.variants import choice, text
from rebat.rules.predict import MILLION

ALL = -1
"""Reservation depth at which every queued attempt has a reservation."""


class Upkeep(IntEnum):
    """Ways to update a plan after a change.

    If changes need different ways, the largest value is used.
    """

    APPEND = 1
    COMPRESS = 2
    REBUILD = 3


MAINTENANCE: dict[str, dict[str, Upkeep]] = {
    # Batsched: after the end of a job, reservations can only move to earlier times. All are deleted
    # after a failure, a repair, or the arrival of a job with raised priority (section 7.2.1).
    "compression": {
        "arrival": Upkeep.APPEND,
        "priority": Upkeep.REBUILD,
        "end": Upkeep.COMPRESS,
        "failure": Upkeep.REBUILD,
        "rejuvenation": Upkeep.REBUILD,
    },
    # The program of the node-stealing authors compresses the plan after a repair.
    "authors": {
        "arrival": Upkeep.APPEND,
        "priority": Upkeep.REBUILD,
        "end": Upkeep.COMPRESS,
        "failure": Upkeep.REBUILD,
        "rejuvenation": Upkeep.COMPRESS,
    },
    "rebuild": {
        "arrival": Upkeep.REBUILD,
        "priority": Upkeep.REBUILD,
        "end": Upkeep.REBUILD,
        "failure": Upkeep.REBUILD,
        "rejuvenation": Upkeep.REBUILD,
    },
}
"""How the plan is updated after each kind of change, if every attempt has a reservation."""


PREDICTIONS = "walltime", "recent", "actual"
"""Predictions by name. A factor of the walltime is also a valid prediction."""


def millionths_of(predict: str | float) -> int:
    """Return a factor of the walltime in millionths, or 0 for the name of a prediction."""
    if str(predict) in PREDICTIONS:
        return 0
    try:
        millionths = round(float(predict) * MILLION)
    except (ValueError, OverflowError):
        millionths = 0
    if not 1 <= millionths <= MILLION:
        names = ", ".join(PREDICTIONS)
        expected = f"{names}, or a factor of the walltime above 0, up to 1"
        raise InputError(f"invalid prediction {str(predict)!r}", expected=expected)
    return millionths


DEPTHS = {"greedy": 0, "easy": 1, "conservative": ALL, "all": ALL}
"""Reservation depths by name. Any whole number is also a valid depth."""


def depth_of(depth: str | int) -> int:
    """Return a reservation depth as a number. ALL means that every attempt gets a reservation."""
    name = str(depth)
    if name in DEPTHS:
        return DEPTHS[name]
    if not (name.isdecimal() and int(name) < 10**6):
        raise InputError(f"invalid depth {name!r}", expected=f"a number, or {', '.join(DEPTHS)}")
    return int(name)


Maintenance = Annotated[
    str,
    choice(
        MAINTENANCE,
        "How the plan changes when a job ends: reservations move to earlier times (compression, "
        "authors), or all are recomputed (rebuild). Failures and repairs rebuild the plan, except "
        "repairs under authors.",
    ),
]


class ListOptions(TimedOptions, frozen=True, tag="list"):
    """List scheduling with reservations: greedy, EASY and conservative backfilling."""

    places: ClassVar[bool] = True

    depth: Annotated[
        str | int,
        text(
            depth_of,
            "Number of queued attempts with a reservation: greedy (0), easy (1), conservative or "
            "all (every attempt), or a number.",
            DEPTHS,
        ),
    ] = "conservative"
    reserve: Annotated[
        str,
        choice(
            ("blocked", "first"),
            "If depth is limited, attempts that get a reservation: the first that cannot start "
            "now (blocked), or the first of the queue (first, Algorithm 1 of RR-9296).",
        ),
    ] = "blocked"
    maintenance: Maintenance = "compression"
    predict: Annotated[
        str | float,
        text(
            millionths_of,
            "Run time with which plans reserve nodes for a job: its walltime, the mean of the last "
            "two run times of its user (recent), the true run time (actual), or a factor of the "
            "walltime, like 0.5. If a job exceeds its predicted run time, plans use a longer one.",
            PREDICTIONS,
        ),
    ] = "walltime"

    def idle(self) -> frozenset[str]:
        """Return the options without an effect at this depth."""
        depth = depth_of(self.depth)
        # with other depths than ALL, the plan is always rebuilt
        names = set() if depth == ALL else {"maintenance"}
        return super().idle() | names | ({"reserve"} if depth in (0, ALL) else set())
