"""A point in the product of schedulers, and what the rows of its tables are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from rebat.policies.placement.boxes import Hazards


class Axes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A point in the product: a choice per axis, by name.

    Attributes
    ----------
    planning : str
        A key of PLANNINGS: how starts are decided.
    order : str
        A key of QUEUE_ORDERS.
    depth : str or int
        Reservations for attempts that cannot start now: a key of DEPTHS, or a number.
    reserve : str
        Who uses up the reservations of a limited depth: 'blocked', only attempts that cannot start
        now, or 'first', the first of the queue (Algorithm 1 of RR-9296 as written).
    maintenance : str
        A key of MAINTENANCE.
    placement : str
        A key of PLACEMENTS.
    torus, unit : str
        Extents of the torus and of its allocation units, like 8x12x16x16x2 and 4x4x4x4x2; 'auto':
        those of Mira, Intrepid or an 8x8x8x8, by the number of nodes.
    boxes : str
        A key of LISTS: which boxes of a size there are to choose from.
    pack : str
        A key of PICKS.
    foresight : str
        What 'faps' goes by: 'law', that of the run; 'fit', one fitted to what failed before the
        run; either of them times a factor, like law*2: times to failure misjudged by so much; a key
        of FORESIGHTS; or a file of nodes.
    margin : float
        Seconds added to every walltime in the plan; below 0: the slack that walltimes hold.
    walltimes : str
        'optional', or 'required': jobs without one are rejected.
    recovery : str
        A key of REACTIONS.
    victim, criterion, timing : str
        Keys of VICTIMS, CRITERIA and TIMINGS, for the recovery 'stealing'.
    semantics : str
        'paper' or 'authors', where the node-stealing paper and its program differ.
    silent_errors : str
        'accept': a job that ends with an error has failed; 'retry': it is run again.
    seed : int
        For the order 'random', and the placement 'rps' (that of the failures is added to it).

    A rule of one's own stands as ``FILE.py:FUNCTION`` for order (of an attempt: a number, the
    smallest goes first), victim (of a candidate: a number, the smallest is the victim) and
    criterion (of a steal: whether); for placement (of a mask of free nodes, a request and the
    machine: a NodeSet, or None). Rules of the tables show
    what they get to see.
    """

    planning: str = "list"
    order: str = "fcfs"
    depth: str | int = "conservative"
    reserve: str = "blocked"
    maintenance: str = "compression"
    placement: str = "any"
    torus: str = "auto"
    unit: str = "auto"
    boxes: str = "all"
    pack: str = "corner"
    foresight: str = "law"
    margin: float = 0.0
    walltimes: str = "optional"
    recovery: str = "requeue"
    victim: str = "fewest-nodes"
    criterion: str = "fewer-nodes"
    timing: str = "now"
    semantics: str = "paper"
    release: str = "auto"
    passes: str = "auto"
    held: str = "auto"
    silent_errors: str = "accept"
    seed: int = 0


class Kind(msgspec.Struct, frozen=True):
    """How a planning, placement or reaction is made, from the axes and what is known of failures,
    and the axes that it has beside the common ones."""

    make: Callable[[Axes, Hazards | None], Any]
    axes: frozenset[str] = frozenset()
