"""Schedulers by name: each a point in the product of the axes.

A preset says what it is and how to build it; the session options go with it because the paper and
the authors' program differ in both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from rebat.core.errors import unknown_name
from rebat.core.options import SessionOptions
from rebat.policies.base import (
    Changes,
    Failure,
    Interrupt,
    Policy,
    Reject,
    Requeue,
    Start,
    View,
)
from rebat.policies.planning.list_scheduling import ALL, ListScheduling
from rebat.policies.queue_order import QUEUE_ORDERS
from rebat.policies.recovery.stealing import NodeStealing
from rebat.policies.recovery.victims import CRITERIA, VICTIMS


class Planning(Protocol):
    """The planning half of a policy."""

    def plan(self, view: View, changes: Changes) -> Iterable[Start | Reject]: ...


class Recovery(Protocol):
    """The recovery half of a policy."""

    def recover(self, view: View, failure: Failure) -> Iterable[Interrupt]: ...


class Scheduler:
    """A policy put together from a planning and a recovery."""

    def __init__(self, planning: Planning, recovery: Recovery) -> None:
        self._planning, self._recovery = planning, recovery

    def plan(self, view: View, changes: Changes) -> Iterable[Start | Reject]:
        """Which queued attempts to start, or to reject, now."""
        return self._planning.plan(view, changes)

    def recover(self, view: View, failure: Failure) -> Iterable[Interrupt]:
        """What to interrupt when nodes fail."""
        return self._recovery.recover(view, failure)


class Preset(msgspec.Struct, frozen=True):
    """A named scheduler: ``make`` gives a fresh policy, to be run in a session so set up."""

    name: str
    summary: str
    source: str
    make: Callable[[], Policy]
    session: SessionOptions = SessionOptions()


_STEALING_PAPER = "Du, Marchal, Pallez, Robert 2024"

DEPTHS = {"greedy": 0, "easy": 1, "conservative": ALL}
"""Reservation depths by name."""


def _planned(depth: str, order: str = "fcfs", maintenance: str = "compression") -> Planning:
    return ListScheduling(QUEUE_ORDERS[order], DEPTHS[depth], maintenance)


def _requeue(depth: str) -> Callable[[], Policy]:
    return lambda: Scheduler(_planned(depth), Requeue())


def _stealing(depth: str, victim: str, criterion: str) -> Callable[[], Policy]:
    return lambda: Scheduler(_planned(depth), NodeStealing(VICTIMS[victim], CRITERIA[criterion]))


_ROWS = [
    Preset(
        "baseline",
        "conservative backfilling; a failed job goes first in the queue",
        f"{_STEALING_PAPER}, section 4.1",
        _requeue("conservative"),
    ),
    Preset(
        "sfsj",
        "baseline, and steals a node from the smallest job when none is free (H111)",
        f"{_STEALING_PAPER}, section 4.2",
        _stealing("conservative", "fewest-nodes", "fewer-nodes"),
    ),
    Preset(
        "easy",
        "EASY backfilling; a failed job goes first in the queue",
        "Mu'alem and Feitelson 2001",
        _requeue("easy"),
    ),
    Preset(
        "easy-sfsj",
        "EASY backfilling with SFSJ's node stealing (no paper tried it)",
        f"{_STEALING_PAPER}, section 9 (future work)",
        _stealing("easy", "fewest-nodes", "fewer-nodes"),
    ),
    Preset(
        "greedy",
        "list scheduling without reservations: whatever fits starts",
        "Benoit et al. 2020, R-LIST-0",
        _requeue("greedy"),
    ),
    Preset(
        "greedy-sfsj",
        "list scheduling without reservations, with SFSJ's node stealing",
        f"{_STEALING_PAPER}, section 9 (future work)",
        _stealing("greedy", "fewest-nodes", "fewer-nodes"),
    ),
]

PRESETS: dict[str, Preset] = {row.name: row for row in _ROWS}
ALIASES = {"conservative": "baseline", "h111": "sfsj"}


def preset(name: str) -> Preset:
    """The preset of a name or alias, in any case; unknown names list the choices."""
    key = name.strip().lower()
    key = ALIASES.get(key, key)
    if key not in PRESETS:
        raise unknown_name("policy", name, [*PRESETS, *ALIASES])
    return PRESETS[key]
