# SPDX-License-Identifier: Apache-2.0
"""A moment in the story of a job."""

from __future__ import annotations

from typing import Any

import msgspec


class Moment(msgspec.Struct, frozen=True):
    """An event in the story of a job. It concerns one attempt. Times are in seconds.

    Attributes
    ----------
    kind : str
        submitted, planned (first planned start), moved, unplanned (lost its reservation), obstacle,
        reason, started or ended.
    at_s : float
        Time of the event. If several similar events were joined, this is the time of the first one.
    attempt : int
        Number of the attempt.
    facts : dict
        Details of the event. ``times`` is the number of joined events, and ``last_s`` is the time
        of the last one.
    """

    kind: str
    at_s: float
    attempt: int
    facts: dict[str, Any]
