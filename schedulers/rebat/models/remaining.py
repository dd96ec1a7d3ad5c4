"""What remains of a job after an interruption, by when it is stopped.

Sections 7.2.2 to 7.2.3 (Figures 14 to 18) of Du, Marchal, Pallez and Robert, "Improving Batch
Schedulers with Node Stealing for Failed Jobs", CCPE 2024; resizes and perfect checkpoints after
Prabhakaran, Neumann and Wolf 2018.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from rebat.core.options import Semantics
from rebat.core.proposals import When
from rebat.models.checkpoint import NEVER, Checkpointing

AUTHORS_WAIT_IN_RECOVERY_US = 100_000
"""The authors' program waits 0.1 s before it kills a T2 victim that is still recovering."""


class Remaining(msgspec.Struct, frozen=True):
    """What an interruption leaves: ``useful_us`` of the length is kept (t_useful).

    ``first_period_us`` and ``first_recovery_us`` are those of the resubmission, and ``wait_us`` is
    how long after the decision the interruption takes place (t_checkpoint). ``at_risk_us`` of what
    is kept is in no checkpoint yet: a job that is resized takes it along. Where that is lost after
    all, ``useful_us`` is below 0. ``imaged``: an image holds all that is kept.
    """

    useful_us: int
    first_period_us: int
    first_recovery_us: int
    wait_us: int = 0
    at_risk_us: int = 0
    imaged: bool = False


def since_last_checkpoint(c: Checkpointing, run_us: int, semantics: Semantics) -> Remaining:
    """Interrupted at once: a failed job, or a victim of timing T1 (section 7.2.2).

    Before the first checkpoint is complete nothing is kept. The program then leaves R_first as it
    was (0 for an original job), the paper gives the resubmission a recovery.
    """
    if run_us <= c.first_end_us:
        recovery = c.restart_us if semantics == "paper" else c.first_recovery_us
        return Remaining(0, c.first_period_us, recovery)
    cycles = (run_us - c.first_end_us) // c.cycle_us
    kept = c.first_period_us + c.cost_us + cycles * c.cycle_us
    return Remaining(kept, c.period_us, c.recovery_us)


def after_proactive_checkpoint(c: Checkpointing, run_us: int, semantics: Semantics) -> Remaining:
    """Timing T2: checkpoint the victim now, interrupt it when done (Figures 14 and 15).

    In the fifth case the checkpoint that is under way counts as done, as the text says (Figure 15
    prints a floor where the text's sum, and the program, take the ceiling).
    """
    in_first = run_us - c.first_recovery_us
    if in_first <= 0:
        wait = 0 if semantics == "paper" else AUTHORS_WAIT_IN_RECOVERY_US
        return Remaining(0, c.first_period_us, c.restart_us, wait)
    if in_first <= c.first_period_us:
        return Remaining(in_first, c.first_period_us - in_first, c.recovery_us, c.cost_us)
    first_kept = c.first_period_us + c.cost_us
    if run_us <= c.first_end_us:
        return Remaining(first_kept, c.period_us, c.recovery_us, c.first_end_us - run_us)
    cycles, into = divmod(run_us - c.first_end_us, c.cycle_us)
    if into <= c.period_us:
        return Remaining(in_first, c.period_us - into, c.recovery_us, c.cost_us)
    kept = first_kept + (cycles + 1) * c.cycle_us
    return Remaining(kept, c.period_us, c.recovery_us, c.cycle_us - into)


def after_next_checkpoint(c: Checkpointing, run_us: int, semantics: Semantics) -> Remaining:
    """Timing T3: wait for the victim's next regular checkpoint (Figure 16).

    A victim that is still recovering is interrupted at once in the paper; the program waits for
    its first checkpoint.
    """
    if run_us <= c.first_recovery_us and semantics == "paper":
        return Remaining(0, c.first_period_us, c.restart_us)
    cycles = max(0, -((c.first_end_us - run_us) // c.cycle_us))
    kept = c.first_period_us + c.cost_us + cycles * c.cycle_us
    wait = c.first_recovery_us + kept - run_us
    return Remaining(kept, c.period_us, c.recovery_us, wait)


def resized(c: Checkpointing | None, run_us: int, at_risk_us: int = 0) -> Remaining:
    """A malleable job gives or takes nodes and computes on: nothing is lost, nothing is paid.

    What it has still to recover it recovers on the other nodes; a checkpoint that is being written
    is written anew. ``at_risk_us`` is what it brought along that was in no checkpoint.
    """
    if c is None:
        return Remaining(run_us, 0, 0, at_risk_us=at_risk_us + run_us)
    in_first = run_us - c.first_recovery_us
    if in_first <= 0:
        return Remaining(0, c.first_period_us, -in_first, at_risk_us=at_risk_us)
    if run_us <= c.first_end_us:
        worked_us = min(in_first, c.first_period_us)
        left_us = c.first_period_us - worked_us
        return Remaining(worked_us, left_us, 0, at_risk_us=at_risk_us + worked_us)
    into = (run_us - c.first_end_us) % c.cycle_us
    worked_us = min(into, c.period_us)
    kept_us = in_first - (into - worked_us)
    return Remaining(kept_us, c.period_us - worked_us, 0, at_risk_us=worked_us)


def imaged(c: Checkpointing | None, run_us: int, price_us: int) -> Remaining:
    """A job is checkpointed as it is, whatever it does itself, and restarted for a price.

    What it had still to recover it does not recover: the price is that of a whole restart. A
    regular checkpoint that is being written is written anew.
    """
    kept = resized(c or NEVER, run_us)
    return Remaining(kept.useful_us, kept.first_period_us, price_us, imaged=True)


def _all_but_recovery(c: Checkpointing, run_us: int) -> Remaining:
    """Perfect checkpoints keep all; a recovery is the price of a resize."""
    paid_us = min(run_us, c.first_recovery_us)
    return Remaining(run_us - paid_us, c.first_period_us, c.first_recovery_us - paid_us)


RemainingRule = Callable[[Checkpointing, int, Semantics], Remaining]

STOP_RULES: dict[When, RemainingRule] = {
    When.NOW: since_last_checkpoint,
    When.CHECKPOINT: after_proactive_checkpoint,
    When.NEXT_CHECKPOINT: after_next_checkpoint,
}
"""What a stop leaves, by when it takes place: T1, T2, T3 of section 7.1."""


def untouched(c: Checkpointing | None) -> Remaining:
    """What remains of an attempt that has not run: all of it."""
    return Remaining(0, c.first_period_us, c.first_recovery_us) if c else Remaining(0, 0, 0)


def remaining_after(
    c: Checkpointing | None, run_us: int, when: When, semantics: Semantics, at_risk_us: int = 0
) -> Remaining:
    """What remains after a stop; a job without checkpoints starts over, at no cost.

    ``at_risk_us`` is what the attempt brought along that was in no checkpoint, at its own speed:
    where it has kept nothing itself, that is lost, too, and to be done before its first checkpoint.
    """
    if c is not None and c.perfect:
        return _all_but_recovery(c, run_us)
    if when == When.RESIZE:
        return resized(c, run_us, at_risk_us)
    if c is None:
        return Remaining(-at_risk_us, 0, 0)
    if c.never:  # it begins anew, or from its last image
        return Remaining(-at_risk_us, NEVER.first_period_us, c.image_us)
    remaining = STOP_RULES[when](c, run_us, semantics)
    if not at_risk_us or remaining.useful_us > 0:
        return remaining
    return msgspec.structs.replace(
        remaining,
        useful_us=-at_risk_us,
        first_period_us=remaining.first_period_us + at_risk_us,
    )


def resumed(c: Checkpointing | None, remaining: Remaining) -> Checkpointing | None:
    """The checkpointing of the resubmission.

    It goes back to its image, for the same price each time, until it writes a checkpoint.
    """
    if c is None and not remaining.imaged:
        return None
    c = c or NEVER
    image_us = c.image_us if remaining.at_risk_us >= remaining.useful_us else 0
    return msgspec.structs.replace(
        c,
        image_us=remaining.first_recovery_us if remaining.imaged else image_us,
        first_period_us=remaining.first_period_us,
        first_recovery_us=remaining.first_recovery_us,
    )


def resumed_length_us(length_us: int, c: Checkpointing | None, remaining: Remaining) -> int:
    """t' = R'_first + (t - R_first) - t_useful, for a length or a walltime (eq. 4)."""
    recovered = c.first_recovery_us if c else 0
    return remaining.first_recovery_us + (length_us - recovered) - remaining.useful_us
