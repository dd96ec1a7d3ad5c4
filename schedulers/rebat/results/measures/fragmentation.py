# SPDX-License-Identifier: Apache-2.0
"""Fragmentation: free nodes are unusable because jobs need a box or a line of nodes.

The head of the queue is the attempt that comes first in the default order: by priority, then by
time of entry into the queue. The machine is *blocked* while the head waits although enough nodes
are free. There are two possible reasons: the positions of the free nodes, or a reservation of
another job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.table import Table
from rebat.core.units import US_PER_S
from rebat.models.boxes import Allotment
from rebat.results.measures.platform import Window, free_steps
from rebat.results.measures.steps import Steps, lengths_within
from rebat.session.ledger import AttemptRecord, Ledger

Ints = npt.NDArray[np.int64]

Head = tuple[Ints, Ints, Ints]
"""Attempts at the head of the queue, as three arrays.

Each array has an entry per attempt: when the attempt becomes the head, when it stops being the head
(times in microseconds), and how many nodes it requests.
"""


class Fragmentation(msgspec.Struct, frozen=True):
    """Fragmentation of the nodes in a window.

    Attributes
    ----------
    blocked_share
        Share of the time in which the head of the queue waits although enough nodes are free.
    blocked_free_nodes
        Mean number of free nodes while the head is blocked, or 0 if the head is never blocked.
    blocked
        Node-seconds of free nodes while the head is blocked.
    box_waste
        Node-seconds of nodes that attempts hold but did not request. They count as idle.
    """

    blocked_share: float
    blocked_free_nodes: float
    blocked: float
    box_waste: float


def fragmentation(
    ledger: Ledger,
    n_nodes: int,
    window: Window,
    allotted: Allotment | None = None,
    free: Steps | None = None,
) -> Fragmentation:
    """Return the fragmentation in a window of a run.

    Parameters
    ----------
    n_nodes : int
        Number of nodes of the machine.
    allotted : Allotment, optional
        Function that maps the requested to the allocated number of nodes (default: both are equal).
    free : Steps, optional
        The result of `free_steps` if it is already computed.
    """
    first, last = window
    at, n_free = free or free_steps(ledger, n_nodes)
    heads = list(_heads(ledger))
    times = np.concatenate([at, *(t for head in heads for t in head[:2]), [first]])
    order = np.argsort(times, kind="stable")  # fast, because the times consist of sorted parts
    times, place = times[order], np.cumsum(order < len(at)) - 1
    of_step = np.flatnonzero(np.append(times[1:] != times[:-1], True))
    lengths = lengths_within(times[of_step], window)
    unused = n_free[place[of_step]]
    wanted = _wanted(heads, len(at), order)[of_step]
    blocked = np.where((wanted > 0) & (wanted <= unused), lengths, 0)
    blocked_us, node_us = int(blocked.sum()), int((blocked * unused).sum())
    return Fragmentation(
        blocked_share=blocked_us / (last - first) if last > first else 0.0,
        blocked_free_nodes=node_us / blocked_us if blocked_us else 0.0,
        blocked=node_us / US_PER_S,
        box_waste=_box_waste_us(ledger.attempts, window, allotted) / US_PER_S,
    )


def _heads(ledger: Ledger) -> Iterator[Head]:
    """Yield the heads of the queue for each priority, starting with the highest priority.

    For each priority, only its attempts are considered. An attempt is the head from the start of
    its predecessor until its own start.
    """
    column = ledger.attempts.column
    waited = np.flatnonzero(column("start_us") > column("queued_us"))
    names = ("priority", "queued_us", "serial", "n_nodes")
    priority, queued_at, serial, size = (column(name)[waited] for name in names)
    order = np.lexsort((serial, queued_at, -priority))
    table, of = np.array([queued_at, column("start_us")[waited], size])[:, order], priority[order]
    bounds = [0, *(np.flatnonzero(of[1:] != of[:-1]) + 1).tolist(), len(order)]
    for begin, end in pairwise(bounds):
        queued, start, requested = table[:, begin:end]
        before = np.maximum.accumulate(np.append(np.zeros(1, dtype=np.int64), start[:-1]))
        since = np.maximum(queued, before[: len(start)])
        leads = since < start
        yield since[leads], start[leads], requested[leads]


def _wanted(heads: Iterable[Head], before: int, order: Ints) -> Ints:
    """Return the number of nodes that the head requests at each time, or 0 if no attempt waits.

    ``order`` sorts the times, which are ``before`` other times and the times of the heads.
    """
    wanted = np.zeros(len(order), dtype=np.int64)
    for since, _, requested in heads:
        changes = np.zeros(len(order), dtype=np.int64)
        changes[before : before + len(since)] = requested
        changes[before + len(since) : before + 2 * len(since)] = -requested
        wanted = np.where(wanted == 0, np.cumsum(changes[order]), wanted)
        before += 2 * len(since)
    return wanted


def _box_waste_us(
    attempts: Table[AttemptRecord], window: Window, allotted: Allotment | None
) -> int:
    if allotted is None:
        return 0
    ran = attempts.column("start_us") >= 0
    names = ("n_nodes", "start_us", "end_us")
    requested, start, end = (attempts.column(name)[ran] for name in names)
    lengths = np.maximum(np.minimum(end, window[1]) - np.maximum(start, window[0]), 0)
    sizes, which = np.unique(requested, return_inverse=True)
    spare = np.array([allotted(size) - size for size in sizes.tolist()], dtype=np.int64)
    return int((spare[which] * lengths).sum())
