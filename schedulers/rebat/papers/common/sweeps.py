# SPDX-License-Identifier: Apache-2.0
"""Sweeps in a campaign: runs that differ in one parameter, drawn as lines over its values."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from rebat.core.errors import InputError
from rebat.core.units import parse_duration
from rebat.figures.lines import Lines
from rebat.papers.common.runs_index import RunIndex, Setting, parsed
from rebat.results.scenario import ScenarioLabel

FEWEST_VALUES = 3
"""Minimum number of values of a parameter for a line picture in a report."""

Item = TypeVar("Item", bound=Hashable)
Value = float | str | None
Case = tuple[Setting, str]
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
_TIMES = (
    "mtbf",
    "downtime",
    "horizon",
    "checkpoint_cost",
    "recovery_cost",
    "checkpoint_mtbf",
    "checkpoint_interval",
)
_INTERVAL = re.compile(r"@([^+,]+)")
"""Pattern for the interval of a tier of checkpoints in the label of a scenario."""

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
    lines: Mapping[str, Mapping[float, Case]]
    level: Mapping[str, Case]

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
        values = self.fixed.scenario._asdict()
        values["law"] = re.sub(rf"\b{self.axis}=[^,]*,?", "", values["law"] or "").rstrip(",")
        values |= dict.fromkeys({self.axis, f"{self.axis}_s"} & values.keys())
        if self.axis == "checkpoint_interval":
            values["checkpoint"] = _INTERVAL.sub("", values["checkpoint"])
        return ScenarioLabel(**values).label

    @property
    def values(self) -> list[float]:
        """All values of the parameter, ascending."""
        return sorted({value for line in self.lines.values() for value in line})


def sweeps(runs: RunIndex[str], fewest: int = FEWEST_VALUES) -> Iterator[SweptRuns]:
    """Yield the sweeps of all settings, first over failure parameters, then over policy options."""
    for grid, workload in dict.fromkeys((item.grid, item.workload) for item in runs.settings):
        settings = [
            item for item in runs.settings if (item.grid, item.workload) == (grid, workload)
        ]
        yield from _over_scenarios(runs, settings, fewest)
        for setting in settings:
            yield from _over_policies(runs, setting, fewest)


def _over_scenarios(
    runs: RunIndex[str], settings: Sequence[Setting], fewest: int
) -> Iterator[SweptRuns]:
    for axis, values in _axes({item: numbers_of(item.scenario) for item in settings}, fewest):
        lines: dict[str, dict[float, Case]] = {}
        for setting, value in values.items():
            for policy in runs.cases(setting):
                lines.setdefault(policy, {})[value] = setting, policy
        yield SweptRuns(axis, next(iter(values)), lines, {})


def _over_policies(runs: RunIndex[str], setting: Setting, fewest: int) -> Iterator[SweptRuns]:
    policies = runs.cases(setting)
    lines: dict[str, dict[str, dict[float, Case]]] = {}
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
            number = values.get(name)
            if isinstance(number, float):
                rest = tuple((key, values[key]) for key in sorted(values) if key != name)
                groups.setdefault(rest, {})[item] = number
        yield from ((name, group) for group in groups.values() if len(group) >= fewest)


def numbers_of(scenario: ScenarioLabel) -> dict[str, Value]:
    """Return the parameters of a scenario by name. Numbers are floats, times are in seconds.

    >>> values = numbers_of(ScenarioLabel("weibull", law="scale=5800h,shape=8.0"))
    >>> values["scale"], values["shape"]
    (20880000.0, 8.0)
    >>> tiers = ScenarioLabel(checkpoint="tiers remote=30s/2min@20min")
    >>> numbers_of(tiers)["checkpoint_interval"]
    1200.0
    """
    values: dict[str, Value] = {
        name.removesuffix("_s"): _number(value) for name, value in scenario._asdict().items()
    }
    del values["law"]
    for part in (scenario.law or "").split(","):
        name, _, text = part.partition("=")
        values[name] = _number(text)
    costs = _COSTS.search(scenario.checkpoint or "")
    if costs and scenario.failure_model is not None:
        values["checkpoint"] = "young-daly"
        values |= {name: _number(text) for name, text in costs.groupdict().items()}
    intervals = _INTERVAL.findall(scenario.checkpoint or "")
    if len(intervals) == 1:
        values["checkpoint"] = _INTERVAL.sub("", scenario.checkpoint or "")
        values["checkpoint_interval"] = _number(intervals[0])
    return values


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
    points: dict[str, Iterable[tuple[float, Case]]] = {
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
