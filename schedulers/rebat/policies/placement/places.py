# SPDX-License-Identifier: Apache-2.0
"""The interface between the rules of list scheduling and a plan of nodes that a placement chooses.

`rebat.rules.plan` decides when a plan is updated, and in which way. It calls these methods in each
plan: first those for what has happened, then `append`, `rebuild`, `backfill`, or `compress` and
`append`, then `start` for each attempt that is due. Attempts are rows of the tables of the
simulation.
"""

from __future__ import annotations

from typing import Any, Protocol

from rebat.core.arrays import Ints

Waiting = tuple[Ints, Ints, Ints, Ints]
"""Number of nodes, planned duration (us), planned start (us) and row of each waiting attempt.

They are in queue order, shape (n,). A plan writes the planned starts.
"""


class Places(Protocol):
    """A plan of nodes. Initially all nodes are up and free."""

    def advance(self, now_us: int) -> None:
        """Set the current time. Delete reservations that were due at the previous time."""

    def clear(self) -> None:
        """Delete all reservations."""

    def hold(self, a: int, intervals: Ints, until_us: int) -> None:
        """Record that an attempt occupies nodes without a reservation."""

    def end(self, a: int) -> None:
        """Record that an attempt frees its nodes."""

    def prolong(self, a: int, until_us: int) -> None:
        """Set another planned end of an attempt that did not end in time."""

    def settle(self, late_us: int) -> None:
        """Delete all reservations if one of them starts before ``late_us``."""

    def fail(self, intervals: Ints) -> None:
        """Record that nodes are unusable."""

    def repair(self, intervals: Ints) -> None:
        """Record that nodes are usable again. Held nodes stay in use until their attempts end."""

    def append(self, waiting: Waiting) -> None:
        """Make first-fit reservations for the attempts that have none. Others do not change."""

    def rebuild(self, waiting: Waiting) -> None:
        """Delete all reservations and place the entire queue again, in order."""

    def compress(self, waiting: Waiting) -> None:
        """Renew the existing reservations, those of the first attempts, one after the other."""

    def backfill(self, waiting: Waiting, depth: int, first: bool) -> None:
        """Rebuild with at most ``depth`` reservations for attempts that cannot start now.

        With ``first``, the first ``depth`` attempts of the queue get reservations, including
        attempts that can start now.
        """

    def start(self, at: int, a: int, out: Any) -> int:
        """Write the reserved nodes of the attempt at a queue position, which starts now.

        They are written as intervals. The result is their number, or -1 if there are none.
        """

    def without_place(self, sizes: set[int]) -> list[int] | None:
        """Return those of these numbers of nodes for which the free nodes have no place.

        None: this is unknown.
        """
