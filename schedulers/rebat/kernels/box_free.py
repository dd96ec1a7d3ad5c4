# SPDX-License-Identifier: Apache-2.0
"""The search for free boxes of a torus: sets of blocks are shifted and intersected.

A *window* is a box of any extents. It is represented by its corner. As in ``box_sums``, the free
windows of a shape are computed from the free windows of the two parts of this shape. Here, all
blocks of a word are processed at the same time. If no window of a shape is free, the search skips
larger shapes that contain this shape. Therefore, the search is shorter on a fuller torus.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.kernels.box_slots import Ints, Words, n_bits
from rebat.kernels.box_sums import mix
from rebat.kernels.jit import kernel

LINEAR, LOWEST, RANDOM = 0, 1, 2
"""Rules of choice: the first free blocks in linear order, the lowest free box, or a random box."""

COPY = -1
"""Value of the second operand of a step that copies the first operand."""


class Catalogue(NamedTuple):
    """The boxes of each volume.

    Attributes
    ----------
    volume : array (volumes,)
        Number of blocks in each box.
    program_of, program : arrays
        Rows ``program_of[v]`` to ``program_of[v + 1] - 1`` of ``program`` belong to volume v (see
        ``models.free_boxes``).
    shapes_of, shapes : arrays
        The shapes of each volume, indexed in the same way.
    allowed : array (shapes, words)
        Set of the allowed corners of each shape (see ``box_slots``).
    ranks : array (shapes, blocks)
        Position of each box in the order of boxes, from which the rule RANDOM computes a random
        number.
    inside : array (steps, words)
        For each step along the torus, the set of blocks from which the step does not wrap around.
    sizes : array (dimensions,)
        Extents of the torus, in blocks.
    everything : array (words,)
        The set of all blocks.
    sets, busy, taken, words : arrays
        Temporary results. ``meet`` explains the layout of ``sets``.
    full : array (volumes, entries, words)
        Cached sets of blocks. If all blocks of a set are in use, no box of the volume is free.
    next_full : array (volumes,)
        For each volume, the entry of ``full`` to replace next.
    """

    volume: Ints
    program_of: Ints
    program: Ints
    shapes_of: Ints
    shapes: Ints
    allowed: Words
    ranks: npt.NDArray[np.int32]
    inside: Words
    sizes: Ints
    everything: Words
    sets: Words
    busy: npt.NDArray[np.uint8]
    taken: npt.NDArray[np.uint8]
    words: Words
    full: Words
    next_full: Ints


@kernel
def meet(first: Any, second: Any, inside: Any, on: int, back: int, out: Any) -> bool:
    """Write into ``out`` all blocks of ``first`` from which a step leads to a block of ``second``.

    The function returns whether there are any. The step goes ``on`` blocks forwards. From blocks
    that are not in ``inside``, the step wraps around, so it goes ``back`` blocks backwards. A set
    of n words has n + 1 zero words before and after it, so that no step leaves the array.
    """
    n, bit = inside.shape[0], np.uint64(1)
    to, shift = n + (on >> 6), np.uint64(on & 63)
    to_back, shift_back = n + ((-back) >> 6), np.uint64(-back & 63)
    over, over_back = np.uint64(63) - shift, np.uint64(63) - shift_back
    left = np.uint64(0)
    for w in range(n):
        ahead = (second[to + w] >> shift) | (second[to + w + 1] << bit << over)
        behind = (second[to_back + w] >> shift_back) | (second[to_back + w + 1] << bit << over_back)
        word = first[n + w] & ((ahead & inside[w]) | (behind & ~inside[w]))
        out[n + w] = word
        left |= word
    return bool(left != 0)


@kernel
def lowest(word: Any) -> int:
    """Return the position of the lowest set bit of a nonzero word."""
    return n_bits((word & (~word + np.uint64(1))) - np.uint64(1))


@kernel
def first_corner(corners: Any, allowed: Any) -> int:
    """Return the lowest corner that is in ``corners`` and ``allowed``, or -1 if there is none."""
    n = allowed.shape[0]
    for w in range(n):
        word = corners[n + w] & allowed[w]
        if word:
            return (w << 6) + lowest(word)
    return -1


@kernel
def least_number(corners: Any, allowed: Any, ranks: Any, seed: int, serial: int) -> Any:
    """Find the allowed corner with the lowest random number. Return the corner, number and rank.

    If no corner is allowed, the corner is -1.
    """
    best, least, rank, n = -1, 1 << 40, 0, allowed.shape[0]
    for w in range(n):
        word = corners[n + w] & allowed[w]
        while word:
            corner = (w << 6) + lowest(word)
            word &= word - np.uint64(1)
            number = mix(seed, serial, ranks[corner])
            if number < least or (number == least and ranks[corner] < rank):
                best, least, rank = corner, number, ranks[corner]
    return best, least, rank


@kernel
def begin_search(catalogue: Any, v: int, taken: Any) -> int:
    """Write the free blocks into ``catalogue.sets[0]``. Return the first row of volume ``v``."""
    n = taken.shape[0]
    for w in range(n):
        catalogue.sets[0, n + w] = ~taken[w] & catalogue.everything[w]
    return catalogue.program_of[v]


@kernel
def next_shape(catalogue: Any, v: int, at: int) -> tuple[int, int, int]:
    """Find the next shape of volume ``v`` with a free box. The corner of the box may be forbidden.

    The search begins at row ``at`` of the program. The results are the row at which to continue,
    the index of the set of free corners, and the row of the shape (-1 if there is no further
    shape).
    """
    begin, end, sets = catalogue.program_of[v], catalogue.program_of[v + 1], catalogue.sets
    while at < end:
        row = catalogue.program[at]
        first, second, target, shape = row[0], row[1], row[5], row[7]
        if second != COPY and not meet(
            sets[first], sets[second], catalogue.inside[row[2]], row[3], row[4], sets[target]
        ):
            at = begin + row[6]  # windows that contain this one are not free
            continue
        at += 1
        if shape >= 0:
            return at, target, catalogue.shapes_of[v] + shape
    return end, 0, -1


@kernel
def free_box(
    catalogue: Any, v: int, taken: Any, rule: int, seed: int, serial: int
) -> tuple[int, int]:
    """Find a free box of volume ``v``. Return the row of its shape, and its corner.

    The row is -1 if no box is free.
    """
    best, corner, least, rank = -1, -1, 1 << 40, 0
    at, target, shape = next_shape(catalogue, v, begin_search(catalogue, v, taken))
    while shape >= 0:
        corners, allowed = catalogue.sets[target], catalogue.allowed[shape]
        if rule == LOWEST:
            candidate = first_corner(corners, allowed)
            if candidate >= 0 and (best < 0 or (candidate, shape) < (corner, best)):
                best, corner = shape, candidate
        else:
            ranks = catalogue.ranks[shape]
            candidate, number, place = least_number(corners, allowed, ranks, seed, serial)
            if candidate >= 0 and (number < least or (number == least and place < rank)):
                best, corner, least, rank = shape, candidate, number, place
        at, target, shape = next_shape(catalogue, v, at)
    return best, corner


@kernel
def any_choice(catalogue: Any, v: int, taken: Any) -> bool:
    """Return whether at least two boxes of volume ``v`` are free."""
    n_free, n = 0, taken.shape[0]
    at, target, shape = next_shape(catalogue, v, begin_search(catalogue, v, taken))
    while shape >= 0 and n_free < 2:
        for w in range(n):
            n_free += n_bits(catalogue.sets[target, n + w] & catalogue.allowed[shape, w])
        at, target, shape = next_shape(catalogue, v, at)
    return n_free > 1


@kernel
def put_box(sizes: Any, shape: Any, corner: int, out: Any) -> None:
    """Write the set of the blocks of a box with this shape and corner into ``out``."""
    volume = 1
    for extent in shape:
        volume *= extent
    out[:] = 0
    for index in range(volume):
        block, stride, offset, place = 0, 1, index, corner
        for axis in range(shape.shape[0]):
            size = sizes[axis]
            along = place % size + offset % shape[axis]
            block += (along if along < size else along - size) * stride
            offset, place, stride = offset // shape[axis], place // size, stride * size
        out[block >> 6] |= np.uint64(1) << np.uint64(block & 63)


@kernel
def line(busy: Any, count: int, out: Any) -> bool:
    """Mark ``count`` free blocks in ``out``. Return whether there are enough free blocks.

    The marked blocks are the first ``count`` consecutive free blocks. If there are not enough
    consecutive ones, they are the lowest free blocks.
    """
    run, n_free, total = 0, 0, busy.shape[0]
    for block in range(total):
        run = 0 if busy[block] else run + 1
        n_free += not busy[block]
        if run == count:
            out[:] = 0
            out[block - count + 1 : block + 1] = 1
            return True
    if n_free < count:
        return False
    out[:] = 0
    for block in range(total):
        if not busy[block]:
            out[block] = 1
            count -= 1
            if count == 0:
                break
    return True


@kernel
def is_full(catalogue: Any, v: int, words: Any) -> bool:
    """Return whether the cache proves that no box of volume ``v`` is free.

    This is the case if the blocks in use, ``words``, contain one of the sets ``catalogue.full[v]``.
    """
    for r in range(catalogue.full.shape[1]):
        holds = True
        for w in range(words.shape[0]):
            if catalogue.full[v, r, w] & ~words[w]:
                holds = False
                break
        if holds:
            return True
    return False


@kernel
def remember_full(catalogue: Any, v: int, words: Any) -> None:
    """Cache the blocks in use, ``words``, if no box of volume ``v`` is free."""
    r = catalogue.next_full[v]
    for w in range(words.shape[0]):
        catalogue.full[v, r, w] = words[w]
    catalogue.next_full[v] = (r + 1) % catalogue.full.shape[1]
