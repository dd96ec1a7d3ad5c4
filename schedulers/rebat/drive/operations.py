# SPDX-License-Identifier: Apache-2.0
"""The operations of an administrator as tables of the rules, and the notes on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np

from rebat.core.arrays import Ints
from rebat.core.cores import processors_of
from rebat.core.errors import InputError
from rebat.core.table import distinct
from rebat.core.traits import Traits
from rebat.drive.eligible import operates
from rebat.drive.growing import larger, longer
from rebat.drive.site_windows import SiteWindows
from rebat.models.failures.events import GenericEvent
from rebat.models.migration import cost_us
from rebat.models.operations import ANNOUNCE, KINDS, MIGRATE, Operation, operation_of
from rebat.policies.point import Point
from rebat.policies.reactions.operations import check_nodes, may_request, refused
from rebat.policies.variants import parts
from rebat.policies.windows import Announced
from rebat.state import codes, tables
from rebat.state.operations import N_NOTES, N_READ, N_RECEIVED, NoteRow, OperationRow, Operations
from rebat.state.rooms import ints
from rebat.state.rows import array_of

CODES = dict(zip(KINDS, (codes.DRAIN, codes.UNDRAIN, codes.MIGRATE, codes.ANNOUNCE), strict=True))
"""Kinds of operations."""

Named = Callable[[str], Iterable[int]]
"""The function that returns the rows of the jobs that an id of an operation can mean."""


class Orders:
    """The operations that a scheduler has received, and what it knows about images of jobs.

    Parameters
    ----------
    point : Point
    n_nodes, cores_per_node : int
        Number of processors of the machine, and of each node.
    named : callable
    users : mapping
        Numbers of the users of jobs.
    """

    def __init__(
        self,
        point: Point,
        n_nodes: int,
        cores_per_node: int,
        named: Named = lambda _: (),
        users: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        common = point.common
        self.all: list[Operation | None] = []
        self._n_nodes, self._cores, self._named, self._users = n_nodes, cores_per_node, named, users
        self._carries_out = operates(point)
        self._operators = frozenset(parts(common.operators))
        self._cost, self._purge_s = str(common.migration_cost), common.purge
        self._announced = Announced()

    def image_of(self, traits: Traits, n_nodes: int, is_delay: bool = True) -> tuple[int, int]:
        """Return the row of a job (see `Operations.jobs`)."""
        why = 0 if traits.checkpointable else codes.UNWILLING
        price_us = cost_us(self._cost, n_nodes, traits.memory_mb, self._purge_s)
        return why or (0 if is_delay else codes.NO_DELAY), price_us

    def images_of(self, traits: Sequence[Traits], which: Any, sizes: Any) -> Ints:
        """Return the rows of jobs, which have some of these traits and these numbers of nodes."""
        first, places = distinct(which, sizes)
        kinds = zip(which[first].tolist(), sizes[first].tolist(), strict=True)
        rows = [self.image_of(traits[code], size) for code, size in kinds]
        of_jobs: Ints = np.array(rows, dtype=np.int64).reshape(-1, 2)[places]
        return of_jobs

    def table(self, jobs: Ints, n_attempts: int) -> Operations:
        """Return the tables without operations. Python interprets the rules."""

        def flags() -> Any:
            return np.zeros(self._n_nodes, dtype=np.bool_)

        return Operations(
            ints(6), [], ints(0, 2), [], jobs, flags(), flags(), flags(), ints(n_attempts),
            ints(n_attempts), [],
        )  # fmt: skip

    def fill(
        self, room: tables.Room, jobs: Ints, events: Sequence[GenericEvent], compiled: bool
    ) -> tables.Room:
        """Return a room with the operations of a run. ``jobs`` are the rows of jobs.

        Raises
        ------
        InputError
            If an operation is invalid, or if they are not in order of time.
        """
        if any(a.at_us > b.at_us for a, b in pairwise(events)):
            raise InputError("operations that are not in order of time")
        rows = [(each.at_us, str(each.data.get("type")), each.data) for each in events]
        made = self.add(self.table(jobs, len(room.state.attempts)), rows)
        return room._replace(state=with_operations(room.state, made, compiled))

    def add(
        self, made: Operations, events: Sequence[tuple[int, str, dict[str, Any]]]
    ) -> Operations:
        """Return tables with more operations: their times, kinds and data. Some may be others.

        Raises
        ------
        InputError
            If an operation is invalid.
        """
        sets = [made.nodes]
        for at_us, kind, data in events:
            operation = None
            if self._carries_out and kind in KINDS:
                try:
                    operation = operation_of({"type": kind} | data)
                    check_nodes(operation, self._n_nodes // self._cores)
                except InputError as error:
                    raise error.at(f"event {kind}") from None
            self.all.append(operation)
            row = OperationRow(at_us)
            if operation is not None:
                self._fill(row, operation, made.named, sum(map(len, sets)), sets)
            made.rows.append(row)
        notes = longer(made.notes, NoteRow, 2 * len(made.rows) + 1)
        return made._replace(nodes=np.concatenate(sets), notes=notes)

    def _fill(
        self,
        row: OperationRow,
        operation: Operation,
        named: list[int],
        at: int,
        sets: list[Any],
    ) -> None:
        row.kind, row.spanning = CODES[operation.kind], operation.spanning
        row.may = may_request(operation.user, self._operators)
        row.user = self._users.get(operation.user, -1) if operation.user else 0
        row.anywhere = operation.nodes is None
        if operation.nodes is not None:
            intervals = processors_of(operation.nodes, self._cores).intervals
            row.nodes_at, row.n_nodes_at = at, len(intervals)
            sets.append(intervals)
        if operation.kind == MIGRATE:
            row.named_at = len(named)
            named.extend(self._named(operation.job))
            row.n_named = len(named) - row.named_at

    def announce(
        self, windows: SiteWindows, cells: Any, room: tables.Room, n_due: int = 0
    ) -> tuple[Any, tables.Room]:
        """Return the tables with all announced windows.

        The operations are those that were received, and the next ``n_due``.
        """
        made = room.state.operations
        up_to = int(made.own[N_RECEIVED]) + n_due
        for o in range(made.own[N_READ], up_to):
            operation = self.all[o]
            if operation is not None and operation.kind == ANNOUNCE:
                if not may_request(operation.user, self._operators):
                    continue
                assert operation.nodes is not None
                nodes = processors_of(operation.nodes, self._cores)
                self._announced.add(nodes, operation.begin_us, operation.end_us)
        made.own[N_READ] = up_to
        return windows.announce_to(cells, self._announced.rows, room)

    def note(self, note: NoteRow, job_id: Callable[[int], str]) -> tuple[str, str]:
        """Return the subject of a note, and the reason. ``job_id`` is that of an attempt."""
        operation = self.all[note.operation]
        assert operation is not None
        job = job_id(note.attempt) if note.attempt >= 0 else ""
        made = refused(operation, note.why, job, note.detail)
        return made.operation, made.reason


def with_operations(
    state: tables.State, made: Operations, compiled: bool
) -> tables.State:  # fmt: skip
    """Return a state with operations."""
    state.n.n_operations_left = len(made.rows)
    state.n.operation_sequence = state.n.sequence = 3  # after the events of nodes
    if compiled:
        made = made._replace(
            rows=array_of(OperationRow, made.rows),
            named=np.array(made.named, dtype=np.int64),
            notes=array_of(NoteRow, made.notes),
        )
    return state._replace(operations=made)


def with_job(made: Operations, j: int, row: tuple[int, int]) -> Operations:
    """Return tables with the row of another job."""
    if j >= len(made.jobs):
        made = made._replace(jobs=larger(made.jobs, j + 1, 0))
    made.jobs[j] = row
    return made


def notes_of(made: Operations) -> list[NoteRow]:
    """Return all notes."""
    rows = array_of(NoteRow, made.notes[: made.own[N_NOTES]])
    return [NoteRow(*row) for row in rows.tolist()]


def awaits(point: Point, operations: object) -> bool:
    """Return whether the operations of a run can announce maintenance to a scheduler."""
    return bool(operations and point.common.reservations)
