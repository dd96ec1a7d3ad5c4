# SPDX-License-Identifier: Apache-2.0
"""When a stop interrupts a job, and what the job keeps.

Sections 7.2.2 and 7.2.3 (Figures 14 to 18) of Du, Marchal, Pallez and Robert, "Improving Batch
Schedulers with Node Stealing for Failed Jobs", CCPE 2024.

The rules are valid in any unit of time. The session uses whole microseconds; ``six_digits``, the
arithmetic of the authors' program, uses seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from rebat.core.attempts import When
from rebat.core.options import Semantics

Time = TypeVar("Time", int, float)
"""A number of whole microseconds (int) or of seconds (float)."""


class CheckpointPattern(NamedTuple, Generic[Time]):
    """The checkpoint pattern of an execution: R_first, T_first, C, then T and C repeatedly.

    ``restart`` is the cost to restart from the state with which the execution began. ``moment`` is
    0.1 s. If a victim with timing T2 is still recovering, the authors' program kills it after this
    time.
    """

    period: Time
    cost: Time
    recovery: Time
    first_period: Time
    first_recovery: Time
    restart: Time
    moment: Time

    @property
    def first_end(self) -> Time:
        """End of the first checkpoint: t_first = R_first + T_first + C."""
        return self.first_recovery + self.first_period + self.cost

    @property
    def cycle(self) -> Time:
        """T + C."""
        return self.period + self.cost


class Left(NamedTuple, Generic[Time]):
    """What remains of a job after an interruption.

    Attributes
    ----------
    useful
        The part of the job's length that is kept (t_useful).
    first_period, first_recovery
        First period and first recovery of the resubmission.
    wait
        Delay until the interruption takes place (t_checkpoint).
    """

    useful: Time
    first_period: Time
    first_recovery: Time
    wait: Time


def _progress(p: CheckpointPattern[Time], cycles: Time) -> Time:
    """Return the progress after the first checkpoint and ``cycles`` further cycles."""
    return p.first_period + p.cost + cycles * p.cycle


def since_last_checkpoint(
    p: CheckpointPattern[Time], run: Time, semantics: Semantics
) -> Left[Time]:
    """Interrupt a failed job, or a victim with timing T1, immediately (section 7.2.2).

    If the first checkpoint is not complete, no work is kept. In this case, the paper's resubmission
    begins with a recovery. The authors' program does not change R_first, which is 0 for a job that
    was not resubmitted.
    """
    if run <= p.first_end:
        recovery = p.restart if semantics == "paper" else p.first_recovery
        return Left(0, p.first_period, recovery, 0)
    return Left(_progress(p, (run - p.first_end) // p.cycle), p.period, p.recovery, 0)


def after_proactive_checkpoint(
    p: CheckpointPattern[Time], run: Time, semantics: Semantics
) -> Left[Time]:
    """Write a checkpoint now, then interrupt the victim: timing T2 (Figures 14 and 15).

    In the fifth case of the figures, the current checkpoint counts as complete, as in the sum in
    the text and in the program. (Both round up; the formula in Figure 15 rounds down.)
    """
    in_first = run - p.first_recovery
    if in_first <= 0:
        wait = 0 if semantics == "paper" else p.moment
        return Left(0, p.first_period, p.restart, wait)
    if in_first <= p.first_period:
        return Left(in_first, p.first_period - in_first, p.recovery, p.cost)
    if run <= p.first_end:
        return Left(_progress(p, 0), p.period, p.recovery, p.first_end - run)
    cycles, position = divmod(run - p.first_end, p.cycle)
    if position <= p.period:
        return Left(in_first, p.period - position, p.recovery, p.cost)
    return Left(_progress(p, cycles + 1), p.period, p.recovery, p.cycle - position)


def after_next_checkpoint(
    p: CheckpointPattern[Time], run: Time, semantics: Semantics
) -> Left[Time]:
    """Wait for the victim's next regular checkpoint, then interrupt it: timing T3 (Figure 16).

    If the victim is still recovering, the paper interrupts it immediately. The authors' program
    waits for the victim's first checkpoint.
    """
    if run <= p.first_recovery and semantics == "paper":
        return Left(0, p.first_period, p.restart, 0)
    cycles = max(0, -((p.first_end - run) // p.cycle))
    useful = _progress(p, cycles)
    return Left(useful, p.period, p.recovery, p.first_recovery + useful - run)


Interruption = Callable[[CheckpointPattern[Any], Any, Semantics], Left[Any]]

INTERRUPTIONS: dict[When, Interruption] = {
    When.NOW: since_last_checkpoint,
    When.CHECKPOINT: after_proactive_checkpoint,
    When.NEXT_CHECKPOINT: after_next_checkpoint,
}
"""The rule for each timing of an interruption: T1, T2, T3 of section 7.1."""
