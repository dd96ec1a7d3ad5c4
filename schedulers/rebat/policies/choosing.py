# SPDX-License-Identifier: Apache-2.0
"""Another point of the product: which choices have an effect there, and whether it exists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from rebat.core.errors import InputError, unknown_name
from rebat.models.migration import read_cost
from rebat.models.power import read_power
from rebat.policies.axes import CHOICES, DEPTHS, PLANNINGS, REACTIONS, depth_of
from rebat.policies.malleable.rules import MANAGED
from rebat.policies.own import is_own, placed
from rebat.policies.own_rules import OWN_RULES, own_rule
from rebat.policies.partitions import read_partitions
from rebat.policies.placement.boxes import Site
from rebat.policies.placement.table import FORESIGHTS, PLACEMENTS, believed, is_file
from rebat.policies.planning.list_scheduling import ALL
from rebat.policies.point import Axes, parts

SYNONYMS = {"recovery": "react"}
"""Other words for an axis."""

COMMON = frozenset(
    {"planning", "react", "semantics", "passes", "digits", "silent_errors"}
    | {"drain", "operators", "migration_cost", "purge", "power", "horizon"}
)
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
            _check_foresight(axes)
        elif axis in ("react", "steps"):
            _check_parts(axis, choice, choices)
        elif choice not in choices:
            raise unknown_name(axis, choice, choices)
    Site(axes.torus, axes.unit).check()
    depth = str(axes.depth)
    if depth not in DEPTHS and not (depth.isdecimal() and int(depth) < 10**6):
        raise InputError(f"depth {depth!r}", expected=f"a number, or {', '.join(DEPTHS)}")
    for axis in _PRICES:
        try:
            read_cost(str(getattr(axes, axis)))
        except InputError as error:
            raise error.at(f"axis {axis}") from None
    for axis, (least, most, what) in _RANGES.items():
        if not least <= getattr(axes, axis) <= most:
            raise InputError(
                f"{axis} {getattr(axes, axis)!r}", expected=f"{what}, {least:g} to {most:g}"
            )
    if axes.hold_margin != "auto" and not 0 <= _seconds(axes.hold_margin) <= 1e9:
        expected = "seconds, 0 to 1e+09, or auto"
        raise InputError(f"hold_margin {axes.hold_margin!r}", expected=expected)
    _check_placement(axes)
    _check_partitions(axes)
    if axes.power:
        read_power(axes.power)
    return axes


def _seconds(text: str | float) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


_BOXLESS = {
    "replacement": "what replaces a node of a box would have to lie in it",
    "compaction": "jobs would leave their boxes (see defragment)",
    "fifo": "what is left of a box is kept by a plan",
}
"""Reactions and plannings that know of no boxes, and why not."""


def _check_placement(axes: Axes) -> None:
    boxed = "torus" in effective(axes)
    for what, why in _BOXLESS.items():
        unknown = what == "replacement" and is_own(axes.placement)
        if what in (axes.planning, *parts(axes.react)) and (boxed or unknown):
            raise InputError(
                f"{what} on placement {axes.placement!r}",
                expected=f"any, named or cluster: {why}",
            )


def _check_foresight(axes: Axes) -> None:
    name, _ = believed(axes.foresight)  # a factor or a file will do too
    if "foresee" in parts(axes.react) and name in FORESIGHTS:
        raise InputError(
            f"foresight {name!r} knows no probabilities", "react foresee", "law, fit or FILE.csv"
        )


_PRICES = ("resize_cost", "migration_cost")
"""Axes that are costs."""

_RANGES = {
    "margin": (-1e6, 1e6, "seconds"),
    "repair": (1e-6, 1e9, "seconds"),
    "period": (1e-3, 1e9, "seconds"),
    "ahead": (1e-3, 1e9, "seconds"),
    "survival": (1e-9, 1 - 1e-9, "a probability"),
    "sleep": (0, 1e9, "seconds"),
    "boot": (0, 1e9, "seconds"),
    "purge": (0, 1e9, "seconds"),
    "horizon": (0, 1e9, "seconds"),
    "spares": (0, 2**31 - 1, "a number of nodes"),
    "seed": (0, 2**63 - 1, "a whole number"),
}
"""Axes that are numbers: from, to, and of what."""


def _check_partitions(axes: Axes) -> None:
    told = read_partitions(axes.partitions)
    if any(one.backwards for one in told) and axes.placement != "cluster":
        raise InputError("reversed partitions", "axis partitions", "placement=cluster")
    if "priorities" in parts(axes.react) and len(told) < 2:
        raise InputError(
            f"is {axes.partitions!r}", "axis partitions",
            "two or more for the reaction priorities, like high:0%-25%+low:25%-100%",
        )  # fmt: skip


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
    for axis in changes:
        if axis not in Axes.__struct_fields__:
            raise unknown_name("axis", axis, Axes.__struct_fields__)
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
