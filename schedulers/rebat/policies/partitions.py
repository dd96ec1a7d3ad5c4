# SPDX-License-Identifier: Apache-2.0
"""Partitions of a machine, as in Slurm: named groups of nodes, each with a tier.

Partitions of the same tier share no node. Partitions of different tiers may overlap. When a job of
a higher tier needs the cores of jobs of a lower tier, these jobs are checkpointed. Source: section
4.3 of Rodríguez-Pascual et al. 2019 (PriorityTier, PreemptMode=CHECKPOINT, lists of nodes in
opposite order).
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

_EXPECTED = "NAME:NODES[:TIER][:reversed] joined by +, like normal:all:2+eternal:all:1:reversed"
_SHARES = re.compile(r"(\d+(?:\.\d+)?)%-(\d+(?:\.\d+)?)%\Z")


class PartitionText(msgspec.Struct, frozen=True):
    """A partition as text. ``nodes`` is 'all', a set (0-3) or a share of the machine (0%-25%)."""

    name: str
    nodes: str
    tier: int = 1
    backwards: bool = False


class Partition(msgspec.Struct, frozen=True):
    """A partition of a machine.

    ``nodes`` contains the numbers of its nodes, or of its cores if nodes have several cores.
    """

    name: str
    nodes: NodeSet
    tier: int
    backwards: bool


@lru_cache(maxsize=64)
def read_partitions(text: str) -> tuple[PartitionText, ...]:
    """Return the partitions that a text describes, in the order in which jobs try them.

    >>> [partition.name for partition in read_partitions("high:0%-25%+low:25%-100%")]
    ['high', 'low']
    """
    rows = tuple(_partition(part, text) for part in text.split("+")) if text else ()
    names = [row.name for row in rows]
    if len(set(names)) < len(names):
        raise InputError(f"partitions {text!r}: a name is a duplicate", expected=_EXPECTED)
    return rows


def _partition(part: str, text: str) -> PartitionText:
    name, *words = part.split(":")
    backwards = words[-1:] == ["reversed"]
    nodes, *tiers = words[:-1] if backwards else words or [""]
    valid = len(tiers) <= 1 and all(tier.isdecimal() and len(tier) < 7 for tier in tiers)
    if not (name and nodes and valid):
        raise InputError(f"invalid partitions {text!r}", expected=_EXPECTED)
    if nodes != "all" and not _SHARES.match(nodes):
        NodeSet.parse(nodes)
    return PartitionText(name, nodes, int(tiers[0]) if tiers else 1, backwards)


PartitionsOption = Annotated[
    str,
    text(
        read_partitions,
        "Partitions NAME:NODES[:TIER][:reversed], joined by +. NODES is 'all', a set like 0-3, or "
        "a share like 0%-25%. The highest TIER goes first. 'reversed' fills the partition from its "
        "last node. Empty: no partitions.",
    ),
]


@lru_cache(maxsize=64)
def partitions_on(text: str, n_nodes: int, cores_per_node: int) -> tuple[Partition, ...]:
    """Return the partitions of a machine."""
    count = groups_of(n_nodes, cores_per_node)
    partitions = [
        Partition(
            row.name,
            processors_of(_nodes(row, count), cores_per_node),
            row.tier,
            row.backwards,
        )
        for row in read_partitions(text)
    ]
    for i, partition in enumerate(partitions):
        for other in partitions[:i]:
            if partition.tier == other.tier and partition.nodes.meets(other.nodes):
                raise InputError(
                    f"partitions {other.name} and {partition.name} overlap",
                    expected="disjoint nodes, or different tiers: NAME:NODES:TIER",
                )
    return tuple(partitions)


def _nodes(row: PartitionText, count: int) -> NodeSet:
    shares = _SHARES.match(row.nodes)
    if shares:
        first, last = (int(float(share) / 100 * count + 0.5) for share in shares.groups())
        nodes = NodeSet.from_intervals([(first, last - 1)] if first < last else [])
    elif row.nodes == "all":
        nodes = NodeSet.from_intervals([(0, count - 1)])
    else:
        nodes = NodeSet.parse(row.nodes)
    if not nodes.size:
        expected = f"at least one of {count} nodes"
        raise InputError(f"partition {row.name} has no node", expected=expected)
    if int(nodes.intervals[-1, 1]) >= count:
        last = int(nodes.intervals[-1, 1])
        raise InputError(f"partition {row.name} has node {last}", expected=f"0 to {count - 1}")
    return nodes


def open_to(partitions: Sequence[Partition], traits: Traits, size: int = 1) -> list[Partition]:
    """Return the partitions in which a job may run, in the order of the list.

    A job that names a partition runs in this partition. An eternal job that names no partition runs
    in the lowest tier. Other jobs that name no partition run in the highest tier. Partitions that
    are too small for the job are left out, unless all are too small.
    """
    if traits.partition:
        rows = [row for row in partitions if row.name == traits.partition]
        if not rows:
            names = ", ".join(row.name for row in partitions)
            raise InputError(f"is {traits.partition!r}", "partition", names)
        return rows
    tiers = [row.tier for row in partitions]
    tier = min(tiers) if traits.eternal else max(tiers)
    rows = [row for row in partitions if row.tier == tier]
    return [row for row in rows if row.nodes.size >= size] or rows


def places_of(view: View, text: str, job_id: str) -> list[npt.NDArray[np.bool_]]:
    """Return the masks of the partitions in which a job may run.

    Without partitions, the list contains a single mask: the entire machine.
    """
    machine = view.machine
    partitions = partitions_on(text, machine.n_nodes, machine.cores_per_node)
    if not partitions:
        return [np.ones(machine.n_nodes, dtype=np.bool_)]
    job = view.job(job_id)
    places = open_to(partitions, job.traits, job.n_nodes)
    return [place.nodes.mask(machine.n_nodes) for place in places]
