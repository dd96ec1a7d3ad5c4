# SPDX-License-Identifier: Apache-2.0
"""The partitions of a machine, for Python: each is shown like a separate machine.

A reaction, for example node stealing, acts on the jobs and nodes of one partition at a time.
Partitions that share nodes are one group, with one plan: `rebat.policies.planning.flexible` decides
for each group. `rebat.drive.parts` contains the partitions as tables of the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from rebat.contract import Drain, Move, News, Proposal, Start, Stop, Undrain, View
from rebat.contract.view import PartView
from rebat.core.attempts import Attempt, Running
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.policies.composition import Reaction
from rebat.policies.context import Context
from rebat.policies.partitions import (
    Partition,
    differ,
    groups_of_partitions,
    nodes_of_all,
    open_to,
    partitions_on,
    shares_of,
)


class Part(msgspec.Struct):
    """Partitions as a separate machine: a group of partitions, or one of a group."""

    view: PartView
    context: Context
    """The inputs of its planning and its reactions."""

    def has(self, job_id: str) -> bool:
        """Return whether a job belongs to the part."""
        return self.view.has(job_id)

    def numbered(self, nodes: Iterable[int]) -> list[int]:
        """Return those of these nodes that belong to the part, in its numbers."""
        given = list(nodes)
        return self.view.numbered(NodeSet.of(given)).ids.tolist() if given else []

    def running(self, attempts: Sequence[Running]) -> list[Running]:
        """Return those of these running attempts that belong to the part, as it shows them."""
        return [self.view.seen(r) for r in attempts if self.has(r.attempt.job_id)]

    def attempts(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        """Return those of these attempts that belong to the part, as it shows them."""
        return [self.view.adapted(a) for a in attempts if self.has(a.job_id)]

    def on_machine(self, proposal: Proposal) -> Proposal:
        """Return a proposal with the node numbers of the machine."""
        if isinstance(proposal, Start | Drain | Undrain) and proposal.nodes is not None:
            nodes = self.view.on_machine(proposal.nodes)
            return msgspec.structs.replace(proposal, nodes=nodes)
        if isinstance(proposal, Stop) and isinstance(proposal.then, Move):
            nodes = self.view.on_machine(proposal.then.nodes)
            then = msgspec.structs.replace(proposal.then, nodes=nodes)
            return msgspec.structs.replace(proposal, then=then)
        return proposal


class Parts:
    """The partitions of a machine, and the groups of those that share nodes.

    Parameters
    ----------
    text : str
        See `partitions.read_partitions`.
    context : callable
        Function that returns new inputs for a planning and its reactions.
    plans : bool
        Whether each group has its own plan. Otherwise, all partitions have one queue (fifo).
    """

    def __init__(self, text: str, context: Callable[[], Context], plans: bool = True) -> None:
        self._text, self._make_context, self._plans = text, context, plans
        self._partition_of: dict[str, Partition] = {}
        self.partitions: tuple[Partition, ...] = ()
        self.groups: list[Part] = []
        self.singles: list[Part] = []
        self.alike: list[Part] = []
        """Groups of partitions with equal nodes, and all other partitions."""

    def open(self, view: View) -> Parts:
        """Find the partitions of the machine, at the first call."""
        if self.groups:
            return self
        machine = view.machine
        self.partitions = partitions_on(self._text, machine.n_nodes, machine.cores_per_node)
        groups = groups_of_partitions(self.partitions)
        sizes = [nodes_of_all(group).size for group in groups]
        n_spares = shares_of(self._make_context().n_spares, sizes)
        for group, spares in zip(groups, n_spares, strict=True):
            whole = self._part(view, group, spares)
            self.groups.append(whole)
            alone = len(group) == 1
            rows = [whole] if alone else [self._part(view, [p], 0) for p in group]
            self.singles += rows
            self.alike += rows if differ(group) else [whole]
        return self

    def _part(self, view: View, rows: list[Partition], n_spares: int) -> Part:
        nodes, names = nodes_of_all(rows), {row.name for row in rows}

        def has(job_id: str) -> bool:
            return self.partition_of(view, job_id).name in names

        def adapted(attempt: Attempt) -> Attempt:
            return self.partition_of(view, attempt.job_id).adapted(attempt)

        part = view.part(nodes, has, adapted)
        context = msgspec.structs.replace(self._make_context(), n_spares=n_spares)
        if differ(rows):
            alike = context.placement.alike or not self._plans
            check_shared(rows, context.n_spares, context.flexible, alike)
        return Part(part, context)

    def partition_of(self, view: View, job_id: str) -> Partition:
        """Return the partition in which a job runs."""
        if job_id not in self._partition_of:
            job = view.job(job_id)
            try:
                places = open_to(self.partitions, job.traits, job.n_nodes, job.walltime_us)
            except InputError as error:
                raise error.at(f"job {job_id}") from None
            self._partition_of[job_id] = places[0]
        return self._partition_of[job_id]


def check_shared(rows: Sequence[Partition], n_spares: int, flexible: bool, alike: bool) -> None:
    """Raise InputError if partitions cannot share nodes.

    ``flexible`` states whether the planning changes sizes of jobs, and ``alike`` whether all free
    nodes are equally suitable for the placement.
    """
    reasons = {
        "spare nodes": n_spares > 0,
        "a planning that changes sizes of jobs": flexible,
        "a placement other than any or named": not alike,
    }
    if problem := next((name for name, applies in reasons.items() if applies), ""):
        names = " and ".join(row.name for row in rows)
        problem = f"{problem} with partitions {names}, which share nodes"
        raise InputError(problem, expected="partitions that share no nodes")


class InEach(Reaction):
    """A reaction in each partition, or in each group of partitions with equal nodes."""

    def __init__(self, parts: Parts, make: Callable[[Context], Reaction], grouped: bool) -> None:
        self._parts, self._make, self._grouped = parts, make, grouped
        self._reactions: list[tuple[Part, Reaction]] = []

    def react(self, view: View, news: News) -> Iterator[Proposal]:
        """Yield the proposals of the reactions in the order of the partitions."""
        parts = self._parts.open(view)
        if not self._reactions:
            each = parts.alike if self._grouped else parts.singles
            self._reactions = [(part, self._make(part.context)) for part in each]
        for part, reaction in self._reactions:
            for proposal in reaction.react(part.view, _news_of(part, news)):
                yield part.on_machine(proposal)


def _news_of(part: Part, news: News) -> News:
    return News(
        arrived=part.attempts(news.arrived),
        started=part.running(news.started),
        ended=part.running(news.ended),
        failed=part.numbered(news.failed),
        rejuvenated=part.numbered(news.rejuvenated),
        hit=part.running(news.hit),
        called_off=news.called_off,
        held_hit=[job_id for job_id in news.held_hit if part.has(job_id)],
        woken=news.woken,
        notices=news.notices,
        refused=news.refused,
    )
