# SPDX-License-Identifier: Apache-2.0
"""Changes from one plan to the next: planned starts, and obstacles of waiting attempts.

A row of changes consists of the index of the plan, the serial number of the attempt, the kind of
the change, and a value. The kind is `PLANNED` or an obstacle. For `PLANNED`, the value is the
planned start in microseconds. For `RESERVED` and `IN_ORDER`, it is the serial number of another
attempt. For other obstacles, it is -1.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels.counts import NEVER
from rebat.kernels.jit import loop, step

NO_OBSTACLE, PLANNED, TOO_FEW, RESERVED, NO_PLACE, IN_ORDER, NOT_STARTED, REASON = range(8)


@step
def first_before(start: Any, first: int, own: int, now_us: int, until_us: int) -> int:
    """Return the first position from ``first`` whose start is between the two times, or -1.

    The position ``own`` is ignored.
    """
    for at in range(first, len(start)):
        if now_us < start[at] < until_us and at != own:
            return at
    return -1


@loop
def changed(
    serial: Any, size: Any, duration: Any, start: Any, behind: Any, placeless: Any,
    last: Any, rows: Any, n_rows: int, plan: int, now_us: int, n_free: int,
) -> int:  # fmt: skip
    """Write a row for each change since the previous plan, and return the new number of rows.

    Parameters
    ----------
    serial, size, duration, start : int64 arrays, shape (n,)
        The queue in its order (see `contract.planned`). The arrays ``behind`` and ``placeless`` may
        be empty.
    last : int64 array, shape (serials, 3)
        Planned start, obstacle, and value of the obstacle in the previous plan. The index is the
        serial number. The function updates this array.
    rows : int64 array, shape (m, 4)
        The rows of changes. The array must have space for 2n more rows.
    plan : int
        Index of this plan.
    now_us, n_free : int
        The current time, and the number of free nodes after the starts of this plan.
    """
    n = len(serial)
    reserved = 0  # the first position that has a reservation for a later time
    while reserved < n and not now_us < start[reserved] < NEVER:
        reserved += 1
    for at in range(n):
        name, kind, other = serial[at], NO_OBSTACLE, -1
        if start[at] > now_us:
            if size[at] > n_free:
                kind = TOO_FEW
            elif len(behind) and behind[at] >= 0:
                kind, other = IN_ORDER, behind[at]
            elif len(placeless) and placeless[at]:
                kind = NO_PLACE
            else:
                kind = NOT_STARTED
                until_us = now_us + duration[at]
                first = first_before(start, reserved, at, now_us, min(until_us, NEVER))
                if first >= 0:
                    kind, other = RESERVED, serial[first]
        if start[at] != last[name, 0]:
            last[name, 0] = start[at]
            rows[n_rows, 0], rows[n_rows, 1] = plan, name
            rows[n_rows, 2], rows[n_rows, 3] = PLANNED, start[at]
            n_rows += 1
        if kind != last[name, 1] or other != last[name, 2]:
            last[name, 1], last[name, 2] = kind, other
            if kind != NO_OBSTACLE:
                rows[n_rows, 0], rows[n_rows, 1] = plan, name
                rows[n_rows, 2], rows[n_rows, 3] = kind, other
                n_rows += 1
    return n_rows
