# SPDX-License-Identifier: Apache-2.0
"""The reservations of a site, and its partitions, as the tables of plans in cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rebat.core.table import distinct
from rebat.core.traits import Traits
from rebat.drive.growing import larger, readable
from rebat.drive.parts import LoopMachine
from rebat.kernels.cell_plan import AHEAD, CellTable, blocks, divide, hold, requests
from rebat.policies.queue_order import planned_us
from rebat.policies.windows import Reservation, on_processors, read_reservations
from rebat.rules.windows import note
from rebat.state import tables

Ints = npt.NDArray[np.int64]

PER_ATTEMPT = (
    "wall", "who", "partition", "places", "place", "reserved", "until", "nodes_at", "n_nodes_at",
)  # fmt: skip
"""The arrays with a row for each attempt."""


class SiteWindows:
    """The reservations of a site, and the kinds of owners of jobs.

    Parameters
    ----------
    text : str
        See `rebat.policies.windows.read_reservations`.
    machine : LoopMachine
    cores_per_node : int
    awaits : bool
        Whether there are tables before the first announcement, so that their types never change.

    Raises
    ------
    InputError
        If a node of a reservation does not exist.
    """

    def __init__(
        self, text: str, machine: LoopMachine, cores_per_node: int = 1, awaits: bool = False
    ) -> None:
        self._machine, self._awaits = machine, awaits
        self._rows = [*dict.fromkeys(read_reservations(text))]
        if machine.n_nodes:
            self._rows = on_processors(self._rows, machine.n_original, cores_per_node)
        self._n_stated = len(self._rows)
        self._owners: dict[tuple[bool, ...], int] = {}
        self._cells: Any = None

    @property
    def max_wakes(self) -> int:
        """Maximum number of plans that are due because of windows at a time."""
        return 2 * AHEAD * len(self._rows)

    def who_of(self, traits: Traits) -> int:
        """Return the kind of owner of a job. It is added if it is new."""
        rows, name = self._rows[: self._n_stated], traits.reservation
        asks = [bool(name) and row.name == name for row in rows]
        admits = [traits.user in row.users or traits.account in row.accounts for row in rows]
        return self._owners.setdefault((*asks, *admits), len(self._owners))

    def _kinds(self) -> dict[str, Any]:
        """Return the kinds of owners, and the sets of partitions in which jobs may run.

        No job owns a reservation that was announced.
        """
        n = self._n_stated
        kinds = np.zeros((2, len(self._owners) + 1, len(self._rows)), dtype=np.bool_)
        for who, owner in enumerate(self._owners):
            kinds[0, who, :n], kinds[1, who, :n] = owner[:n], owner[n:]
        places = self._machine.places or [((0,), 1)]
        open_ = np.zeros((len(places), len(self._machine.rows)), dtype=np.bool_)
        for row, (numbers, n_open) in zip(open_, places, strict=True):
            row[[*numbers[:n_open]]] = True
        return {"asks": kinds[0], "admits": kinds[1], "open": open_}

    def announce_to(
        self, cells: CellTable | None, rows: Sequence[Reservation], room: tables.Room
    ) -> tuple[CellTable | None, tables.Room]:
        """Return tables with announced reservations, and a room with space for their wakes."""
        cells, state = self.announce(cells, rows, room), room.state
        state.n.max_wakes = self.max_wakes
        if self.max_wakes > len(state.wakes):
            wakes = larger(state.wakes, self.max_wakes, 0)
            room = room._replace(state=state._replace(wakes=wakes))
        return cells, room

    def announce(
        self, cells: CellTable | None, rows: Sequence[Reservation], room: tables.Room
    ) -> CellTable | None:
        """Return tables with all reservations that have been announced so far."""
        if len(rows) == len(self._rows) - self._n_stated:
            return cells
        self._rows[self._n_stated :] = rows
        new = self.table(room)
        if cells is not None and new is not None:
            for name in ("reserved", "binding"):
                old = getattr(cells, name)
                getattr(new, name)[tuple(map(slice, old.shape))] = old
            self._divide(new, room)
        return new

    def table(self, room: tables.Room) -> CellTable | None:
        """Return the tables for a simulation, or None if nothing is planned in cells."""
        machine, rows, n_nodes = self._machine, self._rows, self._machine.n_nodes
        group, shared = machine.rows["part"].astype(np.int64), machine.shared
        if not n_nodes or not (rows or shared.any() or self._awaits):
            return None
        members = machine.members
        inside = np.array([machine.mask(row.nodes) for row in rows], dtype=np.bool_)
        inside = inside.reshape(-1, n_nodes)
        before = np.zeros((len(rows), n_nodes + 1), dtype=np.int64)
        before[:, 1:] = np.cumsum(inside, axis=1)
        first, _ = distinct(*members, *inside)
        n_parts, n_cells, n_slots = len(machine.table), len(first), AHEAD * len(rows)

        def ints(*shape: int) -> Ints:
            return np.zeros(shape, dtype=np.int64)

        def column(name: str) -> Ints:
            return np.array([getattr(row, name) for row in rows], dtype=np.int64)

        self._cells = cells = CellTable(
            shared=shared,
            group=group,
            counted_with=machine.rows["counted_with"].astype(np.int64),
            members=members,
            before=before,
            begin=column("begin_us"),
            length=column("length_us"),
            every=column("every_us"),
            **self._kinds(),
            n_inside=np.array([(inside & own).sum(axis=1) for own in members], dtype=np.int64),
            n_members=members.sum(axis=1),
            slot_begin=ints(n_slots),
            slot_end=ints(n_slots),
            binding=ints(n_parts, n_slots),
            home=room.state.home,
            cell_of=ints(n_nodes),
            n_cells=ints(n_parts),
            order=ints(len(group), n_cells),
            n_order=ints(len(group)),
            closed=np.zeros((n_parts, len(rows), n_cells), dtype=np.bool_),
            n_nodes=ints(n_parts, n_cells),
            nodes_before=ints(n_cells, n_nodes + 1),
            wall=ints(0),
            who=ints(0),
            partition=ints(0),
            places=ints(0),
            reserved=ints(0, n_cells),
            holders=ints(n_parts, 0),
            n_holders=ints(n_parts),
            place=ints(0),
            until=ints(0),
            nodes_at=ints(0),
            n_nodes_at=ints(0),
            queued=ints(0),
            t=ints(0),
            f=ints(0, n_cells),
            times=ints(0),
            rows=ints(0),
            signs=ints(0),
            opened=np.zeros(n_slots, dtype=np.bool_),
            ordered=ints(n_cells),
            out=ints(n_cells),
            codes=ints(2 * (n_cells + len(group))),
        )
        whole = self.extend(cells, room)
        state = readable(room.state)
        for a, row in enumerate(state.attempts[: state.n.n_attempts]):
            note(state, whole, a)
            if row.held_until >= 0:
                p, at = state.jobs[row.job].part, (row.nodes_at, row.n_nodes_at)
                hold(whole, p, a, *at, state.nodes, row.held_until)
        self._divide(whole, room)
        return whole

    def _divide(self, cells: CellTable | None, room: tables.Room) -> None:
        """Divide the nodes of all groups into cells."""
        for p, part in enumerate(self._machine.table):
            divide(cells, p, part["first_node"], part["end_node"], room.state.nodes)

    def extend(self, cells: CellTable | None, room: tables.Room) -> CellTable | None:
        """Return tables that are large enough for the tables of a simulation."""
        if cells is None:
            return None
        new: dict[str, Any] = {}
        n_places = len(self._machine.places)
        if len(self._owners) >= len(cells.asks) or n_places > len(cells.open):
            new |= self._kinds()
        n_attempts, n_queued = len(room.state.attempts), room.queue.shape[1]
        if n_attempts > len(cells.wall):
            new |= {name: larger(getattr(cells, name), n_attempts, 0) for name in PER_ATTEMPT}
        n_holders = min(len(cells.cell_of), n_attempts)
        if n_holders > cells.holders.shape[1]:
            new["holders"] = larger(cells.holders, n_holders, 1)
        events = n_holders + 2 * cells.slot_end.shape[0] + 2 * n_queued
        if n_queued > len(cells.queued) or events > len(cells.times):
            new["queued"] = larger(cells.queued, n_queued, 0)
            names = ("times", "rows", "signs")
            new |= {name: larger(getattr(cells, name), events, 0) for name in names}
            n_steps = len(new["times"]) + 6 * len(new["queued"]) + 16
            new |= {name: larger(getattr(cells, name), n_steps, 0) for name in ("t", "f")}
        return cells._replace(**new) if new else cells

    def why_never(self, job: Any, wall_us: int, queued_us: int) -> str:
        """Return why a job fits between no two windows of reservations."""
        of_job = {"who": [job["who"]], "places": [job["places"]], "wall": [planned_us(wall_us)]}
        cells = self._cells._replace(**of_job, **self._kinds())
        requested = requests(cells, 0, job["size"], queued_us)
        names = [row.name for r, row in enumerate(self._rows) if blocks(cells, 0, r, requested)]
        return f"its walltime fits between no two windows of reservation {' or '.join(names)}"
