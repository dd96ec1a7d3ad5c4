# SPDX-License-Identifier: Apache-2.0
"""The table of placements."""

from __future__ import annotations

import math
from pathlib import Path

from rebat.core.errors import InputError, unknown_name
from rebat.kernels.box_free import LINEAR, LOWEST, RANDOM
from rebat.models.units import Allotment
from rebat.policies.placement.boxes import (
    Ageing,
    BoxChooser,
    Hazards,
    LeastHazard,
    Picker,
    Site,
    Stretched,
    most_contact,
)
from rebat.policies.placement.cores import FITS, CoresOfNodes
from rebat.policies.placement.plans import COUNTED, NAMED, Placement, boxed
from rebat.policies.point import Axes, Kind


def site(axes: Axes) -> Site:
    """How the torus is divided."""
    return Site(axes.torus, axes.unit, axes.boxes)


def allotment(axes: Axes, n_nodes: int) -> Allotment:
    """What the placements on a torus take: whole units in a line, or a box of them."""
    units = site(axes).units(n_nodes)
    if axes.placement == "slurm-linear":
        return lambda asked: units.in_line_for(asked) * units.size
    return lambda asked: units.count_for(asked) * units.size


def _faps(axes: Axes, told: Hazards | None) -> Placement:
    from_failure = believed(axes.foresight)[0] == "law"
    pick = LeastHazard(hazards(axes, told), axes.pack == "surface", from_failure)
    return boxed(BoxChooser(site(axes), LOWEST, pick))


def _cluster(axes: Axes, told: Hazards | None) -> Placement:
    best = FITS[axes.fit]
    return Placement(CoresOfNodes(best), backwards=CoresOfNodes(best, backwards=True))


def is_file(foresight: str) -> bool:
    """Whether a foresight is a file of nodes (see `models.failures.node_table`)."""
    return foresight.endswith(".csv")


def hazards(axes: Axes, told: Hazards | None) -> Hazards:
    """What FAPS believes of how nodes fail."""
    if axes.foresight in FORESIGHTS:
        return FORESIGHTS[axes.foresight]
    if is_file(axes.foresight):
        from rebat.models.failures.node_table import read_nodes  # scipy takes its time

        laws: Hazards = read_nodes(Path(axes.foresight)).laws
        return laws
    name, factor = believed(axes.foresight)
    if told is None:
        raise InputError(
            f"is {name!r}, but {TOLD[name]} is not known here", "axis foresight",
            f"a file of nodes (rebat failures fit), {', '.join(FORESIGHTS)}; or a run with a law",
        )  # fmt: skip
    return told if factor == 1 else Stretched(told, factor)


def believed(foresight: str) -> tuple[str, float]:
    """What a foresight goes by, and the factor that times to failure are misjudged by.

    >>> believed("law*0.5"), believed("youngest")
    (('law', 0.5), ('youngest', 1.0))

    Raises
    ------
    InputError
        For something that is not known, or no factor.
    """
    if foresight in FORESIGHTS or is_file(foresight):
        return foresight, 1.0
    name, times, text = foresight.partition("*")
    if name not in TOLD:
        known = (*TOLD, *(f"{told}*FACTOR" for told in TOLD), *FORESIGHTS, "FILE.csv")
        raise unknown_name("foresight", foresight, known)
    try:
        factor = float(text) if times else 1.0
    except ValueError:
        factor = math.nan
    if not LEAST_FACTOR <= factor <= 1 / LEAST_FACTOR:
        expected = f"{name}*FACTOR, from {LEAST_FACTOR:g} to {1 / LEAST_FACTOR:g}"
        raise InputError(f"foresight {foresight!r}", expected=expected)
    return name, factor


TOLD = {"law": "the law that nodes fail by", "fit": "what failed before (--begin)"}
"""What FAPS can be told: the law of the run, or one fitted to its history."""

LEAST_FACTOR = 1e-3

FORESIGHTS: dict[str, Hazards] = {"youngest": Ageing(1), "oldest": Ageing(-1)}
"""What FAPS can go by without a law: nodes up for the shortest time are the safest, or the longest.
"""

PICKS: dict[str, Picker | None] = {"corner": None, "surface": most_contact}
"""Which of the boxes an attempt takes that starts now, and FAPS among equals."""

_BOXES = frozenset({"torus", "unit", "boxes"})

PLACEMENTS: dict[str, Kind] = {
    "any": Kind(lambda axes, told: COUNTED),
    "named": Kind(lambda axes, told: NAMED),
    "slurm-linear": Kind(
        lambda axes, told: boxed(BoxChooser(site(axes), LINEAR)), frozenset({"torus", "unit"})
    ),
    "torus-first": Kind(
        lambda axes, told: boxed(BoxChooser(site(axes), LOWEST, PICKS[axes.pack])),
        _BOXES | {"pack"},
    ),
    "rps": Kind(
        lambda axes, told: boxed(BoxChooser(site(axes), RANDOM, seed=axes.seed)), _BOXES | {"seed"}
    ),
    "faps": Kind(_faps, _BOXES | {"pack", "foresight"}),
    "cluster": Kind(_cluster, frozenset({"fit"})),
}
"""What a plan reserves: numbers of nodes, which get the lowest ids when they start; nodes by name,
the lowest that stay free long enough; or boxes of a torus (Vardas et al. 2022): the first nodes in
a line, the box with the lowest corner, a random one, the one least likely to fail; or cores of
as few nodes as can be (Rodríguez-Pascual et al. 2019)."""
