# SPDX-License-Identifier: Apache-2.0
"""Node time: step functions of time, and attempts that run on the same nodes.

In accounting records, attempts can share nodes. If k attempts run on a node at the same time, each
attempt counts 1/k of the node's time. Every node-second therefore counts once. Simulated attempts
never share nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.core.arrays import Ints
from rebat.core.table import Ragged
from rebat.kernels import shared_nodes
from rebat.state.ledger import Ledger

Steps = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Times (distinct, ascending, in microseconds) and values. A value is valid from its time on."""


def steps_of(times_us: npt.NDArray[np.int64], changes: npt.NDArray[np.int64]) -> Steps:
    """Return the sum of all changes up to each time. Changes at the same time form one step.

    >>> times, numbers = steps_of(np.array([5, 0, 5]), np.array([2, 1, -1]))
    >>> times.tolist(), numbers.tolist()
    ([0, 5], [1, 2])
    """
    order = np.argsort(times_us, kind="stable")  # fast if the times consist of sorted parts
    steps, sums = times_us[order], np.cumsum(changes[order])
    last = np.flatnonzero(np.append(steps[1:], steps[-1:] + 1) != steps)
    return steps[last], sums[last]


def lengths_within(times_us: npt.NDArray[np.int64], window: tuple[int, int]) -> Any:
    """Return how long the value of each step is valid within a window, in microseconds."""
    edges = np.concatenate([times_us, window[1:]])
    np.minimum(np.maximum(edges, window[0], out=edges), window[1], out=edges)
    return edges[1:] - edges[:-1]


def from_to(
    starts_us: npt.NDArray[np.int64],
    ends_us: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64] | None = None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return at which times the number of intervals that contain the time changes, and by how much.

    If ``sizes`` is set, return the changes of the sum of the sizes of these intervals.
    """
    by = np.ones(len(starts_us), dtype=np.int64) if sizes is None else sizes
    return np.concatenate([starts_us, ends_us]), np.concatenate([by, -by])


class NodeIntervals(NamedTuple):
    """Intervals of time (us) as arrays, and the nodes of each."""

    start_us: Ints
    end_us: Ints
    nodes: Ragged


Widths = npt.NDArray[np.int64] | npt.NDArray[np.float64]
"""The number of nodes of each attempt. If no attempts share nodes, the numbers are integers."""


def node_us(*parts: tuple[Sequence[Ints], Widths]) -> list[float]:
    """Return the node-microseconds of all attempts, for each of k uses: sums of time times nodes.

    Each part has the times of the attempts (us) for each use, and their numbers of nodes in this
    part. Sums of integers are exact and may exceed 64 bits. Fractions are added in the order of the
    attempts.
    """
    if all(width.dtype.kind == "i" for _, width in parts):
        return [*map(sum, zip(*(dots(*part) for part in parts), strict=True))]
    products = zip(*([time_us * width for time_us in times] for times, width in parts), strict=True)
    return [float(np.cumsum(sum(each))[-1]) if len(parts[0][1]) else 0.0 for each in products]


def dot(values: Ints, others: Ints) -> int:
    """Return the sum of products of integers, which may exceed 64 bits."""
    return dots([values], others)[0]


def dots(rows: Sequence[Ints], others: npt.NDArray[Any]) -> list[int]:
    """Return `dot` for each row."""
    n = len(others)
    if n <= _CHUNK:
        table = np.array(rows)
        if (np.abs(table) @ np.abs(others).astype(np.float64)).max(initial=0) < 2.0**62:
            sums: list[int] = (table @ others).tolist()
            return sums
        if n == 1:
            return [int(row[0]) * int(others[0]) for row in rows]
    halves = slice(n // 2), slice(n // 2, n)
    sums_of_halves = (dots([row[half] for row in rows], others[half]) for half in halves)
    return [*map(sum, zip(*sums_of_halves, strict=True))]


_CHUNK = 2**16
"""Number of values that are multiplied in one step, to save memory."""


def widths(ledger: Ledger, window: tuple[int, int]) -> Widths:
    """Return the number of nodes of each attempt, averaged over its time in a window.

    If an attempt shares nodes, this number is smaller than the size of the attempt.
    """
    sizes = ledger.attempts.column("n_nodes")
    if not ledger.shared:
        return sizes
    holds = holds_of_attempts(ledger)
    start_us, end_us = np.clip([holds.start_us, holds.end_us], *window)
    lasts_us = end_us - start_us
    shares = node_times(NodeIntervals(start_us, end_us, holds.nodes)) / np.maximum(lasts_us, 1)
    return np.where(lasts_us > 0, shares, sizes)


def sharing(ledger: Ledger) -> npt.NDArray[np.bool_]:
    """Return for each attempt whether another attempt uses one of its nodes at the same time."""
    holds, sizes = holds_of_attempts(ledger), ledger.attempts.column("n_nodes")
    are_fewer: npt.NDArray[np.bool_] = node_times(holds) < (holds.end_us - holds.start_us) * sizes
    return are_fewer


def holds_of_attempts(ledger: Ledger) -> NodeIntervals:
    """Return the nodes and times of all attempts. Attempts that never ran have empty intervals."""
    attempts = ledger.attempts
    start_us, nodes = attempts.column("start_us"), attempts.nodes()
    return NodeIntervals(
        start_us, np.where(start_us >= 0, attempts.column("end_us"), start_us), nodes
    )


def node_times(holds: NodeIntervals) -> npt.NDArray[np.float64]:
    """Return the node-microseconds of each interval. Overlapping intervals share a node's time."""
    at_us, begins, which = _steps(holds)
    nodes, n_nodes = holds.nodes, int(holds.nodes.intervals.max(initial=-1)) + 1
    times_us: npt.NDArray[np.float64] = shared_nodes.node_times(
        *nodes, at_us, begins, which, n_nodes
    )
    return times_us


def repeats(holds: NodeIntervals) -> tuple[Ints, Ints]:
    """Return times and changes of the number of surplus nodes in a sum over intervals.

    In the sum, a node that k intervals contain at the same time counts k - 1 times too often.
    """
    at_us, begins, which = _steps(holds)
    nodes, n_nodes = holds.nodes, int(holds.nodes.intervals.max(initial=-1)) + 1
    changes = shared_nodes.surplus(*nodes, begins, which, n_nodes)
    return at_us[changes != 0], changes[changes != 0]


def repeated_us(ledger: Ledger) -> int:
    """Return by how much a sum over attempts exceeds the time of the nodes (node-microseconds)."""
    if not ledger.shared:
        return 0
    times_us, changes = repeats(holds_of_attempts(ledger))
    return -int((times_us * changes).sum())


def _steps(holds: NodeIntervals) -> tuple[Ints, npt.NDArray[np.bool_], Ints]:
    """Return times, whether an interval begins, and its index, sorted by time with ends first."""
    which = np.flatnonzero(holds.start_us < holds.end_us)
    at_us = np.concatenate([holds.start_us[which], holds.end_us[which]]).astype(np.int64)
    begins = np.repeat([True, False], len(which))
    which = np.concatenate([which, which])
    order = np.lexsort((which, begins, at_us))
    return at_us[order], begins[order], which[order]
