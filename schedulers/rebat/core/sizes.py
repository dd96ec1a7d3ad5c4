# SPDX-License-Identifier: Apache-2.0
"""The largest machine: a limit that is checked before memory is taken."""

from __future__ import annotations

from rebat.core.errors import InputError

MAX_NODES = 10_000_000
"""Nodes of a machine, or its cores where they are scheduled one by one.

No machine is larger; more is taken for a mistake."""


def check_machine(n_nodes: int, where: str = "nodes") -> int:
    """The number of nodes, if there can be such a machine.

    Raises
    ------
    InputError
        For more nodes than `MAX_NODES`.
    """
    if n_nodes > MAX_NODES:
        raise InputError(f"is {n_nodes}", where, f"at most {MAX_NODES} nodes")
    return n_nodes
