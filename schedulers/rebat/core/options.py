# SPDX-License-Identifier: Apache-2.0
"""Options of a session, which a preset sets: dialect, stages of recovery, and others.

The dialect consists of details in which the node-stealing paper (Du et al. 2024) and its authors'
program differ.

The recovery of a failed job can have stages, whose durations are random and depend on the cause.
After a failure, the job first hangs: it keeps its nodes while the failure is detected and
diagnosed, and the job is rescheduled. During this time, failures of its nodes have no effect. Then
a policy decides, and the job continues on other nodes: it initialises, then loads its checkpoint.
If a failure hits the job in one of these two stages, both begin again.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from rebat.core.durations import RandomDuration, parse_random, stream
from rebat.core.errors import InputError
from rebat.core.units import to_us

SilentErrors = Literal["accept", "retry"]
"""What happens when an attempt ends with an error: its job ends (accept) or runs again (retry)."""


MAX_ATTEMPTS = 10_000
"""Default maximum number of interrupted attempts of a job.

A job that needs more attempts probably cannot complete on this machine.
"""


class YoungDaly(msgspec.Struct, frozen=True):
    """Checkpoints of jobs whose profiles contain no checkpoint fields. Times are in seconds.

    ``mtbf_s`` is the MTBF of the machine. Run times and walltimes already include the checkpoints.
    """

    mtbf_s: float
    cost_s: float
    recovery_s: float


Semantics = Literal["paper", "authors"]
"""How the remaining work of a job is computed: as in the paper, or as in its authors' program."""


class Dialect(msgspec.Struct, frozen=True):
    """Choices between the node-stealing paper and its authors' program, one for each difference."""

    semantics: Semantics = "paper"
    passes: Annotated[
        Literal["one", "two"],
        Meta(
            description="Number of planning passes after a failure. With two, killed jobs still "
            "hold their nodes in the first pass, and nodes held for waiting jobs become free in "
            "the second pass."
        ),
    ] = "one"
    held: Annotated[
        Literal["surviving", "lowest"],
        Meta(
            description="Nodes held for a failed job that waits for a victim: its surviving nodes "
            "(surviving), or the same number of the lowest free nodes (lowest). With 'lowest', "
            "nodes are chosen again after another failure."
        ),
    ] = "surviving"
    hold_margin_s: float = 0.0
    ended: Annotated[
        Literal["together", "others-first"],
        Meta(
            description="What happens if a victim ends before its stop: its nodes and the held "
            "nodes are planned together (together), or other jobs are first planned on the "
            "victim's nodes (others-first)."
        ),
    ] = "together"
    hit: Annotated[
        Literal["failed", "victim"],
        Meta(
            description="How a victim is requeued if a failure hits it before its stop: like any "
            "failed job (failed), or with a victim's priority and the work that remained when it "
            "was chosen (victim)."
        ),
    ] = "failed"
    release: Annotated[
        Literal["original", "resubmission"],
        Meta(
            description="Release time (submission time) that the rules V1, V2, K2 and K3 use for a "
            "resubmission: that of the original job (original), or that of the resubmission "
            "(resubmission)."
        ),
    ] = "original"
    tie: Annotated[
        Literal["order", "id", "run-time"],
        Meta(
            description="Tie-breaker of the victim rules V1 and V2: order of release (order), job "
            "id as in the program (id), or the shortest time since the attempt started (run-time, "
            "section 1 of the paper)."
        ),
    ] = "order"
    chosen: Annotated[
        Literal["again", "once"],
        Meta(description="Whether a victim that was chosen but not stopped may be chosen again."),
    ] = "again"
    k3: Annotated[
        Literal["text", "program"],
        Meta(
            description="Planned ends in the criterion K3: those of the running jobs (text), or as "
            "in the program. The program subtracts the victim's recovery from its end, and counts "
            "held nodes as running jobs."
        ),
    ] = "text"
    digits: Annotated[
        Literal["all", "six"],
        Meta(
            description="Significant digits of numbers in resubmissions: all, or six as in the "
            "program. With six, checkpoint periods are computed from a failure rate with six "
            "decimals."
        ),
    ] = "all"

    @property
    def two_passes(self) -> bool:
        """Whether the session calls the policy in two passes after a failure."""
        return self.passes == "two"


PAPER = Dialect()

PROGRAM = Dialect(
    semantics="authors",
    passes="two",
    held="lowest",
    hold_margin_s=900.0,
    ended="others-first",
    hit="victim",
    release="resubmission",
    tie="id",
    chosen="once",
    k3="program",
    digits="six",
)

DIALECTS: dict[str, Dialect] = {"paper": PAPER, "authors": PROGRAM}


HUNG = ("detect", "diagnose", "reschedule")
"""The stages in which the job hangs on its nodes, in order."""

STAGES = (*HUNG, "init")

ANY = ""
"""Key of the durations for all causes that have no key."""


class StageDurations(msgspec.Struct, frozen=True):
    """Random durations of a stage, by cause of the failure."""

    by_cause: tuple[tuple[str, RandomDuration], ...]

    def of(self, cause: str) -> RandomDuration:
        """Return the random duration for a cause of failures."""
        durations = dict(self.by_cause)
        return durations.get(cause, durations[ANY])


class Recovery(msgspec.Struct, frozen=True):
    """The durations of the stages before the checkpoint is loaded, and the seed of the draws."""

    detect: str = "0"
    diagnose: str = "0"
    reschedule: str = "0"
    init: str = "0"
    seed: int = 0

    @property
    def stages(self) -> dict[str, StageDurations]:
        """The stages that take time, with their durations, by name."""
        texts = {name: getattr(self, name) for name in STAGES}
        return {name: parse_stage(text) for name, text in texts.items() if text not in ("0", "0s")}

    @property
    def random(self) -> bool:
        """Whether any duration is random."""
        stages = self.stages.values()
        return not all(duration.constant for stage in stages for _, duration in stage.by_cause)

    def drawn_us(
        self, stages: dict[str, StageDurations], cause: str, *key: str | int
    ) -> dict[str, int]:
        """Draw the duration of each stage in microseconds.

        Equal arguments ``key`` always yield equal durations.
        """
        durations = {}
        for name, stage in stages.items():
            duration = stage.of(cause)
            rng = stream(0 if duration.constant else self.seed, "recovery", name, *key)
            durations[name] = to_us(duration.draw_s(rng))
        return durations


def parse_stage(text: str | float) -> StageDurations:
    """Return the durations of a stage.

    ``30s`` applies to all causes. ``nccl=10min/30s`` means 10 min after a failure with the cause
    nccl, and 30 s after all other failures.
    """
    by_cause = {}
    for part in str(text).split("/"):
        cause, equals, duration = part.rpartition("=")
        if cause in by_cause or (equals and not cause):
            problem = f"cause {cause!r} is a duplicate" if cause else "a cause has no name"
            raise InputError(f"{text!r}: {problem}", expected="each cause once, like gpu=10min")
        by_cause[cause] = parse_random(duration)
    if ANY not in by_cause:
        expected = "a duration without a cause, for all other causes: hang=10min/30s"
        raise InputError(f"{text!r} has no duration for other causes", expected=expected)
    return StageDurations(tuple(by_cause.items()))


class SessionOptions(msgspec.Struct, frozen=True):
    """Options of a session.

    Attributes
    ----------
    dialect : Dialect
        Choices for the details in which the node-stealing paper and its authors' program differ.
    strict : bool
        If True, a refused proposal of the policy is an error. If False, it is only recorded.
    young_daly : YoungDaly, optional
        Checkpointing of jobs whose profiles have no checkpoint fields.
    silent_errors : str
        With 'retry', a job that ends with a return code other than 0 runs again from the beginning
        until it succeeds (sections 3.2 and 4.1 of Benoit et al., RR-9296).
    resize_cost : str
        Time that a resize costs: seconds or a cost model (see ``models.migration.cost_us``). It is
        added to the recovery time of the next attempt.
    migration_cost : str
        Time that a checkpoint and restart cost: seconds or a cost model (see
        ``models.migration.cost_us``).
    purge_s : float
        Slurm's PURGE_JOB_INTERVAL. Some cost models include it (see ``models.migration``).
    cores_per_node : int
        Number of Batsim's hosts (cores) that form a node; 1 if hosts are nodes.
    resumes_moldable : bool
        If True, a moldable job whose number of nodes changes continues from its last checkpoint.
        If False, it restarts from the beginning.
    max_attempts : int
        Number of interrupted attempts after which a job ends as failed.
    recovery : Recovery, optional
        Stages of the recovery of a failed job. If None, there are no stages: the policy is informed
        of a failure immediately.
    """

    dialect: Dialect = PAPER
    strict: bool = True
    young_daly: YoungDaly | None = None
    silent_errors: SilentErrors = "accept"
    resize_cost: str = "0"
    migration_cost: str = "table"
    purge_s: float = 60.0
    cores_per_node: int = 1
    resumes_moldable: bool = False
    max_attempts: int = MAX_ATTEMPTS
    recovery: Recovery | None = None

    @property
    def starts_cost(self) -> bool:
        """Whether a restart costs time even if the job wrote no checkpoint."""
        return self.resize_cost != "0" or bool(self.recovery and "init" in self.recovery.stages)
