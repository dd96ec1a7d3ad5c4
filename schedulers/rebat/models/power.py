# SPDX-License-Identifier: Apache-2.0
"""The power that a node takes, by how much of it is in use."""

from __future__ import annotations

import msgspec

from rebat.core.errors import InputError


class NodePower(msgspec.Struct, frozen=True):
    """Watts of a node: asleep, empty, and with all cores in use; in between linear in the cores."""

    asleep_w: float
    empty_w: float
    full_w: float


def read_power(text: str) -> NodePower:
    """Watts asleep, empty and full.

    >>> read_power("10/100/300").empty_w
    100.0

    Raises
    ------
    InputError
        For anything else, and for watts that do not rise.
    """
    try:
        watts = [float(part) for part in text.split("/")]
    except ValueError:
        watts = []
    if len(watts) != 3 or not 0 <= watts[0] <= watts[1] <= watts[2] <= 1e6:
        expected = "watts of a node asleep/empty/full, like 10/100/300"
        raise InputError(f"power {text!r}", expected=expected)
    return NodePower(*watts)
