"""Schedulers by name: each a point in the product of the axes."""

from __future__ import annotations

from collections.abc import Callable

from rebat.core.errors import unknown_name
from rebat.policies.base import Policy, Requeue
from rebat.policies.composition import Planning, Preset, Scheduler
from rebat.policies.planning.list_scheduling import ALL, ListScheduling
from rebat.policies.queue_order import QUEUE_ORDERS
from rebat.policies.recovery.stealing import NodeStealing
from rebat.policies.recovery.victims import CRITERIA, VICTIMS


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
