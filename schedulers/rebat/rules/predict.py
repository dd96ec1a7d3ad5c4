# SPDX-License-Identifier: Apache-2.0
"""Predicted run times of attempts, for plans.

A plan uses the prediction in place of the walltime: for the reservation of a queued attempt, and
for the planned end of a running attempt. It is determined when the attempt enters the queue. The
prediction never exceeds the walltime, and a job is never killed before its walltime.

Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions rather than user
runtime estimates", IEEE TPDS 18(6), 2007, predict the mean of the last two run times of the user,
and increase a prediction that a job exceeds. The values of `STEPS_US` are those of predictsim, the
simulator of Gaussier, Glesser, Reis and Trystram, "Improving backfilling by using machine learning
to predict running times", SC 2015, where this correction has the name ``tsafrir``. A corrected end
depends on the present time, but not on earlier corrections, and therefore not on how often the plan
is updated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rebat.core.units import FOREVER_US, to_us
from rebat.kernels.jit import inlined_rule, rule
from rebat.rules.queue import planned
from rebat.state import codes

STEPS_US = tuple(to_us(60 * m) for m in (1, 5, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000))
"""Times (us) that are added to a prediction, one after the other, while the job exceeds it."""

MILLION = 1_000_000
"""A factor of the walltime is a whole number of millionths."""

STEPS = np.array(STEPS_US)


@rule
def note_run(state: Any, a: int, now: int) -> None:
    """Add an attempt that ended to those of its user, in the order of their ends and serials."""
    attempts, user = state.attempts, state.jobs[state.attempts[a].job].user
    if user == 0:
        return
    after, before = -1, state.lists[user].ended_last - 1
    while before > a and attempts[before].end == now:
        after, before = before, attempts[before].ended_before - 1
    attempts[a].ended_before = before + 1
    if after < 0:
        state.lists[user].ended_last = a + 1
    else:
        attempts[after].ended_before = a + 1


@rule
def recent_mean(state: Any, a: int) -> int:
    """Return the mean of the last two run times of the user, or the walltime."""
    attempts, user = state.attempts, state.jobs[state.attempts[a].job].user
    last = state.lists[user].ended_last - 1
    while last >= 0 and attempts[last].end >= attempts[a].queued:
        last = attempts[last].ended_before - 1
    other = attempts[last].ended_before - 1 if last >= 0 else -1
    if other < 0:
        return attempts[a].wall
    return (
        attempts[last].end - attempts[last].start + attempts[other].end - attempts[other].start
    ) // 2


@inlined_rule
def predicted(state: Any, a: int) -> int:
    """Return the predicted run time of an attempt that enters the queue."""
    predict, wall, length = state.n.predict, state.attempts[a].wall, state.attempts[a].wall
    if predict == codes.OF_WALLTIME:
        return wall
    if predict == codes.OF_RECENT:
        length = recent_mean(state, a)
    elif predict == codes.ACTUAL:
        length = state.attempts[a].delay
    elif wall < FOREVER_US:
        # without a product that exceeds 64 bits
        whole, rest = wall // MILLION, wall % MILLION
        length = whole * state.n.millionths + rest * state.n.millionths // MILLION
    return max(1, min(length, wall))


@rule
def later_end(attempts: Any, a: int, margin: int, now: int) -> int:
    """Return the next planned end of an attempt, or of held nodes, that did not end in time."""
    start, wall = attempts[a].start, attempts[a].wall
    for i in range(STEPS.shape[0] + 1):
        length = min(attempts[a].predicted + STEPS[i], wall) if i < STEPS.shape[0] else wall
        end = start + planned(length, margin)
        if end > now:
            return end
    return now + 1
