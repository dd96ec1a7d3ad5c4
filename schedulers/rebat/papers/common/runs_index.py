# SPDX-License-Identifier: Apache-2.0
"""The simulations of a campaign by grid, workload and scenario, their metrics by policy and seed.

A workload made with several seeds is one here, its values by seed (each the mean over the seeds of
the failures); that of a workload with one seed are by the failures' seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Generic, NamedTuple, TypeVar

from rebat.metrics.backlog import are_comparable
from rebat.results.estimates import Estimate, estimate
from rebat.results.intervals import BySeed
from rebat.results.reading import read_results
from rebat.results.scenario import Scenario, scenario_of_row

Case = TypeVar("Case")
"""What a report makes of the name of a policy."""

_Drawn = tuple[int, int]
"""The seed of a workload, and that of the failures."""

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
        self._cells: dict[tuple[Setting, Case, str, str], dict[_Drawn, float]] = {}
        draws: dict[Setting, set[int]] = {}
        for row in read_results(path, "simulation", _COLUMNS):
            grid, workload, policy, *about, metric, size_class, seed, value = row
            name, _, drawn = workload.partition("#")
            setting = Setting(grid, name, scenario_of_row(about))
            at = (int(drawn or ANY_SEED), ANY_SEED if seed is None else int(seed))
            draws.setdefault(setting, set()).add(at[0])
            key = (setting, case_of(policy), metric, size_class or "")
            self._cells.setdefault(key, {})[at] = float(value)
        self.drawn = {setting for setting, some in draws.items() if len(some) > 1}
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
        """A value per seed, or per draw of the workload: its mean over the seeds of failures."""
        found = self._cells.get((setting, case, metric, size_class), {})
        return self._by_seed(setting, found)

    def comparable(self, ours: tuple[Setting, Case], others: tuple[Setting, Case]) -> bool | None:
        """Whether shares of node time of two policies, or settings, can be compared; see
        `metrics.backlog`."""

        def mean_of(setting: Setting, case: Case, metric: str) -> float | None:
            found = self.values(setting, case, metric).values()
            return fmean(found) if found else None

        return are_comparable(partial(mean_of, *ours), partial(mean_of, *others))

    def paired(
        self, setting: Setting, ours: Case, base: Case, metric: str, size_class: str = ""
    ) -> tuple[BySeed, BySeed]:
        """The same of two policies, from the runs alone that there are of both."""
        found = [self._cells.get((setting, case, metric, size_class), {}) for case in (ours, base)]
        both = found[0].keys() & found[1].keys()
        mine, theirs = ({at: cell[at] for at in sorted(both)} for cell in found)
        return self._by_seed(setting, mine), self._by_seed(setting, theirs)

    def _by_seed(self, setting: Setting, cell: Mapping[_Drawn, float]) -> BySeed:
        if setting not in self.drawn:
            return {seed: value for (_, seed), value in cell.items()}
        values: dict[int, list[float]] = {}
        for (draw, _), value in cell.items():
            values.setdefault(draw, []).append(value)
        return {draw: fmean(some) for draw, some in values.items()}


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
