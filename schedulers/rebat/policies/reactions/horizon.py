# SPDX-License-Identifier: Apache-2.0
"""Ends of eternal jobs: at a given time, or when no other job is left.

"There is no need to set a particular length for these jobs, hence the qualification of 'eternal':
they simply run whenever the cluster is not fully occupied" (section 3.3.2 of Rodríguez-Pascual et
al. 2019). A simulation must end these jobs, because it would never finish otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

from rebat.contract import (
    End,
    News,
    Proposal,
    Reject,
    Release,
    Stop,
    View,
    Wake,
    When,
)
from rebat.core.attempts import Cause

TAG = "horizon"


class Horizon:
    """A reaction that ends running eternal jobs, and rejects queued eternal jobs.

    Parameters
    ----------
    at_us : int
        Time at which to end eternal jobs, in microseconds. If it is 0, they end when all other jobs
        have ended and no more jobs will be submitted.
    """

    def __init__(self, at_us: int = 0) -> None:
        self._at_us = at_us
        self._alive: set[str] | None = None  # eternal jobs; None before the first one

    def has_work(self, news: News) -> bool:
        """Return whether eternal jobs may exist."""
        return bool(self._alive or news.arrived)

    def react(self, view: View, news: News) -> Iterator[Proposal]:
        """End the eternal jobs when the time of their end is reached."""
        eternal = {a.job_id for a in news.arrived if view.job(a.job_id).traits.eternal}
        if eternal and self._alive is None and self._at_us > view.now_us:
            yield Wake(self._at_us, TAG)
        if eternal or self._alive:
            self._alive = (self._alive or set()) | eternal
            yield from self._end(view, self._alive)

    def _end(self, view: View, eternal: set[str]) -> Iterator[Proposal]:
        if not self._is_due(view, eternal):
            return
        for job_id in [job_id for job_id in view.waiting if job_id in eternal]:
            yield Release(job_id)
        leaving = view.stopping.keys() | view.scheduled.keys()  # stopped jobs return to the queue
        for name, running in list(view.running.items()):
            if name not in leaving and running.attempt.job_id in eternal:
                yield Stop(name, Cause.HORIZON, When.NOW, End(), "horizon")
        for name, attempt in list(view.queue.items()):
            if attempt.job_id in eternal:
                yield Reject(name, "is eternal and still in the queue at the horizon")

    def _is_due(self, view: View, eternal: set[str]) -> bool:
        if self._at_us:
            return view.now_us >= self._at_us
        if not view.all_submitted or not view.waiting.keys() <= eternal:
            return False
        if not all(view.job(job_id).traits.eternal for job_id in view.blocked):
            return False
        queued = all(attempt.job_id in eternal for attempt in view.queue.values())
        return queued and all(job.attempt.job_id in eternal for job in view.running.values())
