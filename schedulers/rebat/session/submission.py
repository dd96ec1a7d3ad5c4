# SPDX-License-Identifier: Apache-2.0
"""Jobs as they come in: checked, and made the first of their attempts."""

from __future__ import annotations

from rebat.core.attempts import Attempt
from rebat.core.errors import InputError
from rebat.core.events import JobSubmitted
from rebat.core.units import FOREVER_US, MAX_SECONDS, to_us


def first_attempt(event: JobSubmitted, serial: int) -> Attempt:
    """The first attempt of a job; InputError for what is no job."""
    fields, where = event.job, f"job {event.job_id}"
    n_nodes = fields.get("res")
    if not isinstance(n_nodes, int) or isinstance(n_nodes, bool) or n_nodes < 1:
        raise InputError(f"res is {n_nodes!r}", where, "a whole number, 1 or more")
    walltime = fields.get("walltime", -1)
    if not isinstance(walltime, int | float) or not (walltime == -1 or walltime > 0):
        raise InputError(f"walltime is {walltime!r}", where, "seconds above 0, or -1")
    endless = walltime == -1 or walltime > MAX_SECONDS
    return Attempt(
        id=event.job_id,
        job_id=event.job_id,
        serial=serial,
        job_serial=serial,
        number=0,
        n_nodes=n_nodes,
        walltime_us=FOREVER_US if endless else to_us(walltime),
        submit_us=event.at_us,
        queued_us=event.at_us,
    )
