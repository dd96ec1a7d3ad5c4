# SPDX-License-Identifier: Apache-2.0
"""When a job is interrupted, and what it keeps: sections 7.2.2 and 7.2.3 (Figures 14 to 18) of Du,
Marchal, Pallez and Robert, "Improving Batch Schedulers with Node Stealing for Failed Jobs", CCPE
2024.

The rules hold in any unit of time: the session asks in whole microseconds, the arithmetic of the
authors' program in seconds (see ``six_digits``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from rebat.core.attempts import When
from rebat.core.dialect import Semantics

Time = TypeVar("Time", int, float)
"""Whole microseconds, or seconds."""


class CheckpointPattern(NamedTuple, Generic[Time]):
    """One execution: recovery, first period, checkpoint, then period and checkpoint over and over.

    ``restart`` is what it costs to go on from what it began with; ``moment`` how long the authors'
    program waits before it kills a T2 victim that is still recovering: 0.1 s.
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
        """t_first = R_first + T_first + C: when the first checkpoint is complete."""
        return self.first_recovery + self.first_period + self.cost

    @property
    def cycle(self) -> Time:
        """T + C."""
        return self.period + self.cost


class Left(NamedTuple, Generic[Time]):
    """What an interruption leaves: so much of the length is kept (t_useful), the resubmission has
    this first period and recovery, and the interruption takes place after a wait (t_checkpoint)."""

    useful: Time
    first_period: Time
    first_recovery: Time
    wait: Time


def _progress(p: CheckpointPattern[Time], cycles: Time) -> Time:
    """What is done with the first checkpoint and so many after it."""
    return p.first_period + p.cost + cycles * p.cycle


def since_last_checkpoint(
    p: CheckpointPattern[Time], run: Time, semantics: Semantics
) -> Left[Time]:
    """Interrupted at once: a failed job, or a victim of timing T1 (section 7.2.2).

    Before the first checkpoint is complete nothing is kept. The program then leaves R_first as it
    was (0 for an original job), the paper gives the resubmission a recovery.
    """
    if run <= p.first_end:
        recovery = p.restart if semantics == "paper" else p.first_recovery
        return Left(0, p.first_period, recovery, 0)
    return Left(_progress(p, (run - p.first_end) // p.cycle), p.period, p.recovery, 0)


def after_proactive_checkpoint(
    p: CheckpointPattern[Time], run: Time, semantics: Semantics
) -> Left[Time]:
    """Timing T2: checkpoint the victim now, interrupt it when done (Figures 14 and 15).

    In the fifth case the checkpoint that is under way counts as done, as the text says (Figure 15
    prints a floor where the text's sum, and the program, take the ceiling).
    """
    in_first = run - p.first_recovery
    if in_first <= 0:
        wait = 0 if semantics == "paper" else p.moment
        return Left(0, p.first_period, p.restart, wait)
    if in_first <= p.first_period:
        return Left(in_first, p.first_period - in_first, p.recovery, p.cost)
    if run <= p.first_end:
        return Left(_progress(p, 0), p.period, p.recovery, p.first_end - run)
    cycles, into = divmod(run - p.first_end, p.cycle)
    if into <= p.period:
        return Left(in_first, p.period - into, p.recovery, p.cost)
    return Left(_progress(p, cycles + 1), p.period, p.recovery, p.cycle - into)


def after_next_checkpoint(
    p: CheckpointPattern[Time], run: Time, semantics: Semantics
) -> Left[Time]:
    """Timing T3: wait for the victim's next regular checkpoint (Figure 16).

    A victim that is still recovering is interrupted at once in the paper; the program waits for
    its first checkpoint.
    """
    if run <= p.first_recovery and semantics == "paper":
        return Left(0, p.first_period, p.restart, 0)
    cycles = max(0, -((p.first_end - run) // p.cycle))
    kept = _progress(p, cycles)
    return Left(kept, p.period, p.recovery, p.first_recovery + kept - run)


Interruption = Callable[[CheckpointPattern[Any], Any, Semantics], Left[Any]]

INTERRUPTIONS: dict[When, Interruption] = {
    When.NOW: since_last_checkpoint,
    When.CHECKPOINT: after_proactive_checkpoint,
    When.NEXT_CHECKPOINT: after_next_checkpoint,
}
"""What a stop leaves, by when it takes place: T1, T2, T3 of section 7.1."""
