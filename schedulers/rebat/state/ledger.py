# SPDX-License-Identifier: Apache-2.0
"""The ledger: the outcome of every attempt. All metrics are computed from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from rebat.core.attempts import (
    INTERRUPTED,
    Attempt,
    Cause,
    job_name,
    resubmission_id,
    workload_name,
)
from rebat.core.node_events import NodeEvents
from rebat.core.nodes import NodeSet
from rebat.core.table import Schema, Table, fields
from rebat.core.traits import USUAL
from rebat.models.checkpoint import Checkpointing
from rebat.models.remaining import Remaining


class AttemptRecord(msgspec.Struct, gc=False, array_like=True):
    """An attempt that ended or never ran. Times are in microseconds."""

    attempt: Attempt
    profile: str
    checkpointing: Checkpointing | None
    start_us: int
    """Start, or -1 if the attempt never ran."""
    end_us: int
    cause: Cause
    state: str
    useful_us: int
    """Progress that was kept. It includes regular checkpoints, but not the recovery."""
    nodes: NodeSet | None
    lost_us: int = 0
    """The part of ``useful_us`` that was lost later. This is its last part."""
    lost_to: Cause | None = None
    """Why ``lost_us`` was lost.

    The reason is a silent error in a later attempt, a failure before the next checkpoint of a
    resized job, or a move after which the job restarted from the beginning.
    """
    why: str = ""
    """The reason that the policy stated for the stop."""
    imaged: bool = False
    """Whether a checkpoint of the batch system (an image) contains the progress."""
    failure: str = ""
    """Cause of the node failure, if it is known."""
    hung_us: int = 0
    """Duration of the last part of the attempt, during which it hung after a failure."""
    stages: dict[str, int] = {}
    """Duration of each stage of the recovery in microseconds, if the recovery has stages."""

    @property
    def hit(self) -> bool:
        """Whether a failure with a known cause or with stages of recovery hit the attempt."""
        return bool(self.failure or self.stages)

    @property
    def image_us(self) -> int:
        """Cost to restart from the image with which the attempt began, or 0 if there was none."""
        return self.checkpointing.image_us if self.checkpointing else 0


class Drained(msgspec.Struct, gc=False):
    """Nodes that were out of service. If they did not return to service, ``until_us`` is None."""

    nodes: NodeSet
    since_us: int
    why: str
    until_us: int | None = None


class Hold(msgspec.Struct, gc=False):
    """Nodes that were up and held for a job that did not run on them. Times are in microseconds.

    If they were held until the end of the simulation, ``until_us`` is None.
    """

    job_id: str
    nodes: NodeSet
    since_us: int
    until_us: int | None = None


Why = Literal["ended", "hit", "given up"]


def _records(columns: Mapping[str, Sequence[Any]]) -> Iterator[AttemptRecord]:
    """Yield the records of rows."""
    pairs = zip(columns["workload"], columns["name"], strict=True)
    job_ids = [f"{workload}!{name}" for workload, name in pairs]
    ids = [
        resubmission_id(job_id, number) if number else job_id
        for job_id, number in zip(job_ids, columns["number"], strict=True)
    ]
    stages = [stages or {} for stages in columns["stages"]]
    named = {**columns, "job_id": job_ids, "id": ids, "stages": stages}
    # the traits of a job are in the workload
    of_attempts = (name for name in Attempt.__struct_fields__ if name != "traits")
    attempts = map(Attempt, *(named[name] for name in of_attempts))
    named |= {"attempt": list(attempts), "imaged": list(map(bool, columns["imaged"]))}
    return map(AttemptRecord, *(named[name] for name in AttemptRecord.__struct_fields__))


def _workload_name(record: AttemptRecord) -> str:  # no lambda, because results can be pickled
    return workload_name(record.attempt.job_id)


def _job_name(record: AttemptRecord) -> str:
    return job_name(record.attempt.job_id)


ATTEMPTS = Schema(
    AttemptRecord,
    numbers=fields(
        "start_us",
        "end_us",
        "useful_us",
        "lost_us",
        "hung_us",
        "imaged",
        "image_us",
        "hit",
        "attempt.n_nodes",
        "attempt.submit_us",
        "attempt.queued_us",
        "attempt.serial",
        "attempt.job_serial",
        "attempt.number",
        "attempt.priority",
        "attempt.priority_class",
        "attempt.walltime_us",
    ),
    codes={
        **fields("cause", "state", "why", "checkpointing", "profile", "lost_to", "failure"),
        "workload": _workload_name,
    },
    texts={"name": _job_name},
    rare=fields("stages"),
    rows=_records,
)
"""The columns of attempts. The texts are the names of the jobs."""


def attempts_of(records: Iterable[AttemptRecord] = ()) -> Table[AttemptRecord]:
    """Return records of attempts as the table of a ledger."""
    return Table(ATTEMPTS, records)


class Progress(NamedTuple):
    """A part of the progress of an attempt, in microseconds.

    Attributes
    ----------
    place
        Position of the attempt in the ledger.
    useful_us
        The progress that the attempt kept.
    us
        Length of the part.
    """

    place: int
    useful_us: int
    us: int


class Losses(msgspec.Struct):
    """The progress of interrupted attempts that was lost later."""

    progress: dict[str, list[Progress]] = {}
    """For each job, the useful progress of its interrupted attempts."""
    at_risk: dict[str, list[list[Progress]]] = {}
    """For each job and storage tier, the progress that no checkpoint of the tier contains yet.

    See `Remaining.at_risk`.
    """
    lost: dict[int, tuple[int, Cause]] = {}
    """Progress in microseconds, and why it was lost, by position of the attempt in the ledger."""

    def interrupt(
        self, place: int, job_id: str, cause: Cause, useful_us: int, remaining: Remaining
    ) -> list[int]:
        """Note the interruption of an attempt. Return the attempts that lost progress."""
        changed: list[int] = []
        if remaining.useful_us < 0:
            changed = self._lose_at_risk(job_id, remaining.tier, cause)
        if useful_us:
            self.progress.setdefault(job_id, []).append(Progress(place, useful_us, useful_us))
        self._note_at_risk(place, job_id, useful_us, remaining)
        return changed

    def _lose_at_risk(self, job_id: str, tier: int, to: Cause) -> list[int]:
        """Mark progress as lost if no checkpoint of a storage tier contains it."""
        tiers, changed = self.at_risk.get(job_id, []), list[int]()
        if tier < len(tiers):
            changed = self._lose(tiers[tier], to)
            lost = {part.place: part.us for part in tiers[tier]}
            tiers[:] = [
                [part._replace(us=part.us - lost.get(part.place, 0)) for part in parts]
                for parts in tiers[:tier]
            ]
        return changed

    def _note_at_risk(self, place: int, job_id: str, useful_us: int, remaining: Remaining) -> None:
        """Store the parts of the progress that no checkpoint contains yet."""
        tiers = self.at_risk.pop(job_id, [])
        after: list[list[Progress]] = []
        for tier, at_risk_us in enumerate(remaining.at_risk):
            safe = at_risk_us < remaining.useful_us  # this attempt saved the rest
            parts = [] if safe or tier >= len(tiers) else tiers[tier]
            if at_risk_us:
                parts = [*parts, Progress(place, useful_us, min(at_risk_us, useful_us))]
            after.append(parts)
        if any(after):
            self.at_risk[job_id] = after

    def lose(self, job_id: str, to: Cause) -> list[int]:
        """Mark the progress of a job as lost. Return the attempts that lost progress."""
        self.at_risk.pop(job_id, None)
        return self._lose(self.progress.pop(job_id, ()), to)

    def _lose(self, parts: Iterable[Progress], to: Cause) -> list[int]:
        changed = []
        for place, useful_us, us in parts:
            before_us = self.lost[place][0] if place in self.lost else 0
            self.lost[place] = min(useful_us, before_us + us), to
            changed.append(place)
        return changed


class Ledger(msgspec.Struct):
    """Records of a simulation: attempts in the order of their ends, machine events, and others."""

    attempts: Table[AttemptRecord] = msgspec.field(default_factory=attempts_of)
    interrupted: dict[str, int] = {}
    """For each job, the number of attempts that failures interrupted."""
    given_up: list[str] = []
    """Jobs that ended as failed after too many interruptions."""
    rejections: list[tuple[str, str]] = []
    """Rejected attempts, with the reason of the policy."""
    losses: Losses = msgspec.field(default_factory=Losses)
    """The progress that a session notes. The rules note it when their records become a ledger."""
    node_events: NodeEvents = msgspec.field(default_factory=NodeEvents)
    refusals: list[tuple[int, str, str]] = []
    """Proposals that were not carried out: time, job or node, and reason."""
    failures_that_hit: list[tuple[int, int]] = []
    """Failures of nodes with running jobs: time, and number of free nodes at this time."""
    steals: list[int] = []
    """Times at which a steal was decided."""
    steals_off: list[tuple[int, Why]] = []
    """Cancelled steals with timing T2 or T3: time and reason.

    A steal is cancelled if the victim ends, if a failure hits the victim, or if the failed job has
    too few nodes left.
    """
    drain_events: list[tuple[int, bool, NodeSet, str]] = []
    """Drains and undrains by a policy: time, whether it is an undrain, nodes, and reason."""
    not_done: list[int] = []
    """Times of operations that were not carried out."""
    holds: list[Hold] = []
    """Nodes held for jobs that wait or move, sorted by start. Failed nodes are not included."""
    shared: bool = False
    """Whether attempts run on the same nodes at the same time, as in accounting records."""

    @property
    def drained(self) -> list[Drained]:
        """The drained nodes, grouped by reason and interval."""
        since: dict[str, dict[int, int]] = {}
        groups: dict[tuple[int, str, int | None], list[int]] = {}
        for at_us, back, nodes, why in self.drain_events:
            starts = since.setdefault(why, {})
            for node in nodes:
                if back:
                    groups.setdefault((starts.pop(node), why, at_us), []).append(node)
                else:
                    starts[node] = at_us
        for why, starts in since.items():
            for node, at_us in starts.items():
                groups.setdefault((at_us, why, None), []).append(node)
        spans = [Drained(NodeSet.of(nodes), *span) for span, nodes in groups.items()]
        return sorted(spans, key=lambda span: (span.since_us, span.why, span.nodes.lowest))

    def add(self, record: AttemptRecord, remaining: Remaining | None = None) -> None:
        """Add an attempt that ended or never ran.

        If it was interrupted, ``remaining`` is its remaining work.
        """
        place = len(self.attempts)
        if record.attempt.traits is not USUAL:  # the table of attempts has no traits
            record.attempt = msgspec.structs.replace(record.attempt, traits=USUAL)
        self.attempts.append(record)
        if remaining is None or record.cause not in INTERRUPTED:
            return
        job_id = record.attempt.job_id
        if record.cause == Cause.NODE_FAILURE:
            self.interrupted[job_id] = self.interrupted.get(job_id, 0) + 1
        self._amend(self.losses.interrupt(place, job_id, record.cause, record.useful_us, remaining))

    def lose(self, job_id: str, to: Cause) -> None:
        """Mark the progress of a job as lost, because it restarts from the beginning."""
        self._amend(self.losses.lose(job_id, to))

    def _amend(self, changed: Iterable[int]) -> None:
        for place in changed:
            lost_us, to = self.losses.lost[place]
            self.attempts.amend(place, lost_us=lost_us, lost_to=to)
