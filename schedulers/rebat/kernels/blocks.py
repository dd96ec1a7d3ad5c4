# SPDX-License-Identifier: Apache-2.0
"""Sets of nodes as rows of bits. Each bit represents a block of neighbouring nodes.

Jobs often use entire racks and midplanes. Therefore, the thousands of nodes of a machine form a few
dozen groups of neighbours that are always free or in use together. These groups are called blocks.
A block is split when a job uses only a part of it. Neighbouring blocks are merged when their bits
are equal in all rows. Thanks to blocks, a row has a few words instead of hundreds. Words are int64
with 63 used bits, so they are never negative.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rebat.kernels.jit import inner, loop

BITS = 63
"""Number of blocks per word."""

_TOP = 1 << (BITS - 1)
_BELOW_TOP = _TOP - 1
_ALL = _TOP | _BELOW_TOP

# Powers of two below 2**66 have different remainders modulo 67, which identify a bit.
_NUMBER = np.zeros(67, dtype=np.int64)
for _bit in range(BITS):
    _NUMBER[2**_bit % 67] = _bit

SLICES, BLOCKS, RESERVED = range(3)


class BlockTable(NamedTuple):
    """The arrays of a plan with named nodes. All are int64.

    Attributes
    ----------
    n : array (3,)
        Numbers of slices, blocks and reservations.
    first : array (blocks + 1,)
        First node of each block, ascending. The last entry is the number of nodes.
    t, f : arrays (slices,)
        Start of each time slice, ascending, and its number of free nodes.
    free : array (slices, words)
        The free blocks of each slice.
    start, end : arrays (reservations,)
        Start and end of each reservation. Both are NEVER if the job can never start.
    held : array (reservations, words)
        The blocks of each reservation.
    down : array (1, words)
        Blocks that are down.
    fit, mark : arrays (1, words)
        Rows for temporary results.
    place : array (blocks + 1,)
        Array for temporary results.
    """

    n: Any
    first: Any
    t: Any
    f: Any
    free: Any
    start: Any
    end: Any
    held: Any
    down: Any
    fit: Any
    mark: Any
    place: Any


@inner
def words_of(blocks: int) -> int:
    """Return the number of words in a row for this number of blocks."""
    return (blocks + BITS - 1) // BITS


def empty_table(slices: int, blocks: int, reservations: int) -> BlockTable:
    """Return a table of zeros with space for these numbers of slices, blocks and reservations."""
    words = words_of(blocks)

    def array(*shape: int) -> Any:
        return np.zeros(shape, dtype=np.int64)

    return BlockTable(
        n=array(3),
        first=array(blocks + 1),
        t=array(slices),
        f=array(slices),
        free=array(slices, words),
        start=array(reservations),
        end=array(reservations),
        held=array(reservations, words),
        down=array(1, words),
        fit=array(1, words),
        mark=array(1, words),
        place=array(blocks + 1),
    )


def spaces_of(table: BlockTable) -> tuple[int, int, int]:
    """Return the numbers of slices, blocks and reservations for which a table has space."""
    return len(table.t), len(table.first) - 1, len(table.start)


def grown(table: BlockTable, slices: int, blocks: int, reservations: int) -> BlockTable:
    """Return a copy of the table with more space. No number may be smaller than before."""
    larger = empty_table(slices, blocks, reservations)
    for old, new in zip(table, larger, strict=True):
        new[tuple(slice(0, length) for length in old.shape)] = old
    return larger


@loop
def number(bit: int) -> int:
    """Return the position of a bit in its word. ``bit`` is a power of two."""
    return _NUMBER[bit % 67]


@loop
def weight(first: Any, w: int, bits: int) -> int:
    """Return the number of nodes in the blocks that the set bits of ``bits`` represent.

    ``bits`` are bits of word ``w`` of a row. The nodes are counted for each run of consecutive
    bits.
    """
    total = 0
    while bits:
        low = bits & -bits
        after = bits + low  # the sum clears the run of ones that begins at ``low``
        end = after & ~bits
        total -= first[w * BITS + number(low)]
        total += first[w * BITS + (number(end) if 0 < end <= _TOP else BITS)]
        bits &= after
    return total


@loop
def block_of(table: Any, node: int) -> int:
    """Return the index of the block that contains ``node``, found by bisection."""
    low, high = 0, table.n[BLOCKS]
    while high - low > 1:
        middle = (low + high) // 2
        if table.first[middle] <= node:
            low = middle
        else:
            high = middle
    return low


@inner
def double_bit(rows: Any, count: int, blocks: int, b: int) -> None:
    """Duplicate bit ``b`` in the first ``count`` rows. Later bits move up by one position."""
    words, w, bit = words_of(blocks), b // BITS, b % BITS
    upto = (1 << bit) | ((1 << bit) - 1)
    for i in range(count):
        x = rows[i, w]
        twin = (x >> bit) & 1
        if bit == BITS - 1:
            carry = twin
        else:
            carry = x >> (BITS - 1)
            rows[i, w] = (x & upto) | (twin << (bit + 1)) | ((x & ~upto & _BELOW_TOP) << 1)
        for k in range(w + 1, words):
            x = rows[i, k]
            rows[i, k] = ((x & _BELOW_TOP) << 1) | carry
            carry = x >> (BITS - 1)
        if blocks % BITS == 0:
            rows[i, words] = carry


@inner
def split_block(table: Any, b: int, nodes: int) -> None:
    """Split block ``b`` after its first ``nodes`` nodes."""
    blocks = table.n[BLOCKS]
    double_bit(table.free, table.n[SLICES], blocks, b)
    double_bit(table.held, table.n[RESERVED], blocks, b)
    double_bit(table.down, 1, blocks, b)
    for k in range(blocks, b, -1):
        table.first[k + 1] = table.first[k]
    table.first[b + 1] = table.first[b] + nodes
    table.n[BLOCKS] = blocks + 1


@inner
def cut_before(table: Any, node: int) -> None:
    """Split the block that contains ``node``, so that ``node`` is the first node of a block."""
    b = block_of(table, node)
    if table.first[b] < node < table.first[b + 1]:
        split_block(table, b, node - table.first[b])


@inner
def mark_nodes(table: Any, intervals: Any) -> None:
    """Write the nodes of ``intervals`` into ``mark``. Split blocks at the bounds of intervals."""
    for i in range(intervals.shape[0]):
        cut_before(table, intervals[i, 0])
        cut_before(table, intervals[i, 1] + 1)
    table.mark[0, :] = 0
    for i in range(intervals.shape[0]):
        b = block_of(table, intervals[i, 0])
        while b < table.n[BLOCKS] and table.first[b] <= intervals[i, 1]:
            table.mark[0, b // BITS] |= 1 << (b % BITS)
            b += 1


@loop
def nodes_of(table: Any, row: Any, out: Any) -> int:
    """Write the nodes of ``row`` into ``out`` as maximal intervals, and return their number."""
    k = 0
    for b in range(table.n[BLOCKS]):
        if not (row[b // BITS] >> (b % BITS)) & 1:
            continue
        if k > 0 and out[k - 1, 1] == table.first[b] - 1:
            out[k - 1, 1] = table.first[b + 1] - 1
        else:
            out[k, 0] = table.first[b]
            out[k, 1] = table.first[b + 1] - 1
            k += 1
    return k


@inner
def mark_bounds(rows: Any, count: int, words: int, mark: Any) -> None:
    """For each block that differs from the previous block in any row, set its bit in ``mark``."""
    for i in range(count):
        carry = 0
        for w in range(words):
            x = rows[i, w]
            mark[w] |= x ^ (((x & _BELOW_TOP) << 1) | carry)
            carry = x >> (BITS - 1)


@inner
def places_of(mark: Any, blocks: int, place: Any) -> int:
    """Write the new index of each marked block into ``place``, and return how many are marked.

    The last entry of ``place`` is the number of marked blocks.
    """
    n_kept = 0
    for b in range(blocks):
        place[b] = n_kept
        n_kept += (mark[b // BITS] >> (b % BITS)) & 1
    place[blocks] = n_kept
    return n_kept


@inner
def keep_marked(rows: Any, count: int, blocks: int, place: Any, n_kept: int) -> None:
    """Remove the bits of unmarked blocks from the first ``count`` rows.

    The bit of an unmarked block equals the previous bit in every row. Therefore, the function
    processes only the positions at which the bits of a row change.
    """
    words, kept_words = words_of(blocks), words_of(n_kept)
    for i in range(count):
        carry = 0
        for w in range(words):
            x = rows[i, w]
            turns = x ^ (((x & _BELOW_TOP) << 1) | carry)
            carry = x >> (BITS - 1)
            rows[i, w] = 0
            while turns:
                low = turns & -turns
                at = place[w * BITS + number(low)]
                if at < n_kept:  # the row ends with ones; their run ends after the last bit
                    rows[i, at // BITS] ^= 1 << (at % BITS)  # only in words that were already read
                turns ^= low
        fill(rows[i], kept_words, n_kept)


@inner
def fill(row: Any, words: int, blocks: int) -> None:
    """Replace ``row``, which marks the positions at which a set begins or stops, with this set."""
    carry = 0
    for w in range(words):
        x = row[w] ^ carry
        for shift in (1, 2, 4, 8, 16, 32):
            x ^= (x << shift) & _ALL
        row[w] = x
        carry = x >> (BITS - 1)
    if blocks % BITS:
        row[words - 1] &= (1 << (blocks % BITS)) - 1


@inner
def merge_blocks(table: Any) -> None:
    """Merge neighbouring blocks that are equal in all rows, if rows then need fewer words."""
    blocks = table.n[BLOCKS]
    words = words_of(blocks)
    mark = table.mark[0]
    mark[:] = 0
    mark_bounds(table.free, table.n[SLICES], words, mark)
    mark_bounds(table.held, table.n[RESERVED], words, mark)
    mark_bounds(table.down, 1, words, mark)
    mark[0] |= 1
    place = table.place
    n_kept = places_of(mark, blocks, place)
    if words_of(n_kept) == words:
        return
    keep_marked(table.free, table.n[SLICES], blocks, place, n_kept)
    keep_marked(table.held, table.n[RESERVED], blocks, place, n_kept)
    keep_marked(table.down, 1, blocks, place, n_kept)
    for b in range(blocks):
        if (mark[b // BITS] >> (b % BITS)) & 1:
            table.first[place[b]] = table.first[b]
    table.first[n_kept] = table.first[blocks]
    table.n[BLOCKS] = n_kept
