# SPDX-License-Identifier: Apache-2.0
"""The power of a node as a function of its cores in use."""

from __future__ import annotations

import msgspec

from rebat.core.errors import InputError


class NodePower(msgspec.Struct, frozen=True):
    """Power of a node in watts: asleep, without jobs, and with all cores in use.

    If some cores are in use, power is linear in their number.
    """

    asleep_w: float
    empty_w: float
    full_w: float


def read_power(text: str) -> NodePower:
    """Return the power of a node from a text like '10/100/300'.

    >>> read_power("10/100/300").empty_w
    100.0
    """
    try:
        watts = [float(part) for part in text.split("/")]
    except ValueError:
        watts = []
    if len(watts) != 3 or not 0 <= watts[0] <= watts[1] <= watts[2] <= 1e6:
        expected = "watts of a node asleep/empty/full, like 10/100/300"
        raise InputError(f"invalid power {text!r}", expected=expected)
    return NodePower(*watts)
