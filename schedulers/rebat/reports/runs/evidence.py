"""The simulations of a campaign, by what they share and by policy, in the order of its file."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from rebat.metrics.intervals import BySeed, Interval, interval, paired_ratio
from rebat.reports.results import read_results
from rebat.reports.scenario import Scenario, scenario_of_row

_COLUMNS = ("grid", "workload", "policy", *Scenario._fields, "metric", "size_class", "seed",
            "value")  # fmt: skip


class Setting(NamedTuple):
    """What policies that are compared have in common."""

    grid: str
    workload: str
    scenario: Scenario

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.workload}, {self.scenario.label}"


class Evidence:
    """Metrics by setting, policy and seed.

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
        self._cells: dict[tuple[Setting, str, str, str], dict[int, float]] = {}
        policies: dict[Setting, dict[str, None]] = {}
        for row in read_results(path, "simulation", _COLUMNS):
            grid, workload, policy, *about, metric, size_class, seed, value = row
            setting = Setting(grid, workload, scenario_of_row(about))
            policies.setdefault(setting, {})[policy] = None
            cell = self._cells.setdefault((setting, policy, metric, size_class or ""), {})
            cell[-1 if seed is None else int(seed)] = float(value)
        self.policies = {setting: list(names) for setting, names in policies.items()}

    @property
    def settings(self) -> list[Setting]:
        """In the order of the file."""
        return list(self.policies)

    def values(self, setting: Setting, policy: str, metric: str, of: str = "") -> BySeed:
        """A value per seed."""
        return self._cells.get((setting, policy, metric, of), {})

    def spread(self, setting: Setting, policy: str, metric: str, of: str = "") -> Interval | None:
        """The mean over the seeds with its interval."""
        return interval(list(self.values(setting, policy, metric, of).values()))

    def ratio(
        self, setting: Setting, policy: str, base: str, metric: str, of: str = ""
    ) -> Interval | None:
        """To another policy's values, paired by seed."""
        ours = self.values(setting, policy, metric, of)
        return paired_ratio(ours, self.values(setting, base, metric, of))
