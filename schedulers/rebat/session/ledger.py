# SPDX-License-Identifier: Apache-2.0
"""What became of every attempt: the only source of the metrics, embedded or over the wire."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

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


class Hold(msgspec.Struct, gc=False):
    """Nodes that were up and kept for a job which did not run on them; in microseconds.

    ``until_us`` None: to the end of the simulation.
    """

    job_id: str
    nodes: NodeSet
    since_us: int
    until_us: int | None = None


Why = Literal["ended", "hit", "given up"]

Part = tuple[AttemptRecord, int]
"""Of an attempt's progress so much, in microseconds."""


class Ledger(msgspec.Struct):
    """Attempts in the order of their ends, machine events, and what was counted on the way.

    ``interrupted`` counts, by job, the attempts that failures interrupted.
    ``given_up`` are the jobs that ended because these were too many.

    ``kept`` is, by job, the progress that counts of those that were interrupted; ``at_risk`` what
    of it is in no checkpoint, as it was taken along by resizes.

    ``failures_that_hit`` are the dates of failures under running jobs, each with the number of
    nodes free right then; ``steals`` the dates at which a steal was decided, ``steals_off`` when
    and why one of them did not come (T2 and T3: the victim ended first or was hit, or too few of
    the failed job's nodes were left); ``refusals`` the
    proposals that the session did not carry out (date, attempt, reason); ``drain_events`` when a
    policy took nodes out of service, or (True) back into it, and what for; ``not_done`` the dates
    of operations that were not carried out. ``holds`` are the nodes held for jobs that wait or
    move, in the order in which the holds began; a node that fails leaves its hold.
    """

    attempts: list[AttemptRecord] = []
    interrupted: dict[str, int] = {}
    given_up: list[str] = []
    kept: dict[str, list[Part]] = {}
    at_risk: dict[str, list[Part]] = {}
    node_events: list[tuple[int, bool, NodeSet]] = []
    refusals: list[tuple[int, str, str]] = []
    failures_that_hit: list[tuple[int, int]] = []
    steals: list[int] = []
    steals_off: list[tuple[int, Why]] = []
    drain_events: list[tuple[int, bool, NodeSet, str]] = []
    not_done: list[int] = []
    holds: list[Hold] = []

    @property
    def drained(self) -> list[Drained]:
        """The nodes that were out of service, those together that were for the same time."""
        since: dict[str, dict[int, int]] = {}
        found: dict[tuple[int, str, int | None], list[int]] = {}
        for at_us, back, nodes, why in self.drain_events:
            known = since.setdefault(why, {})
            for node in nodes:
                if back:
                    found.setdefault((known.pop(node), why, at_us), []).append(node)
                else:
                    known[node] = at_us
        for why, known in since.items():
            for node, at_us in known.items():
                found.setdefault((at_us, why, None), []).append(node)
        spans = [Drained(NodeSet.of(nodes), *span) for span, nodes in found.items()]
        return sorted(spans, key=lambda one: (one.since_us, one.why, one.nodes.lowest))

    def add(self, record: AttemptRecord, remaining: Remaining | None = None) -> None:
        """An attempt ended, or never ran; ``remaining`` is what an interruption left of it."""
        self.attempts.append(record)
        if remaining is None or record.cause not in INTERRUPTED:
            return
        job_id, at_risk_us = record.attempt.job_id, remaining.at_risk_us
        if record.cause == Cause.NODE_FAILURE:
            self.interrupted[job_id] = self.interrupted.get(job_id, 0) + 1
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
