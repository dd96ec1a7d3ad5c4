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

from rebat.models.checkpoint import Accounting
from rebat.report.parts import seeds_text
from rebat.report.runs_index import RunIndex, Setting, simulations
from rebat.results import intervals
from rebat.results.intervals import BySeed, Interval, interval, minus
from rebat.runs.labels import USUAL_CHECKPOINTS, USUAL_HORIZONS_S, ScenarioLabel

JUNE, MARCH, INTREPID = "june-2017", "march-2018", "intrepid-june-2013"
SYNTHETIC = "synthetic"

_SCENARIOS: dict[str, tuple[float, float]] = {
    # MTBF and downtime (seconds) of the tables below: sections 6.1 and 6.3.
    JUNE: (3600.0, 3600.0),
    MARCH: (3600.0, 3600.0),
    INTREPID: (3600.0, 3600.0),
    SYNTHETIC: (1800.0, 600.0),
}

ACCOUNTING: Accounting = "program"
"""How the paper counts checkpoints. Results that do not state this are assumed to do the same."""


def printed_for(setting: Setting) -> bool:
    """Return whether the paper's tables are about this scenario of a workload."""
    workload, scenario = setting.workload, setting.scenario
    mtbf_s, downtime_s = _SCENARIOS.get(workload, (None, None))
    usual = ScenarioLabel(
        "authors", mtbf_s, downtime_s, checkpoint=USUAL_CHECKPOINTS, accounting=ACCOUNTING
    )
    actual = scenario.replaced(horizon_s=None, accounting=scenario.accounting or ACCOUNTING)
    unending = scenario.horizon_s in USUAL_HORIZONS_S
    return unending and workload in _SCENARIOS and actual == usual


K = TypeVar("K")
T = TypeVar("T")


def printed(table: Mapping[str, Mapping[K, T]], setting: Setting) -> dict[K, T]:
    """Return the published values for a workload, by policy.

    Return an empty dict for scenarios that are not in the paper.
    """
    return dict(table.get(setting.workload, {})) if printed_for(setting) else {}


UTILISATION: dict[str, dict[str, float]] = {
    # Tables 4 and 7, and Table 8, which repeats the months of Mira with all variants.
    JUNE: {
        "baseline": 0.7932, "h111": 0.8069, "h112": 0.8015, "h113": 0.8049, "h121": 0.8048,
        "h122": 0.7940, "h123": 0.7920, "h211": 0.8052, "h212": 0.8030, "h213": 0.8050,
        "h221": 0.8050, "h222": 0.7960, "h223": 0.8017, "h311": 0.7618, "h312": 0.7750,
        "h313": 0.7835, "h321": 0.7882, "h322": 0.7857, "h323": 0.7857,
    },
    MARCH: {
        "baseline": 0.7739, "h111": 0.7850, "h112": 0.7812, "h113": 0.7764, "h121": 0.7747,
        "h122": 0.7695, "h123": 0.7715, "h211": 0.7809, "h212": 0.7811, "h213": 0.7791,
        "h221": 0.7814, "h222": 0.7794, "h223": 0.7831, "h311": 0.7517, "h312": 0.7641,
        "h313": 0.7687, "h321": 0.7688, "h322": 0.7592, "h323": 0.7728,
    },
    INTREPID: {"baseline": 0.7671, "h111": 0.7726},
    SYNTHETIC: {"baseline": 0.70, "h111": 0.72},
}  # fmt: skip

IDLE_SHARE: dict[str, dict[str, float]] = {
    # Tables 5a and 8. The program divides by 30 days instead of 20 (see ``idle_as_program``).
    JUNE: {
        "baseline": 0.9209, "h111": 0.9067, "h112": 0.9195, "h113": 0.9185, "h121": 0.9167,
        "h122": 0.9150, "h123": 0.9176, "h211": 0.9087, "h212": 0.9081, "h213": 0.9035,
        "h221": 0.9116, "h222": 0.9122, "h223": 0.9106, "h311": 0.8587, "h312": 0.8948,
        "h313": 0.9032, "h321": 0.8987, "h322": 0.8903, "h323": 0.8968,
    },
    MARCH: {
        "baseline": 0.9336, "h111": 0.9248, "h112": 0.9200, "h113": 0.9265, "h121": 0.9261,
        "h122": 0.9263, "h123": 0.9277, "h211": 0.9201, "h212": 0.9253, "h213": 0.9218,
        "h221": 0.9245, "h222": 0.9246, "h223": 0.9242, "h311": 0.8890, "h312": 0.9057,
        "h313": 0.9138, "h321": 0.9205, "h322": 0.9009, "h323": 0.9215,
    },
    INTREPID: {"baseline": 0.9383, "h111": 0.9370},
}  # fmt: skip

STEALS: dict[str, dict[str, tuple[float, float]]] = {
    # Tables 5b and 9: (lost to stealing, node empty), means over five scenarios.
    JUNE: {
        "h111": (63.4, 404.4), "h112": (33.6, 433.4), "h113": (48.0, 423.6),
        "h121": (32.4, 440.4), "h122": (46.8, 422.4), "h123": (48.0, 418.2),
        "h211": (60.8, 413.2), "h212": (34.6, 431.6), "h213": (47.6, 424.2),
        "h221": (33.2, 432.2), "h222": (49.8, 410.4), "h223": (51.4, 417.6),
        "h311": (76.4, 362.6), "h312": (39.8, 413.4), "h313": (17.2, 437.4),
        "h321": (32.8, 427.4), "h322": (55.8, 395.8), "h323": (30.6, 429.4),
    },
    MARCH: {
        "h111": (46.6, 416.2), "h112": (44.6, 415.6), "h113": (44.6, 420.0),
        "h121": (29.8, 432.6), "h122": (49.8, 414.4), "h123": (48.2, 414.2),
        "h211": (53.2, 411.2), "h212": (43.8, 417.2), "h213": (41.0, 419.8),
        "h221": (27.4, 432.4), "h222": (48.0, 413.2), "h223": (49.4, 411.8),
        "h311": (60.2, 383.6), "h312": (43.6, 408.4), "h313": (14.8, 441.2),
        "h321": (26.2, 430.4), "h322": (57.0, 394.0), "h323": (24.0, 435.4),
    },
    INTREPID: {"h111": (45.8, 410.8)},
}  # fmt: skip

MONTHS = (JUNE, MARCH, INTREPID)

FAILURE_FREE_UTILISATION = {JUNE: 0.8851, MARCH: 0.9288, INTREPID: 0.8990}
"""Table 3: utilisation of Baseline without failures."""

IDLE_TIME_RATIO = {JUNE: 0.6, MARCH: 0.8, INTREPID: 0.9}
"""Section 6.1.1: idle node time of SFSJ divided by that of Baseline."""

STEALING_OVERHEAD = dict.fromkeys(MONTHS, 0.001)
"""Section 6.1.1: share of node time lost to stealing, around 0.1 % for all months."""

FREE_AT_FAILURE = {JUNE: 0.84, MARCH: 0.89, INTREPID: 0.90}
"""Section 6.1.1: share of failures at which a node is free."""

LARGEST_FLOWS_DAYS: dict[str, dict[tuple[str, str], float]] = {
    JUNE: {
        ("baseline", "largest"): 7.20, ("h111", "largest"): 3.72,
        ("baseline", "smallest"): 0.19, ("h111", "smallest"): 0.54,
    },
}  # fmt: skip
"""Section 9: maximum flows of jobs of [32K, 64K] nodes and of [1, 128] nodes, by policy."""

OUTLIERS: dict[str, dict[tuple[str, str], tuple[float, ...]]] = {
    MARCH: {
        ("h111", "flow_max_s"): (7.99,), ("h311", "flow_max_s"): (6.09,),
        ("h112", "flow_max_s"): (5.47, 7.73), ("h113", "flow_max_s"): (4.09, 4.84),
        ("h112", "flow_mean_s"): (3.58,),
    },
}  # fmt: skip
"""Table 10: the ratios to Baseline that Figures 19 to 21 leave out as outliers. They are for jobs
of [1, 128] nodes. Rows of Figure 21 without a size are assumed to be for the same jobs."""


def idle_as_program(share: float, window_days: float = 20.0, divisor_days: float = 30.0) -> float:
    """Return the idle share as the authors' scripts compute it.

    The scripts measure the time without an idle node over 20 days, but divide it by 30 days.
    """
    return 1 - (1 - share) * window_days / divisor_days


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
        return printed(table, self.setting).get(policy)


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
