"""Another point of the product: which choices have an effect there, and whether it exists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from rebat.core.errors import InputError, unknown_name
from rebat.models.migration import cost_us
from rebat.policies.axes import CHOICES, DEPTHS, PLANNINGS, REACTIONS, depth_of
from rebat.policies.malleable.rules import MANAGED
from rebat.policies.own import is_own, placed
from rebat.policies.own_rules import OWN_RULES, own_rule
from rebat.policies.placement.boxes import Site
from rebat.policies.placement.table import PLACEMENTS, believed, is_file
from rebat.policies.planning.list_scheduling import ALL
from rebat.policies.point import Axes, parts

SYNONYMS = {"recovery": "react"}
"""Other words for an axis."""

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
    if axes.malleable == "asked":
        idle.add("resize_cost")
    steps = parts(axes.steps)
    if "idle" not in steps:
        idle.add("spares")
    if "restart" not in steps:
        idle |= {"solver", "repair"}
    return found - idle


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
        cost_us(str(axes.resize_cost), 1)
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
    if axis == "react" and found == ["stealing", "replacement"]:
        expected = "replacement+stealing: what is not replaced may steal"
        raise InputError(f"react {text!r}", expected=expected)


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
