# SPDX-License-Identifier: Apache-2.0
"""Partitions of a machine, as in Slurm: named groups of nodes, which may overlap.

A partition may have its own queue order, maximum sizes and times of jobs, and planned time of jobs
without a walltime. Each partition has a *tier*: jobs of a higher tier are first. Under the planning
``fifo``, jobs of a lower tier are checkpointed when a job of a higher tier needs their cores
(section 4.3 of Rodríguez-Pascual et al. 2019: PriorityTier, PreemptMode=CHECKPOINT, lists of nodes
in opposite order).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Annotated, Any
from urllib.parse import quote, unquote

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.contract import View
from rebat.core.attempts import Attempt
from rebat.core.cores import groups_of, processors_of
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.numbers import exactly, rounded
from rebat.core.traits import Traits
from rebat.core.units import FOREVER_US, parse_duration, to_s, to_us
from rebat.policies.queue_order import check_order
from rebat.policies.variants import text

NONE = "none"
"""The option's value for a machine without partitions, even if the workload states some."""

_EXPECTED = (
    "NAME:NODES[:TIER][:order=ORDER][:max_nodes=N][:max_time=TIME][:default_time=TIME][:weight=N]"
    "[:reversed] joined by +, like normal:all:2+eternal:all:1:reversed"
)
_SHARES = re.compile(r"(\d+(?:\.\d+)?)%-(\d+(?:\.\d+)?)%\Z")


class Partition(msgspec.Struct, frozen=True):
    """A partition of a machine.

    Attributes
    ----------
    name : str
    nodes : NodeSet
        Numbers of its nodes, or of its cores if nodes have several cores.
    tier : int
        Jobs of the highest tier are first.
    weight : int
        Weight of the partition in a queue order by formula.
    backwards : bool
        Whether jobs start on the last nodes first.
    order : str
        Queue order, or an empty text for that of the scheduler.
    max_nodes : int
        Maximum number of nodes of a job, or of its cores if nodes have several cores.
    max_time_us, default_time_us : int
        Maximum walltime of a job, and planned time of a job without a walltime, in microseconds. 0:
        there is none.
    """

    name: str
    nodes: NodeSet
    max_nodes: int
    tier: int = 1
    backwards: bool = False
    order: str = ""
    max_time_us: int = 0
    default_time_us: int = 0
    weight: int = 1

    def adapted(self, attempt: Attempt) -> Attempt:
        """Return an attempt. If it has no walltime, it gets the default or the maximum time."""
        time_us = self.default_time_us or self.max_time_us
        if not time_us or attempt.has_walltime:
            return attempt
        return msgspec.structs.replace(attempt, walltime_us=time_us)

    def refuses(self, n_nodes: int, walltime_us: int) -> str:
        """Return why the limits of the partition exclude a job, or an empty text."""
        if n_nodes > self.max_nodes:
            needs, most = exactly(n_nodes, "node"), self.max_nodes
            return f"requires {needs}, but the maximum of partition {self.name} is {most}"
        if self.max_time_us and walltime_us > self.max_time_us:
            limit = rounded(to_s(self.max_time_us))
            return f"has a longer walltime than the maximum of partition {self.name}, {limit}"
        return ""


class PartitionText(msgspec.Struct, frozen=True):
    """A partition as text. ``nodes`` is 'all', a set (0-3) or a share of the machine (0%-25%)."""

    name: str
    nodes: str
    options: dict[str, Any] = {}

    @property
    def backwards(self) -> bool:
        """Whether jobs start on the last nodes first."""
        return bool(self.options.get("backwards"))


def _order(name: str) -> str:
    check_order(name)
    return name


def _positive(value: str) -> int:
    if not (value.isdecimal() and 0 < int(value) < 10**8):
        raise InputError(f"is {value!r}", expected="a whole number from 1")
    return int(value)


_OPTIONS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "order": ("order", _order),
    "max_nodes": ("max_nodes", _positive),
    "weight": ("weight", _positive),
    "max_time": ("max_time_us", lambda value: to_us(parse_duration(value))),
    "default_time": ("default_time_us", lambda value: to_us(parse_duration(value))),
}
"""Options of a partition in a text: field and reader of the value."""


@lru_cache(maxsize=64)
def read_partitions(text: str) -> tuple[PartitionText, ...]:
    """Return the partitions that a text describes, in the order in which jobs try them.

    >>> [partition.name for partition in read_partitions("high:0%-25%+low:25%-100%")]
    ['high', 'low']
    """
    rows = (
        tuple(_partition(part, text) for part in text.split("+")) if text not in ("", NONE) else ()
    )
    names = [row.name for row in rows]
    if len(set(names)) < len(names):
        raise InputError(f"partitions {text!r}: a name is a duplicate", expected=_EXPECTED)
    return rows


def _partition(part: str, text: str) -> PartitionText:
    name, nodes, *words = [*part.split(":"), ""] if ":" not in part else part.split(":")
    options: list[tuple[str, Any]] = []
    for word in words:
        key, equals, value = word.partition("=")
        if equals and key in _OPTIONS:
            field, read = _OPTIONS[key]
            try:
                options.append((field, read(value)))
            except InputError as error:
                raise error.at(f"partitions: {key}") from None
        elif word == "reversed":
            options.append(("backwards", True))
        elif word.isdecimal() and len(word) < 7:
            options.append(("tier", int(word)))
        else:
            options.append(("", None))
    fields = dict(options)
    if not (name and nodes) or "" in fields or len(fields) < len(options):
        raise InputError(f"invalid partitions {text!r}", expected=_EXPECTED)
    if nodes != "all" and not _SHARES.match(nodes):
        NodeSet.parse(nodes)
    return PartitionText(unquote(name), nodes, fields)


def partition_text(name: str, nodes: NodeSet, words: Iterable[str] = ()) -> str:
    """Return a partition in the notation of `read_partitions`.

    >>> partition_text("gpu", NodeSet.parse("0-3"), ["2", "max_time=1d"])
    'gpu:0-3:2:max_time=1d'
    """
    return ":".join([quote(name, safe=""), str(nodes), *words])


PartitionsOption = Annotated[
    str,
    text(
        read_partitions,
        "Partitions NAME:NODES, joined by +. NODES is 'all', a set like 0-3, or a share like "
        "0%-25%. A job runs in the partition that it names (fields partition, queue). Other jobs "
        "run in the first partition of the highest tier whose limits allow them, eternal jobs in "
        "the lowest tier. More words, each after a colon: TIER (a number; the highest "
        "goes first), order=ORDER, max_nodes=N, max_time=TIME, default_time=TIME (planned time of "
        "jobs without a walltime), weight=N (in a queue order by formula), reversed (fills the "
        "partition from its last node). none: no partitions. Empty: those of the workload, if it "
        "states any.",
        (NONE,),
    ),
]


@lru_cache(maxsize=64)
def partitions_on(text: str, n_nodes: int, cores_per_node: int) -> tuple[Partition, ...]:
    """Return the partitions of a machine."""
    rows, count = [], groups_of(n_nodes, cores_per_node)
    for row in read_partitions(text):
        nodes = processors_of(_nodes(row, count), cores_per_node)
        most = min(row.options.get("max_nodes", count) * cores_per_node, nodes.size)
        rows.append(Partition(row.name, nodes, **row.options | {"max_nodes": most}))
    return tuple(rows)


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


def open_to(
    partitions: Sequence[Partition], traits: Traits, size: int = 1, walltime_us: int | None = None
) -> list[Partition]:
    """Return the partitions in which a job may run, in the order of the list.

    A job that names a partition runs in this partition, and so does a job whose queue has the name
    of a partition. Other eternal jobs run in the lowest tier, and other jobs in the highest tier.
    Partitions whose limits exclude the job are left out, unless all limits do.
    """
    if named := traits.partition or traits.queue:
        rows = [row for row in partitions if row.name == named]
        if rows:
            return rows
        if traits.partition:
            names = ", ".join(row.name for row in partitions)
            raise InputError(f"is {traits.partition!r}", "partition", names)
    tiers = [row.tier for row in partitions]
    tier = min(tiers) if traits.eternal else max(tiers)
    rows = [row for row in partitions if row.tier == tier]
    known_us = walltime_us if walltime_us is not None and walltime_us < FOREVER_US else 0
    return [row for row in rows if not row.refuses(size, known_us)] or rows


def nodes_of_all(partitions: Iterable[Partition]) -> NodeSet:
    """Return the nodes of several partitions."""
    pairs = (tuple(pair) for row in partitions for pair in row.nodes.intervals.tolist())
    return NodeSet.from_intervals(pairs)


def groups_of_partitions(partitions: Sequence[Partition]) -> list[list[Partition]]:
    """Return groups of partitions. Partitions of different groups share no nodes."""
    groups: list[list[Partition]] = []
    for partition in partitions:
        linked = [g for g in groups if any(other.nodes.meets(partition.nodes) for other in g)]
        groups = [group for group in groups if group not in linked]
        groups.append([*(row for group in linked for row in group), partition])
    groups = [sorted(group, key=partitions.index) for group in groups]
    return sorted(groups, key=lambda group: partitions.index(group[0]))


def differ(rows: Sequence[Partition]) -> bool:
    """Return whether partitions need a plan of cells: they differ in nodes, tier or order."""
    return len({(row.nodes.intervals.tobytes(), row.tier, row.order) for row in rows}) > 1


def shares_of(n: int, sizes: Sequence[int]) -> list[int]:
    """Divide a number of spare nodes by the sizes of groups of partitions.

    The shares are rounded down. The remaining spare nodes belong to the first groups with the
    largest remainders.

    >>> shares_of(4, [7, 3])
    [3, 1]
    """
    exact = [divmod(n * size, sum(sizes)) for size in sizes]
    left = n - sum(whole for whole, _ in exact)
    first = sorted(range(len(sizes)), key=lambda i: -exact[i][1])[:left]
    return [whole + (i in first) for i, (whole, _) in enumerate(exact)]


def places_of(view: View, text: str, job_id: str) -> list[npt.NDArray[np.bool_]]:
    """Return the masks of the partitions in which a job may run.

    Without partitions, the list contains a single mask: the entire machine.
    """
    machine = view.machine
    partitions = partitions_on(text, machine.n_nodes, machine.cores_per_node)
    if not partitions:
        return [np.ones(machine.n_nodes, dtype=np.bool_)]
    job = view.job(job_id)
    places = open_to(partitions, job.traits, job.n_nodes, job.walltime_us)
    return [place.nodes.mask(machine.n_nodes) for place in places]
