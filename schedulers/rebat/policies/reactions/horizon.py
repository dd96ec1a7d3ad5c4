"""Jobs without an end are ended: at a date, or when nothing else is left.

"There is no need to set a particular length for these jobs, hence the qualification of 'eternal':
they simply run whenever the cluster is not fully occupied" (section 3.3.2 of Rodríguez-Pascual et
al. 2019). A simulation of them has to stop somewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from rebat.core.attempts import Cause
from rebat.core.proposals import End, Proposal, Reject, Stop, Wake, When
from rebat.policies.base import News, View

TAG = "horizon"


class Horizon:
    """Ends what is eternal; those that wait then are rejected.

    Parameters
    ----------
    at_us : int
        The date; 0: when every job that has been submitted, and will be, is eternal or over.
    """

    def __init__(self, at_us: int = 0) -> None:
        self._at_us = at_us
        self._asked = False

    def react(self, view: View, news: News) -> Iterator[Proposal]:
        """End them where that is due."""
        if self._at_us and not self._asked:
            self._asked = True
            if self._at_us > view.now_us:
                yield Wake(self._at_us, TAG)
        if not self._is_due(view):
            return
        for name, running in list(view.running.items()):
            if name not in view.stopping and self._eternal(view, running.attempt.job_id):
                yield Stop(name, Cause.HORIZON, When.NOW, End(), "horizon")
        for name, attempt in list(view.queue.items()):
            if self._eternal(view, attempt.job_id):
                yield Reject(name, "it has no end, and waits at the horizon")

    def _is_due(self, view: View) -> bool:
        if self._at_us:
            return view.now_us >= self._at_us
        if not view.all_submitted:
            return False
        alive = [*view.running.values()]
        jobs = [one.attempt.job_id for one in alive] + [one.job_id for one in view.queue.values()]
        return not view.waiting and all(self._eternal(view, job_id) for job_id in jobs)

    def _eternal(self, view: View, job_id: str) -> bool:
        return view.job(job_id).traits.eternal
