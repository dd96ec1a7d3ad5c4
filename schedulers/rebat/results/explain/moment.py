# SPDX-License-Identifier: Apache-2.0
"""A moment in the story of a job."""

from __future__ import annotations

from typing import Any

import msgspec


class Moment(msgspec.Struct, frozen=True):
    """Something that happened to an attempt of a job; times in seconds.

    Attributes
    ----------
    kind : str
        submitted, planned (first planned start), moved, unplanned (without a reservation again),
        obstacle, reason, started or ended.
    at_s : float
        Time of the moment; for several similar moments, of the first.
    attempt : int
        Number of the attempt.
    facts : dict
        What happened. ``times`` is the number of similar moments, ``last_s`` the time of the last.
    """

    kind: str
    at_s: float
    attempt: int
    facts: dict[str, Any]
