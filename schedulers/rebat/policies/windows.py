# SPDX-License-Identifier: Apache-2.0
"""Reservations of nodes: windows of time in which only some users, or no user, may use them.

The option ``reservations`` and announcements of maintenance (`rebat.models.operations`) define
windows. No job starts on a node if it could still run in a window that is closed to it. Jobs
that started before an announcement continue. A job that requests a reservation starts only in its
windows, on its nodes. Other jobs of its users and accounts prefer these nodes during a window.
Source: Slurm, "Advanced Resource Reservation Guide" (flags MAINT and DAILY, options Users and
Accounts).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from rebat.contract import Changes, Proposal, View, Wake
from rebat.core.attempts import Attempt
from rebat.core.cores import processors_of
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.traits import Traits
from rebat.core.units import FOREVER_US, parse_duration, to_us
from rebat.kernels.cell_plan import AHEAD
from rebat.policies.composition import Planning, Wrapping
from rebat.policies.partitions import places_of
from rebat.policies.queue_order import planned_us
from rebat.rules.windows import MOST_IDLE

Mask = npt.NDArray[np.bool_]

ANNOUNCED = "announced"
"""Value of the option if administrators announce all windows during the run."""

EXPECTED = (
    "NAME:NODES:begin=TIME:length=TIME[:every=TIME][:user=NAME][:account=NAME] joined by +, "
    "like night:0-63:begin=22h:length=8h:every=1d"
)


class Reservation(NamedTuple):
    """A window of time, which may be repeated. Times are in microseconds.

    ``nodes`` is a set of node numbers. Users in ``users`` and ``accounts`` may use the nodes in the
    window.
    """

    name: str
    nodes: NodeSet
    begin_us: int
    length_us: int
    every_us: int = 0
    users: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()

    def windows(self, now_us: int) -> Iterator[Window]:
        """Yield the windows that have not ended, in order of time, at most `AHEAD`."""
        first = 0
        if self.every_us:
            first = max(0, (now_us - self.begin_us - self.length_us) // self.every_us + 1)
        for number in range(first, first + (AHEAD if self.every_us else 1)):
            begin_us = self.begin_us + number * self.every_us
            end_us = min(begin_us + self.length_us, FOREVER_US)
            if end_us > now_us:
                yield self.window(begin_us, end_us)

    def window(self, begin_us: int = 0, end_us: int = 0) -> Window:
        """Return a window of this reservation."""
        return Window(self.nodes, begin_us, end_us, self.users, self.accounts, self.name)

    def blocks(self, duration_us: int) -> bool:
        """Return whether no job of a duration fits between two windows."""
        return 0 < self.every_us < duration_us + self.length_us


class Window(NamedTuple):
    """An interval of time in which only some users and accounts may use some nodes."""

    nodes: NodeSet
    begin_us: int
    end_us: int
    users: frozenset[str]
    accounts: frozenset[str]
    name: str


@lru_cache(maxsize=64)
def read_reservations(text: str) -> tuple[Reservation, ...]:
    """Return the reservations that a text describes.

    >>> [row.name for row in read_reservations("night:0-63:begin=22h:length=8h:every=1d")]
    ['night']
    """
    if text in ("", ANNOUNCED):
        return ()
    return tuple(_reservation(part) for part in text.split("+"))


def _reservation(part: str) -> Reservation:
    head, *words = re.split(r":(?=(?:begin|length|every|user|account)=)", part)
    name, _, nodes = head.partition(":")
    values: dict[str, str] = {}
    users, accounts = set[str](), set[str]()
    for word in words:
        key, _, value = word.partition("=")
        if key in ("user", "account"):
            (users if key == "user" else accounts).add(unquote(value))
        elif key in values:
            raise InputError(f"invalid reservation {part[:60]!r}", expected=EXPECTED)
        values[key] = value
    if not (name and nodes and values.keys() >= {"begin", "length"}):
        raise InputError(f"invalid reservation {part[:60]!r}", expected=EXPECTED)
    begin_us, length_us, every_us = (
        to_us(parse_duration(values.get(key, "0"))) for key in ("begin", "length", "every")
    )
    if not length_us or 0 < every_us <= length_us:
        problem = f"reservation {name}: length is {values['length']}"
        raise InputError(problem, expected="above 0, and below every")
    owners = frozenset(users), frozenset(accounts)
    return Reservation(unquote(name), NodeSet.parse(nodes), begin_us, length_us, every_us, *owners)


def on_processors(
    rows: Iterable[Reservation], n_processors: int, cores_per_node: int
) -> list[Reservation]:
    """Return reservations in the numbers of the processors of a machine.

    Raises
    ------
    InputError
        If a node does not exist.
    """
    placed, count = [], n_processors // cores_per_node
    for row in rows:
        last = int(row.nodes.intervals[-1, 1])
        if last >= count:
            where = f"reservation {row.name}"
            raise InputError(f"node {last} is not on the machine", where, f"0 to {count - 1}")
        placed.append(row._replace(nodes=processors_of(row.nodes, cores_per_node)))
    return placed


def why_never(names: Iterable[str]) -> str:
    """Return why a job can never start because of these reservations."""
    return f"its walltime fits between no two windows of reservation {' or '.join(names)}"


class Windows:
    """The windows of a run, in the numbers of the machine.

    Parameters
    ----------
    text : str
        See `read_reservations`.
    partitions : str
        See `partitions.read_partitions`.

    Attributes
    ----------
    announced : list of Reservation
        The reservations that administrators have announced so far.
    """

    def __init__(self, text: str, partitions: str = "") -> None:
        self._rows, self._partitions = [*read_reservations(text)], partitions
        self.announced: list[Reservation] = []
        self._view: View | None = None

    def open(self, view: View) -> None:
        """Set the machine. Check the nodes at the first call."""
        if self._view is not None:
            return
        self._view = view
        self._rows = on_processors(self._rows, view.n_nodes, view.machine.cores_per_node)

    def announce(self, nodes: NodeSet, begin_us: int, end_us: int) -> None:
        """Add a window in which no user may use some processors."""
        self.announced.append(Reservation("announced", nodes, begin_us, end_us - begin_us))

    def current(self, now_us: int) -> list[Window]:
        """Return the windows that have not ended."""
        rows = (*self._rows, *self.announced)
        return [window for row in rows for window in row.windows(now_us)]

    def opens(self, window: Window, attempt: Attempt) -> bool:
        """Return whether a job may use the nodes of a window."""
        if self.requested(attempt):
            return window.name == self._traits(attempt).reservation
        if not (window.users or window.accounts):
            return False
        traits = self._traits(attempt)
        return traits.user in window.users or traits.account in window.accounts

    def _traits(self, attempt: Attempt) -> Traits:
        assert self._view is not None
        return self._view.job(attempt.job_id).traits

    def requested(self, attempt: Attempt) -> list[Window]:
        """Return the windows to which a job is bound, because it requested their reservation.

        The list is empty if there is none, or if the job never fits in a window: the reservation
        has too few nodes in each of its partitions, or repeated windows that are too short.
        """
        assert self._view is not None
        name = self._traits(attempt).reservation
        windows = (
            window
            for row in (self._rows if name else ())
            if row.name == name and self._has_room(row, attempt)
            if not row.every_us or planned_us(attempt.walltime_us) <= row.length_us
            for window in row.windows(self._view.now_us)
        )
        return sorted(windows, key=lambda window: window.begin_us)

    def _has_room(self, row: Reservation, attempt: Attempt) -> bool:
        """Return whether a reservation has enough nodes in a partition of a job."""
        assert self._view is not None
        places = places_of(self._view, self._partitions, attempt.job_id)
        return any(place[row.nodes.ids].sum() >= attempt.n_nodes for place in places)

    def preferred(self, windows: Sequence[Window], attempt: Attempt) -> list[Window]:
        """Return the windows that are open to a job now. It prefers their nodes."""
        assert self._view is not None
        now_us = self._view.now_us
        return [w for w in windows if w.begin_us <= now_us and self.opens(w, attempt)]

    def closed_mask(self, attempt: Attempt) -> Mask | None:
        """Return a mask of the nodes on which an attempt cannot start now, or None.

        If its job is bound to a reservation, it starts only where it fits in a window of it.
        """
        view, mask = self._view, None
        assert view is not None
        end_us = view.now_us + planned_us(attempt.walltime_us)
        if bound := self.requested(attempt):
            mask = np.ones(view.n_nodes, dtype=np.bool_)
            for window in bound:
                if window.begin_us <= view.now_us and end_us <= window.end_us:
                    window.nodes.put(mask, False)
        for window in self.current(view.now_us):
            if window.begin_us < end_us and not self.opens(window, attempt):
                if mask is None:
                    mask = np.zeros(view.n_nodes, dtype=np.bool_)
                window.nodes.put(mask, True)
        return mask

    def never(self, attempt: Attempt, usable: Mask) -> str:
        """Return why a job fits between no two windows of a reservation, or an empty text.

        ``usable`` is a mask of the nodes that the job may use.
        """
        left, names = usable.copy(), []
        for row in self._rows:
            closed = not self.opens(row.window(), attempt)
            if row.blocks(planned_us(attempt.walltime_us)) and closed:
                row.nodes.put(left, False)
                names.append(row.name)
        if names and int(left.sum()) < attempt.n_nodes <= int(usable.sum()):
            return why_never(names)
        return ""


class Reserving(Wrapping):
    """A planning that plans again when a window ends, or begins for a job that requested it."""

    def __init__(self, planning: Planning, windows: Windows) -> None:
        super().__init__(planning)
        self._windows = windows
        self._wake_us = self._n_idle = 0
        self._bound: list[Attempt] = []
        """The waiting attempts that requested a reservation."""

    def plan(self, view: View, changes: Changes) -> Iterator[Proposal]:
        """Yield the proposals of the planning, and a wake at the end of the next window."""
        self._windows.open(view)
        yield from self._planning.plan(view, changes)
        longest_us = max((planned_us(each.walltime_us) for each in view.queue.values()), default=0)
        times_us = [  # other windows delay no queued job now
            window.end_us
            for window in self._windows.current(view.now_us)
            if window.begin_us - view.now_us < longest_us
        ]
        new = (*changes.arrived, *changes.resubmitted)
        self._bound += [attempt for attempt in new if self._windows.requested(attempt)]
        self._bound = [attempt for attempt in self._bound if attempt.id in view.queue]
        times_us += [
            window.begin_us
            for attempt in self._bound
            for window in self._windows.requested(attempt)
            if window.begin_us > view.now_us
        ]
        next_us = min((at_us for at_us in times_us if at_us < FOREVER_US), default=0)
        idle = not view.running and changes == Changes(woken=changes.woken)
        self._n_idle = self._n_idle + 1 if idle else 0
        if next_us and next_us != self._wake_us and view.queue and self._n_idle < MOST_IDLE:
            self._wake_us = next_us
            yield Wake(next_us, "window")
