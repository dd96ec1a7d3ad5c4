# SPDX-License-Identifier: Apache-2.0
"""Cores (processors) that make up a node: node k of c cores is ``c k`` to ``c k+c-1``.

They fail and are drained together. Laws draw the failures of nodes, operations name nodes; events
on a machine name cores. Prabhakaran et al. 2018, section V: 125 nodes of 4 processors;
Rodríguez-Pascual et al. 2019, section 4: 8 nodes of 16 cores.
"""

from __future__ import annotations

from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.sizes import check_machine


def groups_of(n_processors: int, cores_per_node: int) -> int:
    """How many nodes there are on a machine.

    Raises
    ------
    InputError
        For a number of processors that is no multiple, or larger than any machine.
    """
    check_machine(n_processors)
    if cores_per_node < 1 or n_processors % cores_per_node:
        expected = f"a number that divides the machine's {n_processors} processors"
        raise InputError(f"is {cores_per_node}", "cores per node", expected)
    return n_processors // cores_per_node


def processors_of(nodes: NodeSet, cores_per_node: int) -> NodeSet:
    """The processors of nodes.

    >>> processors_of(NodeSet.parse("0 2-3"), 4)
    NodeSet('0-3 8-15')
    """
    widened = nodes.intervals * cores_per_node
    widened[:, 1] += cores_per_node - 1
    return NodeSet(widened)


def nodes_of(processors: NodeSet, cores_per_node: int) -> NodeSet:
    """The nodes of processors that are whole nodes.

    >>> nodes_of(NodeSet.parse("0-3 8-15"), 4)
    NodeSet('0 2-3')

    Raises
    ------
    InputError
        Naming a node of which only a part is there.
    """
    found = processors.intervals // cores_per_node
    # an interval of whole nodes begins with the first processor of one and ends with the last
    partial = processors.intervals % cores_per_node != (0, cores_per_node - 1)
    if partial.any():
        node = int(found[partial][0])
        first, last = node * cores_per_node, (node + 1) * cores_per_node - 1
        raise InputError(f"names a part of node {node}", expected=f"all of {first}-{last}, or none")
    return NodeSet(found)
