# SPDX-License-Identifier: Apache-2.0
"""Which runs of a campaign the parts of the report are about."""

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
"""With this before it a policy is as the authors' program does it; else it is as the paper says."""

HEADINGS = {PROGRAM: "as the program", "": "as the paper says"}

Family = Sequence[Setting]
"""Settings with failures that differ in MTBF and downtime alone."""


def index_of(path: Path) -> RunIndex[str]:
    """The simulations of a campaign's ``results.parquet``, whatever their grid."""
    return RunIndex(simulations(path, lambda policy: ALIASES.get(policy, policy), by_grid=False))


def base_of(policy: str) -> str:
    """What a policy is compared with: Baseline of its own semantics."""
    return PROGRAM + "baseline" if policy.startswith(PROGRAM) else "baseline"


def policies(runs: RunIndex[str], setting: Setting) -> list[str]:
    """Policies with results, baseline first, of either semantics."""
    names = {case.removeprefix(PROGRAM) for case in runs.cases(setting)}
    return sorted(names, key=lambda name: (name != "baseline", name))


def semantics(runs: RunIndex[str], setting: Setting) -> list[str]:
    """'' where policies were run as the paper says, PROGRAM where as the program does."""
    return sorted({PROGRAM if c.startswith(PROGRAM) else "" for c in runs.cases(setting)})


def main_settings(runs: RunIndex[str]) -> Iterator[tuple[Setting, Family]]:
    """What tables and figures are made for, each with its family."""
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
    """The setting with most policies: the paper's 1 h and 1 h where it was run."""
    for item in family:
        if (item.scenario.mtbf_s, item.scenario.downtime_s) == (HOUR, HOUR):
            return item
    return max(family, key=lambda item: len(policies(runs, item)))


def ratios(
    runs: RunIndex[str], setting: Setting, policy: str, metric: str, of: str | None = None
) -> BySeed:
    """Per seed, the policy's value over Baseline's on the same failures."""
    return intervals.ratios(*runs.paired(setting, policy, base_of(policy), metric, of))


def seeds_of(runs: RunIndex[str], names: Iterable[str], *settings: Setting) -> str:
    """On how many seeds the numbers of these policies rest."""
    return seeds_text(
        len(runs.values(setting, policy, "useful_utilisation"))
        for policy, setting in product(names, settings)
    )


def seeds_note(runs: RunIndex[str], setting: Setting, shown: str = "in brackets") -> str:
    """On how many seeds the numbers of a setting rest, as a note."""
    names = [a + name for a in semantics(runs, setting) for name in policies(runs, setting)]
    return f"means over {seeds_of(runs, names, setting)}, 95 % intervals {shown}"
