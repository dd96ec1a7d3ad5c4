# SPDX-License-Identifier: Apache-2.0
"""The changes of plans, computed from the definitions in ``drive.plan_record``."""

from __future__ import annotations

from typing import NamedTuple

from rebat.core.units import FOREVER_US
from rebat.drive.plan_record import NONE, PlanChange


class Queued(NamedTuple):
    """A queued attempt with its planned start."""

    serial: int
    size: int
    duration: int
    start: int
    behind: int = NONE
    placeless: bool = False


def changed(queue: list[Queued], before: dict[int, tuple], now: int, n_free: int) -> list[tuple]:
    """Return the changes (serial, kind, value) since ``before``, and update ``before``."""
    rows = []
    for own in queue:
        start, obstacle = before.get(own.serial, (FOREVER_US, None))
        if own.start != start:
            rows.append((own.serial, PlanChange.PLANNED, own.start))
        found = obstacle_of(own, queue, now, n_free)
        if found not in (None, obstacle):
            rows.append((own.serial, *found))
        before[own.serial] = own.start, found
    return rows


def obstacle_of(own: Queued, queue: list[Queued], now: int, n_free: int) -> tuple | None:
    """Return why an attempt does not start now (None if it does).

    The reason is its kind, and the serial of the attempt in the way (or NONE).
    """
    if own.start <= now:
        return None
    if own.size > n_free:
        return PlanChange.TOO_FEW, NONE
    if own.behind != NONE:
        return PlanChange.IN_ORDER, own.behind
    if own.placeless:
        return PlanChange.NO_PLACE, NONE
    end = min(now + own.duration, FOREVER_US)
    met = [other.serial for other in queue if other != own and now < other.start < end]
    return (PlanChange.RESERVED, met[0]) if met else (PlanChange.NOT_STARTED, NONE)
