# SPDX-License-Identifier: Apache-2.0
"""First fits and small changes in long profiles: steps in blocks that know their longest windows.

A profile of `rebat.kernels.counts` with thousands of steps is slow in two ways: a step that is put
in moves all later ones, and a first fit looks at all earlier ones. Here

- steps are *spread*: spare ones stand among them, each with as many free nodes as the one before.
  A new step takes the place of the nearest spare one. A step that has come to have as many free
  nodes as the one before is spare too, so that none needs to be taken out.
- ``BLOCK`` places make a block. For some widths (each twice the one before) every block has an
  upper *bound* of how long a window of that width can be that begins in it. Nodes that are taken
  leave bounds true; where nodes are freed they are raised; a block that was searched in vain has
  its bound measured (see `rebat.kernels.deep`). The bounds of a width are the leaves of a tree of
  maxima, which leads a first fit past all blocks that cannot hold it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rebat.kernels.counts import NEVER
from rebat.kernels.jit import kernel, step

BLOCK = 32
"""Places per block."""

ENDLESS = 2**63 - 1
"""Where windows end that have no end: from any date on they are longer than any job."""

APART = 2
"""A spare step comes after so many others."""


class Spread(NamedTuple):
    """A profile spread over blocks.

    Attributes
    ----------
    t, f : int64[places]
        As in `rebat.kernels.counts`.
    wide : int64[n_widths]
        Widths in nodes.
    bounds : int64[n_widths * 2 * leaves]
        A tree per width: node 1 is the root, 2i and 2i + 1 are below i, the leaves are blocks.
    leaves : int
        Leaves per tree, a power of two.
    """

    t: Any
    f: Any
    wide: Any
    bounds: Any
    leaves: int


@kernel
def widths(least: int, most: int) -> Any:
    """The widths that bounds are kept for."""
    count = 1
    while least << count <= most:
        count += 1
    found = np.empty(count, np.int64)
    for i in range(count):
        found[i] = least << i
    return found


@kernel
def spread(t: Any, f: Any, n: int, room: int, least: int, most: int) -> Spread:
    """Spread the steps over at least ``room`` places, for sizes ``least`` to ``most``.

    The spare steps that are not needed between others stand at the end, with a date after all
    others: what is put in after the last step is next to them. All bounds are unknown.
    """
    n_blocks = max(room, 2 * n) // BLOCK + 1
    places = n_blocks * BLOCK
    spread_t, spread_f = np.full(places, ENDLESS, np.int64), np.full(places, f[n - 1], np.int64)
    for i in range(n):
        k = i + i // APART
        spread_t[k : k + 2] = t[i]
        spread_f[k : k + 2] = f[i]
    leaves = 1
    while leaves < n_blocks:
        leaves *= 2
    wide = widths(least, most)
    bounds = np.full(len(wide) * 2 * leaves, NEVER, np.int64)
    return Spread(spread_t, spread_f, wide, bounds, leaves)


@kernel
def gather(steps: Spread, t: Any, f: Any) -> int:
    """The steps back as a plain profile, without the spare ones; their number."""
    t[0], f[0] = steps.t[0], steps.f[0]
    n = 1
    for k in range(1, steps.t.size):
        if steps.f[k] != f[n - 1]:
            t[n], f[n] = steps.t[k], steps.f[k]
            n += 1
    return n


@step
def at_or_after(t: Any, date: int) -> int:
    """The first place with a date of at least ``date``; ``t.size`` if none."""
    low, n = 0, t.size
    while n > 0:
        half = n // 2
        if t[low + half] < date:
            low += half + 1
            n -= half + 1
        else:
            n = half
    return low


@step
def from_place(t: Any, date: int, k: int) -> int:
    """The same, known to be near ``k``."""
    while k < t.size and t[k] < date:
        k += 1
    while k > 0 and t[k - 1] >= date:
        k -= 1
    return k


@step
def spare(f: Any, k: int, keep: int) -> int:
    """The spare place nearest to ``k``, but for ``keep``."""
    after = before = k
    while after < f.size and (f[after] != f[after - 1] or after == keep):
        after += 1
    furthest = max(0, 2 * k - after) if after < f.size else 0
    while before > furthest and (f[before] != f[before - 1] or before == keep):
        before -= 1
    return before if before > furthest or after == f.size else after


@step
def cut(steps: Spread, date: int, k: int, keep: int) -> int:
    """Make ``date`` the start of a step; its place. Place ``keep`` goes one down at most."""
    at = from_place(steps.t, date, k)
    if at == steps.t.size or steps.t[at] != date:
        place = spare(steps.f, min(at, steps.t.size - 1), keep)
        last = at - 1
        if place < at:
            at -= 1
            last = at
        move(steps.t, at, place)
        move(steps.f, at, place)
        spill(steps, last // BLOCK, place // BLOCK)
        steps.t[at] = date
        steps.f[at] = steps.f[at - 1]
    return at


@step
def move(values: Any, source: int, target: int) -> None:
    """Move the values from ``source`` on towards ``target`` by one place."""
    for m in range(target, source, -1):
        values[m] = values[m - 1]
    for m in range(target, source):
        values[m] = values[m + 1]


@step
def spill(steps: Spread, source: int, target: int) -> None:
    """Each block on the way got a step from the one before: its bounds hold for that one too."""
    by = 1 if target > source else -1
    for block in range(target, source, -by):
        for w in range(steps.wide.size):
            raise_to(steps, w, block, steps.bounds[(2 * w + 1) * steps.leaves + block - by])


@step
def change(steps: Spread, start: int, end: int, delta: int, k: int) -> None:
    """Add ``delta`` free nodes over ``[start, end)``; bounds are left as they are."""
    first = cut(steps, start, k, -1)
    last = cut(steps, end, first, first) if end < NEVER else steps.t.size
    if first > 0 and steps.t[first - 1] == start:
        first -= 1
    for m in range(first, last):
        steps.f[m] += delta


@step
def raise_to(steps: Spread, w: int, block: int, bound: int) -> None:
    """A block's windows may be as long as ``bound``."""
    tree, node = 2 * w * steps.leaves, steps.leaves + block
    while node > 0 and steps.bounds[tree + node] < bound:
        steps.bounds[tree + node] = bound
        node //= 2


@step
def set_bound(steps: Spread, w: int, block: int, bound: int) -> None:
    """A block's windows are as long as ``bound`` at most."""
    tree, node = 2 * w * steps.leaves, steps.leaves + block
    steps.bounds[tree + node] = bound
    while node > 1:
        node //= 2
        below = tree + 2 * node
        steps.bounds[tree + node] = max(steps.bounds[below], steps.bounds[below + 1])


@step
def next_block(steps: Spread, w: int, block: int, duration: int) -> int:
    """The first block from ``block`` on with a window that may be so long; else a large number."""
    tree, node = 2 * w * steps.leaves, steps.leaves + block
    while node > 0 and steps.bounds[tree + node] < duration:
        while node % 2:
            node //= 2
        node += node > 0
    while 0 < node < steps.leaves:
        node *= 2
        node += steps.bounds[tree + node] < duration
    return node - steps.leaves if node > 0 else steps.leaves
