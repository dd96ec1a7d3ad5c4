# SPDX-License-Identifier: Apache-2.0
"""How far a campaign is."""

from __future__ import annotations

import time

from rebat.campaign.store import Status
from rebat.campaign.worker import Outcome
from rebat.console.progress import CampaignProgress, OnCampaignProgress


class Tally:
    """Counts outcomes and tells.

    ``others`` is what was there of ``total`` before this start's ``n_tasks``.
    """

    def __init__(
        self, total: int, others: Status, n_tasks: int, workers: int,
        on_progress: OnCampaignProgress | None,
    ) -> None:  # fmt: skip
        self.total, self.n_tasks, self.workers = total, n_tasks, workers
        self.done, self.failed, self.ended = others.ok, others.failed, 0
        self.began, self.on_progress, self.note = time.monotonic(), on_progress, ""
        self._tell()

    def count(self, outcome: Outcome) -> None:
        """Take in how one task ended."""
        self.ended += 1
        self.done += outcome.error is None
        self.failed += outcome.error is not None
        self._tell()

    def crew(self, workers: int, note: str) -> None:
        """Take in that workers came or went."""
        self.workers, self.note = workers, note
        self._tell()

    def _tell(self) -> None:
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
                left=self.total - self.done - self.failed - running,
                eta_s=None if pace_s is None else pace_s * now,
                note=self.note,
            )
        )
