# SPDX-License-Identifier: Apache-2.0
"""Schedulers created from named options, as used in text and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from rebat.core.errors import InputError, unknown_name
from rebat.policies.own import is_own, placed
from rebat.policies.placement.choosers import OwnChooser
from rebat.policies.placement.hazards import is_file
from rebat.policies.placement.plans import AnyOptions, CustomOptions, PlacementOptions
from rebat.policies.point import PLACEMENTS, PLANNINGS, REACTIONS, CommonOptions, Point
from rebat.policies.reactions.own_reaction import OwnReaction, OwnReactionOptions
from rebat.policies.variants import OptionField, Options, choice, fields, parts, several

SYNONYMS = {"recovery": "react", "block": "unit"}
"""Other names of options, with the names in `OPTIONS`."""


class Variants(Options, frozen=True):
    """Options that choose the parts of a scheduler. Each part has its own options."""

    planning: Annotated[str, choice(PLANNINGS, "Rule that decides when jobs start.")] = "list"
    placement: Annotated[
        str,
        choice(
            PLACEMENTS,
            "Rule that chooses the nodes of an attempt, or FILE.py:FUNCTION.",
            OwnChooser,
        ),
    ] = "any"
    react: Annotated[
        str,
        several(
            ("requeue", *REACTIONS),
            "Rules that decide what happens to running jobs, for example after a failure: names, "
            "or FILE.py:NAME, joined by +.",
            OwnReaction,
        ),
    ] = "requeue"


KINDS: tuple[type[Options], ...] = (
    Variants,
    CommonOptions,
    *PLANNINGS.values(),
    *PLACEMENTS.values(),
    *REACTIONS.values(),
)

OPTIONS: dict[str, OptionField] = {
    name: row for kind in KINDS for name, row in fields(kind).items()
}
"""Every option by name."""


def own_parts(name: str, value: Any) -> list[str]:
    """Return the specifications of user-defined code in the value of an option.

    >>> own_parts("react", "stealing+mine.py:React"), own_parts("order", "c++/mine.py:order")
    (['mine.py:React'], ['c++/mine.py:order'])
    """
    return [*filter(is_own, parts_of(name, value))]


def parts_of(name: str, value: Any) -> list[Any]:
    """Return the parts of the value of an option, if user-defined code can be one of them."""
    option = OPTIONS.get(SYNONYMS.get(name, name))
    return parts(value) if option and option.extra.get("several") and is_own(value) else [value]


def point(**options: Any) -> Point:
    """Return the scheduler with these options. All other options have their default values."""
    return changed(Point(), options)


def changed(base: Point, changes: Mapping[str, Any], folder: Path | None = None) -> Point:
    """Return a scheduler with some options changed, after checking the changes.

    Numbers may be given as text.

    Relative paths of user-defined rules start from ``folder`` (default: the working directory).
    """
    changes = {SYNONYMS.get(name, name): value for name, value in changes.items()}
    for name in changes:
        if name not in OPTIONS:
            raise unknown_name("axis", name, OPTIONS, "rebat policies --axes")
    files = {
        name: "+".join(placed(p, folder) if is_own(p) else p for p in parts_of(name, value))
        for name, value in changes.items()
        if is_own(value)
    }
    if is_file(str(changes.get("foresight", ""))):
        files["foresight"] = str((folder or Path()) / changes["foresight"])
    new_values = {**changes, **files}
    values = {n: row.convert(new_values[n]) for n, row in OPTIONS.items() if n in new_values}
    new = _point(base.values | values)
    new.check()
    effective = new.effective
    idle = sorted(changes.keys() - effective.keys())
    if idle:
        names = [name for name in ("planning", "react", "depth") if name in new.values]
        where = ", ".join(f"{name}={new.values[name]}" for name in names)
        raise InputError(
            f"axis {', '.join(idle)} has no effect with {where}",
            expected=f"one of {', '.join(sorted(effective))}",
        )
    return new


def _point(values: Mapping[str, Any]) -> Point:
    """Return the scheduler with these options.

    Options of variants that are not chosen are ignored.
    """

    def create(kind: type[Options]) -> Any:
        return kind(**{name: values[name] for name in fields(kind) if name in values})

    planning, placement = PLANNINGS[values["planning"]], values["placement"]
    names = parts(values["react"])
    if names == ["stealing", "replacement"]:
        expected = "replacement+stealing: stealing helps only jobs without a replacement"
        raise InputError(f"invalid react {values['react']!r}", expected=expected)
    chosen: PlacementOptions = AnyOptions()
    if planning.places:
        custom = is_own(placement)
        chosen = CustomOptions(file=placement) if custom else create(PLACEMENTS[placement])
    reactions = tuple(
        OwnReactionOptions(file=name) if is_own(name) else create(REACTIONS[name])
        for name in names
        if name != "requeue"
    )
    return Point(create(planning), chosen, reactions, create(CommonOptions))
