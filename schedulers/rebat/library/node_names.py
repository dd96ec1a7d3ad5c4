# SPDX-License-Identifier: Apache-2.0
"""Names of the nodes of a recorded machine, in workloads, results and messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rebat.core.errors import InputError
from rebat.core.jobs import Workload
from rebat.records.hosts import check_list, sorted_names

_NODE = re.compile(r"\b[Nn]ode (\d+)\b(?! \()")


def node_list(workload: Workload, n_nodes: int) -> str:
    """Return the node names of a workload in short form (``n[001-003]``).

    Return an empty text if there are not ``n_nodes`` names.
    """
    names = (workload.machine or {}).get("nodes")
    return names if isinstance(names, str) and len(names_in(names)) == n_nodes else ""


def names_in(folded: Any) -> tuple[str, ...]:
    """Return the names in a list like ``n[001-003]``. Return an empty tuple if the list is invalid.

    >>> names_in("n[1-2,7]")
    ('n1', 'n2', 'n7')
    """
    if not isinstance(folded, str):
        return ()
    try:
        check_list(folded)
    except InputError:
        return ()
    return sorted_names([folded])


def with_names(text: str, names: Sequence[str]) -> str:
    """Add the name of a node after each node number in a text.

    >>> with_names("node 2 is down", ("n1", "n2", "n7"))
    'node 2 (n7) is down'
    """

    def named(match: re.Match[str]) -> str:
        node = int(match[1])
        return f"{match[0]} ({names[node]})" if node < len(names) else match[0]

    return _NODE.sub(named, text)


@contextmanager
def errors_name_nodes(names: Sequence[str]) -> Iterator[None]:
    """Add the names of nodes to errors that are raised in the block."""
    try:
        yield
    except InputError as error:
        problem = with_names(error.problem, names)
        raise InputError(problem, error.where, error.expected) from None
