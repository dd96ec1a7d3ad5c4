# SPDX-License-Identifier: Apache-2.0
"""Differences between the node-stealing paper (Du et al. 2024) and its authors' program."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Semantics = Literal["paper", "authors"]
"""State after an interruption: as in the paper's text, or as in the authors' program."""


class Dialect(msgspec.Struct, frozen=True):
    """The differences, each with a name."""

    semantics: Semantics = "paper"
    passes: Annotated[
        Literal["one", "two"],
        Meta(
            description="Number of planning passes after a failure. With two, the first pass plans "
            "while killed jobs still hold their nodes, and the second pass releases held nodes."
        ),
    ] = "one"
    held: Annotated[
        Literal["surviving", "lowest"],
        Meta(
            description="Nodes held for a failed job that waits for a victim: its surviving "
            "nodes, or the same number of the lowest free nodes, also after another failure."
        ),
    ] = "surviving"
    hold_margin_s: float = 0.0
    ended: Annotated[
        Literal["together", "others-first"],
        Meta(
            description="When a victim ends before its stop: plan its nodes and the held nodes "
            "together, or first plan other jobs on the victim's nodes."
        ),
    ] = "together"
    hit: Annotated[
        Literal["failed", "victim"],
        Meta(
            description="How to requeue a victim that a failure hits before its stop: like any "
            "failed job, or with a victim's priority and its work at the time when it was chosen."
        ),
    ] = "failed"
    release: Annotated[
        Literal["original", "resubmission"],
        Meta(
            description="Release time of a resubmission in V1, V2, K2 and K3: release of the "
            "original job or of the resubmission."
        ),
    ] = "original"
    tie: Annotated[
        Literal["order", "id", "run-time"],
        Meta(
            description="Tie-breaker of V1 and V2: order of release, job id as in the program, or "
            "the shortest time since the attempt started (section 1 of the paper)."
        ),
    ] = "order"
    chosen: Annotated[
        Literal["again", "once"],
        Meta(description="Whether a victim that was chosen but not stopped may be chosen again."),
    ] = "again"
    k3: Annotated[
        Literal["text", "program"],
        Meta(
            description="Planned ends in K3: those of the running jobs (text); or with the "
            "victim's recovery subtracted from its end, and held nodes counted as running jobs "
            "(program)."
        ),
    ] = "text"
    digits: Annotated[
        Literal["all", "six"],
        Meta(
            description="Significant digits of numbers in resubmissions. With six, checkpoint "
            "periods are computed from a failure rate with six decimals."
        ),
    ] = "all"

    @property
    def two_passes(self) -> bool:
        """Whether there are two passes after a failure."""
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
