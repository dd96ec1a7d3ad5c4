# SPDX-License-Identifier: Apache-2.0
"""R-SHELF: shelves of jobs that start together, for Batsim and the embedded engine.

Section 4.3, Algorithm 2 of Benoit, Le Fèvre, Raghavan, Robert and Sun, Inria RR-9296, 2020. A new
shelf is built only when no job runs. Jobs that arrive or return to the queue before that wait for
the new shelf. If jobs arrive over time, this method is called batch scheduling (Shmoys et al.,
section 2.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from rebat.contract import Changes, Proposal, Reject, Start, View
from rebat.policies.composition import Planning
from rebat.policies.context import Context, SizeLimit
from rebat.policies.planning.batsched import TimedOptions
from rebat.policies.planning.queue import SortedQueue


class Shelves(Planning):
    """A planning that fills one shelf after the other with jobs, in queue order."""

    def __init__(self, options: ShelfOptions, context: Context) -> None:
        self._queue = SortedQueue(context.order, options.margin_us, context.seed, context.period_us)
        self._backfill = options.backfill
        self._began = False

    def plan(self, view: View, changes: Changes) -> Iterable[Proposal]:
        """Start a new shelf when the previous one has ended.

        Reject jobs that are larger than the machine.
        """
        if not self._began:
            self._queue.on_machine(view)
            self._began = True
        self._queue.book(changes.started, changes.withdrawn)
        decisions: list[Proposal] = []
        for attempt in (*changes.arrived, *changes.resubmitted):
            if reason := SizeLimit(view.n_nodes).exceeded(attempt.n_nodes):
                decisions.append(Reject(attempt.id, reason))
            else:
                self._queue.add(attempt)
        if not view.running:
            self._queue.sort(view.now_us)
            self._fill_shelf(view)
            due = self._queue.due(view.now_us)
            decisions += [Start(attempt.id) for _, attempt in due]
        return decisions

    def reasons(self, view: View) -> Mapping[str, str]:
        """Return the same sentence for every queued attempt."""
        return dict.fromkeys(view.queue, "it waits for the next shelf")

    def _fill_shelf(self, view: View) -> None:
        free = view.n_free
        for position, attempt in enumerate(self._queue.attempts):
            if attempt.n_nodes <= free:
                free -= attempt.n_nodes
                self._queue.start[position] = view.now_us
            elif not self._backfill:
                break


class ShelfOptions(TimedOptions, frozen=True, tag="shelf"):
    """Shelves of jobs that start together, with backfilling (RR-9296, b = 1)."""

    kind = Shelves
    backfill: ClassVar[bool] = True
    """The parameter b: whether a shelf is filled with later attempts if an attempt does not fit."""


class PlainShelfOptions(ShelfOptions, frozen=True, tag="shelf-nb"):
    """Shelves without backfilling (RR-9296, b = 0)."""

    backfill: ClassVar[bool] = False
