# SPDX-License-Identifier: Apache-2.0
"""Free boxes of a torus, found by shifting and intersecting sets of units.

A unit is a node, or a block of nodes that is allocated as a whole (`models.units`). As in
``box_sums``, the positions of a free window follow from the positions of its two parts. Here, all
units of a word are processed at the same time. If no window of an extent is free, larger windows
that contain this window are not examined. Therefore, the search is shorter on a fuller torus.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.kernels.box_slots import Ints, Words, n_bits
from rebat.kernels.box_sums import mix
from rebat.kernels.jit import kernel

LINEAR, LOWEST, RANDOM = 0, 1, 2
"""Rules for what to take: the first units in a line, the lowest box, or a random box."""

COPY = -1
"""Value of the second operand if the result is a copy of the first operand."""


class Catalogue(NamedTuple):
    """The boxes of each volume.

    Attributes
    ----------
    volume : array (volumes,)
        Number of units of each box.
    program_of, program : arrays
        The rows of volume v are ``program_of[v]`` to ``program_of[v + 1]`` of ``program`` (see
        ``models.free_boxes``).
    shapes_of, shapes : arrays
        The shapes of each volume, stored in the same way.
    allowed : array (shapes, words)
        Set of the allowed corners of each shape (see ``box_slots``).
    ranks : array (shapes, units)
        Rank of each box in the order of boxes. The rule RANDOM hashes the rank to a random number.
    inside : array (steps, words)
        For each step, the units from which the step does not wrap around.
    sizes : array (dimensions,)
        Extents of the torus.
    everything : array (words,)
        All units.
    sets, busy, taken, words : arrays
        Scratch; for ``sets`` see ``meet``.
    full : array (volumes, entries, words)
        Sets of taken units that leave no free box of the volume.
    next_full : array (volumes,)
        The entry of ``full`` to replace next.
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
    """Write the units of a set from which a step leads into another set; return if there are any.

    The step goes ``on`` units forwards. If it would leave the torus (see ``inside``), it wraps
    around and goes ``back`` units. Before and after each set there are more zero words than words
    in the set, so that no step leaves the array.
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
    """Return the lowest allowed corner; -1 if there is none."""
    n = allowed.shape[0]
    for w in range(n):
        word = corners[n + w] & allowed[w]
        if word:
            return (w << 6) + lowest(word)
    return -1


@kernel
def least_number(corners: Any, allowed: Any, ranks: Any, seed: int, serial: int) -> Any:
    """Return the allowed corner with the lowest random number, this number, and the rank.

    The corner is -1 if there is none.
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
    """Store the free units; return where the program of a volume begins."""
    n = taken.shape[0]
    for w in range(n):
        catalogue.sets[0, n + w] = ~taken[w] & catalogue.everything[w]
    return catalogue.program_of[v]


@kernel
def next_shape(catalogue: Any, v: int, at: int) -> tuple[int, int, int]:
    """Find the next shape with free boxes, allowed or not, from a row of the program on.

    Returns the next row of the program, the set of corners, and the row of the shape; -1 if there
    is no shape.
    """
    begin, end, sets = catalogue.program_of[v], catalogue.program_of[v + 1], catalogue.sets
    while at < end:
        row = catalogue.program[at]
        first, second, target, shape = row[0], row[1], row[5], row[7]
        if second != COPY and not meet(
            sets[first], sets[second], catalogue.inside[row[2]], row[3], row[4], sets[target]
        ):
            at = begin + row[6]  # no window that contains this window is free
            continue
        at += 1
        if shape >= 0:
            return at, target, catalogue.shapes_of[v] + shape
    return end, 0, -1


@kernel
def free_box(
    catalogue: Any, v: int, taken: Any, rule: int, seed: int, serial: int
) -> tuple[int, int]:
    """Return a free box of a volume: the row of its shape and its corner.

    The row is -1 if there is none.
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
    """Return whether more than one box of a volume is free."""
    n_free, n = 0, taken.shape[0]
    at, target, shape = next_shape(catalogue, v, begin_search(catalogue, v, taken))
    while shape >= 0 and n_free < 2:
        for w in range(n):
            n_free += n_bits(catalogue.sets[target, n + w] & catalogue.allowed[shape, w])
        at, target, shape = next_shape(catalogue, v, at)
    return n_free > 1


@kernel
def put_box(sizes: Any, shape: Any, corner: int, out: Any) -> None:
    """Write the units of a box."""
    volume = 1
    for extent in shape:
        volume *= extent
    out[:] = 0
    for index in range(volume):
        unit, stride, offset, place = 0, 1, index, corner
        for axis in range(shape.shape[0]):
            size = sizes[axis]
            along = place % size + offset % shape[axis]
            unit += (along if along < size else along - size) * stride
            offset, place, stride = offset // shape[axis], place // size, stride * size
        out[unit >> 6] |= np.uint64(1) << np.uint64(unit & 63)


@kernel
def line(busy: Any, count: int, out: Any) -> bool:
    """Write the first sufficient run of free units, or else the lowest free units.

    Returns whether there are enough free units.
    """
    run, n_free, total = 0, 0, busy.shape[0]
    for unit in range(total):
        run = 0 if busy[unit] else run + 1
        n_free += not busy[unit]
        if run == count:
            out[:] = 0
            out[unit - count + 1 : unit + 1] = 1
            return True
    if n_free < count:
        return False
    out[:] = 0
    for unit in range(total):
        if not busy[unit]:
            out[unit] = 1
            count -= 1
            if count == 0:
                break
    return True


@kernel
def is_full(catalogue: Any, v: int, words: Any) -> bool:
    """Return whether a stored set shows that no box of the volume is free.

    This is the case if the stored set is a subset of the taken units ``words``.
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
    """Store a set of taken units that leaves no free box; it replaces the oldest set."""
    r = catalogue.next_full[v]
    for w in range(words.shape[0]):
        catalogue.full[v, r, w] = words[w]
    catalogue.next_full[v] = (r + 1) % catalogue.full.shape[1]
