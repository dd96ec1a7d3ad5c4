# SPDX-License-Identifier: Apache-2.0
"""Rules of the compiled loop: predicted run times (`rebat.policies.planning.predictions`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rebat.core.units import FOREVER_US
from rebat.kernels.jit import inlined, loop
from rebat.policies.planning.predictions import MILLION, STEPS_US
from rebat.sim.columns import (
    ACTUAL,
    DELAY,
    END,
    ENDED_BEFORE,
    ENDED_LAST,
    JOB,
    MILLIONTHS,
    OF_RECENT,
    OF_WALLTIME,
    PREDICT,
    PREDICTED,
    QUEUED,
    START,
    USER,
    WALL,
)
from rebat.sim.queue import planned

STEPS = np.array(STEPS_US)


@loop
def note_run(state: Any, a: int, now: int) -> None:
    """Add an attempt that ended to those of its user, in the order of their ends and serials."""
    attempts, user = state.attempts, state.jobs[state.attempts[a, JOB], USER]
    if user == 0:
        return
    after, before = -1, state.lists[ENDED_LAST, user] - 1
    while before > a and attempts[before, END] == now:
        after, before = before, attempts[before, ENDED_BEFORE] - 1
    attempts[a, ENDED_BEFORE] = before + 1
    if after < 0:
        state.lists[ENDED_LAST, user] = a + 1
    else:
        attempts[after, ENDED_BEFORE] = a + 1


@loop
def recent_mean(state: Any, a: int) -> int:
    """Return the mean of the last two run times of the user, or the walltime."""
    attempts, user = state.attempts, state.jobs[state.attempts[a, JOB], USER]
    last = state.lists[ENDED_LAST, user] - 1
    while last >= 0 and attempts[last, END] >= attempts[a, QUEUED]:
        last = attempts[last, ENDED_BEFORE] - 1
    other = attempts[last, ENDED_BEFORE] - 1 if last >= 0 else -1
    if other < 0:
        return attempts[a, WALL]
    return (
        attempts[last, END] - attempts[last, START] + attempts[other, END] - attempts[other, START]
    ) // 2


@inlined
def predicted(state: Any, a: int) -> int:
    """Return the predicted run time of an attempt that enters the queue."""
    predict, wall, length = state.n[PREDICT], state.attempts[a, WALL], state.attempts[a, WALL]
    if predict == OF_WALLTIME:
        return wall
    if predict == OF_RECENT:
        length = recent_mean(state, a)
    elif predict == ACTUAL:
        length = state.attempts[a, DELAY]
    elif wall < FOREVER_US:
        # without a product that exceeds 64 bits
        whole, rest = wall // MILLION, wall % MILLION
        length = whole * state.n[MILLIONTHS] + rest * state.n[MILLIONTHS] // MILLION
    return max(1, min(length, wall))


@loop
def later_end(attempts: Any, a: int, margin: int, now: int) -> int:
    """Return the next planned end of an attempt, or of held nodes, that did not end in time."""
    start, wall = attempts[a, START], attempts[a, WALL]
    for i in range(STEPS.shape[0] + 1):
        length = min(attempts[a, PREDICTED] + STEPS[i], wall) if i < STEPS.shape[0] else wall
        end = start + planned(length, margin)
        if end > now:
            return end
    return now + 1
