# SPDX-License-Identifier: Apache-2.0
"""What reactions that checkpoint and restart jobs have in common."""

from __future__ import annotations

from rebat.contract import View, When
from rebat.core.attempts import Running
from rebat.core.units import FOREVER_US


def remaining_us(view: View, running: Running) -> int:
    """How long an attempt goes on at the most, as far as can be known, overheads not counted."""
    attempt = running.attempt
    if not attempt.has_walltime:
        return FOREVER_US
    left = view.after_stop(attempt.id, When.IMAGE)
    return view.walltime_after_us(attempt.id, left) - left.first_recovery_us


def worth_moving(view: View, running: Running) -> bool:
    """Whether an attempt can be checkpointed, and goes on for longer than that takes."""
    attempt = running.attempt
    if attempt.id in view.stopping or attempt.id in view.scheduled:
        return False
    if view.why_not_image(attempt.id):
        return False
    return remaining_us(view, running) > view.image_us(attempt.id)
