# SPDX-License-Identifier: Apache-2.0
"""What a policy believes of how nodes fail: the option ``foresight``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError, unknown_name
from rebat.policies.variants import text

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Hazards(Protocol):
    """What is known of how nodes fail."""

    def hazard(self, uptime_s: Floats, duration_s: float) -> Floats:
        """For every node the cumulative hazard while it runs on for so long, shape (n,)."""

    def of(self, nodes: Ints) -> Hazards:
        """What is known of these nodes alone, in their order."""


class Ageing(msgspec.Struct, frozen=True):
    """Nothing is known but uptimes: nodes get worse with them (``sign`` 1), or better (-1)."""

    sign: int

    def hazard(self, uptime_s: Floats, duration_s: float) -> Floats:
        """Not a hazard, but in its order."""
        return self.sign * uptime_s

    def of(self, nodes: Ints) -> Ageing:
        """The same for all nodes."""
        return self


NOTHING_FAILS = Ageing(0)


class Stretched(msgspec.Struct, frozen=True):
    """A belief that is wrong: all times to failure are taken for ``factor`` times as long."""

    hazards: Hazards
    factor: float

    def hazard(self, uptime_s: Floats, duration_s: float) -> Floats:
        """That of times that all pass more slowly."""
        return self.hazards.hazard(uptime_s / self.factor, duration_s / self.factor)

    def of(self, nodes: Ints) -> Stretched:
        """The same belief of these nodes alone."""
        return Stretched(self.hazards.of(nodes), self.factor)


def is_file(foresight: str) -> bool:
    """Whether a foresight is a file of nodes (see `models.failures.node_table`)."""
    return foresight.endswith(".csv")


def assumed(foresight: str, told: Hazards | None) -> Hazards:
    """Return what a foresight believes of how nodes fail; ``told`` is the law of the run."""
    if foresight in FORESIGHTS:
        return FORESIGHTS[foresight]
    if is_file(foresight):
        from rebat.models.failures.node_table import read_nodes  # scipy takes its time

        laws: Hazards = read_nodes(Path(foresight)).laws
        return laws
    name, factor = believed(foresight)
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

ForesightOption = Annotated[
    str,
    text(
        believed,
        "Assumed failures: 'law', that of the run; 'fit', a law fitted to failures before the "
        "run; either times a factor, like law*2, by which times to failure are misjudged; "
        "youngest or oldest; or a file of nodes, FILE.csv.",
    ),
]
