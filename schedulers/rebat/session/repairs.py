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
from rebat.session.agenda import Agenda
from rebat.session.board import Board
from rebat.session.claims import Claims


class _Repair(msgspec.Struct):
    """Nodes repaired at ``at_us``, used from ``due_us`` on."""

    at_us: int
    due_us: int
    nodes: set[int]


class Repairs:
    """Puts repaired nodes back into use, unless they fail again before."""

    def __init__(self, board: Board, claims: Claims, agenda: Agenda) -> None:
        self._board, self._claims, self._agenda = board, claims, agenda
        self._settle_us = to_us(board.options.settle_s)
        self._pending: list[_Repair] = []

    def add(self, nodes: NodeSet, at_us: int) -> None:
        """Nodes were repaired; they are used when their instant is over."""
        wait_us = self._settle_us and max(self._settle_us, self._agenda.margin_us)
        self._pending.append(_Repair(at_us, self._board.now_us + wait_us, set(nodes)))
        self.settle()

    def __contains__(self, node: int) -> bool:
        return any(node in repair.nodes for repair in self._pending)

    def settle(self) -> None:
        """Put nodes back into use whose instant is over."""
        while self._pending and self._pending[0].due_us <= self._board.now_us:
            self._use(self._pending.pop(0))

    def undo(self, nodes: NodeSet) -> NodeSet:
        """Nodes fail; return those that were in use: for the others nothing has changed."""
        if not self._pending:
            return nodes
        again: set[int] = set()
        for repair in self._pending:
            again |= repair.nodes.intersection(nodes)
            repair.nodes -= again
        for node in again:
            self._claims.failed_us[node] = self._board.now_us
        return NodeSet.of(set(nodes) - again)

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
