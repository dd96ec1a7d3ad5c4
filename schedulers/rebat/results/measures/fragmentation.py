# SPDX-License-Identifier: Apache-2.0
"""Nodes that are free and of no use: what boxes, and units in a line, cost a machine.

The head of the queue is its first attempt in the default order: highest priority, then entry.
While it asks for no more nodes than are up and run nothing, only their places can keep it waiting
(or reservations of others, where the plan has some): the machine is *blocked*.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.units import US_PER_S
from rebat.models.units import Allotment
from rebat.results.measures.platform import Window, column, free_steps
from rebat.session.ledger import AttemptRecord, Ledger

Ints = npt.NDArray[np.int64]

Head = tuple[Ints, Ints, Ints]
"""Attempts one after the other: from when on each is the first, until when, nodes asked for."""


class Fragmentation(msgspec.Struct, frozen=True):
    """How well the nodes of a window could be used.

    ``blocked_share`` is the share of time during which the head of the queue waited though it asked
    for no more nodes than were free; ``blocked_free_nodes`` the mean number of nodes free then (0:
    never blocked), ``blocked`` their node-seconds. ``box_waste`` are the node-seconds of the nodes
    that attempts held beyond what they asked for; they are idle.
    """

    blocked_share: float
    blocked_free_nodes: float
    blocked: float
    box_waste: float


def fragmentation(
    ledger: Ledger, n_nodes: int, window: Window, allotted: Allotment | None = None
) -> Fragmentation:
    """Measure a window of a run.

    Parameters
    ----------
    ledger : Ledger
    n_nodes : int
        Of the machine.
    window : Window
    allotted : Allotment, optional
        How many nodes attempts get that ask for so many (default: as many).
    """
    first, last = window
    at, free = free_steps(ledger, n_nodes)
    heads = list(_heads(ledger))
    dates = np.unique(np.concatenate([at, *(d for head in heads for d in head[:2]), [first, last]]))
    dates = dates[(first <= dates) & (dates < last)]
    lengths = np.diff(np.append(dates, last))
    unused = free[np.searchsorted(at, dates, "right") - 1]
    wanted = _wanted(dates, heads)
    blocked = np.where((wanted > 0) & (wanted <= unused), lengths, 0)
    blocked_us, node_us = int(blocked.sum()), int((blocked * unused).sum())
    return Fragmentation(
        blocked_share=blocked_us / (last - first) if last > first else 0.0,
        blocked_free_nodes=node_us / blocked_us if blocked_us else 0.0,
        blocked=node_us / US_PER_S,
        box_waste=_box_waste_us(ledger.attempts, window, allotted) / US_PER_S,
    )


def _heads(ledger: Ledger) -> Iterator[Head]:
    """For each priority, the highest first, when which attempt is the first of it.

    The first to come is, until it starts; the next one from then on, if it still waits.
    """
    waited = [r for r in ledger.attempts if r.start_us > r.attempt.queued_us]
    names = ("attempt.priority", "attempt.queued_us", "attempt.serial", "start_us")
    priority, queued_at, serial, started = (column(waited, name) for name in names)
    order = np.lexsort((serial, queued_at, -priority))
    table = np.stack([queued_at, started, column(waited, "attempt.n_nodes")])[:, order]
    for group in np.split(table, np.flatnonzero(np.diff(priority[order])) + 1, axis=1):
        queued, start, asked = group
        before = np.maximum.accumulate(np.append(np.zeros(1, dtype=np.int64), start[:-1]))
        since = np.maximum(queued, before[: len(start)])
        leads = since < start
        yield since[leads], start[leads], asked[leads]


def _wanted(dates: Ints, heads: Iterable[Head]) -> Ints:
    """What the head of the queue asks for at each date; 0: nothing waits."""
    wanted = np.zeros(len(dates), dtype=np.int64)
    for since, until, asked in heads:
        place = np.searchsorted(since, dates, "right") - 1
        leads = (place >= 0) & (wanted == 0)
        leads[leads] = dates[leads] < until[place[leads]]
        wanted[leads] = asked[place[leads]]
    return wanted


def _box_waste_us(
    attempts: Sequence[AttemptRecord], window: Window, allotted: Allotment | None
) -> int:
    if allotted is None:
        return 0
    ran = [(r.attempt.n_nodes, r.start_us, r.end_us) for r in attempts if r.start_us >= 0]
    asked, start, end = np.array(ran, dtype=np.int64).reshape(-1, 3).T
    lengths = np.maximum(np.minimum(end, window[1]) - np.maximum(start, window[0]), 0)
    sizes, which = np.unique(asked, return_inverse=True)
    spare = np.array([allotted(size) - size for size in sizes.tolist()], dtype=np.int64)
    return int((spare[which] * lengths).sum()) if ran else 0
