# SPDX-License-Identifier: Apache-2.0
"""The partitions of a machine, as tables of the rules.

Partitions that share nodes are one group, with one plan. Unless nodes keep their numbers (see
`machine_of`), the nodes of a group are consecutive, and begin at a block of `kernels.pool`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.core.job_table import Jobs
from rebat.core.jobs import Workload
from rebat.core.nodes import NodeSet
from rebat.core.table import distinct
from rebat.core.traits import Traits, traits_of
from rebat.core.units import FOREVER_US
from rebat.models.formula import formula_of
from rebat.policies.context import SizeLimit
from rebat.policies.partitions import (
    Partition,
    differ,
    groups_of_partitions,
    nodes_of_all,
    open_to,
    partitions_on,
)
from rebat.policies.placement.plans import NamedOptions
from rebat.policies.planning.fifo import FifoOptions
from rebat.policies.planning.flexible import FlexibleOptions
from rebat.policies.point import Point, is_in_python
from rebat.state import codes, rooms, tables
from rebat.state.rows import zeros

Ints = npt.NDArray[np.int64]


class Uncovered(Exception):
    """The rules do not cover the run. Its inputs, or the simulation, show this."""


class LoopMachine(NamedTuple):
    """The nodes of a machine, as the rules number them.

    Attributes
    ----------
    n_nodes : int
        Number of nodes, including nodes that do not exist, at the end of blocks.
    table, rows : arrays of Part and Partition
        See `rebat.state.tables`.
    home : int32 array, shape (n_nodes,)
        The row of ``table`` of each node, or -1 if the node does not exist.
    members : bool array, shape (partitions, n_nodes)
        The nodes of each partition.
    shared : bool array
        Whether the partitions of each row of ``table`` need a plan of cells (see `differ`).
    places : dict
        The number of each pair: the rows of ``rows`` that are open to a job, and how many of them
        count, from the first. All count, unless all exclude the job: then the first counts, until
        the job is rejected.
    partitions : tuple of Partition
        Empty if the machine has no partitions. Then all nodes keep their numbers.
    row_of : dict
        The row of ``rows`` of each partition, by name.
    original : int64 array, shape (n_nodes,)
        The number of each node on the machine, or -1 if the node does not exist.
    roaming : bool
        Whether jobs may run in all partitions that are open to them. Otherwise, it is the first.
    limit : SizeLimit
        Maximum size of jobs, if the machine has no partitions.
    """

    n_nodes: int
    table: Any
    rows: Any
    home: npt.NDArray[np.int32]
    members: npt.NDArray[np.bool_]
    shared: npt.NDArray[np.bool_]
    places: dict[tuple[tuple[int, ...], int], int]
    partitions: tuple[Partition, ...] = ()
    row_of: Mapping[str, int] = {}
    original: Ints = np.zeros(0, dtype=np.int64)
    roaming: bool = False
    limit: SizeLimit = SizeLimit(0)

    @property
    def n_original(self) -> int:
        """Number of nodes that exist."""
        return int(self.original.max()) + 1 if self.partitions else self.n_nodes

    def mask(self, nodes: NodeSet) -> npt.NDArray[np.bool_]:
        """Return a mask of nodes of the machine, in the numbers of the rules."""
        if not self.partitions:
            return nodes.mask(self.n_nodes)
        return mask_of(nodes, self.original)

    def of_row(self, row: int) -> Partition | None:
        """Return the partition of a row of ``rows``, or None if the machine has none."""
        of_row = (each for each in self.partitions if self.row_of[each.name] == row)
        return next(of_row, None)

    def numbered(self, nodes: Ints) -> Ints:
        """Return nodes of the machine in the numbers of the rules."""
        if not self.partitions:
            return nodes
        numbers = np.zeros(int(self.original.max()) + 1, dtype=np.int64)
        exist = self.original >= 0
        numbers[self.original[exist]] = np.flatnonzero(exist)
        return numbers[nodes]

    def nodes_of(self, intervals: Ints) -> NodeSet:
        """Return the nodes of the machine, given intervals in the numbers of the rules."""
        nodes = NodeSet(intervals)
        return NodeSet.of_sorted(self.original[nodes.ids]) if self.partitions else nodes

    def columns_of(
        self, traits: Traits, size: int, walltime_us: int | None, adapts: bool = False
    ) -> dict[str, int]:
        """Return the columns of a job that state in which partitions it runs.

        ``adapts`` is whether partitions may change the walltime in plans.

        Raises
        ------
        InputError
            If the job names a partition that does not exist.
        Uncovered
            If plans use another walltime than the job's.
        """
        rows = open_to(self.partitions, traits, size, walltime_us)
        wall_us = walltime_us if walltime_us is not None and walltime_us < FOREVER_US else 0
        if not (wall_us or adapts) and (rows[0].default_time_us or rows[0].max_time_us):
            raise Uncovered("jobs without walltimes in partitions with times")
        places = tuple(self.row_of[row.name] for row in (rows if self.roaming else rows[:1]))
        n_open = 1 if rows[0].refuses(size, wall_us) else len(places)
        number, own = self.places.setdefault((places, n_open), len(self.places)), places[0]
        return {"partition": own, "part": int(self.rows["part"][own]), "places": number}

    def why_rejected(self, job: Any, walltime_us: int) -> str:
        """Return why a job can never start, although it has a walltime if it needs one."""
        own, size = self.of_row(job["partition"]), int(job["size"])
        if own is None:
            return self.limit.exceeded(size) or ""
        places, _ = [*self.places][job["places"]]
        rows = [row for row in self.partitions if self.row_of[row.name] in places]
        largest = max(rows, key=lambda row: row.max_nodes)
        return largest.refuses(size, 0) or own.refuses(size, walltime_us)

    def restore(self, room: tables.Room) -> tables.Room:
        """Return the tables of a simulation with the numbers of nodes on the machine."""
        if not self.partitions:
            return room
        state, n = room.state, room.state.n
        used = state.nodes[: n.n_nodes_used].astype(np.int64)
        gaps = np.concatenate([[0], np.cumsum(np.diff(self.original) != 1)])
        pieces = gaps[used[:, 1]] - gaps[used[:, 0]] + 1
        first = np.concatenate([[0], np.cumsum(pieces)])
        breaks = np.flatnonzero(np.diff(self.original) != 1)  # the last node before each gap
        rows = np.repeat(np.arange(len(used)), pieces)
        at = np.arange(first[-1]) - first[rows]
        gap = gaps[used[rows, 0]] + at
        breaks = np.append(breaks, len(self.original))
        low = np.where(at == 0, used[rows, 0], breaks[np.maximum(gap - 1, 0)] + 1)
        high = np.minimum(used[rows, 1], breaks[np.minimum(gap, len(breaks) - 1)])
        nodes = np.column_stack([self.original[low], self.original[high]])
        for rows in (state.attempts, state.hold_records):
            ends = first[np.minimum(rows["nodes_at"] + rows["n_nodes_at"], len(used))]
            rows["nodes_at"] = first[np.minimum(rows["nodes_at"], len(used))]
            rows["n_nodes_at"] = ends - rows["nodes_at"]
        state.n.n_nodes_used = len(nodes)
        return room._replace(state=state._replace(nodes=nodes.astype(np.int32)))


def mask_of(nodes: NodeSet, original: Ints) -> npt.NDArray[np.bool_]:
    """Return a mask in the numbers of the rules. ``original`` is that of a `LoopMachine`."""
    mask: npt.NDArray[np.bool_] = nodes.mask(int(original.max()) + 1)[original]
    return mask & (original >= 0)


def whole_machine(n_nodes: int, n_spares: int = 0) -> LoopMachine:
    """Return a machine without partitions."""
    limit = SizeLimit(n_nodes, min(n_spares, n_nodes))
    table, rows = rooms.parts_for([n_nodes]), rooms.one_partition(n_nodes, limit.most)
    members, shared = np.ones((1, n_nodes), dtype=np.bool_), np.zeros(1, dtype=np.bool_)
    home = np.zeros(n_nodes, dtype=np.int32)
    return LoopMachine(n_nodes, table, rows, home, members, shared, {}, limit=limit)


def machine_of(
    point: Point, n_nodes: int, cores_per_node: int = 1, *, in_place: bool = False
) -> LoopMachine:
    """Return the nodes of a machine.

    If ``in_place`` is set, or under fifo, nodes keep their numbers. Then the nodes of a group are
    not consecutive, and all plans that count nodes are plans of cells. Under fifo, all partitions
    are one group, because they have one queue.

    Raises
    ------
    InputError
        If the machine cannot have these partitions.
    """
    if not point.parted:
        return whole_machine(n_nodes, point.n_spares)
    partitions = partitions_on(point.partitions, n_nodes, cores_per_node)
    is_fifo = isinstance(point.planning, FifoOptions)
    in_place = in_place or is_fifo
    groups = [[*partitions]] if is_fifo else groups_of_partitions(partitions)
    sets = [nodes_of_all(group) for group in groups]
    others = ~nodes_of_all(partitions).mask(n_nodes)
    sets += [NodeSet.of_sorted(np.flatnonzero(others))] if others.any() else []
    table = rooms.parts_for([nodes.size for nodes in sets])
    row_of = {row.name: i for i, row in enumerate(row for group in groups for row in group)}
    rows = zeros(tables.Partition, len(partitions))
    shared = np.zeros(len(sets), dtype=np.bool_)
    for p, group in enumerate(groups):
        differs = differ(group)
        named = isinstance(point.placement, NamedOptions) and not is_fifo
        in_python = point.chooses_nodes or isinstance(point.planning, FlexibleOptions)
        shared[p] = differs or (in_place and not (named or in_python))
        first = row_of[group[0].name]
        for i, partition in enumerate(group):
            row = rows[first + i]
            order = partition.order or point.common.order
            row["part"], row["order"] = p, order_code(order)
            if row["order"] == codes.BY_VALUE:
                row["formula"] = point.formulas.index(formula_of(order))
            row["most"], row["longest"] = partition.max_nodes, partition.max_time_us or FOREVER_US
            row["counted_with"] = first + i if differs else first
            row["rank"] = places_in_queue(group)[i] if differs else 0
            row["n_nodes"] = partition.nodes.size if is_fifo else sets[p].size
            for name in ("tier", "backwards", "weight"):
                row[name] = getattr(partition, name)
    if in_place:
        table["first_node"], table["end_node"] = 0, n_nodes
        original = np.arange(n_nodes)
    else:
        original = np.full(int(table["end_node"][-1]), -1, dtype=np.int64)
        for part, nodes in zip(table, sets, strict=True):
            original[part["first_node"] : part["end_node"]] = nodes.ids
    home = np.full(len(original), -1, dtype=np.int32)
    for p, nodes in enumerate(sets):
        home[mask_of(nodes, original)] = p
    members = np.zeros((len(rows), len(original)), dtype=np.bool_)
    for partition in partitions:
        members[row_of[partition.name]] = mask_of(partition.nodes, original)
    return LoopMachine(
        len(original), table, rows, home, members, shared, {}, partitions, row_of, original, is_fifo
    )


def order_code(name: str) -> int:
    """Return the code of a queue order."""
    return codes.BY_LABEL if is_in_python(name) else codes.ORDERS.get(name, codes.BY_VALUE)


def places_in_queue(group: Sequence[Partition]) -> list[int]:
    """Return the place of each partition of a group in its queue.

    The highest tier is first. In a tier, partitions with equal orders are sorted together. If their
    orders differ, the jobs of the partition that is earlier in the list are first.
    """
    kinds = [(row.tier, row.order) for row in group]
    keys = [(-row.tier, kinds.index((row.tier, row.order))) for row in group]
    return [sorted({*keys}).index(key) for key in keys]


def columns_of_jobs(machine: LoopMachine, workload: Workload) -> dict[str, Ints]:
    """Return in which partitions each job runs, as columns in the order of the workload."""
    jobs = Jobs.of(workload.jobs)
    rows, codes = distinct(jobs.extra_codes, jobs.n_nodes, jobs.walltime_us)
    of_kinds = [
        machine.columns_of(traits_of(job.extra), job.n_nodes, job.walltime_us)
        for job in map(jobs.at, rows.tolist())
    ]
    return {
        name: np.array([row[name] for row in of_kinds], dtype=np.int64)[codes]
        for name in ("partition", "part", "places")
    }
