# SPDX-License-Identifier: Apache-2.0
"""A batch of jobs on a series of failures: what happened until a date, and what hits a job."""

from __future__ import annotations

from typing import Any

from rebat.kernels.jit import kernel


@kernel
def catch_up(at_us: Any, node: Any, cursor: int, now_us: int, last_us: Any) -> int:
    """Note the last failure of every node up to a date; gives the first failure at it or after.

    ``at_us`` and ``node`` are the failures by date, all of them up to some later date; those before
    ``cursor`` are noted already, shape (nodes,).
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
    """The date of the first failure from ``cursor`` on, before a date, of a node in a mask.

    -1: there is none.
    """
    while at_us[cursor] < until_us:
        if within[node[cursor]]:
            return at_us[cursor]
        cursor += 1
    return -1
