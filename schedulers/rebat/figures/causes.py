# SPDX-License-Identifier: Apache-2.0
"""What the end of an attempt looks like: a colour for every cause, in all pictures of runs."""

from __future__ import annotations

from rebat.core.attempts import INTERRUPTED, Cause
from rebat.figures.canvas import COLOURS

BLUE, RED, GREEN, YELLOW, CYAN, PURPLE, GREY = COLOURS

CAUSE_COLOURS: dict[Cause, str] = {
    Cause.COMPLETED: BLUE,
    Cause.NODE_FAILURE: RED,
    Cause.STOLEN: PURPLE,
    Cause.MOVED: CYAN,
    Cause.PREEMPTED: "#ee7733",
    Cause.SILENT_ERROR: GREEN,
    Cause.WALLTIME: YELLOW,
    Cause.JOB_FAILED: GREY,
    Cause.HORIZON: "#009988",
}
"""Paul Tol's bright scheme, and two of his vibrant one; causes of what never ran have none."""

HELD_COLOUR = "#d5d5d5"
"""Of nodes that are held for a job which does not run on them."""

STOPPED = INTERRUPTED | {Cause.SILENT_ERROR}
"""Ends after which what was done since the last checkpoint has to be done again."""
