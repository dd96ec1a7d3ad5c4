# SPDX-License-Identifier: Apache-2.0
"""Priority rules of R-LIST and R-SHELF: a table of key functions.

Sections 4.2.1 (LJF) and 5.1 (other rules) of Benoit, Le Fèvre, Raghavan, Robert and Sun, Inria
RR-9296, 2020. The job with the smallest key is first. Ties are broken by job index. A key function
accepts scalars (for a scheduler, which ranks one job) or arrays (for a kernel, which ranks all
jobs).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rebat.core.errors import InputError, unknown_name
from rebat.core.streams import stream

Rule = Callable[[Any, Any, Any, int, int], Any]
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


PRIORITY_RULES: dict[str, Rule] = {
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
