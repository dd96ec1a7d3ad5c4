# SPDX-License-Identifier: Apache-2.0
"""An index of the results of a campaign by setting, policy, metric and seed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, Generic, NamedTuple, TypeVar

from rebat.results.intervals import (
    ANY_SEED,
    BySeed,
    Interval,
    interval,
    mean_of_ratios,
    minus,
    relative,
)
from rebat.results.measures.platform import are_comparable
from rebat.results.scenario import ScenarioLabel, read_results, scenario_of_row

Where = TypeVar("Where", bound=Hashable)
"""The part of a key that compared runs have in common, such as a workload with its failures."""

Case = TypeVar("Case", bound=Hashable)
"""The part of a key in which compared runs differ, usually a policy."""

Row = tuple[Where, Case, str, str, Any, float]
"""A row: setting, case, metric, size class (empty: none), seed, value."""

Read = Callable[[str], BySeed]
"""Function that returns the values of a metric of one case by seed."""


class Index(Generic[Where, Case]):
    """Values by setting, case, metric and seed. If a seed has several values, the first is used.

    Parameters
    ----------
    rows : iterable of Row
    derived : mapping
        Functions that compute derived metrics. Their argument is the `Read` of a case, which
        returns its other metrics.

    Attributes
    ----------
    settings : list
        All settings, in the order of the rows.
    """

    def __init__(
        self, rows: Iterable[Row[Where, Case]], derived: Mapping[str, Callable[[Read], BySeed]] = {}
    ) -> None:
        self._cells: dict[tuple[Where, Case, str, str], dict[Any, float]] = {}
        self._derived = derived
        self._cases: dict[Where, dict[Case, None]] = {}
        self._classes: dict[tuple[Where, str], set[str]] = {}
        for where, case, metric, of, seed, value in rows:
            self._cells.setdefault((where, case, metric, of), {}).setdefault(seed, float(value))
        for where, case, metric, of in self._cells:
            self._cases.setdefault(where, {})[case] = None
            self._classes.setdefault((where, metric), set()).add(of)
        self.settings = list(self._cases)

    def rows(self) -> Iterator[Row[Where, Case]]:
        """Yield all values as rows."""
        for (where, case, metric, of), cell in self._cells.items():
            yield from ((where, case, metric, of, seed, value) for seed, value in cell.items())

    def cases(self, where: Where) -> list[Case]:
        """Return the cases of a setting, in the order of the rows."""
        return list(self._cases.get(where, ()))

    def size_classes(self, where: Where, metric: str = "flow_max_s") -> list[str]:
        """Return the size classes that have a metric, in ascending order.

        The class 'all' is last.
        """
        names = self._classes.get((where, metric), set())
        classes = sorted(names - {"all"}, key=lambda n: int(n.strip("[)>= ").split(",")[0]))
        return classes + ["all"] * ("all" in names)

    def values(self, where: Where, case: Case, metric: str, of: str | None = None) -> BySeed:
        """Return the values by seed. ``of`` is the size class, for flows (default: all jobs)."""
        if metric in self._derived:
            return self._derived[metric](lambda name: self.values(where, case, name, of))
        return self._by_seed(where, self._cell(where, case, metric, of))

    def _cell(self, where: Where, case: Case, metric: str, of: str | None) -> dict[Any, float]:
        usual = "all" if metric.startswith(("flow_", "training_")) else ""
        return self._cells.get((where, case, metric, usual if of is None else of), {})

    def _by_seed(self, where: Where, cell: Mapping[Any, float]) -> BySeed:
        return cell

    def mean(self, where: Where, case: Case, metric: str, of: str | None = None) -> float | None:
        """Return the mean over the seeds. Return None if there are no values."""
        numbers = self.values(where, case, metric, of)
        return fmean(numbers.values()) if numbers else None

    def interval(
        self,
        where: Where,
        case: Case,
        metric: str,
        of: str | None = None,
        *,
        of_median: bool = False,
    ) -> Interval | None:
        """Return the mean (with ``of_median``, the median) over the seeds, and its interval."""
        return interval(self.values(where, case, metric, of), of_median=of_median)


class Setting(NamedTuple):
    """The setting of compared runs: a workload of a grid, with any seed, in a failure scenario."""

    grid: str
    workload: str
    scenario: ScenarioLabel

    @property
    def label(self) -> str:
        """The workload and the scenario as text."""
        return f"{self.workload}, {self.scenario.label}"


_COLUMNS = (
    "grid",
    "workload",
    "policy",
    *ScenarioLabel._fields,
    "metric",
    "size_class",
    "seed",
    "value",
)


def simulations(
    path: Path, case_of: Callable[[str], Case], by_grid: bool = True
) -> Iterator[Row[Setting, Case]]:
    """Yield the rows of simulations in a campaign's ``results.parquet``.

    Parameters
    ----------
    case_of : callable
        Function that parses the name of a policy.
    by_grid : bool
        Whether a run that is in two grids belongs to two settings, one per grid. Otherwise, it
        belongs to one setting.
    """
    runs: dict[tuple[Any, ...], tuple[Setting, Case, int]] = {}
    for row in read_results(path, "simulation", _COLUMNS):
        *run, metric, size_class, seed, value = row
        if (key := tuple(run)) not in runs:
            grid, workload, policy, *about = run
            name, _, draw = workload.partition("#")
            setting = Setting(grid if by_grid else "", name, scenario_of_row(about))
            runs[key] = setting, case_of(policy), int(draw or ANY_SEED)
        setting, case, drawn = runs[key]
        at = (drawn, ANY_SEED if seed is None else int(seed))
        yield setting, case, metric, size_class or "", at, value


class RunIndex(Index[Setting, Case]):
    """Simulations by setting, policy and metric.

    The seed of a row is a pair: the seed of the workload and the seed of the failures. If a
    workload was generated with several seeds, all its runs form one setting. This setting has a
    value per workload seed: the mean over the failure seeds. Other settings have a value per
    failure seed.
    """

    def __init__(
        self,
        rows: Iterable[Row[Setting, Case]],
        derived: Mapping[str, Callable[[Read], BySeed]] = {},
    ) -> None:
        super().__init__(rows, derived)
        draws: dict[Setting, set[int]] = {}
        for (setting, *_), cell in self._cells.items():
            draws.setdefault(setting, set()).update(draw for draw, _ in cell)
        self.drawn = {setting for setting, seeds in draws.items() if len(seeds) > 1}

    def main(self, workload: str) -> Setting | None:
        """Return the first setting of a workload. Return None if the workload was not run."""
        return next((item for item in self.settings if item.workload == workload), None)

    def comparable(self, ours: tuple[Setting, Case], others: tuple[Setting, Case]) -> bool | None:
        """Return whether the node times of two runs are comparable. Return None if this is unknown.

        See `measures.platform.comparable`.
        """
        return are_comparable(partial(self.mean, *ours), partial(self.mean, *others))

    def ratio(
        self, setting: Setting, ours: Case, base: Case, metric: str, of: str | None = None
    ) -> Interval | None:
        """Return the mean of the ratios to the values of another policy with the same seed."""
        return mean_of_ratios(*self.paired(setting, ours, base, metric, of))

    def paired(
        self, setting: Setting, ours: Case, base: Case, metric: str, of: str | None = None
    ) -> tuple[BySeed, BySeed]:
        """Return the values of two policies for the seeds that both have."""
        numbers = [self._cell(setting, case, metric, of) for case in (ours, base)]
        both = numbers[0].keys() & numbers[1].keys()
        mine, theirs = ({at: cell[at] for at in sorted(both)} for cell in numbers)
        return self._by_seed(setting, mine), self._by_seed(setting, theirs)

    def _by_seed(self, where: Setting, cell: Mapping[Any, float]) -> BySeed:
        if where not in self.drawn:
            return {seed: value for (_, seed), value in cell.items()}
        values: dict[int, list[float]] = {}
        for (draw, _), value in cell.items():
            values.setdefault(draw, []).append(value)
        return {draw: fmean(numbers) for draw, numbers in values.items()}


class Run(NamedTuple, Generic[Case]):
    """A policy in a setting."""

    setting: Setting
    case: Case


def difference(
    index: RunIndex[Case], ours: Run[Case], base: Run[Case], metric: str, *, share: bool = False
) -> BySeed:
    """Return the difference ``ours`` - ``base`` by seed. With ``share``, divide it by ``base``."""
    return (relative if share else minus)(index.values(*ours, metric), index.values(*base, metric))


def parsed(policy: str) -> tuple[str, dict[str, str]]:
    """Split a policy of a campaign into its name and its axes.

    >>> parsed("compaction:targets=several,period=900")
    ('compaction', {'targets': 'several', 'period': '900'})
    """
    name, _, text = policy.partition(":")
    return name, dict(axis.partition("=")[::2] for axis in text.split(",") if axis)
