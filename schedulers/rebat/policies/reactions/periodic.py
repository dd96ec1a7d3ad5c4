# SPDX-License-Identifier: Apache-2.0
"""Reactions that are woken by a period: at its multiples, while there is something to look at.

And what those of them have in common that checkpoint and restart jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from rebat.contract import News, Proposal, Running, View, Wake, When
from rebat.core.units import FOREVER_US
from rebat.policies.variants import number

Period = Annotated[
    float,
    number(
        1e-3, 1e9, "seconds", "Seconds between the times at which reactions look at the machine."
    ),
]


class Periodic:
    """A reaction whose ``act`` is asked at the multiples of a period.

    A multiple at which nothing has changed since the last one is left out, unless ``restless``:
    what ``act`` decides must not come about by waiting alone. So calls are few, and end when
    nothing runs or waits any more.

    Parameters
    ----------
    period_us : int
    name : str
        The tag of its wakes.
    restless : bool
        What it decides on changes as time goes by.
    """

    def __init__(self, period_us: int, name: str, restless: bool = False) -> None:
        self._period_us, self._name, self._restless = period_us, name, restless
        self._next_us = self._last_us = 0
        self._changed = False

    def react(self, view: View, news: News) -> Iterator[Proposal]:
        """Act where that is due, and ask for the next date."""
        now_us, told = view.now_us, changes_in(news)
        lively = told or self._restless
        self._changed |= lively
        due = now_us % self._period_us == 0 or self._name in news.woken
        if due and now_us > self._last_us and self._changed:
            # What came just now may be planned after this, and is looked at next time.
            self._last_us, self._changed = now_us, lively
            for proposal in self.act(view, news):
                self._changed = told = True
                yield proposal
        # What waits while nothing runs and nothing happens waits for something else.
        alive = view.running or view.waiting or (view.queue and told)
        alive = alive or (self._restless and not view.all_submitted)
        if self._changed and self._next_us <= now_us and alive:
            self._next_us = (now_us // self._period_us + 1) * self._period_us
            yield Wake(self._next_us, self._name)

    def act(self, view: View, news: News) -> Iterable[Proposal]:
        """What is to be done at this date."""
        raise NotImplementedError


def changes_in(news: News) -> bool:
    """Whether a message told anything but that a date has come."""
    return bool(
        news.arrived or news.started or news.ended or news.failed or news.rejuvenated
        or news.notices or news.refused
    )  # fmt: skip


def remaining_us(view: View, running: Running) -> int:
    """How long an attempt goes on at the most, as far as can be known, overheads not counted."""
    attempt = running.attempt
    if not attempt.has_walltime:
        return FOREVER_US
    left = view.after_stop(attempt.id, When.IMAGE)
    return view.walltime_after_us(attempt.id, left) - left.first_recovery_us


def worth_moving(view: View, running: Running) -> bool:
    """Whether an attempt can be checkpointed, and goes on for longer than that takes."""
    attempt = running.attempt
    if attempt.id in view.stopping or attempt.id in view.scheduled:
        return False
    if view.why_not_image(attempt.id):
        return False
    return remaining_us(view, running) > view.image_us(attempt.id)
