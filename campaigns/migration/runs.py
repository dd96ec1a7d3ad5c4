# SPDX-License-Identifier: Apache-2.0
"""The runs of a campaign for each part of the evaluation, with metrics derived from their results.

Runs are selected by policy. If the paper publishes numbers, they are also selected by the name of
the workload.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rebat.core.numbers import duration
from rebat.report.claims import share_of
from rebat.report.runs_index import Read, Run, RunIndex, change_of, parsed, simulations
from rebat.results.intervals import BySeed, Interval, combined

LOADS: dict[str, int] = {"load-25": 25, "load-50": 50, "load-75": 75, "load-90": 90}
"""Workloads of Figures 1 to 4 by load, in percent of the core time.

The names are those in campaigns.
"""

WIDE: dict[str, int] = {"wide-75": 75, "wide-90": 90}
"""Workloads of Table 2 by load in percent. In rebat, their jobs use more cores."""

MEMORY_MB: dict[str, int] = {"memory-50": 1000}
"""Memory per task in MB, for workloads in which it differs from `USUAL_MB`."""

USUAL_MB = 100
"""Memory per task in MB. The paper does not report it for its workloads."""

MIXED: dict[int, tuple[float, float]] = {
    25: (0.338, 0.282),
    50: (0.535, 0.417),
    75: (0.528, 0.420),
    90: (0.305, 0.223),
}
"""Share of node time in mixed nodes, without and with compaction, by load (Figure 4)."""

STATES = ("empty", "mixed", "full")

FIGURE_3_LOAD = 50
FIGURE_3: dict[str, tuple[float, float]] = {
    "empty": (0.281, 0.319),
    "mixed": (0.535, 0.417),
    "full": (0.184, 0.264),
}
"""Share of node time at `FIGURE_3_LOAD`, without and with compaction, by state (Figure 3)."""

TABLE_1_S: dict[int, dict[int, float]] = {
    100: {1: 53, 2: 54, 4: 55, 8: 59, 16: 66},
    1000: {1: 89, 2: 97, 4: 115, 8: 144, 16: 202},
}
"""Seconds of a complete checkpoint and restart, by MB per task and number of tasks, for jobs that
fit on one node (Table 1).
"""

CORES = 16
"""Cores per node (section 4)."""

LONGEST_S = TABLE_1_S[USUAL_MB][CORES]
"""Seconds of a complete checkpoint and restart of a job that fills a node (Table 1)."""

TABLE_2: dict[int, dict[str, dict[str, tuple[float, float]]]] = {
    75: {
        "low": {"empty": (0.2033, 0.1924), "mixed": (0.4349, 0.4833), "full": (0.3618, 0.3243)},
        "high": {"empty": (0.0106, 0.0105), "mixed": (0.7336, 0.6731), "full": (0.2558, 0.3164)},
    },
    90: {
        "low": {"empty": (0.0772, 0.0772), "mixed": (0.3165, 0.3685), "full": (0.6063, 0.5543)},
        "high": {"empty": (0.0125, 0.0125), "mixed": (0.5756, 0.5802), "full": (0.4119, 0.4073)},
    },
}
"""Share of node time without and with migration, by load, partition and state (Table 2)."""

WAITING_FACTOR = sum(1 / n for n in range(1, CORES + 1))
"""The harmonic number H_16. If each of 16 cores runs a separate job with an exponential run time of
mean T, the node is empty after T times this factor on average. (Section 4.2 does not state how long
a node takes to empty.)
"""


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
        span = duration(float(value))
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


def seeds(index: Runs, run: Run[MigrationCase]) -> str:
    """Return the number of seeds as text."""
    count = len(index.values(*run, "useful_utilisation"))
    return f"{count} seed{'s' * (count != 1)}"


def named(runs: Sequence[Run[MigrationCase]]) -> dict[str, Run[MigrationCase]]:
    """Return runs by short name. If short names are not unique, return them by label."""
    times = Counter(run.case.short for run in runs)
    return {run.case.short if times[run.case.short] == 1 else run.case.label: run for run in runs}


class ComparedGroup(NamedTuple):
    """A base run, and the runs compared with it."""

    base: Run[MigrationCase]
    others: list[Run[MigrationCase]]


WITHOUT = MigrationCase("cluster")
WAITING = MigrationCase("cluster", (), (("drain", "wait"),))
ONE_TARGET = MigrationCase("compaction")
SEVERAL_TARGETS = MigrationCase("compaction", (), (("targets", "several"),))
FORMS = (ONE_TARGET, SEVERAL_TARGETS)
"""The forms of compaction that are compared with the paper."""

PROMOTING, NOT_PROMOTING = MigrationCase("priorities"), MigrationCase("priorities", ("requeue",))
TIERS = MigrationCase("tiers")


def compactions(index: Runs) -> list[ComparedGroup]:
    """Return the runs without and with compaction, for each workload.

    The runs are from the first setting of the workload that has runs of both kinds.
    """
    groups: dict[str, ComparedGroup] = {}
    for setting in index.settings:
        forms = [
            Run(setting, case)
            for case in index.cases(setting)
            if case.name == "compaction" and not case.react
        ]
        if forms and WITHOUT in index.cases(setting):
            groups.setdefault(setting.workload, ComparedGroup(Run(setting, WITHOUT), forms))
    return list(groups.values())


def figure_4(index: Runs) -> dict[int, ComparedGroup]:
    """Return the runs without and with compaction, for each load of Figure 4."""
    groups = {group.base.setting.workload: group for group in compactions(index)}
    return {load: groups[name] for name, load in LOADS.items() if name in groups}


def table_2(index: Runs) -> dict[int, ComparedGroup]:
    """Return the runs without and with migration into the high partition, by load (Table 2)."""
    groups: dict[int, ComparedGroup] = {}
    for setting in index.settings:
        load = WIDE.get(setting.workload)
        if load and {PROMOTING, NOT_PROMOTING} <= {*index.cases(setting)}:
            pair = ComparedGroup(Run(setting, NOT_PROMOTING), [Run(setting, PROMOTING)])
            groups.setdefault(load, pair)
    return groups


def drained(index: Runs) -> Iterator[ComparedGroup]:
    """Yield the runs of settings with drains, in which jobs on drained nodes wait or migrate."""
    for setting in index.settings:
        if setting.scenario.operations and {WITHOUT, WAITING} <= {*index.cases(setting)}:
            yield ComparedGroup(Run(setting, WAITING), [Run(setting, WITHOUT)])


def eternal(index: Runs) -> Iterator[ComparedGroup]:
    """Yield the runs of each load without and with eternal jobs.

    The names of the workloads are ``load-X`` and ``eternal-X``.
    """
    tiered = {setting for setting in index.settings if TIERS in index.cases(setting)}
    for setting in index.settings:
        alone = setting._replace(workload=setting.workload.replace("eternal", "load"))
        if setting.workload.startswith("eternal") and {setting, alone} <= tiered:
            yield ComparedGroup(Run(alone, TIERS), [Run(setting, TIERS)])


def _reacting(index: Runs, word: str) -> Iterator[ComparedGroup]:
    """Yield the runs of settings that have a certain reaction.

    The base is the first policy without this reaction.
    """
    for setting in index.settings:
        cases = index.cases(setting)
        base = next((case for case in cases if not case.react), None)
        if base and any(word in case.react for case in cases):
            others = [Run(setting, case) for case in cases if case != base]
            yield ComparedGroup(Run(setting, base), others)


def sleeping(index: Runs) -> list[ComparedGroup]:
    """Return the runs of settings in which nodes may sleep. In the base run, no node sleeps.

    If there is a run of compaction without sleeping nodes, it is the last of its group.
    """
    awake = {
        (group.base.setting.workload, group.base.setting.scenario): run
        for group in compactions(index)
        for run in group.others
        if run.case == ONE_TARGET
    }
    groups = []
    for base, others in _reacting(index, "sleep"):
        alone = awake.get(base.setting[1:])
        groups.append(ComparedGroup(base, [*others, *([alone] if alone else [])]))
    return groups


def defragmented(index: Runs) -> Iterator[ComparedGroup]:
    """Yield the runs of torus settings without and with defragmentation."""
    return _reacting(index, "defragment")


def foreseen(index: Runs) -> Iterator[ComparedGroup]:
    """Yield the runs of settings with proactive migration.

    The base is the first policy without it.
    """
    return _reacting(index, "foresee")


def states_of(index: Runs, run: Run[MigrationCase], of: str = "node_states") -> dict[str, BySeed]:
    """Return the share of node time in each state of nodes, by seed."""
    return {state: index.values(*run, f"{of}_{state}") for state in STATES}
