# SPDX-License-Identifier: Apache-2.0
"""Where the node-stealing paper (Du et al. 2024) and its authors' program differ."""

from __future__ import annotations

from typing import Literal

import msgspec

Semantics = Literal["paper", "authors"]
"""What an interruption leaves: as the paper's text says, or as its authors' program does."""


class Dialect(msgspec.Struct, frozen=True):
    """Every such difference, each with a name.

    Attributes
    ----------
    semantics : str
        What an interruption leaves.
    passes : str
        A failure is decided on in one pass; or in two within the same instant. The first of two
        plans while killed attempts still hold their nodes, the second frees held nodes.
    held : str
        Which nodes are held for a failed job that waits for a stolen node: its surviving ones, or
        the same number of the lowest free ones, also after one of them fails.
    hold_margin_s : float
        How much longer than expected plans take such nodes to be held, in seconds.
    ended : str
        A victim ends before it is stopped. Its nodes and the held ones are planned together; or
        others are planned first on the nodes of the victim, and the held ones are freed after.
    hit : str
        How a victim continues that fails before it is stopped: as any failed job, or as a victim,
        with the work it had when it was chosen.
    release : str
        Release time of a resubmission for V1, V2, K2 and K3: that of the original job, or its own.
    tie : str
        Last key of V1 and V2: the order of release, or the program's ids as texts.
    chosen : str
        A victim that was not stopped may be chosen again, or only once.
    k3 : str
        What K3 compares: the text's times; or the program's, where the victim's planned end is
        without its recovery and the next end includes nodes held for others.
    digits : str
        Numbers of resubmissions have all digits, or six (see ``models.six_digits``).
    """

    semantics: Semantics = "paper"
    passes: Literal["one", "two"] = "one"
    held: Literal["surviving", "lowest"] = "surviving"
    hold_margin_s: float = 0.0
    ended: Literal["together", "others-first"] = "together"
    hit: Literal["failed", "victim"] = "failed"
    release: Literal["original", "resubmission"] = "original"
    tie: Literal["order", "id"] = "order"
    chosen: Literal["again", "once"] = "again"
    k3: Literal["text", "program"] = "text"
    digits: Literal["all", "six"] = "all"

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
