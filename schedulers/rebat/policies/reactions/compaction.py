# SPDX-License-Identifier: Apache-2.0
"""Compaction: move jobs together, so that nodes are full or empty.

Algorithm 1, section 3.3.4 of Rodríguez-Pascual et al., "Job migration in HPC clusters by means of
checkpoint/restart", 2019. The image with the listing of the algorithm is lost, so this module
follows the text. The text does not define which node is emptied. Here, each round considers the
nodes that are neither full nor empty ("mixed") and can be emptied. It empties the one with the
fewest cores in use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.contract import Move, News, Proposal, Stop, View, When
from rebat.core.attempts import Cause, Running
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.kernels.cores import find_move, shares_of, survey
from rebat.policies.context import Context, ReactionOptions
from rebat.policies.partitions import partitions_on, places_of
from rebat.policies.placement.cores import FITS, Fit
from rebat.policies.reactions.periodic import Period, Periodic, worth_moving
from rebat.policies.variants import choice

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

TARGETS = {"single": True, "several": False}
"""Values of the option ``targets``: whether all jobs of an emptied node move to the same node."""


class Nodes(msgspec.Struct, frozen=True):
    """State of the nodes at the time of a compaction."""

    cores: int
    """Cores per node."""
    tags: npt.NDArray[np.int32]
    """Tag of the attempt on each core. -1 means that no attempt uses the core."""
    unusable: npt.NDArray[np.bool_]
    """Which cores are down or drained."""
    room: Ints
    """Free cores of each mixed node, shape (nodes,). The number is -1 for other nodes."""
    victims: Ints
    """The mixed nodes, sorted by number of cores in use.

    They are candidates for emptying (victims).
    """

    @classmethod
    def of(cls, view: View, area: Mask | None = None) -> Nodes:
        """Return the current state.

        Only nodes in the mask ``area``, shape (nodes,), count as mixed.
        """
        machine, cores = view.machine, view.machine.cores_per_node
        tags, unusable = machine.tags, machine.down | machine.drained
        room, victims, used = np.empty((3, len(tags) // cores), dtype=np.int64)
        n_victims = survey(tags, unusable, cores, room, victims, used)
        victims = victims[:n_victims]
        if area is not None:
            room[~area] = -1
            victims = victims[area[victims]]
        return cls(cores, tags, unusable, room, victims)

    def shares(self) -> tuple[Ints, Ints, Ints]:
        """Return the attempts on each mixed node, and their numbers of cores on this node.

        See `kernels.cores.shares_of`.
        """
        first = np.empty(len(self.victims) + 1, dtype=np.int64)
        holders, sizes = np.empty((2, len(self.victims) * self.cores), dtype=np.int64)
        shares_of(self.tags, self.cores, self.victims, first, holders, sizes)
        return first, holders, sizes

    def take(self, tags: npt.NDArray[np.int32], node: int, count: int) -> Ints:
        """Mark the ``count`` lowest free cores of a node in ``tags`` as in use.

        Return these cores.
        """
        first = node * self.cores
        row = tags[first : first + self.cores]
        lowest = np.flatnonzero(row < 0)[:count]
        row[lowest] = TAKEN
        return first + lowest


TAKEN = 2**30
"""Tag of cores that are reserved for a move. It is not the tag of any attempt."""


class Compaction(Periodic):
    """A reaction that empties nodes, one at a time, while no job waits.

    Jobs stay in their partitions.
    """

    def __init__(self, options: CompactionOptions, context: Context) -> None:
        super().__init__(to_us(options.period), "compaction")
        self._single, self._best = TARGETS[options.targets], FITS[options.fit]
        self._partitions = context.partitions

    def act(self, view: View, news: News) -> Iterator[Proposal]:
        """Move all jobs off the first node for which this is possible and worth its cost."""
        if view.queue or view.stopping or view.scheduled or view.waiting:
            return  # waiting jobs will fill the mixed nodes
        for area in self._areas(view):
            stops = list(self._within(view, Nodes.of(view, area)))
            if stops:
                yield from stops
                return

    def _areas(self, view: View) -> list[Mask | None]:
        """Return the nodes of each partition.

        Without partitions, return [None], which means all nodes.
        """
        machine = view.machine
        places = partitions_on(self._partitions, machine.n_nodes, machine.cores_per_node)
        areas: list[Mask | None] = []
        for nodes in dict.fromkeys(place.nodes for place in places):
            mask = np.zeros(machine.n_nodes // machine.cores_per_node, dtype=np.bool_)
            mask[np.unique(nodes.ids // machine.cores_per_node)] = True
            areas.append(mask)
        return areas or [None]

    def _within(self, view: View, nodes: Nodes) -> Iterator[Stop]:
        """Yield the stops of the jobs on the first node that can be emptied."""
        victims = nodes.victims
        if len(victims) < 2:
            return
        first, holders, sizes = nodes.shares()
        targets = np.empty(nodes.cores, dtype=np.int64)
        at = -1
        while True:
            at = find_move(
                nodes.room, victims, first, sizes, self._single, self._best, at + 1, targets
            )
            if at < 0:
                return
            mine = slice(first[at], first[at + 1])
            holding = [view.of_tag(tag) for tag in holders[mine].tolist()]
            jobs = [job for job in holding if job is not None and self._movable(view, nodes, job)]
            if len(jobs) < len(holding):
                continue
            stops = self._empty(nodes, int(victims[at]), jobs, sizes[mine], targets)
            if all(self._allowed(view, stop) for stop in stops):
                yield from stops
                return

    def _allowed(self, view: View, stop: Stop) -> bool:
        """Return whether the job of a stop stays in one of its partitions."""
        if not self._partitions:
            return True
        assert isinstance(stop.then, Move)
        job_id = view.running[stop.attempt_id].attempt.job_id
        nodes = stop.then.nodes
        return any(nodes.of_each(mask).all() for mask in places_of(view, self._partitions, job_id))

    def _movable(self, view: View, nodes: Nodes, job: Running) -> bool:
        """Return whether a move of the job is worth its cost.

        All nodes of the job must be usable.
        """
        return not job.nodes.of_each(nodes.unusable).any() and worth_moving(view, job)

    def _empty(
        self, nodes: Nodes, node: int, jobs: list[Running], sizes: Ints, targets: Ints
    ) -> list[Stop]:
        """Return the moves of all jobs on a node.

        ``sizes`` are the numbers of cores that the jobs use on this node.
        """
        leaves = np.arange(node * nodes.cores, (node + 1) * nodes.cores)
        tags, stops = nodes.tags.copy(), []
        for job, size, target in zip(jobs, sizes.tolist(), targets.tolist(), strict=False):
            stays = np.setdiff1d(job.nodes.ids, leaves)
            taken = nodes.take(tags, target, size)
            to = NodeSet.of_sorted(np.sort(np.concatenate([stays, taken])))
            then = Move(to, job.attempt.priority)
            stops.append(Stop(job.attempt.id, Cause.MOVED, When.IMAGE, then, "compact"))
        return stops


class CompactionOptions(ReactionOptions, frozen=True, tag="compaction"):
    """While no job waits, move jobs together, so that nodes are full or empty."""

    moves_jobs: ClassVar[bool] = True
    kind = Compaction
    boxless: ClassVar[str] = "jobs would leave their boxes; use defragment"

    period: Period = 60.0
    targets: Annotated[
        str, choice(TARGETS, "Whether the jobs of an emptied node move to one node or to several.")
    ] = "single"
    fit: Fit = "best"
