# SPDX-License-Identifier: Apache-2.0
"""Which boxes of a torus are free: sets of units, shifted along its dimensions and met.

Where a window of some units is free from a unit on is known from where its two parts are, just as
in ``box_sums``, but for all units of a word at once. Nothing that contains a window of which none
is free is looked at: the fuller the torus, the sooner it is done.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.kernels.box_slots import Ints, Words, n_bits
from rebat.kernels.box_sums import mix
from rebat.kernels.jit import kernel

LINEAR, LOWEST, RANDOM = 0, 1, 2
"""What is taken of what is free: the first units in a line, the first box in their order, any."""

COPY = -1
"""As second operand: the set is the first."""


class Catalogue(NamedTuple):
    """The boxes of each volume.

    Rows ``program_of[v]`` to ``program_of[v + 1]`` of ``program`` (see ``models.free_boxes``) are
    those of volume v, and likewise for ``shapes``. Each shape has its ``allowed`` corners (a set of
    units, see ``box_slots``), and for RANDOM the ``ranks`` of the boxes at them. A step from the
    units ``inside`` does not leave the torus; ``everything`` is all of its units. ``full`` are sets
    of units for each volume beside which no box is free; the next replaces ``next_full``. ``sets``
    (see ``meet``), ``busy``, ``taken`` and ``words`` are scratch arrays.
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
    """Write which units of a set have in another set the unit that is so far ``on``; if any.

    Where that is not ``inside`` the torus it wraps around, to the unit so far ``back``. Before and
    after the words of each set there are as many that are 0, and one more: no step leaves them.
    """
    n, one = inside.shape[0], np.uint64(1)
    to, rest = n + (on >> 6), np.uint64(on & 63)
    to_back, rest_back = n + ((-back) >> 6), np.uint64(-back & 63)
    over, over_back = np.uint64(63) - rest, np.uint64(63) - rest_back
    left = np.uint64(0)
    for w in range(n):
        ahead = (second[to + w] >> rest) | (second[to + w + 1] << one << over)
        behind = (second[to_back + w] >> rest_back) | (second[to_back + w + 1] << one << over_back)
        word = first[n + w] & ((ahead & inside[w]) | (behind & ~inside[w]))
        out[n + w] = word
        left |= word
    return bool(left != 0)


@kernel
def lowest(word: Any) -> int:
    """The place of the lowest bit of a word that is not 0."""
    return n_bits((word & (~word + np.uint64(1))) - np.uint64(1))


@kernel
def first_corner(corners: Any, allowed: Any) -> int:
    """The lowest of the corners that are allowed; -1: there is none."""
    n = allowed.shape[0]
    for w in range(n):
        word = corners[n + w] & allowed[w]
        if word:
            return (w << 6) + lowest(word)
    return -1


@kernel
def least_number(corners: Any, allowed: Any, ranks: Any, seed: int, serial: int) -> Any:
    """The allowed corner whose box draws the least number, with that and its rank; or a -1."""
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
    """Enter what is free; where the program of a volume begins."""
    n = taken.shape[0]
    for w in range(n):
        catalogue.sets[0, n + w] = ~taken[w] & catalogue.everything[w]
    return catalogue.program_of[v]


@kernel
def next_shape(catalogue: Any, v: int, at: int) -> tuple[int, int, int]:
    """Go on to the next shape that has free boxes, allowed or not, from a row of the program.

    The row after that, the set of their corners, and the row of the shape; -1: there is none.
    """
    begin, end, sets = catalogue.program_of[v], catalogue.program_of[v + 1], catalogue.sets
    while at < end:
        row = catalogue.program[at]
        first, second, target, shape = row[0], row[1], row[5], row[7]
        if second != COPY and not meet(
            sets[first], sets[second], catalogue.inside[row[2]], row[3], row[4], sets[target]
        ):
            at = begin + row[6]  # nor is anything that contains it free
            continue
        at += 1
        if shape >= 0:
            return at, target, catalogue.shapes_of[v] + shape
    return end, 0, -1


@kernel
def free_box(
    catalogue: Any, v: int, taken: Any, rule: int, seed: int, serial: int
) -> tuple[int, int]:
    """A box of a volume none of whose units is taken: the row of its shape, its corner.

    The row is -1: there is none.
    """
    best, corner, least, rank = -1, -1, 1 << 40, 0
    at, target, shape = next_shape(catalogue, v, begin_search(catalogue, v, taken))
    while shape >= 0:
        corners, allowed = catalogue.sets[target], catalogue.allowed[shape]
        if rule == LOWEST:
            found = first_corner(corners, allowed)
            if found >= 0 and (best < 0 or (found, shape) < (corner, best)):
                best, corner = shape, found
        else:
            ranks = catalogue.ranks[shape]
            found, number, place = least_number(corners, allowed, ranks, seed, serial)
            if found >= 0 and (number < least or (number == least and place < rank)):
                best, corner, least, rank = shape, found, number, place
        at, target, shape = next_shape(catalogue, v, at)
    return best, corner


@kernel
def any_choice(catalogue: Any, v: int, taken: Any) -> bool:
    """Whether more than one box of a volume is free."""
    n_free, n = 0, taken.shape[0]
    at, target, shape = next_shape(catalogue, v, begin_search(catalogue, v, taken))
    while shape >= 0 and n_free < 2:
        for w in range(n):
            n_free += n_bits(catalogue.sets[target, n + w] & catalogue.allowed[shape, w])
        at, target, shape = next_shape(catalogue, v, at)
    return n_free > 1


@kernel
def put_box(sizes: Any, shape: Any, corner: int, out: Any) -> None:
    """Write which units a box takes."""
    volume = 1
    for extent in shape:
        volume *= extent
    out[:] = 0
    for index in range(volume):
        unit, stride, offset, rest = 0, 1, index, corner
        for axis in range(shape.shape[0]):
            size = sizes[axis]
            along = rest % size + offset % shape[axis]
            unit += (along if along < size else along - size) * stride
            offset, rest, stride = offset // shape[axis], rest // size, stride * size
        out[unit >> 6] |= np.uint64(1) << np.uint64(unit & 63)


@kernel
def line(busy: Any, count: int, out: Any) -> bool:
    """The first run of free units, else the first free ones; whether there are enough."""
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
    """Whether all of a set is taken beside which, as is remembered, no box of a volume is free."""
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
    """Remember a set of units beside which no box is free, in the place of the oldest."""
    r = catalogue.next_full[v]
    for w in range(words.shape[0]):
        catalogue.full[v, r, w] = words[w]
    catalogue.next_full[v] = (r + 1) % catalogue.full.shape[1]
