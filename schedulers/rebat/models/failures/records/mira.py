# SPDX-License-Identifier: Apache-2.0
"""Mira's fatal events as outages of its compute nodes.

The record contains the row and the column of a rack, but not how cables connect the midplanes to a
torus. This module numbers the racks row by row (16 racks per row). It maps midplane M of rack r to
block 2 r + M, and card J of board N of this midplane to member 32 N + J of the block. Outages keep
their size, and an outage of a midplane is in a single block. The neighbours of a midplane in rebat
follow from this numbering. They differ from its neighbours on the real torus of Mira.
"""

from __future__ import annotations

import heapq
from datetime import UTC
from functools import cache
from pathlib import Path

import msgspec
import numpy as np

from rebat.core.errors import InputError
from rebat.core.node_events import Outages
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.models.boxes import MIDPLANES, Ints, TorusBlocks
from rebat.models.failures.law import Outage, check_span, events_of
from rebat.models.failures.outages import events_of_outages, merged_events, outages_of
from rebat.models.failures.records.record import Record, record_of
from rebat.models.topology import MIRA
from rebat.records.clock import Floats, midnight_s
from rebat.records.mira_ras import COMPUTE, PARTS, read_mira_ras, read_periods
from rebat.records.options import Maintained
from rebat.records.outages import drop, only

BOARD = 32
"""Number of compute cards on a node board. A card is a node."""

_BLOCKS = TorusBlocks(MIRA, MIDPLANES[MIRA])


def mira_record(
    path: Path,
    downtime_s: float = 3600.0,
    maintenance: Path | None = None,
    maintained: Maintained = "leave-out",
    strict: bool = False,
) -> Record:
    """Read fatal events of Mira's compute nodes. Time 0 is midnight of the day of the first event.

    An event of a card takes down a node. An event of a node board takes down 32 nodes, an event of
    a midplane 512 nodes, and an event of a rack 1,024 nodes. An event of a component (a link chip,
    a service card, a coolant monitor) takes down the part of the machine to which the component
    belongs. Events of I/O drawers and events without a location affect no compute node and are
    dropped. Overlapping outages of a node are joined.

    Parameters
    ----------
    path : Path
        The log, see `read_mira_ras`.
    downtime_s : float
        Minimum duration of an outage in seconds. The record contains the times of the first and the
        last message of an event, which are usually equal. It contains no repairs, so the real
        downtimes are unknown.
    maintenance : Path, optional
        Maintenance periods, see `read_periods`.
    maintained : {'leave-out', 'down'}
        How to treat maintenance. 'leave-out': the machine is up, and events that begin during
        maintenance are dropped, because they affected no job. 'down': the entire machine is down
        during maintenance, as after a failure.
    strict : bool
        Whether the first invalid event is an error.
    """
    check_span(downtime_s, "downtime")
    rows = read_mira_ras(path, strict)
    zero_s = midnight_s(float(rows.column("down").min()), UTC) if len(rows) else 0.0
    rows = only(rows, "kind", PARTS)
    periods = np.empty((0, 2)) if maintenance is None else joined_periods(maintenance)
    if maintained == "leave-out":
        rows = drop(rows, within(rows.column("down"), periods), "during maintenance")
    if not len(rows):
        problem = "contains no failure of a compute node"
        raise InputError(problem, str(path), "an event in a rack (R..)")
    rows.facts |= {"zero_s": zero_s, "n_nodes": MIRA.n_nodes}
    record = record_of(
        rows, [_nodes(location).tolist() for location in rows.text("location")], to_us(downtime_s)
    )
    if maintained == "leave-out" or not len(periods):
        return record
    return _maintained(record, [(to_us(a), to_us(b)) for a, b in (periods - zero_s).tolist()])


def joined_periods(path: Path) -> Floats:
    """Return the begin and the end of each period, sorted by time, in seconds since 1970.

    Overlapping or adjacent periods are joined.
    """
    rows = read_periods(path)
    times = (np.rint(rows.column(name) * 1e6).astype(np.int64) for name in ("down", "up"))
    _, down_us, up_us = Outages(np.zeros(len(rows), dtype=np.int64), *times).joined()
    return np.stack([down_us, up_us], axis=1) / 1e6


def within(times_s: Floats, periods: Floats) -> np.ndarray:
    """Return whether each time is in one of the periods, whose ends are not part of them."""
    if not len(periods):
        return np.zeros(len(times_s), dtype=np.bool_)
    place = np.searchsorted(periods[:, 0], times_s, side="right") - 1
    inside: np.ndarray = (place >= 0) & (times_s < periods[place, 1])
    return inside


def _maintained(record: Record, periods: list[tuple[int, int]]) -> Record:
    """Return the record with the entire machine down in all periods (us), from time 0 on.

    For speed, only nodes whose outages overlap a period are processed one by one.
    """
    outages = outages_of(record.events)
    down: list[Outage] = []
    parts = [outages]
    for at_us, until_us in ((max(down_us, 0), up_us) for down_us, up_us in periods if up_us > 0):
        hit = (outages.down_us <= until_us) & (outages.up_us >= at_us)
        overlapping = np.unique(outages.node[hit])
        parts.append(
            Outages(overlapping, *(np.full(len(overlapping), at) for at in (at_us, until_us)))
        )
        others = np.setdiff1d(np.arange(MIRA.n_nodes), overlapping)
        down.append(Outage(at_us, until_us, NodeSet.of_sorted(others)))
    every = Outages(*map(np.concatenate, zip(*parts, strict=True)))
    joined = every.joined()
    events = heapq.merge(
        events_of_outages(joined), events_of(down), key=lambda e: (e.at_us, not e.available)
    )
    record.taken["maintenance"] += len(down)
    return msgspec.structs.replace(
        record,
        events=list(merged_events(events)),
        n_joined=record.n_joined + len(every.node) - len(joined.node),
    )


@cache
def _nodes(location: str) -> Ints:
    """Return the nodes of the part of the machine at a location."""
    match = COMPUTE.match(location)
    assert match is not None
    first = 2 * int(match["rack"], 16)
    if match["midplane"] is None:
        return np.sort(_BLOCKS.members[first : first + 2].ravel())
    members: Ints = _BLOCKS.members[first + int(match["midplane"])]
    if match["board"] is not None:
        members = members[int(match["board"]) * BOARD :][:BOARD]
    if match["card"] is not None:
        members = members[int(match["card"]) :][:1]
    return members
