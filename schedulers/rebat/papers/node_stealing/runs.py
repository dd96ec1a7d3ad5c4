# SPDX-License-Identifier: Apache-2.0
"""The runs of a campaign, selected for each part of the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path

from rebat.papers.common.parts import seeds_text
from rebat.papers.common.runs_index import RunIndex, Setting, simulations
from rebat.results import intervals
from rebat.results.intervals import BySeed
from rebat.results.scenario import ScenarioLabel

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
