# SPDX-License-Identifier: Apache-2.0
"""The last failure of each node, and the first failure that hits a job, for batches of jobs."""

from __future__ import annotations

from typing import Any

from rebat.kernels.jit import kernel


@kernel
def catch_up(at_us: Any, node: Any, cursor: int, now_us: int, last_us: Any) -> int:
    """Write the time of the last failure of each node before ``now_us`` into ``last_us``.

    ``at_us`` and ``node`` are the times and nodes of all failures, sorted by time. ``last_us`` has
    shape (nodes,). It already contains the failures before index ``cursor``. The function returns
    the index of the first failure at or after ``now_us``.
    """
    while at_us[cursor] < now_us:
        last_us[node[cursor]] = at_us[cursor]
        cursor += 1
    ahead = cursor
    while at_us[ahead] == now_us:
        last_us[node[ahead]] = now_us
        ahead += 1
    return cursor


@kernel
def first_hit(at_us: Any, node: Any, cursor: int, until_us: int, within: Any) -> int:
    """Return the time of the first failure of a node in ``within``, or -1 if there is none.

    ``within`` is a mask of nodes. The function searches the failures that occur before
    ``until_us``, starting at index ``cursor``.
    """
    while at_us[cursor] < until_us:
        if within[node[cursor]]:
            return at_us[cursor]
        cursor += 1
    return -1
