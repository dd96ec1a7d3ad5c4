# SPDX-License-Identifier: Apache-2.0
"""Progress of a campaign."""

from __future__ import annotations

import time
from collections import Counter

from rebat.campaign.store import State
from rebat.campaign.worker import Outcome
from rebat.console.progress import CampaignProgress, OnCampaignProgress


class Tally:
    """A counter of outcomes that reports progress.

    The campaign has ``total`` units. This call performs ``n_tasks`` of them. ``others`` contains
    the number of all other units by state.
    """

    def __init__(
        self,
        others: Counter[State],
        total: int,
        n_tasks: int,
        workers: int,
        on_progress: OnCampaignProgress | None,
    ) -> None:
        self.total, self.n_tasks, self.workers = total, n_tasks, workers
        self.done, self.failed, self.ended = others["ok"], others["failed"], 0
        self.began, self.on_progress, self.note = time.monotonic(), on_progress, ""
        self._report()

    def count(self, outcome: Outcome) -> None:
        """Count the outcome of a task."""
        self.ended += 1
        self.done += outcome.error is None
        self.failed += outcome.error is not None
        self._report()

    def crew(self, workers: int, note: str) -> None:
        """Update the number of workers."""
        self.workers, self.note = workers, note
        self._report()

    def _report(self) -> None:
        if self.on_progress is None:
            return
        now = self.n_tasks - self.ended
        running = min(now, self.workers)
        pace_s = (time.monotonic() - self.began) / self.ended if self.ended else None
        self.on_progress(
            CampaignProgress(
                total=self.total,
                done=self.done,
                failed=self.failed,
                running=running,
                left=self.total - self.done - self.failed,
                eta_s=None if pace_s is None else pace_s * now,
                note=self.note,
            )
        )
