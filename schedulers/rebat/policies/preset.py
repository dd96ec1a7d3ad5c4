# SPDX-License-Identifier: Apache-2.0
"""A named scheduler: a combination of a planning, a placement and reactions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from rebat.contract import Policy
from rebat.core.files import file_hash
from rebat.core.options import SessionOptions
from rebat.models.blocks import Allotment, TorusBlocks
from rebat.models.power import NodePower, read_power
from rebat.policies.own import OwnCode
from rebat.policies.own_policy import OwnPolicy
from rebat.policies.partitions import Partition, partitions_on
from rebat.policies.placement.hazards import Hazards, believed, is_file
from rebat.policies.point import Point


class Preset(msgspec.Struct, frozen=True):
    """A named scheduler: its summary, its source and its parts."""

    name: str
    summary: str
    source: str
    point: Point
    hazards: Hazards | None = None

    def make(self) -> Policy:
        """Return a new policy."""
        return self.point.policy(self.hazards)

    @property
    def draws(self) -> bool:
        """Whether the placement or the recovery is random."""
        recovery = self.point.recovery
        return self.point.placement.random or bool(recovery and recovery.random)

    @property
    def foresees(self) -> bool:
        """Whether the scheduler uses predictions of failures (the option ``foresight``)."""
        return "foresight" in self.point.effective

    @property
    def foresight(self) -> str:
        """The option ``foresight`` without its factor, for example 'law' or a file."""
        return believed(self.point.values.get("foresight", "law"))[0]

    def reseeded(self, seed: int) -> Preset:
        """Return the preset with another seed, computed from its present seed and ``seed``."""
        return self._with(seed=(self.point.common.seed + seed) % 2**63)

    def knowing(self, hazards: Hazards | None) -> Preset:
        """Return the preset with ``hazards`` as the failure law of the run."""
        return msgspec.structs.replace(self, hazards=hazards)

    @property
    def on_torus(self) -> bool:
        """Whether the scheduler allocates blocks of a torus."""
        return "torus" in self.point.values

    def blocks(self, n_nodes: int) -> TorusBlocks | None:
        """Return the blocks that the scheduler allocates on a torus.

        Return None if it allocates nodes.
        """
        return self.point.placement.blocks(n_nodes)

    def allotted(self, n_nodes: int) -> Allotment | None:
        """Return a function from the requested to the allocated number of nodes.

        Return None if both numbers are always equal.
        """
        return self.point.placement.allotted(n_nodes)

    def carrying_out(self) -> Preset:
        """Return a preset that carries out operations.

        If the option ``drain`` is set, return the preset itself.
        """
        return self._with(drain="migrate") if self.point.common.drain == "auto" else self

    def _with(self, **common: Any) -> Preset:
        changed = msgspec.structs.replace(self.point.common, **common)
        return msgspec.structs.replace(
            self, point=msgspec.structs.replace(self.point, common=changed)
        )

    def partitions(self, n_nodes: int, cores_per_node: int) -> tuple[Partition, ...]:
        """Return the partitions of a machine.

        The tuple is empty if the option ``partitions`` is not set.
        """
        return partitions_on(self.point.partitions, n_nodes, cores_per_node)

    @property
    def power(self) -> NodePower | None:
        """Power of a node, or None if the option ``power`` is not set."""
        watts = self.point.common.power
        return read_power(watts) if watts else None

    @property
    def session(self) -> SessionOptions:
        """The options of the session."""
        return self.point.session

    @property
    def sources(self) -> tuple[OwnCode, ...]:
        """Names and hashes of the files with user-defined rules, to record with the results."""
        return tuple(self.point.own_sources.values())


LATER = {
    "expected": "jobs+repairs",
    "wait": "requeue",
    "restarts": "beginning",
    "lenders": "rule",
    "detect": "0",
    "diagnose": "0",
    "reschedule": "0",
    "init": "0",
}
"""Defaults of options that earlier versions did not have. `identity` leaves out options with these
defaults, so that results of earlier versions stay valid.
"""


def identity(chosen: Preset | OwnPolicy) -> Any:
    """Return everything that determines a scheduler's results: options and file contents."""
    if isinstance(chosen, OwnPolicy):
        return _content(chosen.sources[0]) if chosen.sources else {"class": chosen.name}
    options = chosen.point.effective
    options = {name: value for name, value in options.items() if LATER.get(name) != value}
    if is_file(str(options.get("foresight", ""))):
        options["foresight"] = {"sha256": file_hash(Path(options["foresight"]))}
    own = chosen.point.own_sources
    if options["planning"] == "list" and ("placement" in own or options["placement"] == "cluster"):
        options["compression"] = "in place"  # earlier versions chose other nodes
    return options | {name: _content(source) for name, source in own.items()}


def _content(source: OwnCode) -> dict[str, str]:
    return {"name": source.name, "sha256": source.sha256}
