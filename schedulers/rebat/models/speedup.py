"""How long a job lasts on another number of nodes than the one that its profile is written for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rebat.core.errors import InputError
from rebat.core.tagged import tagged


class Linear(msgspec.Struct, frozen=True, tag_field="model", tag="linear"):
    """Twice the nodes, half the time."""

    def speed(self, n_nodes: int) -> float:
        """Speed on so many nodes, that of one being 1."""
        return float(n_nodes)


class Amdahl(msgspec.Struct, frozen=True, tag_field="model", tag="amdahl"):
    """A part of the work, of the time on one node, does not run in parallel (Amdahl 1967)."""

    serial: float

    def speed(self, n_nodes: int) -> float:
        """Speed on so many nodes, that of one being 1."""
        return 1.0 / (self.serial + (1.0 - self.serial) / n_nodes)


LINEAR = Linear()
Speedup = Linear | Amdahl
MODELS: dict[str, type[Speedup]] = {"linear": Linear, "amdahl": Amdahl}


def speedup_of(profile: Mapping[str, Any]) -> Speedup:
    """The speedup of a profile, ``"speedup": {"model": "amdahl", "serial": 0.1}``, or linear.

    Raises
    ------
    InputError
        For an unknown model, and parameters that are none.
    """
    given = profile.get("speedup")
    if given is None:
        return LINEAR
    speedup = tagged(given, "model", MODELS, "speedup")
    if isinstance(speedup, Amdahl) and not 0 <= speedup.serial <= 1:
        raise InputError(f"speedup: serial is {speedup.serial}", expected="0 to 1")
    return speedup


def run_us(speedup: Speedup, length_us: int, n_nodes: int, new_n_nodes: int) -> int:
    """How long what lasts ``length_us`` on ``n_nodes`` lasts on ``new_n_nodes``.

    >>> run_us(Linear(), 60, 4, 3)
    80
    """
    if n_nodes == new_n_nodes:
        return length_us
    return round(length_us * speedup.speed(n_nodes) / speedup.speed(new_n_nodes))
