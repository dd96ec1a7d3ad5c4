# SPDX-License-Identifier: Apache-2.0
"""The result of a reader: a record with its time 0 and the counts of used and dropped lines."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.core.node_events import Outages
from rebat.core.units import FOREVER_US, US_PER_S
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.outages import events_of_outages
from rebat.records.clock import Floats
from rebat.records.hosts import expanded
from rebat.records.table import Rows


class Record(msgspec.Struct, frozen=True, eq=False):
    """The failures of a machine, read from a file.

    Parameters
    ----------
    events : list of MachineEvent
        Overlapping or adjacent outages of a node are joined. Failures at the same time are one
        event.
    taken : Counter
        Number of used lines for each kind of part that fails.
    dropped : Counter
        Number of dropped lines for each reason.
    n_outages : int
        Number of outages of single nodes in the file.
    n_joined : int
        Number of outages in the file that were joined with another outage.
    origin : datetime, optional
        Time 0 of the events, or None if the times in the file are seconds.
    n_nodes : int, optional
        Size of the machine, if the file states it.
    names : tuple of str
        Names of nodes 0, 1, ... in the file. There are no names if nodes are numbers in the file.
    sources : Counter
        Number of outages (after joining) for each combination of records that contain them. The
        counter is empty if there is only one record.
    notes : tuple of str
        Findings about the record, see `rebat.records.judge`.
    """

    events: list[MachineEvent]
    taken: Counter[str]
    dropped: Counter[str]
    n_outages: int
    n_joined: int
    origin: datetime | None = None
    n_nodes: int | None = None
    names: tuple[str, ...] = ()
    sources: Counter[str] = msgspec.field(default_factory=Counter)
    notes: tuple[str, ...] = ()

    @property
    def n_lines(self) -> int:
        """Number of lines read."""
        return self.taken.total() + self.dropped.total()


class Lines:
    """Counts of the used and the dropped lines of a file."""

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.notes: list[str] = []

    def without_failures(self, where: str, expected: str) -> InputError:
        """Return the error for a file without used lines. It states the dropped lines."""
        dropped = "; ".join(f"{n} {reason}" for reason, n in sorted(self.dropped.items()) if n)
        problem = "contains no failures" + (f" (dropped: {dropped})" if dropped else "")
        return InputError(problem, where, expected)

    def record(
        self,
        outages: Outages,
        origin: datetime | None = None,
        n_nodes: int | None = None,
        names: tuple[str, ...] = (),
    ) -> Record:
        """Return the record of all outages that were read."""
        joined = outages.joined()
        return Record(
            events_of_outages(joined),
            self.taken,
            self.dropped,
            len(outages.node),
            len(outages.node) - len(joined.node),
            origin,
            n_nodes,
            names,
            notes=tuple(self.notes),
        )


def record_of(
    rows: Rows,
    nodes: Sequence[Sequence[int]] | None = None,
    shortest_us: int = 0,
) -> Record:
    """Return the record of outages that a reader returned.

    Parameters
    ----------
    rows : Rows
        ``down`` and ``up`` in seconds; the facts ``zero_s`` (time 0), ``zone``, ``n_nodes`` and
        ``names`` are optional. ``kind`` contains the part that fails (default: a node).
    nodes : sequence of sequences of int, optional
        Nodes of each outage. By default, they are in the column ``node``, or named in ``hosts``.
    shortest_us : int
        Minimum duration of an outage.
    """
    lines, facts = Lines(), rows.facts
    lines.dropped += rows.problems.reasons() + rows.dropped
    if not len(rows):
        raise lines.without_failures(rows.where, "an outage of a node per row")
    lines.taken.update(rows.text("kind").tolist() if "kind" in rows.texts else ["node"] * len(rows))
    if nodes is None:
        nodes = _nodes(rows)
    zero_s = float(facts.get("zero_s", 0.0))
    down_us, up_us = (_times_us(rows.column(name), zero_s) for name in ("down", "up"))
    sizes = np.fromiter(map(len, nodes), np.int64, len(nodes))
    node = np.fromiter(itertools.chain.from_iterable(nodes), np.int64, int(sizes.sum()))
    up_us = np.maximum(up_us, down_us + shortest_us)
    outages = Outages(node, np.repeat(down_us, sizes), np.repeat(up_us, sizes))
    origin = None
    if "zero_s" in facts:
        origin = datetime.fromtimestamp(zero_s, facts.get("zone", UTC)).replace(tzinfo=None)
    names = facts.get("names", ())
    return lines.record(outages, origin, facts.get("n_nodes") or len(names) or None, names)


def _nodes(rows: Rows) -> list[list[int]]:
    if "node" in rows.numbers:
        return [[int(node)] for node in rows.column("node").tolist()]
    numbers = {name: number for number, name in enumerate(rows.facts["names"])}
    return [[numbers[name] for name in expanded(text)] for text in rows.text("hosts").tolist()]


def _times_us(times_s: Floats, zero_s: float) -> npt.NDArray[np.int64]:
    """Return times in microseconds after time 0. Infinite times are FOREVER_US."""
    finite = np.isfinite(times_s)
    times_us = np.full(len(times_s), FOREVER_US, dtype=np.int64)
    times_us[finite] = np.rint((times_s[finite] - zero_s) * US_PER_S)
    return times_us
