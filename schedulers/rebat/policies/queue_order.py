# SPDX-License-Identifier: Apache-2.0
"""Queue orders: functions that return the sort key of an attempt. The smallest key is first.

The last part of a key is unique. Every order puts failed jobs first, then victims, then other jobs.
Therefore, each reaction works with each order.

Priority rules of R-LIST and R-SHELF: a table of key functions.

Sections 4.2.1 (LJF) and 5.1 (other rules) of Benoit, Le Fèvre, Raghavan, Robert and Sun, Inria
RR-9296, 2020. The job with the smallest key is first. Ties are broken by job index. A key function
accepts scalars (for a scheduler, which ranks one job) or arrays (for a kernel, which ranks all
jobs).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rebat.contract import View
from rebat.core.attempts import Attempt, job_name
from rebat.core.durations import stream
from rebat.core.errors import InputError, unknown_name
from rebat.core.units import to_s
from rebat.models.formula import COLUMNS, NAMED, Floats, formula_of, is_formula
from rebat.policies.own import Rule, numbers

PriorityRule = Callable[[Any, Any, Any, int, int], Any]
"""Function that returns a sort key.

Arguments: time, size and job index (scalars or arrays), number of processors P, and seed.
"""


def longest_time(time: Any, size: Any, job: Any, n_procs: int, seed: int) -> Any:
    """LPT: longest processing time first."""
    return -time


def shortest_time(time: Any, size: Any, job: Any, n_procs: int, seed: int) -> Any:
    """SPT: shortest processing time first."""
    return time


def highest_allocation(time: Any, size: Any, job: Any, n_procs: int, seed: int) -> Any:
    """HPA: most processors first."""
    return -size


def lowest_allocation(time: Any, size: Any, job: Any, n_procs: int, seed: int) -> Any:
    """LPA: fewest processors first."""
    return size


def largest_area(time: Any, size: Any, job: Any, n_procs: int, seed: int) -> Any:
    """LA: largest area first."""
    return -(time * size)


def smallest_area(time: Any, size: Any, job: Any, n_procs: int, seed: int) -> Any:
    """SA: smallest area first."""
    return time * size


def random_order(time: Any, size: Any, job: Any, n_procs: int, seed: int) -> Any:
    """RANDOM: a random number.

    The number depends only on seed and job index, so a job keeps its place. It is the output with
    this index of the generator SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), shifted into the
    range of int64. A named stream draws the start of the generator.
    """
    first = stream(seed, "priority-rule", "RANDOM").integers(1 << 63, dtype=np.uint64)
    with np.errstate(over="ignore"):  # arithmetic modulo 2**64
        z = (np.asarray(job, np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + first
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(1)).astype(np.int64)[()]


def large_first(time: Any, size: Any, job: Any, n_procs: int, seed: int) -> Any:
    """LJF: jobs of at least (P + 1) / 2 processors first, by decreasing allocation.

    The paper does not define the order of small jobs. Here they are ordered by job index.
    """
    return -size * (2 * size >= n_procs + 1)


PRIORITY_RULES: dict[str, PriorityRule] = {
    "LPT": longest_time,
    "SPT": shortest_time,
    "HPA": highest_allocation,
    "LPA": lowest_allocation,
    "LA": largest_area,
    "SA": smallest_area,
    "RANDOM": random_order,
    "LJF": large_first,
}


def priority_rule(name: str) -> Rule:
    """Return the rule with this name, in upper or lower case."""
    rule = PRIORITY_RULES.get(name.upper())
    if rule is None:
        raise unknown_name("priority rule", name, PRIORITY_RULES)
    return rule


def ranks(
    name: str, times: ArrayLike, sizes: ArrayLike, *, n_procs: int, seed: int = 0
) -> NDArray[np.int64]:
    """Return the position of each job in the queue, counted from 0, as the `rank` of `makespans`.

    Parameters
    ----------
    name : str
        A key of `PRIORITY_RULES`.
    times, sizes : int array, shape (n,)
        Times (in any unit) and processors of the jobs. Their products must fit in 64 bits.
    n_procs : int
        Number of processors P of the machine. Only LJF uses it.
    seed : int
        Seed of the rule RANDOM.

    Returns
    -------
    int array, shape (n,)

    Examples
    --------
    >>> ranks("LPT", [3, 9, 3], [1, 1, 1], n_procs=4).tolist()
    [1, 0, 2]
    """
    t, p = np.asarray(times, np.int64), np.asarray(sizes, np.int64)
    if float(np.max(t, initial=1)) * float(np.max(p, initial=1)) >= 2.0**62:
        raise InputError("areas do not fit in 64 bits", expected="times in a coarser unit")
    keys = priority_rule(name)(t, p, np.arange(t.size), n_procs, seed)
    order = np.argsort(keys, kind="stable")
    rank = np.empty(t.size, np.int64)
    rank[order] = np.arange(t.size)
    return rank


Key = tuple[Any, ...]
QueueOrder = Callable[[Attempt], Key]

LONGEST_US = 2**60
"""Maximum walltime in plans (microseconds), so that a time plus a walltime never overflows."""


def planned_us(length_us: int, margin_us: int = 0) -> int:
    """Return the planned duration of a walltime or a prediction, at least one microsecond."""
    return max(1, min(length_us + margin_us, LONGEST_US))


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
        time, index = planned_us(attempt.walltime_us, self.margin_us), attempt.job_serial - 1
        key = priority_rule(self.rule)(time, attempt.n_nodes, index, self.n_nodes, self.seed)
        return (-attempt.priority, int(key), index, attempt.serial)

    def bound(self, view: View, margin_us: int, seed: int, n_nodes: int) -> RuleOrder:
        """See `bound`."""
        return RuleOrder(self.rule, n_nodes, margin_us, seed)


def at_its_place(attempt: Attempt) -> Attempt:
    """Return the attempt with the queue time and the serial of the first attempt of its job."""
    return msgspec.structs.replace(attempt, queued_us=attempt.submit_us, serial=attempt.job_serial)


def bound(
    order: QueueOrder, view: View, margin_us: int, seed: int, n_nodes: int | None = None
) -> QueueOrder:
    """Return the order with its parameters, if it has any.

    The parameters are the view (for formulas), the size of the machine or of a part of it (for
    LJF), the margin, and the seed (for RANDOM).
    """
    bind = getattr(order, "bound", None)
    if bind is None:
        return order
    result: QueueOrder = bind(view, margin_us, seed, view.n_nodes if n_nodes is None else n_nodes)
    return result


class FormulaOrder(msgspec.Struct, frozen=True, eq=False):
    """A queue order by formula (`rebat.models.formula`). The largest value is first.

    Attempts with equal values are ordered by their entry into the queue.

    Attributes
    ----------
    text : str
        The formula, or its name.
    view : View, optional
        See ``bound``.
    """

    text: str
    view: View | None = None

    def __call__(self, attempt: Attempt) -> Key:
        """Return priority, value of the formula, and entry into the queue."""
        value = float(formula_of(self.text).values(self._columns(attempt))[0])
        return (-attempt.priority, -value, attempt.queued_us, attempt.serial)

    def _columns(self, attempt: Attempt) -> Floats:
        """Return the columns that the formula uses, shape (1, columns). Other columns are 0."""
        view = self.view
        assert view is not None
        shares = view._by_rules.shares
        now_us, used = view.now_us, formula_of(self.text).columns
        columns: dict[str, Callable[[Attempt], float]] = {
            "age": lambda a: to_s(now_us - a.queued_us),
            "size": lambda a: a.n_nodes,
            "walltime": lambda a: to_s(planned_us(a.walltime_us)),
            "expansion": lambda a: 1 + (now_us - a.queued_us) / planned_us(a.walltime_us),
            "class": lambda a: a.priority_class,
            "submitted": lambda a: max(1.0, to_s(a.submit_us)),
            "nodes": lambda a: view.n_machine,
            "partition": lambda a: 1.0,
            "usage": lambda a: shares.usage_s(view.job(a.job_id).traits, now_us),
            "fairshare": lambda a: shares.factor(view.job(a.job_id).traits, now_us),
        }
        row = [columns[name](attempt) if name in used else 0.0 for name in COLUMNS]
        return np.array([row], dtype=np.float64)

    def bound(self, view: View, margin_us: int, seed: int, n_nodes: int) -> FormulaOrder:
        """See `bound`."""
        return msgspec.structs.replace(self, view=view)


def check_order(text: str) -> None:
    """Raise InputError if a text is neither the name of an order nor a formula."""
    if text not in QUEUE_ORDERS:
        if not is_formula(text):
            raise unknown_name("order", text, [*QUEUE_ORDERS, *NAMED, "a formula"])
        formula_of(text)


def order_of(text: str) -> QueueOrder:
    """Return a queue order by its name or formula."""
    return QUEUE_ORDERS[text] if text in QUEUE_ORDERS else FormulaOrder(text)


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
