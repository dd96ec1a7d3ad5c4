# SPDX-License-Identifier: Apache-2.0
"""Nodes held for a job that waits or moves (*holds*). Plans treat them like a running attempt.

The node-stealing paper submits a fictitious job to hold nodes (section 7.2.1). rebat does not
inform Batsim about held nodes.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rebat.core.attempts import Attempt, Running
from rebat.core.nodes import NodeSet
from rebat.session.board import Board
from rebat.session.claims import Claims
from rebat.session.ledger import Hold


class Holds:
    """Holds free nodes for jobs, and releases them."""

    def __init__(self, board: Board, claims: Claims) -> None:
        self._board, self._claims = board, claims
        self._held: dict[int, Running] = {}
        self._records: dict[int, Hold] = {}

    def hold(self, attempt: Attempt, nodes: NodeSet, span_us: int) -> Running:
        """Hold free nodes for a job. ``span_us`` is the expected duration in microseconds."""
        serial = self._board.next_serial()
        held = msgspec.structs.replace(
            attempt,
            id=f"{attempt.job_id}~{serial}",
            serial=serial,
            n_nodes=nodes.size,
            walltime_us=span_us,
        )
        return self._take(Running(held, self._board.now_us, nodes))

    def _take(self, held: Running) -> Running:
        self._claims.take(held.nodes, held.attempt.serial)
        self._board.by_hold[held.attempt.serial] = held.attempt.id
        self._board.changes.held.append(held)
        self._held[held.attempt.serial] = held
        self._begin(held.attempt.serial, held, held.nodes)
        return held

    def _begin(self, tag: int, held: Running, up: NodeSet) -> None:
        """Start a record of held nodes in the ledger."""
        if up.size:
            self._records[tag] = Hold(held.attempt.job_id, up, self._board.now_us)
            self._board.ledger.holds.append(self._records[tag])

    def _end(self, tag: int) -> None:
        record = self._records.pop(tag, None)
        if record is not None:
            record.until_us = self._board.now_us

    def note_nodes(self, tags: Iterable[int]) -> None:
        """For each hold with one of these tags, start a new record without nodes that are down."""
        for tag in sorted(self._held.keys() & tags):
            held = self._held[tag]
            self._end(tag)
            self._begin(tag, held, self._claims.up(held.nodes))

    def without_the_dead(self, held: Running) -> Running | None:
        """Release the unusable nodes of a hold. Return the rest, or None if no node is left."""
        self.let_go(held)
        alive = self._claims.usable(held.nodes)
        attempt = msgspec.structs.replace(
            held.attempt, id=f"{held.attempt.id}~", n_nodes=alive.size
        )
        return self._take(Running(attempt, held.start_us, alive)) if alive.size else None

    def let_go(self, *holds: Running | None) -> None:
        """Release holds. If no plan has received a hold, remove it from the reported changes."""
        for held in filter(None, holds):
            self._claims.release(held.nodes)
            del self._board.by_hold[held.attempt.serial]
            del self._held[held.attempt.serial]
            self._end(held.attempt.serial)
            self._board.changes.leave(held, self._board.changes.ended)
