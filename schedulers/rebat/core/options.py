"""Options that a preset fixes for the session it runs in."""

from __future__ import annotations

from typing import Literal

import msgspec

Semantics = Literal["paper", "authors"]
"""Where the node-stealing paper and its authors' program differ: the text, or the program."""


class YoungDaly(msgspec.Struct, frozen=True):
    """How jobs checkpoint whose profiles do not say it; in seconds, the MTBF the machine's.

    Their lengths and walltimes are taken to hold the checkpoints already.
    """

    mtbf_s: float
    cost_s: float
    recovery_s: float


class SessionOptions(msgspec.Struct, frozen=True):
    """How a session behaves.

    ``strict``: a refused proposal is an error (a bug in the policy) instead of a ledger entry.
    ``plan_while_killing``: plan also while a kill is pending, the dying attempts still holding
    their nodes: the two passes of the node-stealing authors' program.
    ``young_daly``: checkpointing of jobs whose profiles have no checkpoint fields.
    """

    semantics: Semantics = "paper"
    strict: bool = True
    plan_while_killing: bool = False
    young_daly: YoungDaly | None = None
