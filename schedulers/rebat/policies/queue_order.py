# SPDX-License-Identifier: Apache-2.0
"""Queue orders: functions that return the sort key of an attempt. The smallest key is first.

The last part of a key is unique. Every order puts failed jobs first, then victims, then other jobs.
Therefore, each reaction works with each order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from rebat.core.attempts import Attempt, job_name
from rebat.policies.own import Rule, numbers
from rebat.policies.priority_rules import PRIORITY_RULES, priority_rule

Key = tuple[Any, ...]
QueueOrder = Callable[[Attempt], Key]

LONGEST_US = 2**60
"""Maximum walltime in plans (microseconds), so that a time plus a walltime never overflows."""


def planned_us(attempt: Attempt, margin_us: int = 0) -> int:
    """Return the planned duration of an attempt, at least one microsecond."""
    return max(1, min(attempt.walltime_us + margin_us, LONGEST_US))


def fcfs(attempt: Attempt) -> Key:
    """Order by entry into the queue: first come, first served."""
    return (-attempt.priority, attempt.queued_us, attempt.serial)


def program_id(attempt: Attempt) -> str:
    """Return the id of an attempt in the node-stealing authors' program.

    The program compares ids as text. A resubmission is therefore before any original job, and the
    tenth resubmission is before the second.

    >>> program_id(Attempt("w0!7#2", "w0!7", 9, 1, 2, 4, 100, 5, 70))
    'resubmit!7-2'
    """
    if attempt.number == 0:
        return attempt.id
    return f"resubmit!{job_name(attempt.job_id)}-{attempt.number}"


def fcfs_by_id(attempt: Attempt) -> Key:
    """Order by entry into the queue.

    Attempts with equal times are ordered by `program_id`, as text.
    """
    return (-attempt.priority, attempt.queued_us, program_id(attempt))


def shortest_first(attempt: Attempt) -> Key:
    """Order by walltime, shortest first."""
    return (-attempt.priority, attempt.walltime_us, attempt.serial)


def largest_first(attempt: Attempt) -> Key:
    """Order by number of nodes, largest first."""
    return (-attempt.priority, -attempt.n_nodes, attempt.serial)


def smallest_first(attempt: Attempt) -> Key:
    """Order by number of nodes, smallest first."""
    return (-attempt.priority, attempt.n_nodes, attempt.serial)


def priority_class_first(attempt: Attempt) -> Key:
    """Order by the job's priority class, highest first.

    Within a class: first come, first served.
    """
    return (-attempt.priority, -attempt.priority_class, attempt.queued_us, attempt.serial)


class RuleOrder(msgspec.Struct, frozen=True):
    """A priority rule of Benoit et al. (RR-9296, sections 4.2.1 and 5.1) as a queue order.

    The time in the rule is the planned duration. Ties are broken by job index. A job that returns
    to the queue after an error has the same key as before.

    Attributes
    ----------
    rule : str
        A key of PRIORITY_RULES.
    n_nodes, margin_us, seed : int
        See ``bound``.
    """

    rule: str
    n_nodes: int = 0
    margin_us: int = 0
    seed: int = 0

    def __call__(self, attempt: Attempt) -> Key:
        """Return priority, key of the rule, job index and serial."""
        time, index = planned_us(attempt, self.margin_us), attempt.job_serial - 1
        key = priority_rule(self.rule)(time, attempt.n_nodes, index, self.n_nodes, self.seed)
        return (-attempt.priority, int(key), index, attempt.serial)


def bound(order: QueueOrder, n_nodes: int, margin_us: int, seed: int) -> QueueOrder:
    """Return the order with its parameters: machine size (for LJF), margin, seed (for RANDOM)."""
    if isinstance(order, RuleOrder):
        return RuleOrder(order.rule, n_nodes, margin_us, seed)
    return order


class OwnOrder(msgspec.Struct, frozen=True):
    """A user-defined queue order: a function of an attempt.

    The attempt with the smallest number is first.
    """

    rule: Rule

    def __call__(self, attempt: Attempt) -> Key:
        """Return the priority, then the numbers that the function returns."""
        return (-attempt.priority, *numbers(self.rule, self.rule(attempt)), attempt.serial)


QUEUE_ORDERS: dict[str, QueueOrder] = {
    "fcfs": fcfs,
    "fcfs-by-id": fcfs_by_id,
    "shortest": shortest_first,
    "largest": largest_first,
    "smallest": smallest_first,
    "priority": priority_class_first,
    **{rule.lower(): RuleOrder(rule) for rule in PRIORITY_RULES},
}
