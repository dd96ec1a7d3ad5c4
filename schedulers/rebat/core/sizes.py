# SPDX-License-Identifier: Apache-2.0
"""Limit of the size of a machine, checked before memory is allocated."""

from __future__ import annotations

from rebat.core.errors import InputError

MAX_NODES = 10_000_000
"""Maximum number of nodes of a machine. If cores are scheduled, this is the limit for cores."""


def check_machine(n_nodes: int, where: str = "nodes") -> int:
    """Check the number of nodes of a machine, and return it."""
    if n_nodes > MAX_NODES:
        raise InputError(f"is {n_nodes}", where, f"at most {MAX_NODES} nodes")
    return n_nodes
