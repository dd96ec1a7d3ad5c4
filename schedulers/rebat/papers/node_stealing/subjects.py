# SPDX-License-Identifier: Apache-2.0
"""The subjects of the node-stealing paper's claims. A subject is a month or a sweep.

Each subject has one *version*. This is the semantics of the paper or the semantics of the authors'
program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from rebat.papers.common.runs_index import RunIndex, Setting
from rebat.papers.node_stealing import published
from rebat.papers.node_stealing.runs import Family, policies, ratios
from rebat.results import intervals
from rebat.results.intervals import BySeed, Interval, interval, minus

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
