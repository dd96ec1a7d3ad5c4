"""What became of every attempt: the only source of the metrics, embedded or over the wire."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rebat.core.attempts import INTERRUPTED, Attempt, Cause
from rebat.core.nodes import NodeSet
from rebat.models.checkpoint import Checkpointing
from rebat.models.remaining import Remaining


class AttemptRecord(msgspec.Struct, gc=False):
    """One execution, or one that never was (rejected, molded: ``start_us`` -1); in microseconds.

    ``useful_us`` is the progress kept (regular checkpoints included, recovery apart);
    ``lost_us`` of it, its end, was lost after all, ``lost_to`` what: a silent error in a later
    attempt, a failure before the next checkpoint of a job that had been resized, or as the job
    started over to be moved. ``why`` is the word of the policy that stopped it; ``imaged``: what it
    had done by then is in an image.
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
    lost_us: int = 0
    lost_to: Cause | None = None
    why: str = ""
    imaged: bool = False


class Drained(msgspec.Struct, gc=False):
    """Nodes that were out of service from a date on; ``until_us`` None: to the end."""

    nodes: NodeSet
    since_us: int
    why: str
    until_us: int | None = None


Part = tuple[AttemptRecord, int]
"""Of an attempt's progress so much, in microseconds."""


class Ledger(msgspec.Struct):
    """Attempts in the order of their ends, machine events, and what was counted on the way.

    ``kept`` is, by job, the progress that counts of those that were interrupted; ``at_risk`` what
    of it is in no checkpoint, as it was taken along by resizes.

    ``failures_that_hit`` are the dates of failures under running jobs, each with the number of
    nodes free right then; ``steals`` the dates at which a steal was decided (T2 and
    T3 may still cancel it); ``refusals`` the
    proposals that the session did not carry out (date, attempt, reason); ``drained`` the nodes that
    a policy took out of service; ``not_done`` the dates of operations that were not carried out.
    """

    attempts: list[AttemptRecord] = []
    kept: dict[str, list[Part]] = {}
    at_risk: dict[str, list[Part]] = {}
    node_events: list[tuple[int, bool, NodeSet]] = []
    refusals: list[tuple[int, str, str]] = []
    failures_that_hit: list[tuple[int, int]] = []
    steals: list[int] = []
    drained: list[Drained] = []
    not_done: list[int] = []

    def drain(self, at_us: int, nodes: NodeSet, why: str) -> None:
        """Nodes were taken out of service."""
        self.drained.append(Drained(nodes, at_us, why))

    def undrain(self, at_us: int, nodes: NodeSet) -> None:
        """Nodes, or parts of those that went together, are in service again."""
        for one in [one for one in self.drained if one.until_us is None]:
            back = one.nodes.procset & nodes.procset
            if not back:
                continue
            rest = one.nodes.procset - back
            one.nodes, one.until_us = NodeSet.from_procset(back), at_us
            if rest:
                self.drained.append(Drained(NodeSet.from_procset(rest), one.since_us, one.why))

    def add(self, record: AttemptRecord, remaining: Remaining | None = None) -> None:
        """An attempt ended, or never ran; ``remaining`` is what an interruption left of it."""
        self.attempts.append(record)
        if remaining is None or record.cause not in INTERRUPTED:
            return
        job_id, at_risk_us = record.attempt.job_id, remaining.at_risk_us
        if remaining.useful_us < 0:
            self._lose(self.at_risk.pop(job_id, ()), record.cause)
        elif remaining.imaged or at_risk_us < remaining.useful_us:
            self.at_risk.pop(job_id, None)  # a checkpoint of this attempt holds it
        if record.useful_us:
            self.kept.setdefault(job_id, []).append((record, record.useful_us))
        if at_risk_us:
            own_us = min(at_risk_us, record.useful_us)
            self.at_risk.setdefault(job_id, []).append((record, own_us))

    def lose(self, job_id: str, to: Cause) -> None:
        """A job starts over: what its attempts had kept so far is lost."""
        self.at_risk.pop(job_id, None)
        self._lose(self.kept.pop(job_id, ()), to)

    @staticmethod
    def _lose(parts: Iterable[Part], to: Cause) -> None:
        for record, us in parts:
            record.lost_us = min(record.useful_us, record.lost_us + us)
            record.lost_to = to
