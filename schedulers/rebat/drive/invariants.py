# SPDX-License-Identifier: Apache-2.0
"""The invariants of the tables of a simulation, which hold after every message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rebat.core.errors import RebatError
from rebat.kernels import pool
from rebat.kernels.deep_queue import GAP
from rebat.state import codes, tables


class BrokenInvariant(RebatError):
    """Error: the state of a simulation is impossible. This is a bug in rebat."""


def check_tables(room: tables.Room, names: Sequence[str]) -> None:
    """Raise BrokenInvariant if the tables are impossible.

    Parameters
    ----------
    room : Room
    names : sequence of str
        The ids of the attempts.
    """
    state, n = room.state, room.state.n
    running = [row.running for row in state.lists[: n.n_running]]
    holds = [row.hold for row in state.waits[: n.n_waits] if row.hold >= 0]
    holds += [row.hold for row in state.targets[: n.n_targets]]
    _check_attempts(room, running, holds, names)
    _check_nodes(state, running, holds, names)


def queued_attempts(room: tables.Room) -> list[int]:
    """Return the attempts in the queues, without the gaps of long queues."""
    queues = zip(room.queue, room.size, room.state.parts, strict=True)
    return [
        int(a)
        for queue, size, part in queues
        for a in queue[: part.n_queued][size[: part.n_queued] != GAP]
    ]


def _check_attempts(
    room: tables.Room, running: list[int], holds: list[int], names: Sequence[str]
) -> None:
    """Check that every attempt is in one table, and that a job has at most one attempt."""
    state, n, attempts = room.state, room.state.n, room.state.attempts
    for place, a in enumerate(running):
        row = attempts[a]
        if row.start < 0 or row.end >= 0 or row.place != place or row.number == codes.HOLD:
            raise BrokenInvariant(f"attempt {names[a]} does not run, but is in the list")
    for a in holds:
        if attempts[a].end >= 0 or attempts[a].number != codes.HOLD:
            raise BrokenInvariant(f"row {a} does not hold nodes, but a job waits on them")
    queued = [*queued_attempts(room), *(row.entered for row in state.lists[: n.n_entered])]
    for a in queued:
        if attempts[a].start >= 0 or attempts[a].number == codes.HOLD:
            raise BrokenInvariant(f"attempt {names[a]} is queued, but has already started")
    kills = [row.attempt for row in state.kills[: n.n_kills]]
    stops = [row.victim for row in state.stops[: n.n_stops]]
    if len({*kills}) < len(kills) or {*kills} & {*stops} - {*_ended(state, stops)}:
        raise BrokenInvariant("an attempt is being stopped twice")
    alive = {*running, *_ended(state, stops)} if kills else {*running}
    for a in stops:
        if a not in alive:
            raise BrokenInvariant(f"attempt {names[a]} is being stopped, but does not run")
    stopped = [a for a in kills if attempts[a].end >= 0 and attempts[a].cause in codes.AGAIN]
    waiting = [row.attempt for row in state.waits[: n.n_waits]]
    jobs = [attempts[a].job for a in (*running, *queued, *stopped, *waiting)]
    if len({*jobs}) < len(jobs):
        raise BrokenInvariant("a job has two attempts at the same time")


def _ended(state: Any, rows: list[int]) -> list[int]:
    return [a for a in rows if state.attempts[a].end >= 0]


def _check_nodes(state: Any, running: list[int], holds: list[int], names: Sequence[str]) -> None:
    """Check that every node has at most one holder, and that it has the tag of this holder."""
    n, attempts = state.n, state.attempts
    owner = np.full(len(state.owner), pool.FREE, dtype=np.int32)
    for a in (*running, *holds):
        row, size = attempts[a], 0
        for low, high in state.nodes[row.nodes_at : row.nodes_at + row.n_nodes_at].tolist():
            if (owner[low : high + 1] != pool.FREE).any():
                raise BrokenInvariant(f"a node of {names[a] or a} is held by another")
            owner[low : high + 1] = a + 1
            size += high + 1 - low
        wanted = row.size_of_hold if row.number == codes.HOLD else state.jobs[row.job].size
        if size != wanted:
            raise BrokenInvariant(f"{names[a] or a} is on {size} nodes, expected {wanted}")
    wrong = np.flatnonzero(owner != state.owner)
    if len(wrong):
        raise BrokenInvariant(f"node {wrong[0]} has the wrong tag {state.owner[wrong[0]]}")
    free = (owner == pool.FREE) & ~state.down
    counts: Any = np.add.reduceat(free, np.arange(0, len(free), pool.BLOCK)) if len(free) else []
    in_parts = [int(free[state.home == p].sum()) for p in range(len(state.parts))]
    if (
        n.n_free != free.sum()
        or (state.free != counts).any()
        or in_parts != [part.n_free for part in state.parts]
    ):
        raise BrokenInvariant(f"{free.sum()} nodes are free, not {n.n_free}")
    if not n.n_kills:
        hangs = {row.victim for row in state.stops[: n.n_stops]} if n.staged else set()
        unusable = state.failed if n.operating else state.down  # jobs can run on drained nodes
        for a in running:
            if a not in hangs and unusable[state.owner == a + 1].any():
                raise BrokenInvariant(f"attempt {names[a]} runs on a failed node")
