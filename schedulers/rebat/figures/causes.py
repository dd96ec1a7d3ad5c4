# SPDX-License-Identifier: Apache-2.0
"""The colours of attempts in figures: one for kept work, and one for each cause of lost work."""

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
    Cause.CANCELLED: "#bbcc33",
}
"""Paul Tol's bright scheme and three colours of his other schemes, for attempts that ran."""

HELD_COLOUR = "#d5d5d5"
"""The colour of nodes that are held for a job that does not run on them."""

STOPPED = INTERRUPTED | {Cause.SILENT_ERROR}
"""Causes of the end of an attempt after which work since the last checkpoint must be repeated."""

KEPT_COLOUR = CAUSE_COLOURS[Cause.COMPLETED]
"""The colour of kept work. It does not depend on the cause of the end."""


def kept_colour(cause: Cause) -> str:
    """Return the colour of the kept part of an attempt: up to its last checkpoint or its end."""
    return KEPT_COLOUR if cause in STOPPED else CAUSE_COLOURS.get(cause, GREY)


def lost_colour(cause: Cause) -> str | None:
    """Return the colour of work lost to this cause, or None if the cause is not in `STOPPED`."""
    return CAUSE_COLOURS[cause] if cause in STOPPED else None


def legend_text(cause: Cause) -> str:
    """Return the text of the legend for a cause.

    >>> legend_text(Cause.COMPLETED), legend_text(Cause.NODE_FAILURE)
    ('work kept', 'lost to a node failure')
    """
    return _LEGEND.get(cause, str(cause))


_LEGEND = {
    Cause.COMPLETED: "work kept",
    Cause.NODE_FAILURE: "lost to a node failure",
    Cause.STOLEN: "lost to a steal",
    Cause.MOVED: "lost to a move",
    Cause.PREEMPTED: "lost to a preemption",
    Cause.SILENT_ERROR: "lost to a silent error",
    Cause.WALLTIME: "killed at the walltime",
    Cause.JOB_FAILED: "job failed",
    Cause.HORIZON: "cut at the end of the run",
    Cause.CANCELLED: "job cancelled",
}
