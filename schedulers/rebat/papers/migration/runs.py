# SPDX-License-Identifier: Apache-2.0
"""The simulations of a campaign by policy, with metrics derived from their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from rebat.core.units import format_duration
from rebat.papers.common.claims import share_of
from rebat.papers.common.runs_index import Read, Run, RunIndex, parsed, simulations
from rebat.papers.common.tables import change_of
from rebat.results.intervals import BySeed, Interval, combined

DAY_S = 86400.0

_WORDS = {
    "sfsj": "stealing",
    "h111": "stealing",
    "foresee": "proactive migration",
    "sleep": "sleeping",
    "defragment": "defragmentation",
}


class MigrationCase(NamedTuple):
    """A policy: its name, the reactions that the campaign sets, and its other axes."""

    name: str
    react: tuple[str, ...] = ()
    axes: tuple[tuple[str, str], ...] = ()

    @property
    def short(self) -> str:
        """A readable name without the other axes.

        >>> case_of("baseline:react=foresee+stealing,period=3600").short
        'proactive migration and stealing'
        """
        return " and ".join(_WORDS.get(word, word) for word in self.react or (self.name,))

    @property
    def label(self) -> str:
        """A readable name with the other axes.

        >>> case_of("compaction:targets=several,period=900").label
        'compaction (several targets, every 15 min)'
        """
        return self.short + (f" ({self.how})" if self.axes else "")

    @property
    def how(self) -> str:
        """The other axes as readable text."""
        return ", ".join(_axis(name, value) for name, value in self.axes)


def _axis(name: str, value: str) -> str:
    if name == "targets":
        return f"{value} target{'s' * (value != 'single')}"
    if name in ("period", "ahead"):
        span = format_duration(float(value))
        return f"every {span}" if name == "period" else f"{span} ahead"
    return f"{name}={value}" if value else name


def case_of(policy: str) -> MigrationCase:
    """Return the parts of a policy's name.

    The axis ``power`` is ignored: it does not affect the schedule.
    """
    name, axes = parsed(policy)
    react = axes.pop("react", "")
    axes.pop("power", None)
    return MigrationCase(name, tuple(react.split("+")) if react else (), tuple(axes.items()))


def _a_day(count: str, scale: float = 1.0) -> Callable[[Read], BySeed]:
    def read(metric: Read) -> BySeed:
        return combined(
            lambda values: scale * values[0] * DAY_S / (values[2] - values[1]),
            metric(count),
            metric("window_first_s"),
            metric("window_last_s"),
        )

    return read


def _where(metric: str, condition: str) -> Callable[[Read], BySeed]:
    def read(of: Read) -> BySeed:
        count = of(condition)
        return {seed: value for seed, value in of(metric).items() if count.get(seed)}

    return read


DERIVED: dict[str, Callable[[Read], BySeed]] = {
    "migrations_a_day": _a_day("migrations_count"),
    "core_h_a_day": _a_day("migrations_cost", 1 / 3600),
    "cost_of_one": share_of("migrations_cost", "migrations_count"),
    "cost_share": share_of("migrations_cost", "platform_total"),
    "emptied_share": share_of("drains_emptied", "drains_nodes"),
    "empty_after_s": _where("drains_mean_s", "drains_emptied"),
    "empty_after_max_s": _where("drains_max_s", "drains_emptied"),
}
"""Metrics that are computed from other metrics.

The time until drained nodes were empty is only computed for seeds in which nodes became empty.
"""


Runs = RunIndex[MigrationCase]


def index_of(path: Path) -> Runs:
    """Return the index of the simulations in a campaign's ``results.parquet``."""
    return RunIndex(simulations(path, case_of), DERIVED)


def ratio_of(
    index: Runs, ours: Run[MigrationCase], base: Run[MigrationCase], metric: str
) -> Interval | None:
    """Return the mean relative difference of two runs, paired by seed."""
    return change_of(index, ours, base, metric, share=True)


def minutes(value: float) -> str:
    """Format seconds as minutes."""
    return f"{value / 60:.1f}"


def seeds(index: Runs, run: Run[MigrationCase]) -> str:
    """Return the number of seeds as text."""
    count = len(index.values(*run, "useful_utilisation"))
    return f"{count} seed{'s' * (count != 1)}"


def named(runs: Sequence[Run[MigrationCase]]) -> dict[str, Run[MigrationCase]]:
    """Return runs by short name. If short names are not unique, return them by label."""
    times = Counter(run.case.short for run in runs)
    return {run.case.short if times[run.case.short] == 1 else run.case.label: run for run in runs}
