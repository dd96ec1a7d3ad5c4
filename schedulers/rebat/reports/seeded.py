"""The simulations of a campaign by grid, workload and scenario, their metrics by policy and seed.

A workload made with several seeds is one here, its values by seed (each the mean over the seeds of
the failures); that of a workload with one seed are by the failures' seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Generic, NamedTuple, TypeVar

from rebat.metrics.intervals import BySeed
from rebat.reports.partitions.estimates import Estimate, estimate
from rebat.reports.results import read_results
from rebat.reports.scenario import Scenario, scenario_of_row

Case = TypeVar("Case")
"""What a report makes of the name of a policy."""

ANY_SEED = -1
"""The seed of what has none: it goes with every other."""

_COLUMNS = ("grid", "workload", "policy", *Scenario._fields, "metric", "size_class", "seed",
            "value")  # fmt: skip


class Setting(NamedTuple):
    """Runs that are compared: a grid's workload, whatever its seed, and the failures it met."""

    grid: str
    workload: str
    scenario: Scenario

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.workload}, {self.scenario.label}"


class Seeded(Generic[Case]):
    """Metrics by setting, policy and seed.

    Parameters
    ----------
    path : Path
        A campaign's ``results.parquet``.
    case_of : callable
        Of the name of a policy as a campaign writes it.

    Raises
    ------
    InputError
        When it holds no simulations.

    Attributes
    ----------
    settings : list of Setting
        In the order of the file.
    drawn : set of Setting
        Those whose workload was made with several seeds.
    """

    def __init__(self, path: Path, case_of: Callable[[str], Case]) -> None:
        cells: dict[tuple[Setting, Case, str, str], dict[int, list[float]]] = {}
        self.drawn: set[Setting] = set()
        for row in read_results(path, "simulation", _COLUMNS):
            grid, workload, policy, *about, metric, size_class, seed, value = row
            name, _, drawn = workload.partition("#")
            at = int(drawn) if drawn else ANY_SEED if seed is None else int(seed)
            setting = Setting(grid, name, scenario_of_row(about))
            if drawn:
                self.drawn.add(setting)
            cell = cells.setdefault((setting, case_of(policy), metric, size_class or ""), {})
            cell.setdefault(at, []).append(float(value))
        self._cells = {
            key: {seed: fmean(values) for seed, values in cell.items()}
            for key, cell in cells.items()
        }
        self._cases: dict[Setting, list[Case]] = {}
        for setting, case in dict.fromkeys(key[:2] for key in self._cells):
            self._cases.setdefault(setting, []).append(case)
        self.settings = list(self._cases)

    def cases(self, setting: Setting) -> list[Case]:
        """The policies that ran there, in the order of the file."""
        return self._cases[setting]

    def main(self, workload: str) -> Setting | None:
        """Where a workload was run first."""
        return next((one for one in self.settings if one.workload == workload), None)

    def values(self, setting: Setting, case: Case, metric: str, size_class: str = "") -> BySeed:
        """A value per seed."""
        return self._cells.get((setting, case, metric, size_class), {})


def parsed(policy: str) -> tuple[str, dict[str, str]]:
    """The name of a policy and its axes, as a campaign writes them.

    >>> parsed("compaction:targets=several,period=900")
    ('compaction', {'targets': 'several', 'period': '900'})
    """
    name, _, text = policy.partition(":")
    return name, dict(axis.partition("=")[::2] for axis in text.split(",") if axis)


def relative(ours: BySeed, base: BySeed) -> BySeed:
    """ours / base - 1, seed by seed; a base without a seed goes with all."""
    pairs = ((seed, value, base.get(seed, base.get(ANY_SEED))) for seed, value in ours.items())
    return {seed: value / other - 1 for seed, value, other in pairs if other}


def minus(ours: BySeed, base: BySeed) -> BySeed:
    """ours - base, seed by seed."""
    return {seed: ours[seed] - base[seed] for seed in sorted(ours.keys() & base.keys())}


def combined(how: Callable[[list[float]], float], *some: BySeed) -> BySeed:
    """The largest of several, say, seed by seed."""
    seeds = set.intersection(*(set(one) for one in some)) if some else set()
    return {seed: how([one[seed] for one in some]) for seed in sorted(seeds)}


def mean(values: BySeed) -> Estimate | None:
    """The mean over seeds, with its interval."""
    return estimate([values[seed] for seed in sorted(values)])
