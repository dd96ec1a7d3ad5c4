# SPDX-License-Identifier: Apache-2.0
"""Details in which the node-stealing paper (Du et al. 2024) and its authors' program differ."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

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
