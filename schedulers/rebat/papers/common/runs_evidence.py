# SPDX-License-Identifier: Apache-2.0
"""The simulations of a campaign, by what they share and by policy, in the order of its file."""

from __future__ import annotations

from pathlib import Path

from rebat.papers.common.runs_index import Seeded, Setting
from rebat.results.intervals import Interval, interval, paired_ratio


class Evidence(Seeded[str]):
    """Metrics by setting, policy and seed; the draws of a workload are seeds as well.

    Parameters
    ----------
    path : Path
        A campaign's ``results.parquet``.

    Raises
    ------
    InputError
        When it holds no simulations.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, str)

    def spread(self, setting: Setting, policy: str, metric: str, of: str = "") -> Interval | None:
        """The mean over the seeds with its interval."""
        return interval(list(self.values(setting, policy, metric, of).values()))

    def ratio(
        self, setting: Setting, policy: str, base: str, metric: str, of: str = ""
    ) -> Interval | None:
        """To another policy's values, paired by seed."""
        return paired_ratio(*self.paired(setting, policy, base, metric, of))
