"""What became of every attempt: the only source of the metrics, embedded or over the wire."""

from __future__ import annotations

import msgspec

from rebat.core.attempts import Attempt, Cause
from rebat.core.nodes import NodeSet
from rebat.models.checkpoint import Checkpointing


class AttemptRecord(msgspec.Struct):
    """One execution, or a rejected job (``start_us`` -1); times in microseconds.

    ``useful_us`` is the progress kept (regular checkpoints included, recovery apart);
    ``shed`` the attempt's id of the one that was interrupted for it, if it was saved by a steal.
    """

    attempt: Attempt
    profile: str
    checkpointing: Checkpointing | None
    start_us: int
    end_us: int
    cause: Cause
    state: str
    useful_us: int
    nodes: NodeSet | None


class Ledger(msgspec.Struct):
    """Attempts in the order of their ends, machine events, and what was counted on the way.

    ``decisions`` counts, per failure that hit a job, how it was answered ("free node", "steal",
    "no victim" ...); ``refusals`` are proposals that the session did not carry out, with reasons.
    """

    attempts: list[AttemptRecord] = []
    node_events: list[tuple[int, bool, NodeSet]] = []
    refusals: list[tuple[int, str, str]] = []
    failures_that_hit: list[int] = []
    steals: list[int] = []
