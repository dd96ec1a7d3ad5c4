# SPDX-License-Identifier: Apache-2.0
"""Partitions of a machine, as in Slurm: named groups of nodes, the higher tiers first.

Partitions of one tier share no node. Over the nodes of a higher tier a lower one may lie: its jobs
are checkpointed when a job of the higher one needs their cores (section 4.3 of Rodríguez-Pascual
et al. 2019: PriorityTier, PreemptMode=CHECKPOINT, lists of nodes in opposite order).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.contract import View
from rebat.core.cores import groups_of, processors_of
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.traits import Traits
from rebat.policies.variants import text

_EXPECTED = "NAME:NODES[:TIER][:reversed] with + between, like normal:all:2+eternal:all:1:reversed"
_SHARES = re.compile(r"(\d+(?:\.\d+)?)%-(\d+(?:\.\d+)?)%\Z")


class Told(msgspec.Struct, frozen=True):
    """A partition as it is written: ``nodes`` are 'all', a set like 0-3, or a share like 0%-25%."""

    name: str
    nodes: str
    tier: int = 1
    backwards: bool = False


class Partition(msgspec.Struct, frozen=True):
    """A partition on a machine; ``nodes`` are those of the simulation: cores, where nodes have
    several."""

    name: str
    nodes: NodeSet
    tier: int
    backwards: bool


@lru_cache(maxsize=64)
def read_partitions(text: str) -> tuple[Told, ...]:
    """What an axis says of partitions, in the order in which jobs try them; empty: there are none.

    >>> [one.name for one in read_partitions("high:0%-25%+low:25%-100%")]
    ['high', 'low']

    Raises
    ------
    InputError
        For what cannot be read, and names that come twice.
    """
    told = tuple(_told(part, text) for part in text.split("+")) if text else ()
    names = [one.name for one in told]
    if len(set(names)) < len(names):
        raise InputError(f"partitions {text!r} have one name twice", expected=_EXPECTED)
    return told


def _told(part: str, text: str) -> Told:
    name, *rest = part.split(":")
    backwards = rest[-1:] == ["reversed"]
    nodes, *tiers = rest[:-1] if backwards else rest or [""]
    whole = len(tiers) <= 1 and all(tier.isdecimal() and len(tier) < 7 for tier in tiers)
    if not (name and nodes and whole):
        raise InputError(f"partitions {text!r}", expected=_EXPECTED)
    if nodes != "all" and not _SHARES.match(nodes):
        NodeSet.parse(nodes)
    return Told(name, nodes, int(tiers[0]) if tiers else 1, backwards)


PartitionsOption = Annotated[
    str,
    text(
        read_partitions,
        "NAME:NODES[:TIER][:reversed] with + between, where NODES are 'all', a set like 0-3 or "
        "shares like 0%-25% of the nodes; empty: the machine is one.",
    ),
]


@lru_cache(maxsize=64)
def partitions_on(text: str, n_nodes: int, cores_per_node: int) -> tuple[Partition, ...]:
    """The partitions of a machine.

    Raises
    ------
    InputError
        For nodes that are not on it, and partitions of one tier that overlap.
    """
    count = groups_of(n_nodes, cores_per_node)
    found = [
        Partition(
            one.name,
            processors_of(_nodes(one, count), cores_per_node),
            one.tier,
            one.backwards,
        )
        for one in read_partitions(text)
    ]
    for i, one in enumerate(found):
        for other in found[:i]:
            if one.tier == other.tier and one.nodes.meets(other.nodes):
                raise InputError(
                    f"partitions {other.name} and {one.name} overlap",
                    expected="nodes of their own, or tiers: NAME:NODES:TIER",
                )
    return tuple(found)


def _nodes(told: Told, count: int) -> NodeSet:
    shares = _SHARES.match(told.nodes)
    if shares:
        first, last = (int(float(share) / 100 * count + 0.5) for share in shares.groups())
        found = NodeSet.from_intervals([(first, last - 1)] if first < last else [])
    elif told.nodes == "all":
        found = NodeSet.from_intervals([(0, count - 1)])
    else:
        found = NodeSet.parse(told.nodes)
    if not found.size:
        raise InputError(f"partition {told.name} has no node", expected=f"some of {count}")
    if int(found.intervals[-1, 1]) >= count:
        last = int(found.intervals[-1, 1])
        raise InputError(f"partition {told.name} has node {last}", expected=f"0 to {count - 1}")
    return found


def open_to(partitions: Sequence[Partition], traits: Traits, size: int = 1) -> list[Partition]:
    """Where a job may run, in order: in the partition that it names; else in any of the highest
    tier, or if it is eternal in any of the lowest. Of several those that are large enough.

    Raises
    ------
    InputError
        For a job that names a partition that there is not.
    """
    if traits.partition:
        found = [one for one in partitions if one.name == traits.partition]
        if not found:
            names = ", ".join(one.name for one in partitions)
            raise InputError(f"is {traits.partition!r}", "partition", names)
        return found
    tiers = [one.tier for one in partitions]
    tier = min(tiers) if traits.eternal else max(tiers)
    found = [one for one in partitions if one.tier == tier]
    return [one for one in found if one.nodes.size >= size] or found


def places_of(view: View, text: str, job_id: str) -> list[npt.NDArray[np.bool_]]:
    """The masks of the partitions in which a job may run: it spans no two; without partitions the
    whole machine."""
    machine = view.machine
    partitions = partitions_on(text, machine.n_nodes, machine.cores_per_node)
    if not partitions:
        return [np.ones(machine.n_nodes, dtype=np.bool_)]
    job = view.job(job_id)
    places = open_to(partitions, job.traits, job.n_nodes)
    return [one.nodes.mask(machine.n_nodes) for one in places]
