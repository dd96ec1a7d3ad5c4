# SPDX-License-Identifier: Apache-2.0
"""Dates to come: Batsim's calls carry no name, so who asked for which is kept here."""

from __future__ import annotations

from collections.abc import Iterable

from rebat.contract import Refusal, Wake
from rebat.core.decisions import CallMeLater
from rebat.core.units import FOREVER_US
from rebat.session.board import Board

UNKNOWN_LAG_US = 1_000
"""No call is asked for nearer than this until a kill has shown how long replies take to arrive.

On a platform without network latency they take no time, and calls are exact from then on.
"""


class Agenda:
    """What is to be done when, and which calls were asked for; ``wakes`` are yet to come."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self.wakes: list[Wake] = []
        self._called: set[int] = set()
        self._lag_us: int | None = None

    def add(self, wake: Wake) -> Refusal | None:
        """A policy wants to be told something at a time."""
        if not self._board.now_us < wake.at_us < FOREVER_US:
            return Refusal(f"wake {wake.tag!r}", "is not later than now, or never")
        self.wakes.append(wake)
        return None

    def woken(self) -> list[str]:
        """The tags that are due, by date; they are told once."""
        due = sorted(self.due(), key=lambda wake: wake.at_us)
        if due:
            self.wakes = [wake for wake in self.wakes if wake not in due]
        return [wake.tag for wake in due]

    def due(self) -> list[Wake]:
        """The wakes whose time has come."""
        return [wake for wake in self.wakes if wake.at_us <= self._board.now_us]

    def note_lag(self, sent_us: int) -> None:
        """What was sent at a date has come back: so long do replies take."""
        lag_us = self._board.now_us - sent_us
        self._lag_us = lag_us if self._lag_us is None else max(self._lag_us, lag_us)

    def call_at(self, at_us: int) -> None:
        """Ask Batsim for a date. It aborts on one that is past when the reply arrives."""
        margin_us = UNKNOWN_LAG_US if self._lag_us is None else 2 * self._lag_us
        when_us = max(at_us, self._board.now_us + margin_us)
        self._called.add(at_us)
        self._board.out.append(CallMeLater(at_us=self._board.now_us, when_us=when_us))

    def call_at_all(self, others_us: Iterable[int]) -> None:
        """Ask for the dates of wakes and these others, each once."""
        dates = {*others_us, *(wake.at_us for wake in self.wakes)}
        for at_us in sorted(dates - self._called):
            if at_us > self._board.now_us:
                self.call_at(at_us)
