# SPDX-License-Identifier: Apache-2.0
"""The pool of spare nodes: section I of Prabhakaran, Neumann and Wolf 2018."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from rebat.contract import Drain, Reject, Undrain, View
from rebat.core.attempts import SPARE, Attempt
from rebat.core.nodes import NodeSet
from rebat.core.traits import Moldable
from rebat.policies.context import Context


class SparePool:
    """The spare nodes: no job starts on them, and they replace failed nodes.

    `rebat.rules.replacement` is the pool of runs in which no policy is asked.

    At the beginning, the pool contains the last nodes of the machine. Later, idle nodes refill it.
    """

    def __init__(self, context: Context) -> None:
        self._n_spares, self._nodes = context.n_spares, set[int]()
        self._rule, self._flexible = context.rule, context.flexible
        self._limit_on = context.limit_on
        self._first = True

    def refill(self, view: View, hit_waits: bool) -> Iterator[Drain | Undrain]:
        """Reserve the last nodes at the beginning, and idle nodes later.

        While an attempt that lost nodes waits, the pool is not refilled, so that all nodes are
        available to the attempt (step 5).
        """
        if self._first:
            self._first = False
            self._nodes = set(range(max(0, view.n_nodes - self._n_spares), view.n_nodes))
            yield Drain(NodeSet.of(self._nodes), SPARE)
            return
        drained = view.machine.drained_for(SPARE)
        self._nodes = {node for node in self._nodes if drained[node]}  # some may be in use
        missing = self._n_spares - len(self._nodes)
        if hit_waits:
            yield from self.use(self.ready(view))
        elif missing > 0:
            idle = np.flatnonzero(view.machine.free)[-missing:].tolist()
            if idle:
                self._nodes.update(idle)
                yield Drain(NodeSet.of(idle), SPARE)

    def ready(self, view: View) -> list[int]:
        """Return the spare nodes that are up, ascending."""
        spare = view.machine.drained_for(SPARE, only=True) & ~view.machine.down
        return sorted(node for node in self._nodes if spare[node])

    def use(self, nodes: Iterable[int]) -> Iterator[Undrain]:
        """Remove ``nodes`` from the pool. Nodes that are not in the pool are ignored."""
        used = self._nodes.intersection(nodes)
        if used:
            self._nodes -= used
            yield Undrain(NodeSet.of(sorted(used)), SPARE)

    def reject(self, view: View, arrived: list[Attempt]) -> Iterator[Reject]:
        """Reject jobs that could start only with spare nodes."""
        limit = self._limit_on(view.n_nodes)
        for attempt in arrived:
            if attempt.id not in view.queue:
                continue  # another reaction rejected or started the attempt
            shape = view.job(attempt.job_id).shape
            least = self._rule.least(shape, attempt.n_nodes)
            if isinstance(shape, Moldable) and self._flexible:
                least = shape.with_request(least)[0]
            if reason := limit.exceeded(least):
                yield Reject(attempt.id, reason)
