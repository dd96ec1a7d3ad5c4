# SPDX-License-Identifier: Apache-2.0
"""Predicted run times of attempts, for plans.

A plan uses the prediction in place of the walltime: for the reservation of a queued attempt, and
for the planned end of a running attempt. The prediction never exceeds the walltime, and a job is
never killed before its walltime.

Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions rather than user
runtime estimates", IEEE TPDS 18(6), 2007, predict the mean of the last two run times of the user,
and increase a prediction that a job exceeds. The values of `STEPS_US` are those of predictsim, the
simulator of Gaussier, Glesser, Reis and Trystram, "Improving backfilling by using machine learning
to predict running times", SC 2015, where this correction has the name ``tsafrir``.
"""

from __future__ import annotations

from collections.abc import Callable

from rebat.contract import View
from rebat.core.attempts import Attempt
from rebat.core.errors import InputError
from rebat.policies.queue_order import planned_us
from rebat.rules.predict import MILLION, STEPS_US

Prediction = Callable[[View, Attempt], int]
"""Function that returns the predicted run time (us) of an attempt that enters the queue."""


def of_recent(view: View, attempt: Attempt) -> int:
    """Return the mean run time of the last two jobs of the user that ended before.

    If there are fewer than two, or if the job has no user, return the walltime.
    """
    runs_us = view.recent_runs_us(attempt)
    return sum(runs_us) // 2 if len(runs_us) == 2 else attempt.walltime_us


def actual(view: View, attempt: Attempt) -> int:
    """Return the true run time, which only a simulator knows."""
    return view.true_run_us(attempt.id)


PREDICTIONS: dict[str, Prediction | None] = {
    "walltime": None,
    "recent": of_recent,
    "actual": actual,
}
"""Predictions by name. A factor of the walltime is also a valid prediction."""


def millionths_of(predict: str | float) -> int:
    """Return a factor of the walltime in millionths, or 0 for the name of a prediction."""
    if str(predict) in PREDICTIONS:
        return 0
    try:
        millionths = round(float(predict) * MILLION)
    except (ValueError, OverflowError):
        millionths = 0
    if not 1 <= millionths <= MILLION:
        names = ", ".join(PREDICTIONS)
        expected = f"{names}, or a factor of the walltime above 0, up to 1"
        raise InputError(f"invalid prediction {str(predict)!r}", expected=expected)
    return millionths


def prediction(predict: str | float) -> Prediction | None:
    """Return a prediction. None stands for the walltime."""
    millionths = millionths_of(predict)
    if not millionths:
        return PREDICTIONS[str(predict)]

    def part_of_walltime(view: View, attempt: Attempt) -> int:
        if not attempt.has_walltime:
            return attempt.walltime_us
        return attempt.walltime_us * millionths // MILLION

    return part_of_walltime


def later_end_us(
    start_us: int, predicted_us: int, walltime_us: int, margin_us: int, now_us: int
) -> int:
    """Return the planned end of a running attempt that exceeds its prediction.

    It is the first corrected end after the present time. No correction exceeds the walltime. After
    the walltime, the planned end is 1 us from now. The result depends on the present time, but not
    on earlier corrections, and therefore not on how often the plan is updated.
    """
    lengths_us = [min(predicted_us + step_us, walltime_us) for step_us in STEPS_US]
    for length_us in (*lengths_us, walltime_us):
        end_us = start_us + planned_us(length_us, margin_us)
        if end_us > now_us:
            return end_us
    return now_us + 1
