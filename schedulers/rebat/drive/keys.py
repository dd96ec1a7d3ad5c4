# SPDX-License-Identifier: Apache-2.0
"""Queue orders by keys that Python computes: functions in a file, and random orders.

An attempt gets a label when it enters the queue: the place of its key among all keys so far.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from rebat.contract.proposals import called
from rebat.core.attempts import Attempt, resubmission_id
from rebat.core.traits import USUAL, Traits
from rebat.drive.labels import Labels
from rebat.drive.parts import LoopMachine, Uncovered
from rebat.drive.plans import Recorder
from rebat.policies.own import is_own
from rebat.policies.planning.fifo import FifoOptions
from rebat.policies.point import Point, is_in_python
from rebat.policies.queue_order import QUEUE_ORDERS, QueueOrder, at_its_place, bound
from rebat.state import tables

LIMIT, STEP = 2**31 - 1, 2**8
"""The range of labels, which have 32 bits, and their distance."""


def needs_python(point: Point) -> bool:
    """Return whether Python computes the keys of a queue order."""
    return any(map(is_in_python, point.orders.values()))


class Keys:
    """Labels attempts.

    Parameters
    ----------
    point : Point
    machine : LoopMachine
    ranks_ids : bool
        Whether the rules know the ranks of ids. Otherwise, Python also compares ids.

    Attributes
    ----------
    orders : dict
        The orders whose keys Python computes, by the names that partitions have.
    """

    def __init__(self, point: Point, machine: LoopMachine, ranks_ids: bool = True) -> None:
        view, margin_us, seed = cast(Any, None), point.planning.margin_us, point.common.seed
        self.orders: dict[str, QueueOrder] = {}
        for name, text in point.orders.items():
            if is_in_python(text) or (text == "fcfs-by-id" and not ranks_ids):
                order = point.common.rule("order") if is_own(text) else QUEUE_ORDERS[text]
                # only formulas need a view
                self.orders[name] = bound(order, view, margin_us, seed, machine.n_nodes)
        names = {machine.row_of[row.name]: row.order for row in machine.partitions} or {0: ""}
        self._names = [names[row] for row in range(len(names))]
        self._labels = {name: Labels(LIMIT, STEP) for name in self.orders}
        self._in_place = isinstance(point.planning, FifoOptions)

    def label(self, state: Any, a: int, attempt: Attempt, call: Any = called) -> None:
        """Label an attempt that enters the queue. ``call`` calls the function of the order."""
        name = self._names[state.jobs[state.attempts[a].job].partition]
        if name in self.orders:
            attempt = at_its_place(attempt) if self._in_place else attempt
            for row, label in self._labels[name].add(call(self.orders[name], attempt), a):
                state.attempts[row].label = label


class KeyRecorder(Recorder):
    """Labels the attempts that enter the queue, if no policy is asked.

    Parameters
    ----------
    keys : Keys
    job_id : callable
        Function that returns the id of a job, given its row.
    recorder : Recorder, optional
        Recorder of the plans.
    traits_of : callable, optional
        Function that returns the traits of a job, given its row.
    """

    def __init__(
        self,
        keys: Keys,
        job_id: Callable[[int], str],
        recorder: Recorder | None = None,
        traits_of: Callable[[int], Traits] = lambda j: USUAL,
    ) -> None:
        self._keys, self._job_id, self._traits_of = keys, job_id, traits_of
        self._recorder = recorder or Recorder()
        self.places = self._recorder.places
        self._first: dict[int, int] = {}

    def begin(self, state: Any, room: tables.Room) -> None:
        """Label the attempts that have entered the queue since the last plan."""
        for row in state.lists[: state.n.n_entered]:
            attempt = self._attempt(state, row.entered)
            try:
                self._keys.label(state, row.entered, attempt)
            except Exception as error:
                raise Uncovered("an error in the queue order") from error  # a guard states its line
        self._recorder.begin(state, room)

    def _attempt(self, state: Any, a: int) -> Attempt:
        row, job = state.attempts[a], state.jobs[state.attempts[a].job]
        job_id, number = self._job_id(row.job), row.number
        if number == 0:
            self._first[row.job] = a
        return Attempt(
            resubmission_id(job_id, number) if number else job_id, job_id, a + 1,
            self._first[row.job] + 1, number, job.size, row.wall, job.submit, row.queued,
            row.priority, job.job_class, self._traits_of(row.job),
        )  # fmt: skip

    def note(self, room: tables.Room, p: int) -> None:
        """Note the plan of a partition."""
        self._recorder.note(room, p)

    def end(self, room: tables.Room, now: int) -> None:
        """Record the plans of all partitions."""
        self._recorder.end(room, now)
