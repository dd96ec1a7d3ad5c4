# SPDX-License-Identifier: Apache-2.0
"""The record of plans: changes of planned starts with their causes, and obstacles of attempts.

If the run records its plans, the session calls a `PlanRecorder` after each plan. Without a session,
the rules call a `rebat.drive.plans.RuleRecorder`. The recorder adds rows only for changes (see
`kernels.plan_changes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum, IntFlag

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.contract import Changes, PlannedStarts, Policy, View
from rebat.contract.planned import NO_START
from rebat.core.attempts import Attempt, Running
from rebat.kernels import plan_changes

Ints = npt.NDArray[np.int64]

NONE = -1
"""Value that means no attempt, node or value."""


class PlanChange(IntEnum):
    """Kinds of changes (see `kernels.plan_changes`). All except PLANNED are reasons for a wait."""

    PLANNED = plan_changes.PLANNED
    """The planned start of the attempt changed, or the attempt lost its reservation."""
    TOO_FEW = plan_changes.TOO_FEW
    """Too few nodes are free."""
    RESERVED = plan_changes.RESERVED
    """The attempt would overlap the reservation of another attempt."""
    NO_PLACE = plan_changes.NO_PLACE
    """The free nodes have no suitable place for the attempt, for example no free box."""
    IN_ORDER = plan_changes.IN_ORDER
    """Another attempt must start first."""
    NOT_STARTED = plan_changes.NOT_STARTED
    """Enough nodes are free, but the policy does not start the attempt."""
    REASON = plan_changes.REASON
    """The policy stated a reason in its own words."""


class PlanCause(IntFlag):
    """Causes of a plan: kinds of events since the previous plan. A plan may have several causes."""

    ARRIVAL = 1
    """A job was submitted."""
    RETURN = 2
    """An attempt entered the queue after an interruption."""
    END = 4
    """An attempt ended."""
    STOP = 8
    """An attempt was stopped: by a failure, or by the policy."""
    MOVE = 16
    """A reaction to a failure started an attempt on other nodes, or before the plan."""
    HOLD = 32
    """Nodes were held for a waiting job."""
    FAILURE = 64
    """A node failed."""
    DRAIN = 128
    """A node was drained."""
    REPAIR = 256
    """A node was repaired, or returned to service."""
    WITHDRAWAL = 512
    """A reaction to a failure removed an attempt from the queue."""
    REFUSAL = 1024
    """A proposal of the policy was refused."""
    RELEASE = 2048
    """Nodes that were held for a waiting job were released."""


PLAN_COLUMNS = (
    "at_us",
    "n_free",
    "causes",
    "arrived",
    "returned",
    "ended",
    "stopped",
    "moved",
    "held",
    "down_node",
    "up_node",
)
"""Columns of a plan: its time, the number of free nodes after its starts, and its causes.

The other columns contain, for each kind of cause, the serial number of the first attempt or the
first node (-1 if there is none).
"""

ROW_COLUMNS = ("plan", "serial", "kind", "value")
"""Columns of a change (see `kernels.plan_changes`). The value of a reason is the text's index."""


class PlanRecord(msgspec.Struct):
    """The recorded plans of a run.

    Attributes
    ----------
    plans : int64 array, shape (plans, len(PLAN_COLUMNS))
        The plans with changes.
    rows : int64 array, shape (rows, len(ROW_COLUMNS))
        The changes, in the order of the plans.
    serials : int64 array
        Serial numbers of the attempts, in ascending order.
    ids : list of str
        Ids of these attempts.
    texts : list of str
        Reasons that a custom policy stated.
    """

    plans: Ints
    rows: Ints
    serials: Ints
    ids: list[str]
    texts: list[str]


class PlanRecorder:
    """Records the changes from plan to plan."""

    def __init__(self) -> None:
        self._plans: list[tuple[int, ...]] = []
        self._rows: Ints = np.empty((1024, len(ROW_COLUMNS)), dtype=np.int64)
        self._n = 0
        self._last = self._unplanned(1024)
        self._ids: dict[int, str] = {}
        self._texts: dict[str, int] = {}
        self._reasons: dict[int, int] = {}

    @staticmethod
    def _unplanned(count: int) -> Ints:
        """Return rows for attempts before any plan; see ``last`` in `kernels.plan_changes`."""
        return np.tile(
            np.array([NO_START, plan_changes.NO_OBSTACLE, NONE], dtype=np.int64), (count, 1)
        )

    def record(self, view: View, changes: Changes, policy: Policy) -> None:
        """Add the changes since the previous plan.

        Parameters
        ----------
        view : View
            The state after the plan was carried out.
        changes : Changes
            The changes that the plan received.
        """
        if changes.arrived or changes.resubmitted:
            self._learn_all((*changes.arrived, *changes.resubmitted))
        planned = policy.planned(view)
        if planned is None:
            self._learn_all(view.queue.values())
            planned = PlannedStarts.of(view, {})
        is_changed = self.compare(planned, view.now_us, view.n_free)
        for attempt_id, text in policy.reasons(view).items():
            is_changed |= self.explain(view.queue[attempt_id].serial, text)
        if is_changed:
            self.add(self._plan(view, changes))

    def _learn_all(self, attempts: Iterable[Attempt]) -> None:
        for attempt in attempts:
            self.learn(attempt.serial, attempt.id)

    def learn(self, serial: int, attempt_id: str) -> None:
        """Store the id of an attempt that enters the queue."""
        self._ids[serial] = attempt_id
        if serial >= len(self._last):
            self._last = np.concatenate([self._last, self._unplanned(serial + 1)])

    def name(self, serial: int, attempt_id: str) -> None:
        """Store the id of an attempt or a hold, unless its serial number already has an id."""
        self._ids.setdefault(serial, attempt_id)

    def compare(self, planned: PlannedStarts, now_us: int, n_free: int) -> bool:
        """Add the changes of planned starts and obstacles. Return whether there are any."""
        self._make_room(2 * len(planned.serials))
        before = self._n
        self._n = plan_changes.changed(
            planned.serials,
            planned.sizes,
            planned.durations_us,
            planned.starts_us,
            planned.behind,
            planned.placeless,
            self._last,
            self._rows,
            before,
            len(self._plans),
            now_us,
            n_free,
        )
        return self._n > before

    def add(self, plan: tuple[int, ...]) -> None:
        """Add the row of a plan with changes (see `PLAN_COLUMNS`)."""
        self._plans.append(plan)

    def _make_room(self, n_rows: int) -> None:
        """Enlarge the array of rows for ``n_rows`` more rows."""
        need = self._n + n_rows
        if need > len(self._rows):
            more = np.empty((need, len(ROW_COLUMNS)), dtype=np.int64)
            self._rows = np.concatenate([self._rows, more])

    def explain(self, serial: int, text: str) -> bool:
        """Add a reason of the policy if it differs from the previous reason for the attempt."""
        number = self._texts.setdefault(text, len(self._texts))
        if self._reasons.get(serial) == number:
            return False
        self._reasons[serial] = number
        self._make_room(1)
        self._rows[self._n] = len(self._plans), serial, PlanChange.REASON, number
        self._n += 1
        return True

    def _plan(self, view: View, changes: Changes) -> tuple[int, ...]:
        """Return the row of a plan with changes (see `PLAN_COLUMNS`)."""
        ended = changes.ended and [job for job in changes.ended if not _is_hold(job)]
        down = _first_node(changes.failed_nodes)
        return (
            view.now_us,
            view.n_free,
            _causes(view, changes, down, len(ended)),
            changes.arrived[0].serial if changes.arrived else NONE,
            changes.resubmitted[0].serial if changes.resubmitted else NONE,
            self._first(ended),
            self._first(changes.stopped),
            self._first(changes.moved),
            self._first(changes.held),
            down,
            _first_node(changes.rejuvenated_nodes),
        )

    def _first(self, jobs: Sequence[Running]) -> int:
        """Return the serial number of the first attempt, or NONE if there is none."""
        if not jobs:
            return NONE
        attempt = jobs[0].attempt
        self.name(attempt.serial, attempt.id)
        return attempt.serial

    def result(self) -> PlanRecord:
        """Return the record."""
        serials = sorted(self._ids)
        plans = np.array(self._plans, dtype=np.int64).reshape(-1, len(PLAN_COLUMNS))
        return PlanRecord(
            plans,
            self._rows[: self._n].copy(),
            np.array(serials, dtype=np.int64),
            [self._ids[serial] for serial in serials],
            list(self._texts),
        )


def _first_node(nodes: Sequence[int]) -> int:
    return nodes[0] if nodes else NONE


def _is_hold(running: Running) -> bool:
    """Return whether ``running`` represents held nodes (`session.holds`) instead of an attempt."""
    return "~" in running.attempt.id.removeprefix(running.attempt.job_id)


def _causes(view: View, changes: Changes, down: int, n_ended: int) -> int:
    """Return the causes of a plan, as the value of a `PlanCause`."""
    drained = down >= 0 and not view.machine.down[down]
    return bits_of(
        changes.arrived,
        changes.resubmitted,
        n_ended,
        changes.stopped,
        changes.moved,
        changes.held,
        changes.failures and not drained,
        changes.failures and drained,
        changes.repairs,
        changes.withdrawn,
        changes.refused,
        len(changes.ended) > n_ended,
    )


_BITS = tuple(int(cause) for cause in PlanCause)
"""The causes as integers, in their order. Operations on flags would be slow."""


def bits_of(*present: object) -> int:
    """Return the value of a `PlanCause`. For each cause, the argument states if it is present."""
    return sum([bit for bit, there in zip(_BITS, present, strict=True) if there])
