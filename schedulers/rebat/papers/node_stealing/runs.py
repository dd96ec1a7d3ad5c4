# SPDX-License-Identifier: Apache-2.0
"""The runs of a campaign for each part of the report, and the subjects of the paper's claims.

A subject is a month or a sweep. Each subject has one *version*. This is the semantics of the paper
or the semantics of the authors' program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple, TypeVar

from rebat.papers.common.parts import seeds_text
from rebat.papers.common.runs_index import RunIndex, Setting, simulations
from rebat.papers.node_stealing import published
from rebat.results import intervals
from rebat.results.intervals import BySeed, Interval, interval, minus
from rebat.runs.labels import ScenarioLabel

HOUR = 3600.0
ALIASES = {"sfsj": "h111", "conservative": "baseline", "authors-sfsj": "authors-h111"}
PROGRAM = "authors-"
"""Prefix of the policies that use the semantics of the authors' program."""

HEADINGS = {PROGRAM: "as in the program", "": "as in the paper"}

Family = Sequence[Setting]
"""A family of settings, which have failures and differ only in MTBF and downtime."""


def index_of(path: Path) -> RunIndex[str]:
    """Return an index of the simulations in ``results.parquet``. All grids are combined."""
    return RunIndex(simulations(path, lambda policy: ALIASES.get(policy, policy), by_grid=False))


def base_of(policy: str) -> str:
    """Return the policy to compare with: Baseline in the same version."""
    return PROGRAM + "baseline" if policy.startswith(PROGRAM) else "baseline"


def policies(runs: RunIndex[str], setting: Setting) -> list[str]:
    """Return the policies with results in at least one version. Baseline is first."""
    names = {case.removeprefix(PROGRAM) for case in runs.cases(setting)}
    return sorted(names, key=lambda name: (name != "baseline", name))


def semantics(runs: RunIndex[str], setting: Setting) -> list[str]:
    """Return the prefixes of the versions that have runs: '' (paper) and `PROGRAM`."""
    return sorted({PROGRAM if c.startswith(PROGRAM) else "" for c in runs.cases(setting)})


def main_settings(runs: RunIndex[str]) -> Iterator[tuple[Setting, Family]]:
    """Yield the settings to show in tables and figures, each with its family."""
    families: dict[tuple[str, ScenarioLabel], list[Setting]] = {}
    for setting in runs.settings:
        if setting.scenario.failure_model is not None:
            key = setting.workload, setting.scenario.family
            families.setdefault(key, []).append(setting)
    names = [setting.workload for setting in runs.settings]
    for (_, _), family in sorted(families.items(), key=lambda of: names.index(of[0][0])):
        family.sort(key=lambda item: (item.scenario.mtbf_s, item.scenario.downtime_s))
        yield main_of(runs, family), family


def main_of(runs: RunIndex[str], family: Family) -> Setting:
    """Return the setting with MTBF and downtime 1 h, otherwise the one with the most policies."""
    for item in family:
        if (item.scenario.mtbf_s, item.scenario.downtime_s) == (HOUR, HOUR):
            return item
    return max(family, key=lambda item: len(policies(runs, item)))


def ratios(
    runs: RunIndex[str], setting: Setting, policy: str, metric: str, of: str | None = None
) -> BySeed:
    """Return a policy's values divided by Baseline's values, by seed.

    Both have the same failures.
    """
    return intervals.ratios(*runs.paired(setting, policy, base_of(policy), metric, of))


def seeds_of(runs: RunIndex[str], names: Iterable[str], *settings: Setting) -> str:
    """Return the number of seeds of some policies as text.

    If the workloads were generated, return the number of generated workloads instead.
    """
    text = seeds_text(
        len(runs.values(setting, policy, "useful_utilisation"))
        for policy, setting in product(names, settings)
    )
    return text.replace("seed", "draw") if runs.drawn.issuperset(settings) else text


def seeds_of_all(runs: RunIndex[str], setting: Setting) -> str:
    """Return the number of seeds (or generated workloads) of a setting as text."""
    names = [a + name for a in semantics(runs, setting) for name in policies(runs, setting)]
    return seeds_of(runs, names, setting)


T = TypeVar("T")


class InSemantics(NamedTuple):
    """The subject of a claim: the runs of a setting in one version."""

    runs: RunIndex[str]
    setting: Setting
    semantics: str

    @property
    def classes(self) -> list[str]:
        """The size classes, in ascending order."""
        classes = self.runs.size_classes(self.setting)
        return [name for name in classes if name != "all"] or ["all"]

    @property
    def sizes(self) -> dict[str, str]:
        """The names of the largest and the smallest size class."""
        return {"largest": self.classes[-1], "smallest": self.classes[0]}

    @property
    def variants(self) -> list[str]:
        """The variants of node stealing with runs."""
        cases = self.runs.cases(self.setting)
        names = policies(self.runs, self.setting)
        return [n for n in names if n != "baseline" and self.semantics + n in cases]

    def values(self, policy: str, metric: str, of: str | None = None) -> BySeed:
        """Return a metric of a policy, by seed."""
        size_class = self.sizes.get(of or "", of)
        return self.runs.values(self.setting, self.semantics + policy, metric, size_class)

    def ratios(self, metric: str, of: str | None = None, policy: str = "h111") -> BySeed:
        """Return a policy's value divided by Baseline's, by seed."""
        size_class = self.sizes.get(of or "", of)
        return ratios(self.runs, self.setting, self.semantics + policy, metric, size_class)

    def over_h111(self, policy: str, metric: str, of: str | None = None) -> BySeed:
        """Return a variant's value divided by H111's, by seed."""
        return intervals.ratios(self.values(policy, metric, of), self.values("h111", metric, of))

    def minus_h111(self, policy: str, metric: str) -> BySeed:
        """Return a variant's value minus H111's, by seed."""
        return minus(self.values(policy, metric), self.values("h111", metric))

    def rise(self, metric: str, of: str) -> BySeed:
        """Return the relative increase of Baseline's value due to failures, by seed."""
        for scenario in self.setting.scenario.failure_free:
            free = self.setting._replace(scenario=scenario)
            without = self.runs.values(free, "baseline", metric, self.sizes.get(of, of))
            if without:
                return intervals.relative(self.values("baseline", metric, of), without)
        return {}

    def printed(self, table: Mapping[str, Mapping[str, T]], policy: str) -> T | None:
        """Return a published value of a policy. Return None if the scenario is not the paper's."""
        return published.printed(table, self.setting).get(policy)


class OverMtbf(NamedTuple):
    """The subject of a claim: settings with equal downtime in one version, by ascending MTBF."""

    runs: RunIndex[str]
    settings: Family
    semantics: str

    def each(self) -> list[InSemantics]:
        """Return the settings, each in this version."""
        return [InSemantics(self.runs, setting, self.semantics) for setting in self.settings]

    @property
    def sizes(self) -> dict[str, str]:
        """The names of the largest and the smallest size class."""
        return self.each()[0].sizes

    @property
    def downtime_s(self) -> float | None:
        """The downtime of all settings."""
        return self.settings[0].scenario.downtime_s


Number = Callable[[InSemantics], Interval | None]


def mean_ratio(metric: str, of: str | None = None) -> Number:
    """Return a function that computes the mean ratio of SFSJ to Baseline."""
    return lambda on: interval(on.ratios(metric, of))
