# SPDX-License-Identifier: Apache-2.0
"""Queue orders by keys that Python computes: functions in a file, and random orders.

An attempt gets a label when it enters the queue: the place of its key among all keys so far.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from rebat.core.attempts import Attempt, resubmission_id
from rebat.drive.labels import Labels
from rebat.drive.parts import Uncovered
from rebat.drive.plans import RuleRecorder
from rebat.policies.own import is_own
from rebat.policies.point import Point
from rebat.policies.queue_order import QUEUE_ORDERS, bound
from rebat.state import codes, tables

LIMIT, STEP = 2**31 - 1, 2**8
"""The range of labels, which have 32 bits, and their distance."""


def needs_python(point: Point) -> bool:
    """Return whether Python computes the keys of the queue order."""
    order = point.common.order
    return is_own(order) or not (point.common.formula or order in codes.ORDERS)


class Keys:
    """Labels the attempts that enter the queue. `plan_all` calls it like a `RuleRecorder`.

    Parameters
    ----------
    point : Point
    n_nodes : int
    job_id : callable
        Function that returns the id of a job, given its row.
    recorder : RuleRecorder, optional
        Recorder of the plans.
    """

    def __init__(
        self,
        point: Point,
        n_nodes: int,
        job_id: Callable[[int], str],
        recorder: RuleRecorder | None = None,
    ) -> None:
        common, name, view = point.common, point.common.order, cast(Any, None)
        order = common.rule("order") if is_own(name) else QUEUE_ORDERS[name]
        # only formulas need a view
        self._order = bound(order, view, point.planning.margin_us, common.seed, n_nodes)
        self._labels, self._job_id, self._recorder = Labels(LIMIT, STEP), job_id, recorder
        self._first: dict[int, int] = {}

    def begin(self, state: Any, room: tables.Room) -> None:
        """Label the attempts that have entered the queue since the last plan."""
        for row in state.lists[: state.n.n_entered]:
            attempt = self._attempt(state, row.entered)
            try:
                key = self._order(attempt)
            except Exception as error:
                raise Uncovered("an error in the queue order") from error  # a guard states its line
            for a, label in self._labels.add(key, row.entered):
                state.attempts[a].label = label
        if self._recorder is not None:
            self._recorder.begin(state, room)

    def _attempt(self, state: Any, a: int) -> Attempt:
        row, job = state.attempts[a], state.jobs[state.attempts[a].job]
        job_id, number = self._job_id(row.job), row.number
        if number == 0:
            self._first[row.job] = a
        return Attempt(
            resubmission_id(job_id, number) if number else job_id, job_id, a + 1,
            self._first[row.job] + 1, number, job.size, row.wall, job.submit, row.queued,
            row.priority, job.job_class,
        )  # fmt: skip

    def note(self, room: tables.Room, p: int) -> None:
        """Note the plan of a partition."""
        if self._recorder is not None:
            self._recorder.note(room, p)

    def end(self, room: tables.Room, now: int) -> None:
        """Record the plans of all partitions."""
        if self._recorder is not None:
            self._recorder.end(room, now)
