# SPDX-License-Identifier: Apache-2.0
"""The recorded machine of a workload: the names of its nodes, and its partitions.

A partition in the machine is either a list of node names, or an object with the fields of `FIELDS`
and a list of node names: the field ``nodes`` contains the nodes that the batch system declares. The
field ``seen``, and a list without an object, contain the nodes on which recorded jobs of the
partition ran. These lists may lack nodes. Therefore, partitions with common nodes in these lists
all get the nodes of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from rebat.core.errors import InputError, short, unknown_name
from rebat.core.job_table import Jobs
from rebat.core.jobs import Workload
from rebat.core.nodes import NodeSet
from rebat.core.traits import traits_of
from rebat.core.units import parse_duration, to_us
from rebat.records.hosts import check_list, sorted_names


def _is_number(least: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and least <= value < 10**6


def _is_time(value: Any) -> bool:
    try:
        return parse_duration(value) > 0
    except InputError:
        return False


FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "tier": (_is_number(0), "a number from 0, the highest goes first"),
    "order": (lambda value: isinstance(value, str) and not {":", "+"} & {*value}, "a queue order"),
    "max_nodes": (_is_number(1), "a number of nodes"),
    "max_time": (_is_time, "a duration like 12h"),
    "default_time": (_is_time, "a duration like 12h"),
    "weight": (_is_number(1), "a number from 1"),
}
"""Fields of a declared partition: whether a value is valid, and what is expected."""


def node_list(workload: Workload, n_nodes: int) -> str:
    """Return the node names of a workload in short form (``n[001-003]``).

    Return an empty text if there are not ``n_nodes`` names.
    """
    names = (workload.machine or {}).get("nodes")
    return names if isinstance(names, str) and len(names_in(names)) == n_nodes else ""


def origin_of(machine: Mapping[str, Any] | None) -> float | None:
    """Return time 0 of a machine's record in seconds since 1970, or None if it states no date."""
    origin_s = (machine or {}).get("origin_s")
    if isinstance(origin_s, int | float) and 0 <= origin_s < LATEST_ORIGIN_S:
        return float(origin_s)
    return None


def machine_facts(workload: Workload, n_nodes: int) -> dict[str, Any]:
    """Return what a result records of the machine: names, time 0, time zone and partitions.

    The dict is empty if there are not ``n_nodes`` names.
    """
    names, machine = node_list(workload, n_nodes), workload.machine or {}
    if not names:
        return {}
    facts: dict[str, Any] = {
        key: machine[key] for key in ("origin_s", "time_zone") if key in machine
    }
    rows = partitions_in_use(workload)
    partitions = {row.name: str(row.nodes) for row in rows}
    return {"nodes": names, **facts, **({"partitions": partitions} if rows else {})}


def names_in(folded: Any) -> tuple[str, ...]:
    """Return the names in a list like ``n[001-003]``. Return an empty tuple if the list is invalid.

    >>> names_in("n[1-2,7]")
    ('n1', 'n2', 'n7')
    """
    return _names(folded) if isinstance(folded, str) else ()


@lru_cache(maxsize=64)
def _names(folded: str) -> tuple[str, ...]:
    try:
        check_list(folded)
    except InputError:
        return ()
    return sorted_names([folded])


LATEST_ORIGIN_S = 1e11
"""Times of a record after this one (the year 5138) are not dates."""


class StatedPartition(NamedTuple):
    """A partition that a workload states: its nodes, its fields, and whether it is declared."""

    name: str
    names: str
    nodes: NodeSet
    fields: Mapping[str, Any]
    declared: bool

    def __str__(self) -> str:
        """The name and the fields, for a reader."""
        fields = [f"{name.replace('_', ' ')} {value}" for name, value in self.fields.items()]
        return f"{self.name} ({', '.join(fields)})" if fields else self.name

    @property
    def words(self) -> list[str]:
        """The fields in the notation of the option ``partitions``."""
        return [
            str(value) if name == "tier" else f"{name}={value}"
            for name, value in self.fields.items()
        ]


def stated_partitions(machine: Mapping[str, Any] | None) -> list[StatedPartition]:
    """Return the partitions that a machine states, with numbers of nodes.

    Raises
    ------
    InputError
        If a field of a partition is invalid.
    """
    rows = (machine or {}).get("partitions")
    if not isinstance(rows, dict):
        return []
    numbers = {name: i for i, name in enumerate(names_in((machine or {}).get("nodes")))}
    stated = []
    for name, row in rows.items():
        fields = row if isinstance(row, dict) else {"seen": row}
        declared = "nodes" in fields
        names = fields.get("nodes", fields.get("seen"))
        fields = {key: fields[key] for key in FIELDS if key in fields}
        for key, value in fields.items():
            is_valid, expected = FIELDS[key]
            if not is_valid(value):
                where = f"partition {short(str(name))}: {key}"
                raise InputError(f"is {short(str(value))}", where, expected)
        nodes = _nodes(names, numbers)
        stated.append(StatedPartition(str(name), str(names), nodes, fields, declared))
    return stated


def _nodes(names: Any, numbers: Mapping[str, int]) -> NodeSet:
    """Return the numbers of nodes. If the machine has no names, the list contains numbers."""
    if numbers:
        return NodeSet.of(numbers[node] for node in names_in(names) if node in numbers)
    try:
        return NodeSet.parse(str(names or ""))
    except InputError:
        return NodeSet.of(())


RULES_OF_SITE: dict[str, tuple[str, ...]] = {
    "order": ("order", "order_period", "shares", "fairshare_rule", "half_life"),
    "limits": ("limits",),
    "reservations": ("reservations",),
}
"""The options of policies that belong to each rule in the field ``rules`` of a machine."""


def stated_rules_of(machine: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the rules that a machine states, as options of policies.

    Raises
    ------
    InputError
        If there are other fields, or values other than text, or if a value names Python code.
    """
    rules = (machine or {}).get("rules")
    if not isinstance(rules, dict):
        return {}
    names = [name for options in RULES_OF_SITE.values() for name in options]
    for key, value in rules.items():
        if key not in names:
            raise unknown_name("field of the rules", str(key), names)
        if not isinstance(value, str):
            raise InputError(f"is {short(str(value))}", f"rules: {key}", "a text")
        reject_code(value, f"rules: {key}")
    return rules


def reject_code(text: str, where: str) -> None:
    """Raise InputError if a text of a data file names a Python file. Data files run no code."""
    if ".py" in text:
        expected = "a name; only the command line, scripts and campaigns name Python files"
        raise InputError(f"names Python code: {short(text)}", where, expected)


def partitions_in_use(workload: Workload, cores_per_node: int = 1) -> list[StatedPartition]:
    """Return the partitions in which the jobs of a workload run. The list may be empty.

    Declared limits that a job of the workload exceeds are left out, because the job ran.

    If no partition is declared or has fields, there are three conditions: there are at least two
    groups that share no nodes, each job names a partition, and each job fits in its group.
    """
    rows = [row for row in stated_partitions(workload.machine) if row.nodes.size]
    if any(row.fields for row in rows):
        rows = _with_limits_of_jobs(rows, Jobs.of(workload.jobs), cores_per_node)
    observed = _joined([row for row in rows if not row.declared])
    declared = [row for row in rows if row.declared]
    if declared or any(row.fields for row in observed):
        return [*declared, *observed]
    if len({row.nodes.intervals.tobytes() for row in observed}) < 2:
        return []
    size = {row.name: row.nodes.size for row in observed}
    jobs = Jobs.of(workload.jobs)
    queues = [size.get(traits_of(extra).queue, 0) for extra in jobs.extra_fields]
    fits = jobs.n_nodes <= np.array(queues, dtype=np.int64)[jobs.extra_codes] * cores_per_node
    return observed if fits.all() else []


def _with_limits_of_jobs(
    rows: list[StatedPartition], jobs: Jobs, cores_per_node: int
) -> list[StatedPartition]:
    """Return partitions without the limits that their jobs exceed."""
    queues = np.array([traits_of(extra).queue for extra in jobs.extra_fields], dtype=object)
    queue_of = queues[jobs.extra_codes] if len(queues) else np.zeros(len(jobs), dtype=object)
    allowed = []
    for row in rows:
        own, fields = queue_of == row.name, dict(row.fields)
        if jobs.n_nodes[own].max(initial=0) > fields.get("max_nodes", np.inf) * cores_per_node:
            del fields["max_nodes"]
        if "max_time" in fields:
            longest_us = to_us(parse_duration(fields["max_time"]))
            if jobs.walltime_us[own].max(initial=0) > longest_us:
                del fields["max_time"]
        allowed.append(row._replace(fields=fields))
    return allowed


def _joined(rows: list[StatedPartition]) -> list[StatedPartition]:
    """Return partitions, each with the nodes of all partitions with which it shares nodes."""
    groups: list[NodeSet] = []
    for row in rows:
        linked = [nodes for nodes in groups if nodes.meets(row.nodes)]
        groups = [nodes for nodes in groups if not any(nodes is other for other in linked)]
        pairs = (tuple(p) for nodes in (*linked, row.nodes) for p in nodes.intervals.tolist())
        groups.append(NodeSet.from_intervals(pairs))
    return [
        row._replace(nodes=next(nodes for nodes in groups if nodes.meets(row.nodes)))
        for row in rows
    ]
