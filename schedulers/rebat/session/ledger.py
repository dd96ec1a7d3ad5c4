"""What became of every attempt: the only source of the metrics, embedded or over the wire."""

from __future__ import annotations

import msgspec

from rebat.core.attempts import Attempt, Cause
from rebat.core.nodes import NodeSet
from rebat.models.checkpoint import Checkpointing


class AttemptRecord(msgspec.Struct, gc=False):
    """One execution, or a rejected job (``start_us`` -1); times in microseconds.

    ``useful_us`` is the progress kept (regular checkpoints included, recovery apart); ``void``
    says that it was lost after all, to a silent error in a later attempt.
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
    void: bool = False


class Ledger(msgspec.Struct):
    """Attempts in the order of their ends, machine events, and what was counted on the way.

    ``failures_that_hit`` are the dates of failures under running jobs, each with the number of
    nodes free right then; ``steals`` the dates at which a steal was decided (T2 and
    T3 may still cancel it); ``refusals`` the
    proposals that the session did not carry out (date, attempt, reason).
    """

    attempts: list[AttemptRecord] = []
    node_events: list[tuple[int, bool, NodeSet]] = []
    refusals: list[tuple[int, str, str]] = []
    failures_that_hit: list[tuple[int, int]] = []
    steals: list[int] = []
