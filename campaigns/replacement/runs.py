# SPDX-License-Identifier: Apache-2.0
"""The runs of a campaign for the report, with and without failures and replacement."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rebat.core.numbers import Form, spread
from rebat.report.claims import share_of
from rebat.report.runs_index import Read, RunIndex, Setting, parsed, simulations
from rebat.results.intervals import BySeed, combined, interval, relative

MIXED, MALLEABLE_RIGID, MOLDABLE_RIGID = "mixed", "malleable-rigid", "moldable-rigid"
"""The workloads of Table III, as campaigns name them."""

RISES: dict[str, dict[str, float]] = {
    MIXED: {"baseline": 0.18, "pra": 0.06, "pwa": 0.11, "dbes": 0.05},
    MOLDABLE_RIGID: {"sa": 0.11},
}
"""Relative increase of the makespan due to failures, without replacement (sections V-A, V-C)."""

RISES_REPLACED: dict[str, dict[str, float]] = {MOLDABLE_RIGID: {"sa": 0.02}}
"""Relative increase of the makespan due to failures, with replacement (section V-C)."""

PRINTED: dict[str, dict[str, float]] = {
    MOLDABLE_RIGID: {"by_idle": 0.62, "requeued": 0.18, "by_restart": 0.20}
}
"""Sources of replacements, as shares (section V-C, Figure 9)."""

UTILISATION: dict[str, float] = {MOLDABLE_RIGID: 0.65}
"""Useful utilisation (section V-C)."""

AFFECTED, REQUEUED = 220, 8
"""Number of jobs that failures affect under DBES (mixed workload), and number of these jobs that
are requeued if moldable jobs may not start over (section V-A).
"""

FIGURES: dict[str, tuple[str, str]] = {
    MIXED: ("Figure 4", "Figure 5"),
    MALLEABLE_RIGID: ("Figure 6", "Figure 7"),
    MOLDABLE_RIGID: ("Figure 8", "Figure 9"),
}
"""Figures of the makespans and of the sources of replacements, by workload."""

WORDS = {
    "baseline": "rigid", "sa": "SA", "pra": "PRA", "pwa": "PWA", "dbes": "DBES",
    "easy": "rigid, EASY", "greedy": "rigid, greedy", "sfsj": "stealing", "h111": "stealing",
}  # fmt: skip
"""Names of the policies in the paper."""


SOURCES = {
    "by_local": "shrinks itself",
    "by_idle": "idle",
    "by_remote": "others shrink",
    "by_restart": "moldable jobs start over",
    "requeued": "waits",
}
"""Texts for the outcomes of attempts that a failure hit (`measures.changes`)."""

_HOW = ("steps", "spares", "repair", "solver", "expected", "wait", "restarts", "lenders")
"""The axes that configure the replacement."""

NO_STEP_4 = "steps=local+idle+remote+wait"
"""Value of the axis ``steps`` without step 4, in which moldable jobs restart for another job."""


class ReplacementCase(NamedTuple):
    """A policy: name, whether it replaces and steals nodes, and its axes as text.

    ``how`` contains the axes of the replacement. ``other_axes`` contains all other axes.
    """

    name: str
    replaces: bool = False
    steals: bool = False
    other_axes: str = ""
    how: str = ""

    @property
    def label(self) -> str:
        """A readable name.

        >>> case_of("dbes:react=replacement,steps=idle,manager=egs").label
        'DBES with replacement (steps=idle, manager=egs)'
        """
        name = WORDS.get(self.name, self.name)
        if self.name == "baseline" and self.steals:
            name = "stealing"
        also = " and " if name == "stealing" else " with "
        how = self.how.replace(NO_STEP_4, "without step 4")
        axes = ", ".join(filter(None, (how, self.other_axes)))
        return name + (f"{also}replacement" if self.replaces else "") + (f" ({axes})" * bool(axes))


def case_of(policy: str) -> ReplacementCase:
    """Parse a policy of a campaign."""
    name, axes = parsed(policy)
    react = axes.pop("react", axes.pop("recovery", "")).split("+")
    how = [f"{axis}={axes.pop(axis)}" for axis in _HOW if axis in axes]
    others = ", ".join(f"{axis}={value}" if value else axis for axis, value in axes.items())
    steals = "stealing" in react or name in ("sfsj", "h111")
    return ReplacementCase(name, "replacement" in react, steals, others, ", ".join(how))


def _sum(*names: str) -> Callable[[Read], BySeed]:
    return lambda read: combined(sum, *map(read, names))


DERIVED: dict[str, Callable[[Read], BySeed]] = {
    "hits": _sum(*(f"resizes_{name}" for name in SOURCES)),
    "resizes_shrinks": _sum("resizes_by_local", "resizes_by_remote"),
    "lost": _sum("platform_waste_failure", "platform_waste_moving"),
    **{f"share_{name}": share_of(f"resizes_{name}", "hits") for name in (*SOURCES, "shrinks")},
    **{
        f"{name}_share": share_of(whole, "platform_total")
        for name, whole in (
            ("idle", "platform_idle"),
            ("down", "platform_downtime"),
            ("lost", "lost"),
        )
    },
}
"""Derived metrics: shares of the sources of replacements, and shares of node time."""

Runs = RunIndex[ReplacementCase]


def index_of(path: Path) -> Runs:
    """Return an index of the simulations in ``results.parquet``.

    It lists only settings with failures.
    """
    return with_failures(RunIndex(simulations(path, case_of), DERIVED))


def with_failures(runs: Runs) -> Runs:
    """Remove settings without failures from the list of an index, and return the index."""
    runs.settings = [item for item in runs.settings if item.scenario.failure_model]
    return runs


def free(runs: Runs, setting: Setting, case: ReplacementCase, metric: str = "makespan_s") -> BySeed:
    """Return a metric of a case without failures and without replacement."""
    alone = case._replace(replaces=False, steals=False, how="")
    calm = (setting._replace(scenario=item) for item in setting.scenario.failure_free)
    return next(filter(None, (runs.values(item, alone, metric) for item in calm)), {})


def rise(runs: Runs, setting: Setting, case: ReplacementCase) -> BySeed:
    """Return the relative increase of the makespan due to failures, by seed."""
    return relative(runs.values(setting, case, "makespan_s"), free(runs, setting, case))


def middle(values: BySeed, form: Form) -> str:
    """Format the median of values with its interval."""
    return spread(interval(values, of_median=True), form)
