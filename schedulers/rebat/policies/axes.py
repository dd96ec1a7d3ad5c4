# SPDX-License-Identifier: Apache-2.0
"""The product of which every scheduler is a point: one table of choices per axis.

Adding a choice is a function or class and a row in one of the tables; every combination is then
there, under ``name:axis=choice,...`` on the command line and as JSON options over the wire. A rule
of one's own needs no row: ``name:order=FILE.py:FUNCTION``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebat.core.options import SessionOptions
from rebat.core.units import to_us
from rebat.models.boxes import LISTS
from rebat.policies.base import Policy
from rebat.policies.composition import Duty, Planning, Scheduler
from rebat.policies.guard import Guarded
from rebat.policies.malleable.managers import MANAGERS
from rebat.policies.malleable.molding import MOLDINGS
from rebat.policies.malleable.rules import MALLEABILITY, Rule
from rebat.policies.own import OwnCode, file_of, is_own, name_of, source_of
from rebat.policies.own_rules import OWN_RULES, own_rule
from rebat.policies.placement.boxes import Hazards
from rebat.policies.placement.cores import FITS
from rebat.policies.placement.plans import Placement
from rebat.policies.placement.table import FORESIGHTS, PICKS, PLACEMENTS, TOLD, believed, hazards
from rebat.policies.planning.batsched import NeedsWalltime
from rebat.policies.planning.fifo import Fifo
from rebat.policies.planning.flexible import FlexibleScheduling
from rebat.policies.planning.list_scheduling import (
    ALL,
    MAINTENANCE,
    ListScheduling,
)
from rebat.policies.planning.shelves import Shelves
from rebat.policies.point import Axes, Kind, Known, parts
from rebat.policies.queue_order import QUEUE_ORDERS, fcfs
from rebat.policies.reactions.compaction import TARGETS, Compaction
from rebat.policies.reactions.defragmentation import Defragmentation
from rebat.policies.reactions.foresight import Foresight
from rebat.policies.reactions.horizon import Horizon
from rebat.policies.reactions.operations import DRAINS, Operations
from rebat.policies.reactions.priorities import Priorities
from rebat.policies.reactions.replacement import STEPS, NodeReplacement
from rebat.policies.reactions.restarts import SOLVERS
from rebat.policies.reactions.sleep import Sleep
from rebat.policies.reactions.stealing import NodeStealing
from rebat.policies.reactions.victims import CRITERIA, RELEASES, TIES, TIMINGS, VICTIMS

DEPTHS = {"greedy": 0, "easy": 1, "conservative": ALL, "all": ALL}
"""Reservation depths by name; any whole number will do too."""

SEMANTICS = ("paper", "authors")


_TABLES: dict[str, Mapping[str, Any]] = {
    "order": QUEUE_ORDERS,
    "victim": VICTIMS,
    "criterion": CRITERIA,
    "timing": TIMINGS,
}
"""The tables of rules, which files may stand in for."""


def _rule(axes: Axes, axis: str) -> Any:
    """The rule that an axis names, from its table or from a file."""
    choice = getattr(axes, axis)
    return own_rule(axis, choice) if is_own(choice) else _TABLES[axis][choice]


def _placement(axes: Axes, told: Hazards | None) -> Placement:
    if is_own(axes.placement):
        found: Placement = own_rule("placement", axes.placement)
    else:
        found = PLACEMENTS[axes.placement].make(axes, told)
    return found


def _list_planning(axes: Axes, known: Known) -> Planning:
    planning: Planning = ListScheduling(
        _rule(axes, "order"),
        depth_of(axes),
        axes.maintenance,
        to_us(axes.margin),
        _placement(axes, known.hazards).plan_on,
        axes.reserve == "first",
        axes.seed,
    )
    return NeedsWalltime(planning) if axes.walltimes == "required" else planning


def _flexible_planning(axes: Axes, known: Known) -> Planning:
    replacing = "replacement" in parts(axes.react)
    planning: Planning = FlexibleScheduling(
        _malleability(axes),
        known.members,
        MOLDINGS[axes.moldable],
        _rule(axes, "order"),
        axes.maintenance,
        to_us(axes.margin),
        axes.seed,
        axes.spares if replacing else 0,
        replacing and "wait" in parts(axes.steps),
    )
    return NeedsWalltime(planning) if axes.walltimes == "required" else planning


def _malleability(axes: Axes) -> Rule:
    """How malleable jobs are treated: as rigid ones where the planning knows no others."""
    name = axes.malleable if axes.planning == "flexible" else "asked"
    return MALLEABILITY[name](MANAGERS[axes.manager])


def _shelf_planning(axes: Axes, backfill: bool) -> Planning:
    planning = Shelves(_rule(axes, "order"), backfill, to_us(axes.margin), axes.seed)
    return NeedsWalltime(planning) if axes.walltimes == "required" else planning


def _fifo(axes: Axes, known: Known) -> Planning:
    place = _placement(axes, known.hazards)
    counted = axes.placement == "any" and not axes.partitions
    return Fifo(
        None if counted else place.choose,
        place.backwards,
        _rule(axes, "order"),
        axes.partitions,
        axes.seed,
    )


_ORDERED = frozenset({"order", "margin", "walltimes", "seed"})
_SIZES = frozenset({"malleable", "moldable", "manager", "resize_cost"})
_LIST = _ORDERED | {"depth", "reserve", "maintenance", "placement"}

PLANNINGS: dict[str, Kind] = {
    "list": Kind(_list_planning, _LIST),
    "flexible": Kind(_flexible_planning, _ORDERED | _SIZES | {"maintenance"}),
    "shelf": Kind(lambda axes, known: _shelf_planning(axes, True), _ORDERED),
    "shelf-nb": Kind(lambda axes, known: _shelf_planning(axes, False), _ORDERED),
    "fifo": Kind(_fifo, frozenset({"order", "placement", "partitions", "seed"})),
}
"""How starts are decided: list scheduling with reservations, the same with moldable and malleable
jobs (conservative, Prabhakaran et al. 2018), shelves with or without backfilling
(RR-9296, b = 1 or 0), or first come, first served."""

_AUTO = {
    "release": {"paper": "original", "authors": "resubmission"},
    "passes": {"paper": "one", "authors": "two"},
    "held": {"paper": "surviving", "authors": "lowest"},
    "tie": {"paper": "order", "authors": "id"},
    "ended": {"paper": "together", "authors": "others-first"},
    "hit": {"paper": "failed", "authors": "victim"},
    "chosen": {"paper": "again", "authors": "once"},
    "k3": {"paper": "text", "authors": "program"},
    "digits": {"paper": "all", "authors": "six"},
}
"""What 'auto' means under each semantics."""

_HOLD_MARGINS_S = {"paper": 0.0, "authors": 900.0}
"""The same of the axis ``hold_margin``."""


def _resolved(axes: Axes, axis: str) -> str:
    """The choice of an axis, where it is 'auto' that of the semantics."""
    choice: str = getattr(axes, axis)
    return _AUTO[axis][axes.semantics] if choice == "auto" else choice


def _hold_margin_s(axes: Axes) -> float:
    margin = axes.hold_margin
    return _HOLD_MARGINS_S[axes.semantics] if margin == "auto" else float(margin)


def _replacement(axes: Axes, known: Known) -> NodeReplacement:
    return NodeReplacement(
        frozenset(parts(axes.steps)),
        _malleability(axes),
        known.members,
        axes.spares,
        to_us(axes.repair),
        axes.planning == "flexible",
        SOLVERS[axes.solver],
    )


def _stealing(axes: Axes, known: Known) -> NodeStealing:
    return NodeStealing(
        _rule(axes, "victim"),
        _rule(axes, "criterion"),
        _rule(axes, "timing"),
        RELEASES[_resolved(axes, "release")],
        TIES[_resolved(axes, "tie")],
        _resolved(axes, "chosen") == "once",
        _resolved(axes, "k3") == "program",
        _placement(axes, known.hazards).choose,
        _malleability(axes).least,
    )


def _compaction(axes: Axes, known: Known) -> Compaction:
    return Compaction(to_us(axes.period), TARGETS[axes.targets], FITS[axes.fit], axes.partitions)


def _priorities(axes: Axes, known: Known) -> Priorities:
    choose = _placement(axes, known.hazards).choose
    return Priorities(to_us(axes.period), axes.partitions, choose)


def _defragmentation(axes: Axes, known: Known) -> Defragmentation:
    choose = _placement(axes, known.hazards).choose
    order = _rule(axes, "order") if "order" in PLANNINGS[axes.planning].axes else fcfs
    return Defragmentation(to_us(axes.period), choose, order, axes.seed)


def _foresight(axes: Axes, known: Known) -> Foresight:
    return Foresight(
        to_us(axes.period),
        hazards(axes, known.hazards),
        believed(axes.foresight)[0] == "law",
        to_us(axes.ahead),
        axes.survival,
        _placement(axes, known.hazards).choose,
        axes.partitions,
    )


_STEALING = frozenset(
    {"victim", "criterion", "timing", "release", "held"}
    | {"tie", "hold_margin", "ended", "hit", "chosen", "k3"}
)

REACTIONS: dict[str, Kind] = {
    "requeue": Kind(lambda axes, known: None),
    "stealing": Kind(_stealing, _STEALING),
    "replacement": Kind(_replacement, frozenset({"steps", "spares", "repair", "solver"})),
    "compaction": Kind(_compaction, frozenset({"period", "targets", "fit"})),
    "priorities": Kind(_priorities, frozenset({"period", "partitions"})),
    "sleep": Kind(
        lambda axes, known: Sleep(to_us(axes.sleep), to_us(axes.boot), axes.partitions),
        frozenset({"sleep", "boot"}),
    ),
    "defragment": Kind(_defragmentation, frozenset({"period"})),
    "foresee": Kind(_foresight, frozenset({"period", "foresight", "ahead", "survival"})),
}
"""What to do with what runs: when nodes fail under it ('requeue' leaves that to the session), or at
any other time."""

CHOICES: dict[str, Mapping[str, Any] | tuple[str, ...]] = {
    **_TABLES,
    "planning": PLANNINGS,
    "placement": PLACEMENTS,
    "boxes": LISTS,
    "pack": PICKS,
    "foresight": (*TOLD, *FORESIGHTS),
    "reserve": ("blocked", "first"),
    "maintenance": MAINTENANCE,
    "walltimes": ("optional", "required"),
    "malleable": MALLEABILITY,
    "moldable": MOLDINGS,
    "manager": MANAGERS,
    "solver": SOLVERS,
    "react": REACTIONS,
    "steps": STEPS,
    "drain": ("auto", *DRAINS),
    "fit": FITS,
    "targets": TARGETS,
    "semantics": SEMANTICS,
    **{axis: ("auto", *choices.values()) for axis, choices in _AUTO.items()},
    "silent_errors": ("accept", "retry"),
}
"""The choices of each axis that is a name."""


def depth_of(axes: Axes) -> int:
    """The reservation depth as a number (ALL: every attempt)."""
    depth = axes.depth
    if isinstance(depth, str):
        depth = DEPTHS[depth] if depth in DEPTHS else int(depth)
    return depth


def policy_of(axes: Axes, told: Hazards | None = None) -> Policy:
    """A fresh policy at this point of the product; one with rules from files is guarded.

    ``told`` is what there is to know of how nodes fail.
    """
    known = Known(told)
    reactions = [REACTIONS[name].make(axes, known) for name in parts(axes.react)]
    planning = PLANNINGS[axes.planning].make(axes, known)
    duties: list[Duty] = [Horizon(to_us(axes.horizon))]
    orders = _operations(axes)
    if orders is not None:
        duties.insert(0, orders)
    policy = Scheduler(planning, [reaction for reaction in reactions if reaction], duties)
    own = own_places(axes).values()
    if not own:
        return policy
    return Guarded(policy, "+".join(map(name_of, own)), [file_of(place) for place in own])


def _operations(axes: Axes) -> Operations | None:
    """Who carries operations out; 'auto': nobody."""
    migrates = DRAINS[axes.drain] if axes.drain != "auto" else None
    if migrates is None:
        return None
    return Operations(migrates, parts(axes.operators), axes.partitions)


def own_places(axes: Axes) -> dict[str, str]:
    """Axis -> file and function of the rules that are one's own."""
    return {axis: getattr(axes, axis) for axis in OWN_RULES if is_own(getattr(axes, axis))}


def own_sources(axes: Axes) -> dict[str, OwnCode]:
    """Axis -> what the records say of the rules that are one's own."""
    return {axis: source_of(place) for axis, place in own_places(axes).items()}


def session_options_of(axes: Axes) -> SessionOptions:
    """The session that this point of the product runs in."""
    return SessionOptions(
        semantics="authors" if axes.semantics == "authors" else "paper",
        plan_while_killing=_resolved(axes, "passes") == "two",
        hold_lowest=_resolved(axes, "held") == "lowest",
        hold_margin_s=_hold_margin_s(axes),
        others_first=_resolved(axes, "ended") == "others-first",
        victim_hit="victim" if _resolved(axes, "hit") == "victim" else "failed",
        digits="six" if _resolved(axes, "digits") == "six" else "all",
        silent_errors="retry" if axes.silent_errors == "retry" else "accept",
        resize_cost=str(axes.resize_cost),
        migration_cost=str(axes.migration_cost),
        purge_s=axes.purge,
    )
