# SPDX-License-Identifier: Apache-2.0
"""A moment in the story of a job."""

from __future__ import annotations

from typing import Any

import msgspec


class Moment(msgspec.Struct, frozen=True):
    """An event in the story of a job, which concerns one attempt; times are in seconds.

    Attributes
    ----------
    kind : str
        submitted, planned (first planned start), moved, unplanned (without a reservation again),
        obstacle, reason, started or ended.
    at_s : float
        Time of the moment. If similar moments were joined, time of the first.
    attempt : int
        Number of the attempt.
    facts : dict
        Details of the moment. ``times`` is the number of joined moments, ``last_s`` the time of the
        last.
    """

    kind: str
    at_s: float
    attempt: int
    facts: dict[str, Any]
