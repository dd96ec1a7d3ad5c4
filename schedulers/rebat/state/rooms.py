# SPDX-License-Identifier: Apache-2.0
"""The tables of a simulation at its beginning and at its end, and their sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from rebat.core.errors import InputError
from rebat.core.units import FOREVER_US
from rebat.kernels import pool
from rebat.kernels.blocks import BlockTable, empty_table
from rebat.kernels.chain import scratch_needed
from rebat.kernels.deep_queue import groups_of
from rebat.kernels.fair_share import Tree
from rebat.kernels.formula import DEEPEST
from rebat.models.formula import COLUMNS
from rebat.state import codes
from rebat.state.rows import array_of, dtype_of, new_rows, rows_of, zeros
from rebat.state.tables import (
    Attempt,
    Block,
    Client,
    Condition,
    Decision,
    DrainRecord,
    Entry,
    Group,
    Hit,
    HoldRecord,
    Job,
    JobArray,
    Kill,
    Lemons,
    Limits,
    Links,
    Lists,
    Membership,
    Move,
    Numbers,
    Part,
    Partition,
    Profile,
    Room,
    Rounds,
    State,
    Stop,
    Target,
    Wait,
)

SPARE, POINTS, SLICES = 256, 16384, 1024
"""Initial numbers of spare rows of attempts, of points of a plan, and of slices of a named plan."""

SMALL, SMALL_PLAIN = 8192, 512
"""Initial numbers of rows of small tables, as structured arrays and as objects."""


def table_for(parameters: Any) -> BlockTable | None:
    """Return the plan of named nodes, or None if nodes are only counted."""
    if not parameters.named:
        return None
    n_nodes = parameters.n_nodes
    table = empty_table(2 * SLICES, max(1, min(n_nodes, SLICES)), 2 * SLICES)
    table.n[:] = 1, 1, 0
    table.first[:2], table.f[0], table.free[0, 0] = (0, n_nodes), n_nodes, 1
    return table


def one_partition(n_nodes: int, most: int) -> Any:
    """Return the table of partitions of a machine without partitions."""
    partitions = zeros(Partition, 1)
    partitions["most"], partitions["n_nodes"] = most, n_nodes
    partitions["longest"] = FOREVER_US
    return partitions


def parts_for(sizes: Sequence[int]) -> Any:
    """Return the table of groups with these numbers of nodes. Each begins at a block."""
    parts = zeros(Part, len(sizes))
    ends = np.cumsum([-(-size // pool.BLOCK) * pool.BLOCK for size in sizes])
    parts["first_node"][1:] = ends[:-1]
    parts["n_free"] = parts["n_nodes"] = sizes
    parts["end_node"] = parts["first_node"] + sizes
    parts["base_n"] = parts["plan_n"] = 1
    parts["sorted"] = -FOREVER_US
    return parts


def room_for(
    jobs: Any,
    profiles: Any,
    parameters: Any,
    n_failures: int,
    machine: Any,
    links: Links,
    limits: Limits,
    tree: Tree,
    formulas: tuple[Any, Any, Any],
    compiled: bool,
) -> Room:
    """Return arrays for these jobs and a number of failures of nodes.

    ``machine`` is a `rebat.drive.parts.LoopMachine`.
    ``formulas`` are those of queue orders (`rebat.rules.by_value.arrays_of`).
    """
    parts = machine.table
    n_jobs, n_nodes, few = len(jobs), parameters.n_nodes, SMALL
    n_parts, n_free = len(parts), int(parts["n_free"].sum())
    k = n_jobs + 2 * n_failures + SPARE
    if not compiled:  # rows are objects, so begin with few of them
        k, few = n_jobs + n_jobs // 2 + SPARE, SMALL_PLAIN
    queued = int(np.bincount(jobs["part"], minlength=1).max()) + 1

    def flags() -> Any:
        return np.zeros(n_nodes, dtype=np.bool_)

    down, block_of = ~flags(), np.arange(n_nodes) // pool.BLOCK
    for first, end in parts[["first_node", "end_node"]].tolist():
        down[first:end] = False
    state = State(
        n=numbers_of(parameters, compiled),
        jobs=rows_of(Job, jobs, compiled),
        profiles=rows_of(Profile, profiles, compiled),
        attempts=new_rows(Attempt, k, compiled),
        nodes=np.zeros((16 * k + 8 * n_nodes, 2), dtype=np.int32),
        owner=np.full(n_nodes, codes.FREE, dtype=np.int32),
        down=down,
        down_in=np.bincount(block_of, down).astype(np.int64),
        free=np.bincount(block_of, ~down).astype(np.int64),
        failed=down.copy(),
        drained=flags(),
        up_since=ints(n_nodes),
        failed_at=ints(n_nodes),
        lists=new_rows(Lists, k, compiled),
        hits=new_rows(Hit, few, compiled),
        kills=new_rows(Kill, few, compiled),
        stops=new_rows(Stop, few, compiled),
        waits=new_rows(Wait, few, compiled),
        hold_records=new_rows(HoldRecord, few, compiled),
        moves=new_rows(Move, few, compiled),
        targets=new_rows(Target, few, compiled),
        drains=new_rows(DrainRecord, few, compiled),
        calls=new_rows(Entry, few, compiled),
        partitions=rows_of(Partition, machine.rows, compiled),
        parts=rows_of(Part, parts, compiled),
        members=machine.members,
        blocked_by=ints(len(machine.rows)),
        home=machine.home,
        blocks=rows_of(Block, links.blocks, compiled),
        conditions=rows_of(Condition, links.conditions, compiled),
        arrays=rows_of(JobArray, links.arrays, compiled),
        groups=rows_of(Group, limits.groups, compiled),
        clients=rows_of(Client, limits.clients, compiled),
        memberships=rows_of(Membership, limits.memberships, compiled),
        allowed=ints(len(limits.clients)),
        client_of=ints(k if parameters.limited else 1),
        tree=tree,
        wakes=ints(max(1, parameters.max_wakes)),
        out=new_rows(Decision, 2 * n_jobs + few, compiled),
    )
    state = with_reactions(state, parameters, k)
    state.n.n_free, state.n.unfinished, state.n.counts_changed = n_free, n_jobs, 1
    state.n.sequence = state.n.line_sequence = 2
    state.n.job_sequence = 1
    return Room(
        state,
        ends=new_rows(Entry, k, compiled),
        reported=flags(),
        marked=flags(),
        changed=ints(n_nodes),
        usable=flags(),
        inside=flags(),
        on_nodes=ints(2, n_nodes // max(1, parameters.cores)),
        **plan_arrays(
            machine, formulas, queued, 2 * k if n_parts == 1 else 2 * queued + SPARE, few,
            parameters.limited, compiled,
        ),
    )  # fmt: skip


def ints(*shape: int) -> Any:
    """Return an array of zeros."""
    return np.zeros(shape, dtype=np.int64)


def with_reactions(state: State, parameters: Any, k: int) -> State:
    """Return a state with the tables of its reactions. ``k`` is the number of attempts."""
    if parameters.preempting:
        state = state._replace(rounds=Rounds(ints(6), ints(k + 2, 2), ints(k, 2)))
    if parameters.excluding:
        n, is_listed = parameters.n_nodes, np.zeros(parameters.n_nodes, dtype=np.bool_)
        lemons = Lemons(ints(3), ints(n), ints(n, parameters.hits), ints(n), ints(n), is_listed)
        state = state._replace(lemons=lemons)
    return state


def set_uptimes(state: State, uptime_us: Any) -> None:
    """Set the uptime of each node when the simulation begins, in microseconds."""
    if len(uptime_us) != len(state.up_since):
        expected = f"{len(state.up_since)}, one per node"
        raise InputError(f"there are {len(uptime_us)} uptimes", expected=expected)
    state.up_since[:] = state.failed_at[:] = -uptime_us


def plan_arrays(
    machine: Any, formulas: Any, queued: int, n_ends: int, few: int, limited: int, compiled: bool
) -> dict[str, Any]:
    """Return the arrays of the plans of all groups of partitions.

    They have space for ``queued`` attempts and for ``n_ends`` planned ends.
    """
    n_parts, by_value = len(machine.table), len(formulas[0]) > 0

    arrays = {
        "holds": _tables(n_parts, n_ends, compiled),
        "overdue": ints(n_parts, few, 2),
        **{name: ints(n_parts, queued) for name in ("size", "duration", "start", "queue")},
        "index": ints(n_parts, 4, groups_of(queued)),
        "value": np.zeros((n_parts, queued if by_value else 1)),
        "operations": formulas[0],
        "arguments": formulas[1],
        "first_of_formula": formulas[2],
        "value_by_one": np.zeros(queued if len(formulas[2]) > 2 else 1),
        "table": np.zeros((queued if by_value else 1, len(COLUMNS))),
        "stack": np.zeros(DEEPEST),
        "visible": ints(4, queued if limited else 1),
        "positions": ints(queued),
        **{name: ints(n_parts, POINTS) for name in ("base_t", "base_f", "plan_t", "plan_f")},
        "scratch": ints(scratch_needed(POINTS)),
    }
    arrays["base_f"][:, 0] = arrays["plan_f"][:, 0] = machine.table["n_nodes"]
    return arrays


def with_plans_of(room: Room, machine: Any, formulas: Any, tree: Tree) -> Room:
    """Return a room before its first plan, with the partitions of a machine.

    The tables are not compiled. ``formulas`` are those of `room_for`.
    """
    state, limited = room.state, room.state.n.limited
    is_free = (state.owner == codes.FREE) & ~state.down
    parts = machine.table.copy()
    parts["n_free"] = np.bincount(machine.home[is_free], minlength=len(parts))
    state = state._replace(
        partitions=rows_of(Partition, machine.rows, False),
        parts=rows_of(Part, parts, False),
        members=machine.members,
        blocked_by=np.zeros(len(machine.rows), dtype=np.int64),
        home=machine.home,
        client_of=np.zeros(len(state.attempts) if limited else 1, dtype=np.int64),
        tree=tree,
    )
    queued, n_ends = room.queue.shape[1], len(room.holds[0])
    few = room.overdue.shape[1]
    arrays = plan_arrays(machine, formulas, queued, n_ends, few, limited, compiled=False)
    return room._replace(state=state, **arrays)


def _tables(n_tables: int, n: int, compiled: bool) -> Any:
    """Return heaps of ``n`` entries."""
    if compiled:
        return zeros(Entry, n_tables, n)
    return [new_rows(Entry, n, compiled) for _ in range(n_tables)]


def numbers_of(parameters: Any, compiled: bool) -> Any:
    """Return the parameters and counters for the loop."""
    if not compiled:
        return msgspec.structs.replace(parameters)
    array = np.zeros(1, dtype=(np.record, dtype_of(Numbers))).view(np.recarray)
    array[0] = msgspec.structs.astuple(parameters)
    return array[0]


def finished(room: Room) -> Room:
    """Return the room after a run, with the tables of the outcome as structured arrays.

    The rows of the jobs are freed, because the outcome takes memory too.
    """
    state = room.state
    return room._replace(
        state=state._replace(
            n=Numbers(*state.n.item())
            if isinstance(state.n, np.record)
            else msgspec.structs.replace(state.n),
            attempts=array_of(Attempt, state.attempts[: state.n.n_attempts]),
            lists=array_of(Lists, state.lists),
            hold_records=array_of(HoldRecord, state.hold_records[: state.n.n_holds]),
            drains=array_of(DrainRecord, state.drains[: state.n.n_drains]),
            jobs=zeros(Job, 0),
            blocks=array_of(Block, state.blocks),
            conditions=array_of(Condition, state.conditions),
        )
    )
