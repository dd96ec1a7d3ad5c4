# SPDX-License-Identifier: Apache-2.0
"""Base class of reactions that act periodically, and helpers for checkpoint and restart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from rebat.contract import News, Proposal, Running, View, Wake, When
from rebat.core.units import FOREVER_US
from rebat.policies.variants import number

Period = Annotated[
    float,
    number(1e-3, 1e9, "seconds", "Seconds between rounds of periodic reactions."),
]


class Periodic:
    """A reaction whose ``act`` is called at the multiples of a period.

    If nothing has changed since the previous multiple, the call is skipped, unless decisions can
    change because time passes (`ripe_us`). No call is made while no job runs or waits.

    Parameters
    ----------
    period_us : int
    name : str
        Tag of the wake-ups that the reaction requests.
    """

    def __init__(self, period_us: int, name: str) -> None:
        self._period_us, self._name = period_us, name
        self._next_us = self._last_us = 0
        self._changed = False

    def ripe_us(self, view: View, news: News) -> int:
        """Return from when on decisions can change although nothing is reported.

        FOREVER_US: never. The present time, or an earlier one: always.
        """
        return FOREVER_US

    def react(self, view: View, news: News) -> Iterator[Proposal]:
        """Act if a round is due, and request the next wake-up."""
        now_us, changed, ripe_us = view.now_us, changes_in(news), self.ripe_us(view, news)
        lively = changed or ripe_us <= now_us
        self._changed |= lively
        due = now_us % self._period_us == 0 or self._name in news.woken
        if due and now_us > self._last_us and self._changed:
            # jobs may still start at this time, after this call, so do not skip the next round
            self._last_us, self._changed = now_us, lively
            for proposal in self.act(view, news):
                self._changed = changed = True
                yield proposal
        # If jobs wait while no job runs and nothing happens, a wake-up would not help them.
        alive = view.running or view.waiting or (view.queue and changed)
        alive = alive or (ripe_us <= now_us and not view.all_submitted)
        from_us = now_us if self._changed else ripe_us
        if alive and from_us < FOREVER_US:
            rounds = max(now_us // self._period_us + 1, -(-from_us // self._period_us))
            if not now_us < self._next_us <= rounds * self._period_us:
                self._next_us = rounds * self._period_us
                yield Wake(self._next_us, self._name)

    def act(self, view: View, news: News) -> Iterable[Proposal]:
        """Return the proposals of this round."""
        raise NotImplementedError


def changes_in(news: News) -> bool:
    """Return whether a message reports anything other than a wake-up."""
    return bool(
        news.arrived
        or news.started
        or news.ended
        or news.failed
        or news.rejuvenated
        or news.notices
        or news.refused
    )


def remaining_us(view: View, running: Running) -> int:
    """Return the longest possible remaining run time of an attempt (us), excluding overheads."""
    attempt = running.attempt
    if not attempt.has_walltime:
        return FOREVER_US
    left = view.after_stop(attempt.id, When.IMAGE)
    return view.walltime_after_us(attempt.id, left) - left.first_recovery_us


def worth_moving(view: View, running: Running) -> bool:
    """Return whether an attempt can be checkpointed and has more time left than a move costs."""
    attempt = running.attempt
    if attempt.id in view.stopping or attempt.id in view.scheduled:
        return False
    if view.why_not_image(attempt.id):
        return False
    return remaining_us(view, running) > view.image_us(attempt.id)
