# SPDX-License-Identifier: Apache-2.0
"""What a policy assumes about the failures of nodes: the option ``foresight``."""

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
    """Interface: the failure laws of nodes."""

    def hazard(self, uptime_s: Floats, duration_s: float) -> Floats:
        """Return the cumulative hazard of each node over a duration, shape (n,)."""

    def of(self, nodes: Ints) -> Hazards:
        """Return the hazards of these nodes, in their order."""


class Ageing(msgspec.Struct, frozen=True):
    """Hazards that depend only on uptime.

    They grow with uptime if ``sign`` is 1, and fall if it is -1.
    """

    sign: int

    def hazard(self, uptime_s: Floats, duration_s: float) -> Floats:
        """Return values that put the nodes in the same order as their hazards.

        Only the order of the values has a meaning.
        """
        return self.sign * uptime_s

    def of(self, nodes: Ints) -> Ageing:
        """Return this object, because all nodes are equal."""
        return self


NOTHING_FAILS = Ageing(0)


class Stretched(msgspec.Struct, frozen=True):
    """A deliberately wrong assumption: times to failure are multiplied by ``factor``."""

    hazards: Hazards
    factor: float

    def hazard(self, uptime_s: Floats, duration_s: float) -> Floats:
        """Return the hazard with all times divided by ``factor``."""
        return self.hazards.hazard(uptime_s / self.factor, duration_s / self.factor)

    def of(self, nodes: Ints) -> Stretched:
        """Return the same assumption for these nodes."""
        return Stretched(self.hazards.of(nodes), self.factor)


def is_file(foresight: str) -> bool:
    """Return whether a foresight is a node table (see `models.failures.node_table`)."""
    return foresight.endswith(".csv")


def assumed(foresight: str, law: Hazards | None) -> Hazards:
    """Return the hazards that belong to a value of the option ``foresight``.

    ``law`` is the failure law of the run, if there is one.
    """
    if foresight in FORESIGHTS:
        return FORESIGHTS[foresight]
    if is_file(foresight):
        from rebat.models.failures.node_table import read_nodes  # importing scipy is slow

        laws: Hazards = read_nodes(Path(foresight)).laws
        return laws
    name, factor = believed(foresight)
    if law is None:
        basis, option = LAWS[name]
        choices = f"foresight={', '.join(FORESIGHTS)} or FILE.csv from 'rebat failures fit'"
        raise InputError(
            f"{name!r} needs {basis}, which is unknown",
            "axis foresight",
            f"a run with {option}, or {choices}",
        )
    return law if factor == 1 else Stretched(law, factor)


def believed(foresight: str) -> tuple[str, float]:
    """Split the text of a foresight into its source and the factor of the times to failure.

    >>> believed("law*0.5"), believed("youngest")
    (('law', 0.5), ('youngest', 1.0))
    """
    if foresight in FORESIGHTS or is_file(foresight):
        return foresight, 1.0
    name, times, text = foresight.partition("*")
    if name not in LAWS:
        choices = (*LAWS, *(f"{law}*FACTOR" for law in LAWS), *FORESIGHTS, "FILE.csv")
        raise unknown_name("foresight", foresight, choices)
    try:
        factor = float(text) if times else 1.0
    except ValueError:
        factor = math.nan
    if not LEAST_FACTOR <= factor <= 1 / LEAST_FACTOR:
        expected = f"{name}*FACTOR, from {LEAST_FACTOR:g} to {1 / LEAST_FACTOR:g}"
        raise InputError(f"invalid foresight {foresight!r}", expected=expected)
    return name, factor


LAWS = {
    "law": ("the failure law of the run", "--law or --mtbf"),
    "fit": ("the record of failures before the run", "--begin"),
}
"""Foresights that use a failure law.

Each value states what the foresight needs, and which options of a run set it.
"""

LEAST_FACTOR = 1e-3

FORESIGHTS: dict[str, Hazards] = {"youngest": Ageing(1), "oldest": Ageing(-1)}
"""Foresights without a law: nodes with the shortest or the longest uptime are the safest."""

ForesightOption = Annotated[
    str,
    text(
        believed,
        "What the policy assumes about failures: the law of the run ('law'), a law fitted to "
        "failures before the run ('fit'), or a node table (FILE.csv). law*2 assumes times to "
        "failure that are twice as long. 'youngest' or 'oldest': the nodes with the shortest or "
        "the longest uptime are safest.",
        (*LAWS, *FORESIGHTS),
    ),
]
