# SPDX-License-Identifier: Apache-2.0
"""An index of the results of a campaign by setting, policy, metric and seed.

The index yields means over seeds, differences paired by seed, ratios to the first policy over all
workloads of a grid, and sweeps. A sweep consists of runs that differ in one parameter, drawn as
lines over its values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from rebat.core.errors import InputError
from rebat.core.numbers import Form, decimal, ratio, signed, spread
from rebat.core.units import parse_duration
from rebat.figures.charts import Lines
from rebat.models.failures.laws import LAWS
from rebat.policies.presets import split_changes
from rebat.report.table import Table, bracketed
from rebat.results.catalogue import metric as about_metric
from rebat.results.comparison import Case, Runs
from rebat.results.intervals import (
    ANY_SEED,
    FEWEST,
    BySeed,
    Interval,
    interval,
    mean_of_ratios,
    minus,
    ratios,
    relative,
)
from rebat.results.measures.platform import are_comparable
from rebat.runs.labels import FOR_MTBF, SCENARIO_COLUMNS, ScenarioLabel, read_results
from rebat.runs.scenario import OPTIONS

Where = TypeVar("Where", bound=Hashable)
"""The part of a key that compared runs have in common, such as a workload with its failures."""

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
        self._runs: dict[Where, Runs[Case]] = {}
        self._derived = derived
        for where, case, metric, of, seed, value in rows:
            runs = self._runs.get(where)
            if runs is None:
                runs = self._runs[where] = Runs()
            runs.add(seed, case, [(metric, of or None, float(value))])
        self.settings = list(self._runs)

    def rows(self) -> Iterator[Row[Where, Case]]:
        """Yield all values as rows."""
        for where, runs in self._runs.items():
            for seed, case, metric, of, value in runs:
                yield where, case, metric, of or "", seed, value

    def runs(self, where: Where) -> Runs[Case]:
        """Return the compared runs of a setting."""
        return self._runs[where]

    def cases(self, where: Where) -> list[Case]:
        """Return the cases of a setting, in the order of the rows."""
        return self._runs[where].policies if where in self._runs else []

    def size_classes(self, where: Where, metric: str = "flow_max_s") -> list[str]:
        """Return the size classes that have a metric, in ascending order.

        The class 'all' is last.
        """
        runs = self._runs.get(where, Runs())
        names = {of for name, of in runs.metrics if name == metric and of}
        classes = sorted(names - {"all"}, key=lambda n: int(n.strip("[)>= ").split(",")[0]))
        return classes + ["all"] * ("all" in names)

    def values(self, where: Where, case: Case, metric: str, of: str | None = None) -> BySeed:
        """Return the values by seed. ``of`` is the size class, for flows (default: all jobs)."""
        if metric in self._derived:
            return self._derived[metric](lambda name: self.values(where, case, name, of))
        return self._by_seed(where, self._cell(where, case, metric, of))

    def _cell(self, where: Where, case: Case, metric: str, of: str | None) -> dict[Any, float]:
        usual = "all" if metric.startswith(("flow_", "training_")) else None
        runs = self._runs.get(where, Runs())
        return runs.cell(case, (metric, usual if of is None else of or None))

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
    *SCENARIO_COLUMNS,
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
            scenario = ScenarioLabel.of_cells(dict(zip(SCENARIO_COLUMNS, about, strict=True)))
            setting = Setting(grid if by_grid else "", name, scenario)
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
        self.drawn = {
            setting
            for setting, runs in self._runs.items()
            if len({draw for draw, _ in runs.seeds}) > 1
        }

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
    return name, dict(axis.partition("=")[::2] for axis in split_changes(text) if axis)


class Column(NamedTuple):
    """A metric as a column of a table.

    ``shown`` formats a value, ``change`` a difference. ``relative`` states whether differences are
    relative.
    """

    heading: str
    metric: str
    shown: Form
    change: Form = signed
    relative: bool = False


def column(name: str, change: Form = signed, relative: bool = False) -> Column:
    """Return the column of a metric, with heading and unit from the catalogue of metrics."""
    row = about_metric(name)
    shown = decimal if row.unit == "count" else row.form
    return Column(row.recorded(None), name, shown, change, relative)


def means(
    index: RunIndex[Case],
    runs: Mapping[str, Run[Case]],
    columns: Sequence[Column],
) -> list[list[str]]:
    """Return a row per run, with its name and the mean over the seeds in each column."""
    return [
        [name, *(spread(mean_of(index, run, column.metric), column.shown) for column in columns)]
        for name, run in runs.items()
    ]


def differences(
    index: RunIndex[Case],
    pairs: Iterable[tuple[str, Run[Case], Run[Case]]],
    columns: Sequence[Column],
) -> list[list[str]]:
    """Return a row per pair of runs, with its name and the first run minus the second.

    Each column has a mean difference. Values are paired by seed.
    """
    return [
        [name, *(spread(_changed(index, ours, base, column), column.change) for column in columns)]
        for name, ours, base in pairs
    ]


def _changed(
    index: RunIndex[Case], ours: Run[Case], base: Run[Case], column: Column
) -> Interval | None:
    return change_of(index, ours, base, column.metric, share=column.relative)


def headings(columns: Iterable[Column]) -> list[str]:
    """Return the headings of columns."""
    return [column.heading for column in columns]


def mean_of(index: RunIndex[Case], run: Run[Case], metric: str) -> Interval | None:
    """Return the mean of a metric over the seeds with its interval."""
    return index.interval(*run, metric)


def change_of(
    index: RunIndex[Case], ours: Run[Case], base: Run[Case], metric: str, *, share: bool = False
) -> Interval | None:
    """Return the mean difference of two runs, paired by seed. With ``share``, it is relative."""
    return interval(difference(index, ours, base, metric, share=share))


NOTE = (
    "The ratio of a workload is the mean over its seeds. The table shows the mean over {n} "
    "workloads{interval}: what to expect of another workload."
)


def pooled(runs: RunIndex[str], columns: Sequence[Column]) -> Iterator[Table]:
    """Yield a table for each grid of at least `FEWEST` workloads, and for each metric."""
    for grid in dict.fromkeys(setting.grid for setting in runs.settings):
        settings = [setting for setting in runs.settings if setting.grid == grid]
        workloads = list(dict.fromkeys(setting.workload for setting in settings))
        if len(workloads) >= FEWEST:
            for column in columns:
                yield _table(runs, settings, workloads, column)


def _table(
    runs: RunIndex[str], settings: Sequence[Setting], workloads: Sequence[str], column: Column
) -> Table:
    base, *others = runs.cases(settings[0])
    scenarios = list(dict.fromkeys(setting.scenario for setting in settings))
    shared = [p for p in scenarios[0].parts if all(p in other.parts for other in scenarios)]
    rows = []
    for scenario in scenarios:
        label = ", ".join(part for part in scenario.parts if part not in shared) or "all"
        values = [
            [
                _of_workload(runs, settings, scenario, workload, policy, column.metric)
                for workload in workloads
            ]
            for policy in others
        ]
        means = [[value for value in numbers if value is not None] for numbers in values]
        rows.append([label, *(spread(interval(numbers), ratio, 1.0) for numbers in means)])
    title = f"{settings[0].grid}: {column.heading}, ratio to {base} over all workloads"
    interval_text = " with its interval" if bracketed(rows) else ""
    note = NOTE.format(n=len(workloads), interval=interval_text)
    note += f" Scenario: {', '.join(shared)}." if shared else ""
    return Table("", title, ["scenario", *others], rows, note)


def _of_workload(
    runs: RunIndex[str],
    settings: Sequence[Setting],
    scenario: ScenarioLabel,
    workload: str,
    policy: str,
    metric: str,
) -> float | None:
    """Return the mean over the seeds of a workload's ratio to the first policy.

    Return None if there are no runs.
    """
    setting = settings[0]._replace(workload=workload, scenario=scenario)
    by_seed: BySeed = {}
    if setting in runs.settings:
        base = runs.cases(setting)[0]
        by_seed = ratios(*runs.paired(setting, policy, base, metric))
    return fmean(by_seed.values()) if by_seed else None


FEWEST_VALUES = 3
"""Minimum number of values of a parameter for a line picture in a report."""

Item = TypeVar("Item", bound=Hashable)
Value = float | str | None
PolicyAt = tuple[Setting, str]
"""A setting and a policy in it."""

_TITLES = {
    "mtbf": "MTBF",
    "nodes": "nodes",
    "cores_per_node": "cores per node",
    "checkpoint_cost": "checkpoint cost",
    "recovery_cost": "recovery cost",
    "checkpoint_mtbf": "MTBF of the checkpoint period",
    "checkpoint_interval": "work between two checkpoints",
}
_TIMES = {
    "checkpoint_interval",
    *(name for name, option in OPTIONS.items() if option.is_duration),
    *(
        field.name.removesuffix("_s")
        for law in LAWS.values()
        for field in msgspec.structs.fields(law)
        if field.name.endswith("_s")
    ),
}
"""Parameters that are durations: of options, and of failure laws."""
_INTERVAL = re.compile(r"@([^+,]+)")
"""Pattern for the interval of a tier of checkpoints in the label of a scenario."""

TIERS = "tiers "
"""Beginning of the label of checkpoints in tiers."""

_COSTS = re.compile(
    r"\(cost (?P<checkpoint_cost>[^,]+), recovery (?P<recovery_cost>[^,]+), (?P<rounding>\w+)"
    r"(?:, for an MTBF of (?P<checkpoint_mtbf>.+))?\)"
)


class SweptRuns(NamedTuple):
    """The values of a parameter, and the runs of each policy with these values.

    Attributes
    ----------
    axis
        The parameter.
    fixed
        The setting of the first run. The settings of other runs differ from it only in the
        parameter.
    lines
        The runs of the policies that have the parameter. The first key is the policy without the
        parameter, the second key is the value of the parameter.
    level
        The run of each policy that does not have the parameter.
    """

    axis: str
    fixed: Setting
    lines: Mapping[str, Mapping[float, PolicyAt]]
    level: Mapping[str, PolicyAt]

    @property
    def title(self) -> str:
        """The parameter in words."""
        return _TITLES.get(self.axis, self.axis)

    @property
    def is_time(self) -> bool:
        """Whether the values are in seconds."""
        return self.axis in _TIMES

    @property
    def fixed_text(self) -> str:
        """The scenario in words, without the parameter that the sweep varies."""
        values = self.fixed.scenario.cells
        values["law"] = re.sub(rf"\b{self.axis}=[^,]*,?", "", values["law"] or "").rstrip(",")
        values |= dict.fromkeys({self.axis, f"{self.axis}_s"} & values.keys())
        if self.axis == "checkpoint_interval":
            values["checkpoint"] = _INTERVAL.sub("", values["checkpoint"])
        return ScenarioLabel.of_cells(values).label

    @property
    def values(self) -> list[float]:
        """All values of the parameter, ascending."""
        return sorted({value for line in self.lines.values() for value in line})


Numbers = Callable[[ScenarioLabel], Mapping[str, Value]]
"""Function that returns the parameters of a scenario by name."""


def sweeps(
    runs: RunIndex[str], fewest: int = FEWEST_VALUES, numbers: Numbers | None = None
) -> Iterator[SweptRuns]:
    """Yield the sweeps of all settings, first over failure parameters, then over policy options.

    The default of ``numbers`` is `numbers_of`.
    """
    for grid, workload in dict.fromkeys((item.grid, item.workload) for item in runs.settings):
        settings = [
            item for item in runs.settings if (item.grid, item.workload) == (grid, workload)
        ]
        yield from _over_scenarios(runs, settings, fewest, numbers or numbers_of)
        for setting in settings:
            yield from _over_policies(runs, setting, fewest)


def _over_scenarios(
    runs: RunIndex[str], settings: Sequence[Setting], fewest: int, numbers: Numbers
) -> Iterator[SweptRuns]:
    for axis, values in _axes({item: numbers(item.scenario) for item in settings}, fewest):
        lines: dict[str, dict[float, PolicyAt]] = {}
        for setting, value in values.items():
            for policy in runs.cases(setting):
                lines.setdefault(policy, {})[value] = setting, policy
        yield SweptRuns(axis, next(iter(values)), lines, {})


def _over_policies(runs: RunIndex[str], setting: Setting, fewest: int) -> Iterator[SweptRuns]:
    policies = runs.cases(setting)
    lines: dict[str, dict[str, dict[float, PolicyAt]]] = {}
    for axis, values in _axes({name: options_of(name) for name in policies}, fewest):
        for policy, value in values.items():
            line = lines.setdefault(axis, {}).setdefault(without(policy, axis), {})
            line[value] = setting, policy
    for axis, by_policy in lines.items():
        plain = [name for name in policies if axis not in parsed(name)[1]]
        level = {
            f"{name} (no {axis})" if name in by_policy else name: (setting, name) for name in plain
        }
        yield SweptRuns(axis, setting, by_policy, level)


def _axes(
    items: Mapping[Item, Mapping[str, Value]], fewest: int
) -> Iterator[tuple[str, dict[Item, float]]]:
    """Yield groups of items that differ in only one parameter.

    A group is the name of this parameter, and its value for each item.
    """
    names = dict.fromkeys(name for values in items.values() for name in values)
    for name in names:
        groups: dict[tuple[tuple[str, Value], ...], dict[Item, float]] = {}
        for item, values in items.items():
            number = value_of(values, name)
            if isinstance(number, float):
                rest = tuple((key, values[key]) for key in sorted(values) if key != name)
                groups.setdefault(rest, {})[item] = number
        yield from ((name, group) for group in groups.values() if len(group) >= fewest)


def numbers_of(scenario: ScenarioLabel) -> dict[str, Value]:
    """Return the parameters of a scenario by name. Numbers are floats, times are in seconds.

    >>> values = numbers_of(ScenarioLabel("weibull", law="scale=5800h,shape=8.0"))
    >>> values["scale"], values["shape"]
    (20880000.0, 8.0)
    >>> tiers = ScenarioLabel(checkpoint="tiers remote=30s/2min@20min, for an MTBF of 1 h")
    >>> numbers_of(tiers)["checkpoint_interval"]
    1200.0
    """
    values: dict[str, Value] = {
        name.removesuffix("_s"): _number(getattr(scenario, name)) for name in SCENARIO_COLUMNS
    }
    del values["law"]
    for part in (scenario.law or "").split(","):
        name, _, text = part.partition("=")
        values[name] = _number(text)
    costs = _COSTS.search(scenario.checkpoint or "")
    if costs and scenario.failure_model is not None:
        values["checkpoint"] = "young-daly"
        values |= {name: _number(text) for name, text in costs.groupdict().items()}
    if (scenario.checkpoint or "").startswith(TIERS):
        tiers, _, mtbf = (scenario.checkpoint or "").partition(FOR_MTBF)
        period_s = _number(mtbf or None)
        values["checkpoint"] = tiers
        values["checkpoint_mtbf"] = None if period_s == values["mtbf"] else period_s
        intervals = _INTERVAL.findall(tiers)
        if len(intervals) == 1:
            values["checkpoint"] = _INTERVAL.sub("", tiers)
            values["checkpoint_interval"] = _number(intervals[0])
    kind, _, number = (scenario.silent_errors or "").partition(" ")
    del values["silent_errors"]
    if kind:
        name = "silent_errors" if kind == "rate" else "silent_error_probability"
        values[name] = _number(number)
    return values


def value_of(values: Mapping[str, Value], name: str) -> Value:
    """Return a parameter of `numbers_of`. The period follows the failures by default."""
    value = values.get(name)
    checkpoint = str(values.get("checkpoint"))
    if value is None and name == "checkpoint_mtbf" and checkpoint.startswith(("young-daly", TIERS)):
        return values.get("mtbf")
    return value


def options_of(policy: str) -> dict[str, Value]:
    """Return the name and the options of a policy. Numbers are floats."""
    name, options = parsed(policy)
    return {"policy": name, **{key: _number(text) for key, text in options.items()}}


def without(policy: str, axis: str) -> str:
    """Return a policy without one of its options.

    >>> without("baseline:react=replacement,spares=8", "spares")
    'baseline:react=replacement'
    """
    name, options = parsed(policy)
    rest = ",".join(f"{key}={value}" for key, value in options.items() if key != axis)
    return f"{name}:{rest}" if rest else name


def _number(value: object) -> Value:
    """Return a number, or a duration in seconds, as a float. Return other values as text."""
    if value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    text = str(value)
    try:
        return float(text) if not text[-1:].isalpha() else parse_duration(text.replace(" ", ""))
    except (ValueError, InputError):
        return text


def lines_of(runs: RunIndex[str], sweep: SweptRuns, metric: str, of: str | None = None) -> Lines:
    """Return the means of a metric along a sweep.

    The line of a policy without the parameter is horizontal.
    """
    ends = sweep.values[0], sweep.values[-1]
    points: dict[str, Iterable[tuple[float, PolicyAt]]] = {
        name: [(value, case) for value in ends] for name, case in sweep.level.items()
    }
    points |= {name: sorted(line.items()) for name, line in sweep.lines.items()}
    measured = {
        name: [
            (value, mean)
            for value, case in line
            if (mean := runs.interval(*case, metric, of)) is not None
        ]
        for name, line in points.items()
    }
    return {name: line for name, line in measured.items() if line}
