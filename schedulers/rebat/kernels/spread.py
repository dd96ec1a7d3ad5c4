# SPDX-License-Identifier: Apache-2.0
"""Fast first fits and changes in long profiles, with stored bounds on the lengths of windows.

A profile of `rebat.kernels.counts` with thousands of steps is slow in two ways: an inserted step
moves all later steps, and a first fit searches all earlier steps. This module avoids both:

- Steps are *spread*: a spare step is after each of them, with as many free nodes as the step.
  A new step uses the nearest spare step. A step that gets the same number of free nodes as the
  previous step becomes spare, so that no step is ever removed.
- ``BLOCK`` consecutive array entries form a block of steps. For some widths (each about 1.5 times
  the previous one) every block stores an upper *bound* on the length of the windows of that width
  that begin in the block. Bounds are measured at the start, and stay valid when nodes are taken.
  They are raised when nodes are freed, and measured again when a search of the block fails (see
  `rebat.kernels.deep`). The bounds of a width are the leaves of a tree of maxima. With this tree,
  the search for a first fit skips all blocks that cannot contain the fit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rebat.kernels.counts import NEVER
from rebat.kernels.jit import kernel, step

BLOCK = 32
"""Array entries per block."""

ENDLESS = 2**63 - 1
"""The end of a window that never ends: later than the end of any job."""


class Spread(NamedTuple):
    """A profile with spare steps, and the bounds of its blocks.

    Attributes
    ----------
    t, f : int64[entries]
        As in `rebat.kernels.counts`.
    wide : int64[n_widths]
        Widths in nodes.
    bounds : int64[n_widths * 2 * leaves]
        A tree per width. Entry 0 of a tree is 0, entry 1 is the root, entries 2i and 2i + 1 are
        below entry i, and the leaves are the blocks.
    leaves : int
        Number of leaves per tree, a power of two.
    """

    t: Any
    f: Any
    wide: Any
    bounds: Any
    leaves: int


@kernel
def widths(least: int, most: int) -> Any:
    """Return the widths with stored bounds, ascending, for jobs of ``least`` to ``most`` nodes.

    The jobs of each width, except the smallest jobs, have less than 1.5 times as many nodes.
    """
    narrower = [max(least, 2 * most // 3)]
    while narrower[-1] > least:
        narrower.append(max(least, 2 * narrower[-1] // 3))
    return np.array(narrower[::-1], dtype=np.int64)


@kernel
def spread(t: Any, f: Any, n: int, room: int, least: int, most: int) -> Spread:
    """Return the profile spread over at least ``room`` entries, for jobs of these sizes.

    Jobs have ``least`` to ``most`` nodes. The remaining spare steps are at the end, with a time
    after all other times. They are near the steps that are inserted after the last step.
    """
    n_blocks = max(room, 2 * n) // BLOCK + 1
    places = n_blocks * BLOCK
    spread_t, spread_f = np.full(places, ENDLESS, np.int64), np.full(places, f[n - 1], np.int64)
    for i in range(n):
        spread_t[2 * i : 2 * i + 2] = t[i]
        spread_f[2 * i : 2 * i + 2] = f[i]
    leaves = 1
    while leaves < n_blocks:
        leaves *= 2
    wide = widths(least, most)
    bounds = np.zeros(len(wide) * 2 * leaves, np.int64)
    steps = Spread(spread_t, spread_f, wide, bounds, leaves)
    for w in range(len(wide)):
        measure(steps, w, n_blocks)
    return steps


@kernel
def measure(steps: Spread, w: int, n_blocks: int) -> None:
    """Set the bounds for width number ``w`` to the lengths of the longest windows.

    Every second step is spare and has no longer window than the step before it.
    """
    t, f, width = steps.t, steps.f, steps.wide[w]
    tree, until = 2 * w * steps.leaves, ENDLESS
    for block in range(n_blocks - 1, -1, -1):
        longest = 0
        for k in range((block + 1) * BLOCK - 2, block * BLOCK - 1, -2):
            until = until if f[k] >= width else t[k]
            longest = max(longest, until - t[k])
        steps.bounds[tree + steps.leaves + block] = longest
    for node in range(steps.leaves - 1, 0, -1):
        below = tree + 2 * node
        steps.bounds[tree + node] = max(steps.bounds[below], steps.bounds[below + 1])


@kernel
def gather(steps: Spread, t: Any, f: Any) -> int:
    """Write the profile without spare steps into ``t`` and ``f``; return the number of steps."""
    t[0], f[0] = steps.t[0], steps.f[0]
    n = 1
    for k in range(1, steps.t.size):
        if steps.f[k] != f[n - 1]:
            t[n], f[n] = steps.t[k], steps.f[k]
            n += 1
    return n


@step
def at_or_after(t: Any, time: int) -> int:
    """Return the index of the first step at or after ``time``; ``t.size`` if there is none."""
    return between(t, time, 0, t.size)


@step
def between(t: Any, time: int, low: int, high: int) -> int:
    """Return the same as `at_or_after`; the index is from ``low`` to ``high`` (bisection)."""
    while low < high:
        middle = (low + high) // 2
        if t[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


@step
def from_mark(t: Any, time: int, k: int) -> int:
    """Return the same as `at_or_after`; the search begins at index ``k`` with growing strides."""
    low = high = k
    stride = 4
    while low > 0 and t[low - 1] >= time:
        high = low - 1
        low = max(0, low - stride)
        stride *= 2
    while high < t.size and t[high] < time:
        low = high + 1
        high = min(t.size, high + stride)
        stride *= 2
    return between(t, time, low, high)


@step
def from_place(t: Any, time: int, k: int) -> int:
    """Return the same as `at_or_after`; the search begins at index ``k``, one step at a time."""
    while k < t.size and t[k] < time:
        k += 1
    while k > 0 and t[k - 1] >= time:
        k -= 1
    return k


@kernel
def marks(t: Any, n: int) -> tuple[Any, int]:
    """Return the index of the first step in each of at most ``n`` equal intervals of time.

    The last interval has no end. The length of an interval is a power of two in microseconds; the
    exponent is the second result.
    """
    span, power = t[at_or_after(t, ENDLESS) - 1] - t[0], 0
    while span >> power >= n:
        power += 1
    first, k = np.empty((span >> power) + 1, np.int64), 0
    for i in range(first.size):
        while t[k] < t[0] + (i << power):
            k += 1
        first[i] = k
    return first, power


@step
def spare(f: Any, k: int, keep: int) -> int:
    """Return the index of the spare step nearest to index ``k``, other than ``keep``."""
    after = before = k
    while after < f.size and (f[after] != f[after - 1] or after == keep):
        after += 1
    furthest = max(0, 2 * k - after) if after < f.size else 0
    while before > furthest and (f[before] != f[before - 1] or before == keep):
        before -= 1
    return before if before > furthest or after == f.size else after


@step
def cut(steps: Spread, time: int, k: int, keep: int) -> int:
    """Make ``time`` the start of a step; return the index of this step.

    The search begins at index ``k``. The step at index ``keep`` moves down by at most one index.
    """
    at = from_place(steps.t, time, k)
    if at == steps.t.size or steps.t[at] != time:
        place = spare(steps.f, min(at, steps.t.size - 1), keep)
        last = at - 1
        if place < at:
            at -= 1
            last = at
        move(steps.t, at, place)
        move(steps.f, at, place)
        spill(steps, last // BLOCK, place // BLOCK)
        steps.t[at] = time
        steps.f[at] = steps.f[at - 1]
    return at


@step
def move(values: Any, source: int, target: int) -> None:
    """Move the values from index ``source`` on towards index ``target``, each by one entry."""
    for m in range(target, source, -1):
        values[m] = values[m - 1]
    for m in range(target, source):
        values[m] = values[m + 1]


@step
def spill(steps: Spread, source: int, target: int) -> None:
    """Raise the bounds of each block that received a step to those of the block it came from."""
    by = 1 if target > source else -1
    for block in range(target, source, -by):
        for w in range(steps.wide.size):
            raise_to(steps, w, block, steps.bounds[(2 * w + 1) * steps.leaves + block - by])


@step
def change(steps: Spread, start: int, end: int, delta: int, k: int) -> None:
    """Add ``delta`` free nodes over ``[start, end)``; the bounds stay unchanged."""
    first = cut(steps, start, k, -1)
    last = cut(steps, end, first, first) if end < NEVER else steps.t.size
    if first > 0 and steps.t[first - 1] == start:
        first -= 1
    for m in range(first, last):
        steps.f[m] += delta


@step
def raise_to(steps: Spread, w: int, block: int, bound: int) -> None:
    """Raise the bound of ``block`` for width number ``w`` to at least ``bound``."""
    tree, node = 2 * w * steps.leaves, steps.leaves + block
    while node > 0 and steps.bounds[tree + node] < bound:
        steps.bounds[tree + node] = bound
        node //= 2


@step
def set_bound(steps: Spread, w: int, block: int, bound: int) -> None:
    """Set the bound of ``block`` for width number ``w`` to ``bound``."""
    tree, node = 2 * w * steps.leaves, steps.leaves + block
    steps.bounds[tree + node] = bound
    while node > 1:
        node //= 2
        below = tree + 2 * node
        steps.bounds[tree + node] = max(steps.bounds[below], steps.bounds[below + 1])


@step
def excluded(steps: Spread, w: int, block: int, duration: int) -> bool:
    """Return whether the bounds of all blocks up to ``block`` are less than ``duration``.

    The maximum is that of ``block`` and of the left neighbours on the path to the root. A node
    without a left neighbour reads entry 0 of the tree, which is always 0, without a branch.
    """
    tree, node = 2 * w * steps.leaves, steps.leaves + block
    most = steps.bounds[tree + node]
    while node > 1:
        most = max(most, steps.bounds[tree + (node - 1) * (node % 2)])
        node //= 2
    return most < duration


@step
def next_block(steps: Spread, w: int, block: int, duration: int) -> int:
    """Return the first block from ``block`` on whose bound is at least ``duration``.

    If there is none, the result is at least the number of blocks.
    """
    tree, node = 2 * w * steps.leaves, steps.leaves + block
    while node > 0 and steps.bounds[tree + node] < duration:
        while node % 2:
            node //= 2
        node += node > 0
    while 0 < node < steps.leaves:
        node *= 2
        node += steps.bounds[tree + node] < duration
    return node - steps.leaves if node > 0 else steps.leaves
