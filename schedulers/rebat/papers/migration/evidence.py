# SPDX-License-Identifier: Apache-2.0
"""The simulations of a campaign, by policy and seed, and what is made of their metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from rebat.core.units import format_duration
from rebat.papers.common.runs_index import Seeded, Setting, combined, mean, parsed, relative
from rebat.results.estimates import Estimate, paired
from rebat.results.intervals import BySeed

DAY_S = 86400.0

_WORDS = {
    "sfsj": "stealing", "h111": "stealing", "foresee": "proactive migration",
    "sleep": "sleeping", "defragment": "defragmentation",
}  # fmt: skip


class Case(NamedTuple):
    """A policy: its name, the reactions that the campaign gave it, and its other axes."""

    name: str
    react: tuple[str, ...] = ()
    axes: tuple[tuple[str, str], ...] = ()

    @property
    def short(self) -> str:
        """For people, without the other axes.

        >>> case_of("baseline:react=foresee+stealing,period=3600").short
        'proactive migration and stealing'
        """
        return " and ".join(_WORDS.get(word, word) for word in self.react or (self.name,))

    @property
    def label(self) -> str:
        """The same with them.

        >>> case_of("compaction:targets=several,period=900").label
        'compaction (several targets, every 15 min)'
        """
        return self.short + (f" ({self.how})" if self.axes else "")

    @property
    def how(self) -> str:
        """The other axes for people."""
        return ", ".join(_axis(name, value) for name, value in self.axes)


def _axis(name: str, value: str) -> str:
    if name == "targets":
        return f"{value} target{'s' * (value != 'single')}"
    if name in ("period", "ahead"):
        span = format_duration(float(value))
        return f"every {span}" if name == "period" else f"{span} ahead"
    return f"{name}={value}" if value else name


def case_of(policy: str) -> Case:
    """A policy as a campaign writes it, but for the power of a node, which changes no schedule."""
    name, axes = parsed(policy)
    react = axes.pop("react", "")
    axes.pop("power", None)
    return Case(name, tuple(react.split("+")) if react else (), tuple(axes.items()))


class Run(NamedTuple):
    """A policy where it was run."""

    setting: Setting
    case: Case


Read = Callable[[str], BySeed]


def _share(part: str, whole: str) -> Callable[[Read], BySeed]:
    def read(metric: Read) -> BySeed:
        of = metric(whole)
        return {seed: value / of[seed] for seed, value in metric(part).items() if of.get(seed)}

    return read


def _a_day(count: str, scale: float = 1.0) -> Callable[[Read], BySeed]:
    def read(metric: Read) -> BySeed:
        return combined(
            lambda values: scale * values[0] * DAY_S / (values[2] - values[1]),
            metric(count), metric("window_first_s"), metric("window_last_s"),
        )  # fmt: skip

    return read


def _where(metric: str, some: str) -> Callable[[Read], BySeed]:
    def read(of: Read) -> BySeed:
        count = of(some)
        return {seed: value for seed, value in of(metric).items() if count.get(seed)}

    return read


DERIVED: dict[str, Callable[[Read], BySeed]] = {
    "migrations_a_day": _a_day("migrations_count"),
    "core_h_a_day": _a_day("migrations_cost", 1 / 3600),
    "cost_of_one": _share("migrations_cost", "migrations_count"),
    "cost_share": _share("migrations_cost", "platform_total"),
    "emptied_share": _share("drains_emptied", "drains_nodes"),
    "empty_after_s": _where("drains_mean_s", "drains_emptied"),
    "empty_after_max_s": _where("drains_max_s", "drains_emptied"),
}
"""What is made of metrics: per day, core-seconds a migration, share of core time, share of the
drained nodes that got empty, and how long these took (of seeds where some did)."""


class Evidence(Seeded[Case]):
    """Metrics by run and seed.

    Parameters
    ----------
    path : Path
        A campaign's ``results.parquet``.

    Raises
    ------
    InputError
        When it holds no simulations.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, case_of)

    def of(self, run: Run, metric: str) -> BySeed:
        """A value per seed, of a metric or of what is made of some; flows are those of all jobs."""
        if metric in DERIVED:
            return DERIVED[metric](lambda name: self.of(run, name))
        return self.values(*run, metric, "all" if metric.startswith("flow_") else "")

    def mean(self, run: Run, metric: str) -> Estimate | None:
        """The mean over seeds."""
        return mean(self.of(run, metric))

    def change(self, ours: Run, base: Run, metric: str) -> Estimate | None:
        """The mean difference, paired by seed."""
        return paired(self.of(ours, metric), self.of(base, metric))

    def ratio(self, ours: Run, base: Run, metric: str) -> Estimate | None:
        """The mean relative difference, paired by seed."""
        return mean(relative(self.of(ours, metric), self.of(base, metric)))

    def seeds(self, run: Run) -> str:
        """How many there are, for people."""
        count = len(self.of(run, "useful_utilisation"))
        return f"{count} seed{'s' * (count != 1)}"

    def runs(self, setting: Setting, wanted: Callable[[Case], bool]) -> list[Run]:
        """The policies like that which ran there."""
        return [Run(setting, case) for case in self.cases(setting) if wanted(case)]


def named(runs: Sequence[Run]) -> dict[str, Run]:
    """Runs by what people call them: in full where the short name is that of several."""
    times = Counter(run.case.short for run in runs)
    return {
        run.case.short if times[run.case.short] == 1 else run.case.label: run for run in runs
    }  # fmt: skip
