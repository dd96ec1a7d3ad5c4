# SPDX-License-Identifier: Apache-2.0
"""Long profiles as chains of steps, with bounds on the lengths of windows.

A profile of `rebat.kernels.counts` with thousands of steps is slow in two ways: an inserted step
moves all later steps, and a first fit searches all earlier steps. This module avoids both:

- Each step knows the *next* and the *previous* step. The original steps of the profile stay where
  they are, in the order of time. New steps follow them in the arrays. No step is ever removed.
- ``BLOCK`` consecutive original steps, and the new steps between them, form a block. A window of a
  certain width is a time interval in which at least this number of nodes is free. For some widths
  (each about 4/3 of the previous one), a block stores an upper *bound* on the time for which a
  window of this width has lasted at any time in the block.
- Blocks are *measured* from the first one on, as far as searches need their bounds. Until then, a
  change of a block does not have to change bounds. After that, bounds stay valid when nodes are
  used. They are raised when nodes are freed, and measured again when a search of the block fails.
- A block also stores the maximum of the bounds up to this block. With these maxima, the search for
  a first fit skips all blocks that cannot contain the fit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rebat.kernels.counts import NEVER
from rebat.kernels.jit import inner, step

BLOCK = 16
"""Original steps per block."""

FEW = 8
"""Number of steps among which a search step by step is faster than bisection."""

ENDLESS = 2**63 - 1
"""The end of a window without an end. It is later than the end of any job."""

LANES = 16
"""The number of widths is a multiple of this, so that machine code compares many at once."""

USED, NEXT, ROWS = 0, 1, 2
"""Entries of ``counts``."""

AGES = 2**50
"""A duration (microseconds) that no job with a walltime has."""

MOST_WIDTHS = 64
"""There are at most this number of widths."""


class Chain(NamedTuple):
    """The steps of a profile, and the bounds of its blocks.

    Attributes
    ----------
    t, f : int64[entries]
        The begin of each step, and its number of free nodes. Step number ``n`` is the end of the
        profile, which is `ENDLESS`. Later entries are new steps.
    next, previous, block : int64[entries]
        The next and the previous step, and the block of each step.
    n : int
        The number of original steps.
    marks : int64[n_marks + 1]
        The last original step before each interval of 2^``power`` microseconds.
    power : int
    n_marks : int
    longest : int
        The duration of the longest job.
    wide : int64[n_widths]
        The widths, in nodes.
    bounds, most : int64[n_blocks * n_widths]
        The bounds of the first block for all widths, then those of the second block, and so on.
        Their maxima up to each block.
    opened : int64[n_widths]
        Since when at least this width is free without interruption, at the next step to measure.
    counts : int64[3]
        The number of steps, including new ones (`USED`), the next step to measure (`NEXT`), and the
        number of blocks with bounds (`ROWS`).
    """

    t: Any
    f: Any
    next: Any
    previous: Any
    block: Any
    n: int
    marks: Any
    power: int
    n_marks: int
    longest: int
    wide: Any
    bounds: Any
    most: Any
    opened: Any
    counts: Any


def scratch_needed(room: int) -> int:
    """Return the length of a scratch array that suffices for a plan with ``room`` steps.

    This includes three more steps for each job in the queue.
    """
    entries = room + 2
    return 7 * entries + (2 * (entries // BLOCK + 1) + 2) * MOST_WIDTHS + 3


@step
def widths(least: int, most: int, out: Any) -> int:
    """Write the widths that have bounds, ascending, for jobs of ``least`` to ``most`` nodes.

    A job uses the bounds of the largest width that is not above its number of nodes. This width is
    above three quarters of this number, except for the smallest jobs. The result is the number of
    widths.
    """
    out[0] = max(least, 3 * most // 4)
    n = 1
    while out[n - 1] > least:
        out[n] = max(least, 3 * out[n - 1] // 4)
        n += 1
    for i in range(n // 2):
        out[i], out[n - 1 - i] = out[n - 1 - i], out[i]
    while n % LANES:
        out[n] = ENDLESS
        n += 1
    return n


@step
def spacing(n_free: int, size: Any, duration: Any, first: int, last: int) -> int:
    """Return twice the mean time between the ends of jobs that are placed one after another."""
    area = 0.0
    for i in range(first, last):
        if duration[i] < AGES:
            area += float(size[i]) * float(duration[i])
    return int(min(2 * area / (max(n_free, 1) * (last - first)), float(AGES))) + 1


@step
def chain_of(
    t: Any, f: Any, n: int, size: Any, duration: Any, first: int, last: int, gap: int, scratch: Any
) -> Chain:
    """Make a chain of a profile, for the jobs ``first`` to ``last - 1`` of a queue.

    If ``gap`` is not 0, the chain also contains a step per two jobs that changes nothing, at
    distances of ``gap``. The arrays are parts of ``scratch`` (see `scratch_needed`).
    """
    least = most = size[first]
    longest = duration[first]
    for i in range(first, last):
        least, most = min(least, size[i]), max(most, size[i])
        longest = max(longest, duration[i])
    n_widths = widths(least, most, scratch)
    extra = (last - first) // 2 if gap > 0 else 0
    entries, blocks = n + 3 * (last - first) + 2, (n + extra) // BLOCK + 1
    wide, scratch = scratch[:n_widths], scratch[MOST_WIDTHS:]
    opened, scratch = scratch[:n_widths], scratch[n_widths:]
    counts, scratch = scratch[:3], scratch[3:]
    time, scratch = scratch[:entries], scratch[entries:]
    free, scratch = scratch[:entries], scratch[entries:]
    after, scratch = scratch[:entries], scratch[entries:]
    before, scratch = scratch[:entries], scratch[entries:]
    block, scratch = scratch[:entries], scratch[entries:]
    marks, scratch = scratch[: 2 * (n + extra) + 1], scratch[2 * (n + extra) + 1 :]
    bounds, maxima = scratch[: blocks * n_widths], scratch[blocks * n_widths :]
    k, more, added = 0, t[0] + gap, 0
    for i in range(n):
        time[k], free[k], k = t[i], f[i], k + 1
        until = t[i + 1] if i + 1 < n else NEVER
        while added < extra and more < until:
            if more > t[i]:
                time[k], free[k], k = more, f[i], k + 1
            more, added = more + gap, added + 1
    n = k
    for k in range(n):
        after[k], before[k], block[k] = k + 1, k - 1, k // BLOCK
    time[n], free[n], after[n], before[n], block[n] = ENDLESS, -1, n, n - 1, (n - 1) // BLOCK
    counts[USED], counts[NEXT], counts[ROWS] = n + 1, 0, 0
    for w in range(n_widths):
        opened[w] = time[0]
    span, power = time[n - 1] - time[0], 0
    while span >> power >= 2 * n:
        power += 1
    n_marks = 0
    for k in range(n):
        while n_marks <= (time[k] - time[0]) >> power:
            marks[n_marks] = max(k - 1, 0)
            n_marks += 1
    marks[n_marks] = n - 1
    return Chain(
        time, free, after, before, block, n, marks, power, n_marks, longest, wide, bounds, maxima,
        opened, counts,
    )  # fmt: skip


@step
def near(chain: Chain, time: int) -> int:
    """Return the last original step that begins at a time or before it."""
    mark = min(max(time - chain.t[0], 0) >> chain.power, chain.n_marks - 1)
    low, high = chain.marks[mark], chain.marks[mark + 1]
    while high - low > FEW:
        middle = (low + high) // 2
        if chain.t[middle] <= time:
            low = middle
        else:
            high = middle
    while chain.t[low + 1] <= time:
        low += 1
    return low


@step
def step_at(chain: Chain, k: int, time: int) -> int:
    """Return the step that begins at ``time``. The search begins at step ``k``."""
    if time >= NEVER:
        return chain.n
    while chain.t[k] > time:
        k = chain.previous[k]
    after = chain.next[k]
    while chain.t[after] <= time:
        k, after = after, chain.next[after]
    if chain.t[k] == time:
        return k
    new = chain.counts[USED]
    chain.counts[USED] = new + 1
    chain.t[new], chain.f[new], chain.block[new] = time, chain.f[k], chain.block[k]
    chain.previous[new], chain.next[new] = k, after
    chain.next[k] = chain.previous[after] = new
    return new


@step
def add(chain: Chain, k: int, last: int, delta: int) -> None:
    """Add free nodes from step ``k`` until step ``last`` begins, without a change of bounds."""
    while k != last:
        chain.f[k] += delta
        k = chain.next[k]


@step
def widest(chain: Chain, free: int) -> int:
    """Return the index of the largest width that is at most ``free``, or -1 if there is none."""
    w = -1
    for width in chain.wide:
        w += width <= free
    return w


@step
def measure(chain: Chain, before: int, w: int, duration: int) -> None:
    """Measure the steps that begin before ``before``.

    Continue with later steps, while a window of width number ``w`` that began before ``before`` is
    shorter than ``duration``.
    """
    t, f, wide, opened, counts = chain.t, chain.f, chain.wide, chain.opened, chain.counts
    k, n_widths = counts[NEXT], wide.size
    while t[k] < before or opened[w] < min(before, t[k]):
        if t[k] >= before and t[k] - opened[w] >= duration:
            begin = k  # it can be later, because nodes have been used since then
            while t[begin] > opened[w] and f[chain.previous[begin]] >= wide[w]:
                begin = chain.previous[begin]
            if t[begin] == opened[w]:
                break
            opened[w] = t[begin]
            continue
        row = chain.block[k] * n_widths
        bounds, most = chain.bounds[row : row + n_widths], chain.most[row : row + n_widths]
        if chain.block[k] == counts[ROWS]:
            earlier = chain.most[row - n_widths : row] if row > 0 else bounds
            for v in range(n_widths):
                bounds[v] = 0
                most[v] = earlier[v]
            counts[ROWS] += 1
        free, k = f[k], chain.next[k]
        until = t[k]
        for v in range(n_widths):
            opened[v] = opened[v] if free >= wide[v] else until
            bounds[v] = max(bounds[v], until - opened[v])
            most[v] = max(most[v], bounds[v])
    counts[NEXT] = k


@step
def window_in(
    chain: Chain, block: int, width: int, size: int, duration: int, beyond: bool
) -> tuple[int, int]:
    """Find the first window of ``size`` nodes that has lasted for ``duration`` in a block.

    If ``beyond`` is set, it may continue in the next block. Return
    the step at which it begins, or -1, and the longest time for which ``width`` nodes, which are at
    most ``size``, have been free in the block.
    """
    t, f, k = chain.t, chain.f, block * BLOCK
    begin, opened, end = k, k, min(k + BLOCK, chain.n)
    while opened > 0 and f[chain.previous[opened]] >= width and t[k] - t[opened] < chain.longest:
        is_begin, opened = begin == opened, chain.previous[opened]
        begin = opened if is_begin and f[opened] >= size else begin
    longest = 0
    while k != end:
        free, k = f[k], chain.next[k]
        opened = opened if free >= width else k
        begin = begin if free >= size else k
        longest = max(longest, t[k] - t[opened])
        if t[k] - t[begin] >= duration:
            return begin, longest
    while beyond and f[k] >= size and begin != k:
        k = chain.next[k]
        if t[k] - t[begin] >= duration:
            return begin, longest
    return -1, longest


@step
def set_bound(chain: Chain, w: int, block: int, bound: int) -> None:
    """Set the bound of a block for width number ``w``."""
    n_widths = chain.wide.size
    at, end = block * n_widths + w, chain.counts[ROWS] * n_widths
    chain.bounds[at] = bound
    most = chain.most[at - n_widths] if block > 0 else 0
    while at < end:
        most = max(most, chain.bounds[at])
        if chain.most[at] == most:
            break
        chain.most[at] = most
        at += n_widths


@step
def raise_bounds(chain: Chain, first: int, last: int, size: int) -> None:
    """Raise the bounds of windows after ``size`` nodes were freed from ``first`` until ``last``.

    The function skips widths that were already free in the entire interval. It computes windows
    only up to the length of the longest job.
    """
    t, f, opened, counts = chain.t, chain.f, chain.opened, chain.counts
    measured, n_widths = counts[NEXT], chain.wide.size
    if t[first] >= t[measured]:
        return
    least, free, right = f[first], f[first], chain.next[first]
    while right not in (last, measured):
        least, free, right = min(least, f[right]), max(free, f[right]), chain.next[right]
    left, n_rows = first, counts[ROWS] * n_widths
    earliest, latest = t[first] - chain.longest, min(t[right], NEVER) + chain.longest
    for w in range(widest(chain, free), widest(chain, least - size), -1):
        width = chain.wide[w]
        while left > 0 and t[left] > earliest and f[chain.previous[left]] >= width:
            left = chain.previous[left]
        while right != measured and t[right] < latest and f[right] >= width:
            right = chain.next[right]
        if right == measured:
            opened[w] = min(opened[w], t[left])
        for block in range(chain.block[first], chain.block[chain.previous[right]] + 1):
            at, end = block * n_widths + w, min((block + 1) * BLOCK, chain.n)
            bound = min(t[right], t[end]) - t[left]
            if chain.bounds[at] < bound:
                chain.bounds[at] = bound
                while at < n_rows and chain.most[at] < bound:
                    chain.most[at] = bound
                    at += n_widths


@inner
def full_window(chain: Chain, w: int, size: int, duration: int, last: int) -> int:
    """Return the first step at which a window of ``duration`` begins, or -1.

    Only blocks up to ``last`` whose bounds for width number ``w`` allow this duration are searched.
    """
    n_widths, block, high = chain.wide.size, 0, last + 1
    while block < high:
        middle = (block + high) // 2
        if chain.most[middle * n_widths + w] < duration:
            block = middle + 1
        else:
            high = middle
    while block <= last:
        if chain.bounds[block * n_widths + w] >= duration:
            k, bound = window_in(chain, block, chain.wide[w], size, duration, block == last)
            if k >= 0:
                return k
            set_bound(chain, w, block, bound)
        block += 1
    return -1


@step
def gather(chain: Chain, t: Any, f: Any) -> int:
    """Write the profile into ``t`` and ``f``, without steps that change nothing.

    Return the number of steps. To avoid unpredictable branches, all steps are written, and the next
    step overwrites those that change nothing.
    """
    n, k, before = 0, 0, chain.f[0] - 1
    while k != chain.n:
        t[n], f[n] = chain.t[k], chain.f[k]
        n += chain.f[k] != before
        before, k = chain.f[k], chain.next[k]
    return n
