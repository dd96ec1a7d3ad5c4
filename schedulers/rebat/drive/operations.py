# SPDX-License-Identifier: Apache-2.0
"""The operations of an administrator as tables of the rules, and the notes on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rebat.core.arrays import Ints
from rebat.core.cores import processors_of
from rebat.core.errors import InputError
from rebat.core.traits import Traits
from rebat.drive.growing import larger, longer
from rebat.models.migration import cost_us
from rebat.models.operations import ANNOUNCE, KINDS, MIGRATE, Operation, operation_of
from rebat.policies.point import Point
from rebat.policies.reactions.operations import DRAINS, check_nodes, may_request, refused
from rebat.policies.variants import parts
from rebat.policies.windows import Announced, Reservation
from rebat.state import codes, tables
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
        self, point: Point, n_nodes: int, cores_per_node: int, named: Named, users: Mapping[str, int]
    ) -> None:
        common = point.common
        self.all: list[Operation | None] = []
        self._n_nodes, self._cores, self._named, self._users = n_nodes, cores_per_node, named, users
        self._carries_out = common.drain != "auto" and DRAINS[common.drain] is not None
        self._operators = frozenset(parts(common.operators))
        self._cost, self._purge_s = str(common.migration_cost), common.purge
        self._announced = Announced()

    def of_job(self, traits: Traits, n_nodes: int, is_delay: bool = True) -> tuple[int, int]:
        """Return the row of a job (see `tables.Operations.jobs`)."""
        why = 0 if traits.checkpointable else codes.UNWILLING
        price_us = cost_us(self._cost, n_nodes, traits.memory_mb, self._purge_s)
        return why or (0 if is_delay else codes.NO_DELAY), price_us

    def table(self, jobs: Ints, n_attempts: int) -> tables.Operations:
        """Return the tables without operations. Python interprets the rules."""

        def flags() -> Any:
            return np.zeros(self._n_nodes, dtype=np.bool_)

        return tables.Operations(
            np.zeros(6, dtype=np.int64), [], np.zeros((0, 2), dtype=np.int64), [], jobs, flags(),
            flags(), flags(), np.zeros(n_attempts, dtype=np.int64),
            np.zeros(n_attempts, dtype=np.int64), [],
        )  # fmt: skip

    def add(
        self, made: tables.Operations, events: Sequence[tuple[int, str, dict[str, Any]]]
    ) -> tables.Operations:
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
            row = tables.Operation(at_us)
            if operation is not None:
                self._fill(row, operation, made.named, sum(map(len, sets)), sets)
            made.rows.append(row)
        notes = longer(made.notes, tables.NoteRow, 2 * len(made.rows) + 1)
        return made._replace(nodes=np.concatenate(sets), notes=notes)

    def _fill(
        self, row: tables.Operation, operation: Operation, named: list[int], at: int, sets: list[Any]
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

    def announced(self, made: tables.Operations, up_to: int) -> list[Reservation]:
        """Return the windows that the first operations announce."""
        for o in range(made.own[tables.N_READ], up_to):
            operation = self.all[o]
            if operation is not None and operation.kind == ANNOUNCE and made.rows[o].may:
                assert operation.nodes is not None
                nodes = processors_of(operation.nodes, self._cores)
                self._announced.add(nodes, operation.begin_us, operation.end_us)
        made.own[tables.N_READ] = up_to
        return self._announced.rows

    def note(self, note: Any, job_id: Callable[[int], str]) -> tuple[str, str]:
        """Return the subject of a note, and the reason. ``job_id`` is that of an attempt."""
        operation = self.all[note.operation]
        assert operation is not None
        job = job_id(note.attempt) if note.attempt >= 0 else ""
        made = refused(operation, note.why, job, note.detail)
        return made.operation, made.reason


def with_operations(
    state: tables.State, made: tables.Operations, compiled: bool
) -> tables.State:  # fmt: skip
    """Return a state with operations."""
    state.n.n_operations_left = len(made.rows)
    state.n.operation_sequence = state.n.sequence = 3  # after the events of nodes
    if compiled:
        made = made._replace(
            rows=array_of(tables.Operation, made.rows),
            named=np.array(made.named, dtype=np.int64),
            notes=array_of(tables.NoteRow, made.notes),
        )
    return state._replace(operations=made)


def with_job(made: tables.Operations, j: int, row: tuple[int, int]) -> tables.Operations:
    """Return tables with the row of another job."""
    if j >= len(made.jobs):
        made = made._replace(jobs=larger(made.jobs, j + 1, 0))
    made.jobs[j] = row
    return made
