"""Periodic checkpointing, and what remains of a job after an interruption.

Section 5.2 (eqs 1 and 2) and sections 7.2.2 to 7.2.3 (Figures 14 to 18) of Du, Marchal, Pallez and
Robert, "Improving Batch Schedulers with Node Stealing for Failed Jobs", CCPE 2024.

An execution is: recovery ``Rf``, work ``Tf``, checkpoint ``C``, then work ``T`` and checkpoint
``C`` over and over. Regular checkpoints count as progress, since they are part of the length.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.core.options import Semantics, YoungDaly
from rebat.core.proposals import When
from rebat.core.units import MAX_SECONDS, to_s, to_us

Rounding = Literal["ceil", "floor"]

AUTHORS_WAIT_IN_RECOVERY_US = 100_000
"""The authors' program waits 0.1 s before it kills a T2 victim that is still recovering."""


class Checkpointing(msgspec.Struct, frozen=True):
    """How one execution checkpoints; all in microseconds.

    ``first_recovery_us`` and ``first_period_us`` are the paper's R_first and T_first: 0 and T for
    an original submission. ``closing``: a checkpoint ends every period that was begun (eq. 1 rounds
    up), also the last one; else only those that came to their end.
    """

    period_us: int
    cost_us: int
    recovery_us: int
    first_period_us: int
    first_recovery_us: int = 0
    closing: bool = True

    @property
    def first_end_us(self) -> int:
        """t_first = R_first + T_first + C: when the first checkpoint is complete."""
        return self.first_recovery_us + self.first_period_us + self.cost_us

    @property
    def cycle_us(self) -> int:
        """T + C."""
        return self.period_us + self.cost_us

    @property
    def perfect(self) -> bool:
        """Whether every tick of the clock is kept."""
        return self.cycle_us <= 1


class Remaining(msgspec.Struct, frozen=True):
    """What an interruption leaves: ``useful_us`` of the length is kept (t_useful).

    ``first_period_us`` and ``first_recovery_us`` are those of the resubmission, and ``wait_us`` is
    how long after the decision the interruption takes place (t_checkpoint). ``at_risk_us`` of what
    is kept is in no checkpoint yet: a job that is resized takes it along. Where that is lost after
    all, ``useful_us`` is below 0.
    """

    useful_us: int
    first_period_us: int
    first_recovery_us: int
    wait_us: int = 0
    at_risk_us: int = 0


def since_last_checkpoint(c: Checkpointing, run_us: int, semantics: Semantics) -> Remaining:
    """Interrupted at once: a failed job, or a victim of timing T1 (section 7.2.2).

    Before the first checkpoint is complete nothing is kept. The program then leaves R_first as it
    was (0 for an original job), the paper gives the resubmission a recovery.
    """
    if run_us <= c.first_end_us:
        recovery = c.recovery_us if semantics == "paper" else c.first_recovery_us
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
        return Remaining(0, c.first_period_us, c.recovery_us, wait)
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
        return Remaining(0, c.first_period_us, c.recovery_us)
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
    if c.perfect:
        return _all_but_recovery(c, run_us)
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


def remaining_after(
    c: Checkpointing | None, run_us: int, when: When, semantics: Semantics, at_risk_us: int = 0
) -> Remaining:
    """What remains after a stop; a job without checkpoints starts over, at no cost.

    ``at_risk_us`` is what the attempt brought along that was in no checkpoint, at its own speed:
    where it has kept nothing itself, that is lost, too, and to be done before its first checkpoint.
    """
    if when == When.RESIZE:
        return resized(c, run_us, at_risk_us)
    if c is None:
        return Remaining(-at_risk_us, 0, 0)
    if c.perfect:
        return _all_but_recovery(c, run_us)
    remaining = STOP_RULES[when](c, run_us, semantics)
    if not at_risk_us or remaining.useful_us > 0:
        return remaining
    return msgspec.structs.replace(
        remaining,
        useful_us=-at_risk_us,
        first_period_us=remaining.first_period_us + at_risk_us,
    )


def resumed(c: Checkpointing | None, remaining: Remaining) -> Checkpointing | None:
    """The checkpointing of the resubmission."""
    if c is None:
        return None
    return msgspec.structs.replace(
        c,
        first_period_us=remaining.first_period_us,
        first_recovery_us=remaining.first_recovery_us,
    )


def resumed_length_us(length_us: int, c: Checkpointing | None, remaining: Remaining) -> int:
    """t' = R'_first + (t - R_first) - t_useful, for a length or a walltime (eq. 4)."""
    recovered = c.first_recovery_us if c else 0
    return remaining.first_recovery_us + (length_us - recovered) - remaining.useful_us


def work_in_us(c: Checkpointing | None, length_us: int) -> int:
    """The work in a length, its recovery apart: all but its checkpoints (eq. 1).

    A length that was not made by equation 1 may end with less than a closing checkpoint: that, too,
    is taken for checkpointing.
    """
    if c is None:
        return length_us
    closing_us = c.cost_us if c.closing else 0
    beyond_us = length_us - c.first_period_us - c.cost_us
    if beyond_us <= 0:
        return min(c.first_period_us, max(0, length_us - closing_us))
    cycles, into = divmod(beyond_us, c.cycle_us)
    last_us = min(c.period_us, max(0, into - closing_us))
    return c.first_period_us + cycles * c.period_us + last_us


def with_checkpoints_us(c: Checkpointing | None, work_us: int) -> int:
    """The length of so much work, recovery apart: with a checkpoint for each period (eq. 1).

    >>> with_checkpoints_us(Checkpointing(100, 10, 7, first_period_us=40), 41)
    61
    >>> with_checkpoints_us(Checkpointing(100, 10, 7, first_period_us=40, closing=False), 41)
    51
    """
    if c is None:
        return work_us
    beyond_us = work_us - c.first_period_us
    if c.closing:
        periods = 1 + max(0, -(-beyond_us // c.period_us))
    else:
        periods = 1 + beyond_us // c.period_us if beyond_us >= 0 else 0
    return work_us + periods * c.cost_us


def young_daly_period_s(n_nodes: int, machine_nodes: int, mtbf_s: float, cost_s: float) -> float:
    """P_YD = sqrt(2 mu_job C) in seconds, mu_job = mtbf x machine_nodes / n_nodes (section 5.2)."""
    return math.sqrt(2 * (mtbf_s * machine_nodes / n_nodes) * cost_s)


def _lengthened_us(length_us: int, period_s: float, cost_us: int, rounding: Rounding) -> int:
    periods = to_s(length_us) / period_s
    count = math.ceil(periods) if rounding == "ceil" else math.floor(periods)
    return length_us + count * cost_us


def _with_checkpoints(
    job: Job, profile: dict[str, Any], period_s: float, cost_s: float, recovery_s: float,
    rounding: Rounding,
) -> tuple[Job, dict[str, Any]]:  # fmt: skip
    if profile.get("type") != "delay":
        raise InputError(
            f"checkpoints need a delay profile, not {profile.get('type')!r}", f"job {job.id}"
        )
    cost_us = to_us(cost_s)
    delay_us = _lengthened_us(to_us(profile["delay"]), period_s, cost_us, rounding)
    lengthened = {
        **profile,
        "delay": to_s(delay_us),
        "checkpoint_period": period_s,
        "checkpoint_cost": cost_s,
        "recovery_cost": recovery_s,
        "Tfirst": period_s,
        "Rfirst": 0.0,
    }
    if rounding == "floor":
        lengthened["checkpoint_rounding"] = rounding
    walltime = job.walltime_us
    if walltime is not None:
        walltime = _lengthened_us(walltime, period_s, cost_us, rounding)
    name = f"{job.profile}@{job.n_nodes}"
    return msgspec.structs.replace(job, walltime_us=walltime, profile=name), lengthened


def add_young_daly(
    workload: Workload,
    *,
    n_nodes: int,
    mtbf_s: float,
    cost_s: float = 300.0,
    recovery_s: float = 300.0,
    rounding: Rounding = "ceil",
) -> Workload:
    """The workload with periodic checkpoints in every job's length and walltime (eqs 1 and 2).

    Parameters
    ----------
    n_nodes, mtbf_s : int, float
        Nodes of the machine and its mean time between failures as a whole, in seconds.
    cost_s, recovery_s : float
        C and R, in seconds (5 minutes in section 5.2).
    rounding : 'ceil' or 'floor'
        Equations 1 and 2 print the ceiling; the text of section 6.1 fits the floor.
    """
    jobs, profiles = [], {}
    for job in workload.jobs:
        period_s = young_daly_period_s(job.n_nodes, n_nodes, mtbf_s, cost_s)
        new, profile = _with_checkpoints(
            job, workload.profiles[job.profile], period_s, cost_s, recovery_s, rounding
        )
        jobs.append(new)
        profiles[new.profile] = profile
    return msgspec.structs.replace(workload, jobs=tuple(jobs), profiles=profiles)


def add_perfect(workload: Workload) -> Workload:
    """The workload with perfect checkpoints: every job goes on just where it was interrupted.

    Nothing is lost and nothing is paid (section III of Prabhakaran et al. 2018): a checkpoint at
    each tick of the clock, of no cost and without a recovery. Jobs whose profile is no delay start
    over.
    """
    fields = {"checkpoint_period": to_s(1), "checkpoint_cost": 0, "recovery_cost": 0}
    profiles = {
        name: profile | fields if profile.get("type") == "delay" else profile
        for name, profile in workload.profiles.items()
    }
    return msgspec.structs.replace(workload, profiles=profiles)


def checkpointing_of(profile: dict[str, Any]) -> Checkpointing | None:
    """The checkpoint fields of a Batsim profile, or None where it has none.

    Raises
    ------
    InputError
        When some of the fields are there but others are missing or are no durations.
    """
    if "checkpoint_period" not in profile:
        return None
    names = ("checkpoint_period", "checkpoint_cost", "recovery_cost", "Tfirst", "Rfirst")
    values = []
    for name in names:
        value = profile.get(name, profile["checkpoint_period"] if name == "Tfirst" else 0)
        if not isinstance(value, int | float) or not 0 <= value <= MAX_SECONDS:
            raise InputError(f"profile field {name} is {value!r}", expected="seconds, 0 or more")
        values.append(to_us(value))
    period, cost, recovery, first_period, first_recovery = values
    if period == 0:
        raise InputError("profile field checkpoint_period is 0", expected="seconds, above 0")
    closing = profile.get("checkpoint_rounding") != "floor"
    return Checkpointing(period, cost, recovery, first_period, first_recovery, closing)


def derived_checkpointing(
    n_nodes: int, machine_nodes: int, young_daly: YoungDaly | None
) -> Checkpointing | None:
    """The checkpointing of an original job of this size, where only the model is known."""
    if young_daly is None:
        return None
    period_s = young_daly_period_s(n_nodes, machine_nodes, young_daly.mtbf_s, young_daly.cost_s)
    period = to_us(min(period_s, MAX_SECONDS))
    return Checkpointing(period, to_us(young_daly.cost_s), to_us(young_daly.recovery_s), period)
