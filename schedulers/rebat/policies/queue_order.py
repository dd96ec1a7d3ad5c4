"""Queue orders: one key function each; the smallest key is served first, the last key is unique.

Every order puts higher priorities first (failed, then victim, then regular), so that recovery
rules combine with all of them.
"""

from __future__ import annotations

from collections.abc import Callable

from rebat.core.attempts import Attempt

Key = tuple[float, ...]
QueueOrder = Callable[[Attempt], Key]


def fcfs(attempt: Attempt) -> Key:
    """First come, first served: by entry into the queue."""
    return (-attempt.priority, attempt.queued_us, attempt.serial)


def shortest_first(attempt: Attempt) -> Key:
    """Shortest walltime first."""
    return (-attempt.priority, attempt.walltime_us, attempt.serial)


def largest_first(attempt: Attempt) -> Key:
    """Most nodes first."""
    return (-attempt.priority, -attempt.n_nodes, attempt.serial)


def smallest_first(attempt: Attempt) -> Key:
    """Fewest nodes first."""
    return (-attempt.priority, attempt.n_nodes, attempt.serial)


QUEUE_ORDERS: dict[str, QueueOrder] = {
    "fcfs": fcfs,
    "shortest": shortest_first,
    "largest": largest_first,
    "smallest": smallest_first,
}
