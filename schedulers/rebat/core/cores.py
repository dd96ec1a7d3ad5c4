# SPDX-License-Identifier: Apache-2.0
"""Cores (processors) of nodes, and the limit of the size of a machine.

Node k with c cores has cores ``c k`` to ``c k+c-1``. The cores of a node fail and drain together.
Failure laws and operations refer to nodes. Machine events refer to cores. Examples: 125 nodes of 4
processors (Prabhakaran et al. 2018, section V) and 8 nodes of 16 cores (Rodríguez-Pascual et al.
2019, section 4).
"""

from __future__ import annotations

from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet


def groups_of(n_processors: int, cores_per_node: int) -> int:
    """Return the number of nodes of a machine with this number of processors."""
    check_machine(n_processors)
    if cores_per_node < 1 or n_processors % cores_per_node:
        expected = f"a number that divides the machine's {n_processors} processors"
        raise InputError(f"is {cores_per_node}", "cores per node", expected)
    return n_processors // cores_per_node


def processors_of(nodes: NodeSet, cores_per_node: int) -> NodeSet:
    """Return the processors of nodes.

    >>> processors_of(NodeSet.parse("0 2-3"), 4)
    NodeSet('0-3 8-15')
    """
    widened = nodes.intervals * cores_per_node
    widened[:, 1] += cores_per_node - 1
    return NodeSet(widened)


def nodes_of(processors: NodeSet, cores_per_node: int) -> NodeSet:
    """Return the nodes to which these processors belong.

    >>> nodes_of(NodeSet.parse("0-3 8-15"), 4)
    NodeSet('0 2-3')
    """
    numbers = processors.intervals // cores_per_node
    # an interval of entire nodes begins at the first and ends at the last processor of a node
    partial = processors.intervals % cores_per_node != (0, cores_per_node - 1)
    if partial.any():
        node = int(numbers[partial][0])
        first, last = node * cores_per_node, (node + 1) * cores_per_node - 1
        raise InputError(
            f"contains only some cores of node {node}", expected=f"all of {first}-{last}, or none"
        )
    return NodeSet(numbers)


MAX_NODES = 10_000_000
"""Maximum number of nodes of a machine. If cores are scheduled, this is the limit for cores."""


def check_machine(n_nodes: int, where: str = "nodes") -> int:
    """Check the number of nodes of a machine, and return it."""
    if n_nodes > MAX_NODES:
        raise InputError(f"is {n_nodes}", where, f"at most {MAX_NODES} nodes")
    return n_nodes
