# SPDX-License-Identifier: Apache-2.0
"""Options that a preset fixes for the session it runs in."""

from __future__ import annotations

from typing import Literal

import msgspec

from rebat.core.dialect import PAPER, Dialect

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

    Attributes
    ----------
    dialect : Dialect
        Where the node-stealing paper and its program differ.
    strict : bool
        A refused proposal is an error (a bug in the policy) instead of a ledger entry.
    young_daly : YoungDaly, optional
        Checkpointing of jobs whose profiles have no checkpoint fields.
    silent_errors : str
        'retry' puts a job that ends with a return code other than 0 back into the queue, whole,
        until it succeeds (sections 3.2 and 4.1 of Benoit et al., RR-9296).
    resize_cost : str
        What a job that continues on another number of nodes pays first, as a longer recovery
        (see ``models.migration.cost_us``).
    migration_cost : str
        What a checkpoint and restart costs, in the same notation.
    purge_s : float
        The interval at which jobs are purged.
    cores_per_node : int
        How many of the machine's nodes, which are cores then, make up a node.
    max_attempts : int
        A job ends as failed when failures have interrupted this many attempts of it.
    """

    dialect: Dialect = PAPER
    strict: bool = True
    young_daly: YoungDaly | None = None
    silent_errors: SilentErrors = "accept"
    resize_cost: str = "0"
    migration_cost: str = "table"
    purge_s: float = 60.0
    cores_per_node: int = 1
    max_attempts: int = MAX_ATTEMPTS
