# SPDX-License-Identifier: Apache-2.0
"""Repaired nodes that are not used yet.

Batsim reports a node's repair and its next failure at the same time in two messages now and then,
and aborts if a job starts on the node in between. So a repaired node stays out of use until the
instant of its repair is over: for 10 microseconds, the shortest wait after which Batsim 4.2.1 calls
back.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.session.board import Board
from rebat.session.claims import Claims


class _Repair(msgspec.Struct):
    """Nodes repaired at ``at_us``, used from ``due_us`` on."""

    at_us: int
    due_us: int
    nodes: set[int]


class Repairs:
    """Puts repaired nodes back into use, after a while or before they fail again."""

    def __init__(self, board: Board, claims: Claims) -> None:
        self._board, self._claims = board, claims
        self._settle_us = to_us(board.options.settle_s)
        self._pending: list[_Repair] = []

    def add(self, nodes: NodeSet, at_us: int) -> None:
        """Nodes were repaired; they are used once the instant has settled."""
        self._pending.append(_Repair(at_us, at_us + self._settle_us, set(nodes)))
        self.settle()

    def __contains__(self, node: int) -> bool:
        return any(node in repair.nodes for repair in self._pending)

    def settle(self) -> None:
        """Put nodes back into use whose instant is over."""
        while self._pending and self._pending[0].due_us <= self._board.now_us:
            self._use(self._pending.pop(0))

    def fail(self, nodes: NodeSet) -> None:
        """Nodes fail again: end their repairs first, so that repair and failure are both news."""
        for repair in self._pending if self._pending else ():
            again = repair.nodes.intersection(nodes)
            repair.nodes -= again
            self._use(msgspec.structs.replace(repair, nodes=again))

    def _use(self, repair: _Repair) -> None:
        if not repair.nodes:
            return
        board, nodes = self._board, NodeSet.of(repair.nodes)
        self._claims.repair(nodes, repair.at_us)
        board.news.rejuvenated.extend(nodes)
        board.changes.repairs += nodes.size

    def dues_us(self) -> Iterator[int]:
        """When nodes are to be used, for the calls to ask for."""
        return (repair.due_us for repair in self._pending if repair.nodes)
