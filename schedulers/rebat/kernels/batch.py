# SPDX-License-Identifier: Apache-2.0
"""Failures in a batch of jobs: the last failure of each node, and the first that hits a job."""

from __future__ import annotations

from typing import Any

from rebat.kernels.jit import kernel


@kernel
def catch_up(at_us: Any, node: Any, cursor: int, now_us: int, last_us: Any) -> int:
    """Record the last failure of every node before a time; return the first failure after these.

    ``at_us`` and ``node`` are all failures up to a later time, sorted by time. Failures before the
    index ``cursor`` are already in ``last_us``, shape (nodes,).
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
    """Return the time of the first failure of a node in a mask, from ``cursor`` to ``until_us``.

    Returns -1 if there is none.
    """
    while at_us[cursor] < until_us:
        if within[node[cursor]]:
            return at_us[cursor]
        cursor += 1
    return -1
