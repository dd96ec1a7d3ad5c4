# SPDX-License-Identifier: Apache-2.0
"""Claims of the node-stealing paper, each with a rule.

A ratio is the value of SFSJ (H111) over Baseline's, paired by failure scenario. A claim holds if
the entire 95 % interval of the mean lies between the bounds of its rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import NamedTuple

import msgspec

from rebat.core.units import exact
from rebat.papers.common.claims import Claim, Rule, judge
from rebat.papers.common.parts import Judgement
from rebat.papers.common.runs_index import RunIndex, Setting
from rebat.papers.node_stealing import published
from rebat.papers.node_stealing.runs import (
    HEADINGS,
    Family,
    main_settings,
    policies,
    ratios,
    semantics,
)
from rebat.results.intervals import BySeed, Interval, combined, interval, minus


class InSemantics(NamedTuple):
    """The subject of a claim: a setting in one semantics."""

    runs: RunIndex[str]
    setting: Setting
    semantics: str

    @property
    def sizes(self) -> dict[str, str]:
        """The names of the largest and the smallest size class."""
        classes = self.runs.size_classes(self.setting)
        names = [name for name in classes if name != "all"] or ["all"]
        return {"largest": names[-1], "smallest": names[0]}

    def values(self, policy: str, metric: str) -> BySeed:
        """Return a metric of a policy in this semantics, by seed."""
        return self.runs.values(self.setting, self.semantics + policy, metric)


def _ratio(metric: str, of: str = "") -> Callable[[InSemantics], Interval | None]:
    def number(on: InSemantics) -> Interval | None:
        size_class = on.sizes.get(of, of or None)
        gains = ratios(on.runs, on.setting, on.semantics + "h111", metric, size_class)
        return interval(gains)

    return number


_RISES = Rule("SFSJ / Baseline above 1", 1, inf, whole=True)
_FALLS = Rule("SFSJ / Baseline below 1", 0, 1, whole=True)


def _from(low: float, high: float) -> Rule:
    return Rule(f"SFSJ / Baseline from {low:g} to {high:g}", low, high, whole=True)


_REAL = (
    "Jobs of generated months pack worse than those of real months. On Mira's November 2018 with "
    "30 seeds the ratio is {} as in the paper and {} as in the program "
    "(docs/findings/differences.md)"
)
_DRAWS = (
    "This is a single generated workload. Over thirty workloads the ratio is {} as in the paper "
    "and {} as in the program (docs/findings/synthetic)"
)

_HIGHER = "SFSJ has a higher useful utilisation than Baseline"

MONTHS = (
    Claim(_HIGHER, "", _RISES, "1.4 to 1.7 % higher (section 6.1.1)",
          _ratio("useful_utilisation")),
    Claim("SFSJ has less idle node time than Baseline", "", _FALLS,
          "by 10 to 40 % (section 6.1.1)", _ratio("platform_idle")),
    Claim("SFSJ has a smaller largest flow of the largest jobs ({largest}) than Baseline", "",
          _FALLS, "significantly improves, up to 10 % in some scenarios (section 6.1.2)",
          _ratio("flow_max_s", "largest")),
    Claim("SFSJ raises the largest flow of the smallest jobs ({smallest}) by at most a factor of 2",
          "", _from(1, 2), "a slight overhead; a factor 2 in the worst case (section 6.1.2)",
          _ratio("flow_max_s", "smallest")),
    Claim("SFSJ has a smaller weighted mean flow than Baseline", "", _FALLS,
          "we do observe a decrease (section 6.1.2)", _ratio("flow_weighted_mean_s"),
          why=_REAL.format("0.996 [0.980, 1.010]", "1.002 [0.988, 1.017]")),
    Claim("SFSJ raises the mean flow by less than 10 %", "",
          Rule("SFSJ / Baseline below 1.1", 0, 1.1, whole=True),
          "may slightly increase (section 6.1.2)", _ratio("flow_mean_s"),
          why=_REAL.format("1.028 [1.010, 1.043]", "1.007 [0.992, 1.024]")),
)  # fmt: skip

SYNTHETIC = (
    Claim(_HIGHER, "", _RISES, "70 % to 72 % (Table 7)", _ratio("useful_utilisation"),
          why=_DRAWS.format("1.025 [1.021, 1.030]", "1.011 [1.007, 1.016]")),
    Claim("SFSJ lowers the largest flow of the largest jobs ({largest}) by 10 to 15 % (± 5 points)",
          "", _from(0.8, 0.95), "10-15 % (section 6.3)", _ratio("flow_max_s", "largest"),
          why=_DRAWS.format("0.890 [0.872, 0.906]", "0.946 [0.926, 0.963]")),
    Claim("SFSJ lowers the mean flow of the largest jobs ({largest}) by 10 to 15 % (± 5 points)",
          "", _from(0.8, 0.95), "10-15 % (section 6.3)", _ratio("flow_mean_s", "largest"),
          why=_DRAWS.format("0.869 [0.851, 0.884]", "0.953 [0.935, 0.967]")),
    Claim("SFSJ raises the largest flow of the smallest jobs ({smallest}) by a factor of 2 or more",
          "", Rule("SFSJ / Baseline above 2", 2, inf, whole=True),
          "increases by a large factor (section 6.3)", _ratio("flow_max_s", "smallest"),
          why=_DRAWS.format("1.047 [1.020, 1.076]", "1.000 [0.980, 1.024]")),
)  # fmt: skip


def _below_all_others(on: InSemantics) -> Interval | None:
    """Return H311's utilisation minus the lowest of the others, by seed."""
    names = [name for name in policies(on.runs, on.setting) if name != "h311"]
    others = [of for name in names if (of := on.values(name, "useful_utilisation"))]
    if len(others) < 2:
        return None
    lowest = combined(min, *others)
    return interval(minus(on.values("h311", "useful_utilisation"), lowest))


VARIANTS = (
    Claim("H311 (wait for the next checkpoint) has the lowest useful utilisation",
          "H311's utilisation minus the lowest of the others", Rule("below 0", high=0, whole=True),
          "76.18 % and 75.17 %, the lowest of Table 8", _below_all_others),
    Claim("H311 steals more often than H111", "H311's steals minus H111's",
          Rule("above 0", low=0, whole=True),
          "only variant 311 is able to increase the usage (section 7)",
          lambda on: interval(minus(on.values("h311", "steals"), on.values("h111", "steals")))),
)  # fmt: skip
"""Section 7."""


class _Row(NamedTuple):
    """The subject of `SWEEP`: the settings of one downtime, in ascending order of the MTBF."""

    runs: RunIndex[str]
    settings: Family
    semantics: str


def _gained(on: _Row) -> Interval | None:
    name = on.semantics + "h111"
    ends = [ratios(on.runs, on.settings[i], name, "useful_utilisation") for i in (0, -1)]
    first, last = ([*of.values()] for of in ends)
    return interval(a - b for a, b in zip(first, last, strict=False)) if (
        len(on.settings) > 1 and len(first) == len(last)
    ) else None  # fmt: skip


SWEEP = (
    Claim("downtime {downtime}: SFSJ gains more if failures are frequent",
          "utilisation ratio at an MTBF of {least} minus the ratio at {most}",
          Rule("above 0", low=0, whole=True),
          "the smaller the MTBF, the higher the utilization (section 6.2.1)", _gained),
)  # fmt: skip
"""Section 6.2.1: the gain grows with the number of failures and with shorter downtimes."""


def judgements(runs: RunIndex[str]) -> Iterator[Judgement]:
    """Judge the paper's claims in each semantics, as far as there are runs."""
    for setting, family in main_settings(runs):
        claims = rows_of(setting.workload)
        for name in semantics(runs, setting):
            on = InSemantics(runs, setting, name)
            yield from judge(claims, on, f"{setting.label}, {HEADINGS[name]}", on.sizes)
            yield from _over_mtbf(runs, family, name)


def rows_of(workload: str) -> list[Claim]:
    """Return the claims about a workload; known causes apply to the paper's workloads only."""
    claims: tuple[Claim, ...] = SYNTHETIC if workload == published.SYNTHETIC else MONTHS
    if workload not in published.UTILISATION:
        claims = tuple(msgspec.structs.replace(claim, why="") for claim in claims)
    return [*claims, *VARIANTS]


def _over_mtbf(runs: RunIndex[str], family: Family, name: str) -> Iterator[Judgement]:
    for downtime_s in sorted({item.scenario.downtime_s or 0.0 for item in family}):
        row = [item for item in family if (item.scenario.downtime_s or 0.0) == downtime_s]
        words = {"downtime": exact(downtime_s), "least": exact(row[0].scenario.mtbf_s),
                 "most": exact(row[-1].scenario.mtbf_s)} if len(row) > 1 else {}  # fmt: skip
        about = f"{row[0].workload}, {row[0].scenario.family_label}, {HEADINGS[name]}"
        yield from judge(SWEEP, _Row(runs, row, name), about, words)
