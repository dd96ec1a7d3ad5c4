# SPDX-License-Identifier: Apache-2.0
"""Where the node-stealing paper (Du et al. 2024) and its authors' program differ."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Semantics = Literal["paper", "authors"]
"""What an interruption leaves: as the paper's text says, or as its authors' program does."""


class Dialect(msgspec.Struct, frozen=True):
    """Every such difference, each with a name."""

    semantics: Semantics = "paper"
    passes: Annotated[
        Literal["one", "two"],
        Meta(
            description="A failure is decided on in one pass; or in two within the same instant, "
            "of which the first plans while killed jobs still hold their nodes, and the second "
            "frees held nodes."
        ),
    ] = "one"
    held: Annotated[
        Literal["surviving", "lowest"],
        Meta(
            description="Nodes held for a failed job that waits for a stolen one: its surviving "
            "ones, or the same number of the lowest free ones, also after one of them fails."
        ),
    ] = "surviving"
    hold_margin_s: float = 0.0
    ended: Annotated[
        Literal["together", "others-first"],
        Meta(
            description="When a victim ends before it is stopped: its nodes and those held are "
            "planned together, or others are planned first on those of the victim."
        ),
    ] = "together"
    hit: Annotated[
        Literal["failed", "victim"],
        Meta(
            description="How a victim continues that fails before it is stopped: as any failed "
            "job, or with the priority of a victim and the work it had when it was chosen."
        ),
    ] = "failed"
    release: Annotated[
        Literal["original", "resubmission"],
        Meta(
            description="Release time of a resubmission, for V1, V2, K2 and K3: that of the "
            "original job, or its own."
        ),
    ] = "original"
    tie: Annotated[
        Literal["order", "id"],
        Meta(description="Last key of V1 and V2: order of release, or the program's ids."),
    ] = "order"
    chosen: Annotated[
        Literal["again", "once"],
        Meta(description="Whether an attempt that was chosen and not stopped may be chosen again."),
    ] = "again"
    k3: Annotated[
        Literal["text", "program"],
        Meta(
            description="What K3 compares: as the paper's text, or as the program: the victim's "
            "planned end without its recovery, the next end also among nodes held for others."
        ),
    ] = "text"
    digits: Annotated[
        Literal["all", "six"],
        Meta(
            description="Digits of the numbers of resubmissions; with six, periods are computed "
            "from a failure rate with six decimals."
        ),
    ] = "all"

    @property
    def two_passes(self) -> bool:
        """Whether a failure is decided on in two passes."""
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
