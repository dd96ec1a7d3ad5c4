"""What became of every attempt: the only source of the metrics, embedded or over the wire."""

from __future__ import annotations

import msgspec

from rebat.core.attempts import INTERRUPTED, Attempt, Cause
from rebat.core.nodes import NodeSet
from rebat.models.checkpoint import Checkpointing


class AttemptRecord(msgspec.Struct, gc=False):
    """One execution, or one that never was (rejected, molded: ``start_us`` -1); in microseconds.

    ``useful_us`` is the progress kept (regular checkpoints included, recovery apart); ``lost_to``
    says that it was lost after all: to a silent error in a later attempt, or as the job started
    over to be moved. ``why`` is the word of the policy that stopped it.
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
    lost_to: Cause | None = None
    why: str = ""


class Ledger(msgspec.Struct):
    """Attempts in the order of their ends, machine events, and what was counted on the way.

    ``kept`` are, by job, those that were interrupted and had made progress that still counts.

    ``failures_that_hit`` are the dates of failures under running jobs, each with the number of
    nodes free right then; ``steals`` the dates at which a steal was decided (T2 and
    T3 may still cancel it); ``refusals`` the
    proposals that the session did not carry out (date, attempt, reason).
    """

    attempts: list[AttemptRecord] = []
    kept: dict[str, list[AttemptRecord]] = {}
    node_events: list[tuple[int, bool, NodeSet]] = []
    refusals: list[tuple[int, str, str]] = []
    failures_that_hit: list[tuple[int, int]] = []
    steals: list[int] = []

    def add(self, record: AttemptRecord) -> None:
        """An attempt ended, or never ran."""
        self.attempts.append(record)
        if record.cause in INTERRUPTED and record.useful_us:
            self.kept.setdefault(record.attempt.job_id, []).append(record)

    def lose(self, job_id: str, to: Cause) -> None:
        """A job starts over: what its attempts had kept so far is lost."""
        for record in self.kept.pop(job_id, ()):
            record.lost_to = to
