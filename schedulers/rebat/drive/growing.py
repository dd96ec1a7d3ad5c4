# SPDX-License-Identifier: Apache-2.0
"""Tables that grow when an instant or a plan needs more rows.

Lists of rows grow in place. Arrays are replaced by longer ones with the same contents.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rebat.kernels.blocks import BlockTable, spaces_of
from rebat.kernels.blocks import grown as larger_table
from rebat.kernels.chain import scratch_needed
from rebat.kernels.deep_queue import groups_of
from rebat.rules.room import TABLES, plan_needed, rows_needed, table_needed
from rebat.state import tables

GROWTH = 1.5
"""Factor by which a table grows at least."""

KINDS: dict[str, Any] = {
    "jobs": tables.Job,
    "attempts": tables.Attempt,
    "lists": tables.Lists,
    "hits": tables.Hit,
    "kills": tables.Kill,
    "stops": tables.Stop,
    "waits": tables.Wait,
    "hold_records": tables.HoldRecord,
    "moves": tables.Move,
    "targets": tables.Target,
    "drains": tables.DrainRecord,
    "calls": tables.Entry,
    "out": tables.Decision,
}


def _longer(n: int, needed: int) -> int:
    return max(needed, int(GROWTH * n))


def larger(array: Any, needed: int, axis: int) -> Any:
    """Return an array with a longer axis, and the contents of the other."""
    shape = [*array.shape]
    shape[axis] = _longer(shape[axis], needed)
    new = np.zeros(shape, dtype=array.dtype)
    new[tuple(map(slice, array.shape))] = array
    return new


def longer(rows: Any, kind: Any, needed: int) -> Any:
    """Return a list or an array with the same rows, and at least as many as needed."""
    if needed <= len(rows):
        return rows
    if not isinstance(rows, list):
        return larger(rows, needed, 0)
    rows.extend(kind() for _ in range(_longer(len(rows), needed) - len(rows)))
    return rows


def readable(state: tables.State) -> tables.State:
    """Return the same tables, whose rows Python can read by name as the rules do."""
    arrays = {
        name: rows.view(np.recarray)
        for name, rows in state._asdict().items()
        if isinstance(rows, np.ndarray) and rows.dtype.names
    }
    return state._replace(**arrays)


def with_rows(room: tables.Room, arriving: int, n_lines: int, n_changed: int) -> tables.Room:
    """Return a room with the rows that an instant needs (see `rows_needed`)."""
    state, new = room.state, {}
    rows = rows_needed(readable(state), arriving, n_lines, n_changed)
    for name, needed in zip(TABLES, rows, strict=True):
        if name != "nodes":
            new[name] = longer(getattr(state, name), KINDS[name], needed)
        elif needed > len(state.nodes):
            new[name] = larger(state.nodes, needed, 0)
    n_attempts = len(new["attempts"])
    if state.n.limited and n_attempts > len(state.client_of):
        new["client_of"] = larger(state.client_of, n_attempts, 0)
    if state.tiers is not None and n_attempts > len(state.tiers.at_risk):
        at_risk = larger(state.tiers.at_risk, n_attempts, 0)
        new["tiers"] = state.tiers._replace(at_risk=at_risk)
    if state.hangs is not None and n_attempts > len(state.hangs.attempts):
        attempts = larger(state.hangs.attempts, n_attempts, 0)
        new["hangs"] = state.hangs._replace(attempts=attempts)
    if state.rounds is not None and n_attempts > len(state.rounds.stopped):
        wakes, stopped = (larger(each, n_attempts + 2, 0) for each in state.rounds[1:])
        new["rounds"] = state.rounds._replace(wakes=wakes, stopped=stopped)
    if state.operations is not None and n_attempts > len(state.operations.image):
        image, started = (
            larger(each, n_attempts, 0)
            for each in (state.operations.image, state.operations.started)
        )
        new["operations"] = state.operations._replace(image=image, started=started)
    ends = longer(room.ends, tables.Entry, n_attempts)
    return room._replace(state=state._replace(**new), ends=ends)


def with_plans(room: tables.Room, n_more: int) -> tables.Room:
    """Return a room whose arrays are large enough for the next plan (see `plan_needed`)."""
    state = readable(room.state)
    rows = [plan_needed(state, p, n_more) for p in range(len(state.parts))]
    queue, ends, overdue, points, nodes = map(max, zip(*rows, strict=True))
    new: dict[str, Any] = {}
    if isinstance(room.holds, list):
        new["holds"] = [longer(heap, tables.Entry, ends) for heap in room.holds]
    elif ends > room.holds.shape[1]:
        new["holds"] = larger(room.holds, ends, 1)
    for names, needed in (
        (("size", "duration", "start", "queue"), queue),
        (("overdue",), overdue),
        (("base_t", "base_f", "plan_t", "plan_f"), points),
    ):
        if needed > getattr(room, names[0]).shape[1]:
            new |= {name: larger(getattr(room, name), needed, 1) for name in names}
    if "queue" in new:
        length = new["queue"].shape[1]
        new["positions"] = larger(room.positions, length, 0)
        new["index"] = larger(room.index, groups_of(length), 2)
        if room.state.n.limited:
            new["visible"] = larger(room.visible, length, 1)
        if len(room.operations):
            new["value"] = larger(room.value, length, 1)
            new["table"] = larger(room.table, length, 0)
        if len(room.first_of_formula) > 2:
            new["value_by_one"] = larger(room.value_by_one, length, 0)
    if "base_t" in new:
        new["scratch"] = np.zeros(scratch_needed(new["base_t"].shape[1]), dtype=np.int64)
    if nodes > len(room.state.nodes):
        new["state"] = room.state._replace(nodes=larger(room.state.nodes, nodes, 0))
    return room._replace(**new)


def with_spaces(room: tables.Room, table: BlockTable | None, n_more: int) -> BlockTable | None:
    """Return a plan of named nodes that is large enough for the next plan."""
    if table is None:
        return None
    spaces = spaces_of(table)
    needed = table_needed(readable(room.state), table, n_more)
    if all(n >= least for n, least in zip(spaces, needed, strict=True)):
        return table
    return larger_table(
        table,
        *(n if n >= least else _longer(n, least) for n, least in zip(spaces, needed, strict=True)),
    )
