"""The product of which every scheduler is a point: one table of choices per axis.

Adding a choice is a function or class and a row in one of the tables; every combination is then
there, under ``name:axis=choice,...`` on the command line and as JSON options over the wire. A rule
of one's own needs no row: ``name:order=FILE.py:FUNCTION``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from rebat.core.errors import InputError, unknown_name
from rebat.core.options import SessionOptions
from rebat.core.units import to_us
from rebat.models.boxes import LISTS
from rebat.models.migration import cost_us
from rebat.policies.base import Policy
from rebat.policies.composition import Planning, Scheduler
from rebat.policies.guard import Guarded
from rebat.policies.malleable.managers import MANAGERS
from rebat.policies.malleable.molding import MOLDINGS
from rebat.policies.malleable.rules import MALLEABILITY, MANAGED, Rule
from rebat.policies.own import OwnCode, file_of, is_own, name_of, placed, source_of
from rebat.policies.own_rules import OWN_RULES, own_rule
from rebat.policies.placement.boxes import Hazards, Site
from rebat.policies.placement.plans import Placement
from rebat.policies.placement.table import FORESIGHTS, PICKS, PLACEMENTS, TOLD, believed, is_file
from rebat.policies.planning.batsched import Fcfs, NeedsWalltime
from rebat.policies.planning.flexible import FlexibleScheduling
from rebat.policies.planning.list_scheduling import (
    ALL,
    MAINTENANCE,
    ListScheduling,
)
from rebat.policies.planning.shelves import Shelves
from rebat.policies.point import Axes, Kind, Known
from rebat.policies.queue_order import QUEUE_ORDERS
from rebat.policies.reactions.replacement import STEPS, NodeReplacement
from rebat.policies.reactions.restarts import SOLVERS
from rebat.policies.reactions.stealing import NodeStealing
from rebat.policies.reactions.victims import CRITERIA, RELEASES, TIMINGS, VICTIMS

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
    planning: Planning = FlexibleScheduling(
        _malleability(axes),
        known.members,
        MOLDINGS[axes.moldable],
        _rule(axes, "order"),
        axes.maintenance,
        to_us(axes.margin),
        axes.seed,
        axes.spares if "replacement" in parts(axes.react) else 0,
    )
    return NeedsWalltime(planning) if axes.walltimes == "required" else planning


def _malleability(axes: Axes) -> Rule:
    """How malleable jobs are treated: as rigid ones where the planning knows no others."""
    name = axes.malleable if axes.planning == "flexible" else "asked"
    return MALLEABILITY[name](MANAGERS[axes.manager])


def _shelf_planning(axes: Axes, backfill: bool) -> Planning:
    planning = Shelves(_rule(axes, "order"), backfill, to_us(axes.margin), axes.seed)
    return NeedsWalltime(planning) if axes.walltimes == "required" else planning


_ORDERED = frozenset({"order", "margin", "walltimes", "seed"})
_SIZES = frozenset({"malleable", "moldable", "manager", "resize_cost"})
_LIST = _ORDERED | {"depth", "reserve", "maintenance", "placement"}

PLANNINGS: dict[str, Kind] = {
    "list": Kind(_list_planning, _LIST),
    "flexible": Kind(_flexible_planning, _ORDERED | _SIZES | {"maintenance"}),
    "shelf": Kind(lambda axes, known: _shelf_planning(axes, True), _ORDERED),
    "shelf-nb": Kind(lambda axes, known: _shelf_planning(axes, False), _ORDERED),
    "batsched-fcfs": Kind(lambda axes, known: Fcfs()),
}
"""How starts are decided: list scheduling with reservations, the same with moldable and malleable
jobs (conservative, Prabhakaran et al. 2018), shelves with or without backfilling
(RR-9296, b = 1 or 0), or Batsched's plain FCFS."""

_AUTO = {
    "release": {"paper": "original", "authors": "resubmission"},
    "passes": {"paper": "one", "authors": "two"},
    "held": {"paper": "surviving", "authors": "lowest"},
}
"""What 'auto' means under each semantics."""


def _resolved(axes: Axes, axis: str) -> str:
    choice: str = getattr(axes, axis)
    return _AUTO[axis][axes.semantics] if choice == "auto" else choice


def _replacement(axes: Axes, known: Known) -> NodeReplacement:
    return NodeReplacement(
        frozenset(axes.steps.split("+")) - {""},
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
        _placement(axes, known.hazards).choose,
    )


REACTIONS: dict[str, Kind] = {
    "requeue": Kind(lambda axes, known: None),
    "stealing": Kind(_stealing, frozenset({"victim", "criterion", "timing", "release", "held"})),
    "replacement": Kind(_replacement, frozenset({"steps", "spares", "repair", "solver"})),
}
"""What to do when nodes fail under running jobs; 'requeue' leaves it to the session."""

SYNONYMS = {"recovery": "react"}
"""Other words for an axis."""

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
    "semantics": SEMANTICS,
    **{axis: ("auto", *choices.values()) for axis, choices in _AUTO.items()},
    "silent_errors": ("accept", "retry"),
}
"""The choices of each axis that is a name."""


COMMON = frozenset({"planning", "react", "semantics", "passes", "silent_errors"})
"""Axes that every scheduler has."""


def effective(axes: Axes) -> frozenset[str]:
    """The axes that have an effect at this point of the product."""
    found = COMMON | PLANNINGS[axes.planning].axes
    for name in parts(axes.react):
        found |= REACTIONS[name].axes
    if "placement" in found and not is_own(axes.placement):
        found |= PLACEMENTS[axes.placement].axes
    depth = depth_of(axes)
    idle = set() if depth == ALL else {"maintenance"}  # other plans are always rebuilt
    if depth in (0, ALL):
        idle.add("reserve")
    if axes.malleable not in MANAGED:
        idle.add("manager")
    return found - idle


def parts(text: str) -> list[str]:
    """What is written with + between.

    >>> parts("replacement+stealing")
    ['replacement', 'stealing']
    """
    return [part for part in text.split("+") if part]


def depth_of(axes: Axes) -> int:
    """The reservation depth as a number (ALL: every attempt)."""
    depth = axes.depth
    if isinstance(depth, str):
        depth = DEPTHS[depth] if depth in DEPTHS else int(depth)
    return depth


def check(axes: Axes) -> Axes:
    """The same axes, when every choice exists.

    Raises
    ------
    InputError
        For a choice that does not exist; it lists those that do. For a file that holds no rule.
    """
    for axis, choices in CHOICES.items():
        choice = getattr(axes, axis)
        if axis in OWN_RULES and is_own(choice):
            own_rule(axis, choice)
        elif axis == "foresight":
            believed(choice)  # a factor or a file will do too
        elif axis in ("react", "steps"):
            _check_parts(axis, choice, choices)
        elif choice not in choices:
            raise unknown_name(axis, choice, choices)
    Site(axes.torus, axes.unit).check()
    depth = str(axes.depth)
    if depth not in DEPTHS and not (depth.isdecimal() and int(depth) < 10**6):
        raise InputError(f"depth {depth!r}", expected=f"a number, or {', '.join(DEPTHS)}")
    if not -1e6 <= axes.margin <= 1e6:
        raise InputError(f"margin {axes.margin!r}", expected="seconds, up to 1e6 either way")
    try:
        cost_us(axes.resize_cost, 1)
    except InputError as error:
        raise error.at("axis resize_cost") from None
    if not 0 < axes.repair <= 1e9:
        raise InputError(f"repair {axes.repair!r}", expected="seconds, above 0, up to 1e9")
    if not 0 <= axes.spares < 2**31:
        raise InputError(f"spares {axes.spares!r}", expected="a number of nodes, 0 or more")
    if "replacement" in parts(axes.react) and axes.placement not in ("any", "named"):
        raise InputError(
            f"replacement on placement {axes.placement!r}",
            expected="any or named: what replaces a node of a box would have to lie in it",
        )
    if not 0 <= axes.seed < 2**63:
        raise InputError(f"seed {axes.seed!r}", expected="a whole number, 0 or more")
    return axes


def _check_parts(axis: str, text: str, choices: Iterable[str]) -> None:
    """Each part must exist, and stand there once; 'requeue' stands alone."""
    found = parts(text)
    for part in found:
        if part not in choices:
            raise unknown_name(axis, part, choices)
    alone = "requeue" in found and len(found) > 1
    if len(set(found)) < len(found) or alone or (axis == "react" and not found):
        raise InputError(f"{axis} {text!r}", expected="some of them, each once, with + between")


def changed(axes: Axes, changes: Mapping[str, Any], folder: Path | None = None) -> Axes:
    """Axes with some choices replaced, checked; texts are taken for numbers where needed.

    Files of one's own are looked for from ``folder`` on, or from here.
    """
    changes = {SYNONYMS.get(axis, axis): choice for axis, choice in changes.items()}
    own = {axis: placed(v, folder) for axis, v in changes.items() if is_own(v)}
    if is_file(str(changes.get("foresight", ""))):
        own["foresight"] = str((folder or Path()) / changes["foresight"])
    try:
        known = msgspec.to_builtins(axes) | dict(changes) | own
        new = check(msgspec.convert(known, Axes, strict=False))
    except msgspec.ValidationError as error:
        raise InputError(
            f"policy options: {error}", expected=f"axes {', '.join(Axes.__struct_fields__)}"
        ) from None
    idle = sorted(set(changes) - effective(new))
    if idle:
        point = ", ".join(f"{axis}={getattr(new, axis)}" for axis in ("planning", "react"))
        raise InputError(
            f"axis {', '.join(idle)} means nothing here ({point}, depth={new.depth})",
            expected=f"one of {', '.join(sorted(effective(new)))}",
        )
    return new


def policy_of(axes: Axes, told: Hazards | None = None) -> Policy:
    """A fresh policy at this point of the product; one with rules from files is guarded.

    ``told`` is what there is to know of how nodes fail.
    """
    known = Known(told)
    reactions = [REACTIONS[name].make(axes, known) for name in parts(axes.react)]
    planning = PLANNINGS[axes.planning].make(axes, known)
    policy = Scheduler(planning, [reaction for reaction in reactions if reaction])
    own = own_places(axes).values()
    if not own:
        return policy
    return Guarded(policy, "+".join(map(name_of, own)), [file_of(place) for place in own])


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
        silent_errors="retry" if axes.silent_errors == "retry" else "accept",
        resize_cost=axes.resize_cost,
    )
