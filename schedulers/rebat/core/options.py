# SPDX-License-Identifier: Apache-2.0
"""Options that a preset fixes for the session it runs in."""

from __future__ import annotations

from typing import Literal

import msgspec

Semantics = Literal["paper", "authors"]
"""Where the node-stealing paper and its authors' program differ: the text, or the program."""

SilentErrors = Literal["accept", "retry"]
"""What becomes of a job whose attempt ends with an error: it is over, or it is run again."""


MAX_ATTEMPTS = 10_000
"""Attempts of one job that failures may interrupt: a job that needs more cannot survive to its
end on this machine."""


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
    ``hold_lowest``: for a failed job that waits for a stolen node, hold the lowest free nodes (the
    program's planning does) instead of those of its own that survive.
    ``hold_margin_s``: how much longer plans take such nodes to be held than they will be.
    ``others_first``: when its victim ends by itself, others are planned on what that leaves before
    the held nodes are given back.
    ``victim_hit``: a victim that fails itself while its stop is to come is resubmitted as any
    'failed' job, or as a 'victim', with what it would have kept when it was chosen.
    ``digits``: numbers of resubmissions are written with 'all' digits or 'six' (see
    ``models.six_digits``).
    ``young_daly``: checkpointing of jobs whose profiles have no checkpoint fields.
    ``silent_errors``: 'retry' puts a job that ends with a return code other than 0 back into the
    queue, whole, until it succeeds (sections 3.2 and 4.1 of Benoit et al., RR-9296).
    ``resize_cost``: what a job that goes on on another number of nodes pays first, a recovery of so
    long more (see ``models.migration.cost_us``).
    ``migration_cost``, ``purge_s``: what a checkpoint and restart costs, in the same words, and the
    interval at which jobs are purged.
    ``cores_per_node``: the machine's nodes are cores, of which so many make up a node.
    ``max_attempts``: a job ends as failed when failures have interrupted this many attempts of it.
    """

    semantics: Semantics = "paper"
    strict: bool = True
    plan_while_killing: bool = False
    hold_lowest: bool = False
    hold_margin_s: float = 0.0
    others_first: bool = False
    victim_hit: Literal["failed", "victim"] = "failed"
    digits: Literal["all", "six"] = "all"
    young_daly: YoungDaly | None = None
    silent_errors: SilentErrors = "accept"
    resize_cost: str = "0"
    migration_cost: str = "table"
    purge_s: float = 60.0
    cores_per_node: int = 1
    max_attempts: int = MAX_ATTEMPTS
