# SPDX-License-Identifier: Apache-2.0
"""Requests to be called by Batsim at the times of wakes and of scheduled stops.

A *wake* is a wake-up that a policy requested. A *call* is a message that Batsim sends at a
requested time. A call does not state for which wake or stop it was requested.
"""

from __future__ import annotations

from collections.abc import Iterable

from rebat.contract import Refusal, Wake
from rebat.core.decisions import CallMeLater
from rebat.core.units import FOREVER_US
from rebat.session.board import Board

UNKNOWN_LAG_US = 1_000
"""Minimum time (us) between the request of a call and the call, before the first kill.

The first kill shows the delay of replies. On a platform without network latency, replies have no
delay, so calls are exact from then on.
"""


class Agenda:
    """The pending wakes, and the times of the requested calls."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self.wakes: list[Wake] = []
        self._called: set[int] = set()
        self._lag_us: int | None = None

    def add(self, wake: Wake) -> Refusal | None:
        """Add a wake. If its time is not in the future, return a refusal."""
        if not self._board.now_us < wake.at_us < FOREVER_US:
            return Refusal(f"wake {wake.tag!r}", "must be at a finite time after the present time")
        self.wakes.append(wake)
        return None

    def woken(self) -> list[str]:
        """Return and remove the tags of the wakes that are due, sorted by time."""
        due = sorted(self.due(), key=lambda wake: wake.at_us)
        if due:
            self.wakes = [wake for wake in self.wakes if wake not in due]
        return [wake.tag for wake in due]

    def due(self) -> list[Wake]:
        """Return the wakes that are due."""
        return [wake for wake in self.wakes if wake.at_us <= self._board.now_us]

    def note_lag(self, sent_us: int) -> None:
        """Update the maximum delay of replies. ``sent_us`` is when the decision was sent."""
        lag_us = self._board.now_us - sent_us
        self._lag_us = lag_us if self._lag_us is None else max(self._lag_us, lag_us)

    def call_at(self, at_us: int) -> None:
        """Request a call at a time, or as soon as possible after it.

        Batsim aborts if it receives the request after the requested time.
        """
        margin_us = UNKNOWN_LAG_US if self._lag_us is None else 2 * self._lag_us
        when_us = max(at_us, self._board.now_us + margin_us)
        self._called.add(at_us)
        self._board.out.append(CallMeLater(at_us=self._board.now_us, when_us=when_us))

    def call_at_all(self, others_us: Iterable[int]) -> None:
        """Request a call at the time of each wake and at each time in ``others_us``."""
        times = {*others_us, *(wake.at_us for wake in self.wakes)}
        for at_us in sorted(times - self._called):
            if at_us > self._board.now_us:
                self.call_at(at_us)
