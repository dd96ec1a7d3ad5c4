# SPDX-License-Identifier: Apache-2.0
"""Another point of the product: from options by name, as texts and JSON have them."""

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
from rebat.policies.variants import OptionField, Options, choice, fields, parts, several

SYNONYMS = {"recovery": "react", "block": "unit"}
"""Other words for an option."""


class Variants(Options, frozen=True):
    """The parts of a scheduler; each has its own options."""

    planning: Annotated[str, choice(PLANNINGS, "How starts are decided.")] = "list"
    placement: Annotated[
        str, choice(PLACEMENTS, "Which nodes an attempt gets; or FILE.py:FUNCTION.", OwnChooser)
    ] = "any"
    react: Annotated[
        str,
        several(("requeue", *REACTIONS), "What to do with what runs; several with + between them."),
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


def point(**options: Any) -> Point:
    """Return the point with these options, and the defaults of the others."""
    return changed(Point(), options)


def changed(base: Point, changes: Mapping[str, Any], folder: Path | None = None) -> Point:
    """Return a point with some options replaced, checked; texts may stand for numbers.

    Files of the user are looked for from ``folder`` on, or from here.

    Raises
    ------
    InputError
        For an option or a value that does not exist, or has no effect there.
    """
    changes = {SYNONYMS.get(name, name): value for name, value in changes.items()}
    for name in changes:
        if name not in OPTIONS:
            raise unknown_name("axis", name, OPTIONS)
    files = {name: placed(value, folder) for name, value in changes.items() if is_own(value)}
    if is_file(str(changes.get("foresight", ""))):
        files["foresight"] = str((folder or Path()) / changes["foresight"])
    given = {**changes, **files}
    values = {name: row.convert(given[name]) for name, row in OPTIONS.items() if name in given}
    new = _point(base.values | values)
    new.check()
    effective = new.effective
    idle = sorted(changes.keys() - effective.keys())
    if idle:
        names = [name for name in ("planning", "react", "depth") if name in new.values]
        where = ", ".join(f"{name}={new.values[name]}" for name in names)
        raise InputError(
            f"axis {', '.join(idle)} means nothing here ({where})",
            expected=f"one of {', '.join(sorted(effective))}",
        )
    return new


def _point(values: Mapping[str, Any]) -> Point:
    """The point with these options; those of other variants are left out."""

    def made(kind: type[Options]) -> Any:
        return kind(**{name: values[name] for name in fields(kind) if name in values})

    planning, placement = PLANNINGS[values["planning"]], values["placement"]
    names = parts(values["react"])
    if names == ["stealing", "replacement"]:
        expected = "replacement+stealing: what is not replaced may steal"
        raise InputError(f"react {values['react']!r}", expected=expected)
    chosen: PlacementOptions = AnyOptions()
    if planning.places:
        chosen = CustomOptions(file=placement) if is_own(placement) else made(PLACEMENTS[placement])
    reactions = tuple(made(REACTIONS[name]) for name in names if name != "requeue")
    return Point(made(planning), chosen, reactions, made(CommonOptions))
