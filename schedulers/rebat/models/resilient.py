# SPDX-License-Identifier: Apache-2.0
"""Makespans of R-LIST and R-SHELF for given failure scenarios (Benoit et al., RR-9296).

This module contains the five heuristics of the paper, R-LIST with any reservation depth, and three
interpretations of reservations. It checks the input, sorts the jobs in queue order and distributes
the scenarios among threads. The kernels are in `rlist` and `rlist_all`.

References
----------
.. [1] A. Benoit, V. Le Fèvre, P. Raghavan, Y. Robert, H. Sun, "Design and comparison of resilient
   scheduling heuristics for parallel jobs", Inria RR-9296, 2020 (hal-02317464).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from threading import Thread

import numpy as np
from numpy.typing import ArrayLike

from rebat.core.errors import InputError, unknown_name
from rebat.kernels import rlist, rlist_all
from rebat.kernels.resilient_state import Ints, ScenarioBatch

HEURISTICS = ("R-LIST-0", "R-LIST-1", "R-LIST-Q", "R-SHELF-B", "R-SHELF-NB")
"""The five heuristics of Section 5.1. ``R-LIST-2``, ``R-LIST-3``, ... are also valid."""

RESERVATIONS = ("paper", "easy_head", "stale")
"""Interpretations of the reservations of R-LIST.

paper
    Algorithm 1: all reservations are deleted and recomputed at every completion. The first m jobs
    of the queue get reservations, including jobs that can start now.
easy_head
    Like paper, but only jobs that cannot start now get the m reservations. For m = 1 this is EASY.
stale
    Reservations are never deleted; see `rlist.stale`.
"""

ALL = -1
"""Reservation depth m = ``|Q|``: every waiting job has a reservation."""

_LIMIT = 1 << 61
_MOST_PROCS = 1 << 40
_Kernel = Callable[[ScenarioBatch], None]


@dataclass(frozen=True, slots=True)
class Heuristic:
    """A heuristic of Section 4.

    Attributes
    ----------
    name : str
        Name in the notation of the paper.
    depth : int or None
        Reservation depth m of R-LIST, where `ALL` means ``|Q|``. For R-SHELF, the depth is None.
    backfill : bool
        Parameter b of R-SHELF. R-LIST does not use this parameter.
    """

    name: str
    depth: int | None
    backfill: bool = False


def heuristic(name: str) -> Heuristic:
    """Return the heuristic with this name, in upper or lower case.

    Examples
    --------
    >>> heuristic("R-LIST-Q").depth == ALL, heuristic("r-list-3").depth
    (True, 3)
    """
    upper = name.upper()
    if upper in ("R-SHELF-B", "R-SHELF-NB"):
        return Heuristic(upper, None, upper.endswith("-B"))
    match = re.fullmatch(r"R-LIST-(Q|0|[1-9][0-9]{0,8})", upper, re.ASCII)
    if not match:
        raise unknown_name("heuristic", name, [*HEURISTICS, "R-LIST-<m>"])
    return Heuristic(upper, ALL if match[1] == "Q" else int(match[1]))


def check_reservations(name: str) -> None:
    """Raise InputError for a name that is not in `RESERVATIONS`."""
    if name not in RESERVATIONS:
        raise unknown_name("kind of reservations", name, RESERVATIONS)


def makespans(
    which: Heuristic | str,
    times: ArrayLike,
    sizes: ArrayLike,
    rank: ArrayLike,
    failures: ArrayLike,
    *,
    n_procs: int,
    reservations: str = "paper",
    threads: int = 1,
) -> Ints:
    """Return the makespan of a heuristic in each failure scenario (equation 1).

    Parameters
    ----------
    which : Heuristic or str
        The heuristic or its name.
    times : int array, shape (n,)
        Time of an attempt of each job, in any unit, at least 1.
    sizes : int array, shape (n,)
        Processors of each job.
    rank : int array, shape (n,)
        Position of each job in the queue. The smallest rank is first. Jobs with equal ranks are
        ordered by index.
    failures : int array, shape (n_scenarios, n) or (n,)
        Number of failed attempts of each job before its successful attempt.
    n_procs : int
        Processors P.
    reservations : {'paper', 'easy_head', 'stale'}
        See `RESERVATIONS`. R-SHELF and R-LIST-0 have no reservations.
    threads : int
        Number of threads. It does not change the result.

    Returns
    -------
    int array, shape (n_scenarios,)
        In the unit of `times`.

    Notes
    -----
    All attempts that end at the same time complete before the scheduler acts.

    Examples
    --------
    >>> makespans("R-LIST-0", [4, 3, 2], [2, 2, 1], [0, 1, 2], [[0, 0, 0], [0, 1, 0]], n_procs=4)
    array([5, 6])
    """
    play = _kernel(which, reservations, np.size(times))
    t, p, order, fails = _checked(times, sizes, rank, failures, n_procs)
    result = np.zeros(len(fails), np.int64)
    unused = np.empty(0, np.int64)

    def run_rows(rows: slice) -> None:
        in_order = np.ascontiguousarray(fails[rows][:, order])
        play(ScenarioBatch(t[order], p[order], in_order, n_procs, result[rows], unused, unused))

    edges = np.linspace(0, len(fails), max(1, min(threads, len(fails))) + 1).astype(int).tolist()
    _in_threads(run_rows, [slice(first, last) for first, last in pairwise(edges)])
    return result


def _in_threads(work: Callable[[slice], None], parts: list[slice]) -> None:
    """Process all parts, each in a daemon thread.

    A running kernel cannot be interrupted. The calling thread only waits, so Ctrl-C ends the
    program.
    """
    errors: list[BaseException] = []

    def run(part: slice) -> None:
        try:
            work(part)
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=run, args=(part,), daemon=True) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def starts(
    which: Heuristic | str,
    times: ArrayLike,
    sizes: ArrayLike,
    rank: ArrayLike,
    failures: ArrayLike,
    *,
    n_procs: int,
    reservations: str = "paper",
) -> list[Ints]:
    """Return the start times of the ``f + 1`` attempts of each job in one failure scenario.

    Parameters and errors are those of `makespans`, with `failures` of shape (n,).

    Examples
    --------
    >>> [list(map(int, s)) for s in starts("R-SHELF-B", [4, 3], [1, 1], [0, 1], [0, 1], n_procs=2)]
    [[0], [0, 4]]
    """
    play = _kernel(which, reservations, np.size(times))
    t, p, order, fails = _checked(times, sizes, rank, failures, n_procs)
    if len(fails) != 1:
        raise InputError(f"there are {len(fails)} failure scenarios", expected="one scenario")
    in_order = np.ascontiguousarray(fails[:, order])
    attempts = in_order[0] + 1
    ends = np.cumsum(attempts)
    start_times, result = np.empty(attempts.sum(), np.int64), np.zeros(1, np.int64)
    play(ScenarioBatch(t[order], p[order], in_order, n_procs, result, start_times, ends - attempts))
    by_place = np.split(start_times, ends[:-1])
    return [by_place[place] for place in np.argsort(order)]


def _kernel(which: Heuristic | str, reservations: str, n: int) -> _Kernel:
    """Return the kernel of a heuristic with this interpretation of reservations."""
    rule = heuristic(which) if isinstance(which, str) else which
    check_reservations(reservations)
    if rule.depth is None:
        return lambda batch: rlist.shelves(batch, rule.backfill)
    depth = n if rule.depth == ALL else min(rule.depth, n)
    easy_head = reservations == "easy_head"
    if depth == 0:
        return rlist.greedy
    if reservations == "stale":
        return lambda batch: rlist.stale(batch, depth)
    if depth == n:
        return rlist_all.conservative
    if depth == 1:
        return lambda batch: rlist.easy(batch, easy_head)
    return lambda batch: rlist.reserving(batch, depth, easy_head)


def _checked(
    times: ArrayLike, sizes: ArrayLike, rank: ArrayLike, failures: ArrayLike, n_procs: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return times, sizes, queue order and failures as valid int64 arrays for the kernels."""
    t, p, ranks = (_integers(values, name) for values, name in _named(times, sizes, rank))
    fails = np.atleast_2d(_integers(failures, "failures"))
    n = t.size
    if t.shape != (n,) or p.shape != (n,) or ranks.shape != (n,) or fails.shape[1:] != (n,):
        shapes = f"times {t.shape}, sizes {p.shape}, rank {ranks.shape}, failures {fails.shape}"
        raise InputError(f"the shapes of the arrays differ: {shapes}")
    if not 1 <= n_procs <= _MOST_PROCS:
        raise InputError(f"the machine has {n_procs} processors", expected=f"1 to {_MOST_PROCS}")
    for job in np.flatnonzero((t < 1) | (t > _LIMIT)).tolist():
        raise InputError(f"has time {t[job]}", f"job {job}", "an integer of at least 1")
    for job in np.flatnonzero((p < 1) | (p > n_procs)).tolist():
        raise InputError(f"needs {p[job]} processors", f"job {job}", f"1 to {n_procs}")
    if (fails < 0).any():
        raise InputError("a number of failures is negative", expected="0 or more per job")
    # under every heuristic, at least one processor is busy until the end: the makespan is at most
    # the sum of the times of all attempts
    worst = fails.max(axis=0, initial=0).astype(float)
    if float((worst + 1) @ t.astype(float)) > _LIMIT:
        raise InputError("all attempts together last too long for 64 bits; use a coarser unit")
    return t, p, np.argsort(ranks, kind="stable"), fails


def _named(times: ArrayLike, sizes: ArrayLike, rank: ArrayLike) -> list[tuple[ArrayLike, str]]:
    return [(times, "times"), (sizes, "sizes"), (rank, "rank")]


def _integers(values: ArrayLike, name: str) -> Ints:
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"{name} has type {array.dtype}", expected="integers")
    return array.astype(np.int64)
