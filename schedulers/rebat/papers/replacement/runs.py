# SPDX-License-Identifier: Apache-2.0
"""Which runs of a campaign the report is about: with failures and without, with replacement and
without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rebat.papers.common.claims import share_of
from rebat.papers.common.runs_index import Read, RunIndex, Setting, parsed, simulations
from rebat.papers.replacement.published import WORDS
from rebat.results.intervals import BySeed, combined, relative

SOURCES = {
    "by_local": "shrinks itself", "by_idle": "idle", "by_remote": "others shrink",
    "by_restart": "moldable jobs start over", "requeued": "waits",
}  # fmt: skip
"""What became of an attempt that a failure hit: the counts of `metrics.resizes`."""

_HOW = ("steps", "spares", "repair", "solver")
"""The axes of the replacement."""

NO_STEP_4 = "steps=local+idle+remote+wait"
"""No moldable job starts over for another."""


class ReplacementCase(NamedTuple):
    """A policy: its name, whether it replaces and whether it steals, its other axes, and those of
    the replacement."""

    name: str
    replaces: bool = False
    steals: bool = False
    rest: str = ""
    how: str = ""

    @property
    def label(self) -> str:
        """For people.

        >>> case_of("dbes:react=replacement,steps=idle,manager=egs").label
        'DBES with replacement (steps=idle, manager=egs)'
        """
        name = WORDS.get(self.name, self.name)
        if self.name == "baseline" and self.steals:
            name = "stealing"
        also = " and " if name == "stealing" else " with "
        how = self.how.replace(NO_STEP_4, "without step 4")
        axes = ", ".join(filter(None, (how, self.rest)))
        return name + (f"{also}replacement" if self.replaces else "") + (f" ({axes})" * bool(axes))


def case_of(policy: str) -> ReplacementCase:
    """A policy as a campaign writes it."""
    name, axes = parsed(policy)
    react = axes.pop("react", axes.pop("recovery", "")).split("+")
    how = [f"{axis}={axes.pop(axis)}" for axis in _HOW if axis in axes]
    rest = ", ".join(f"{axis}={value}" if value else axis for axis, value in axes.items())
    steals = "stealing" in react or name in ("sfsj", "h111")
    return ReplacementCase(name, "replacement" in react, steals, rest, ", ".join(how))


def _sum(*names: str) -> Callable[[Read], BySeed]:
    return lambda read: combined(sum, *map(read, names))


DERIVED: dict[str, Callable[[Read], BySeed]] = {
    "hits": _sum(*(f"resizes_{name}" for name in SOURCES)),
    "resizes_shrinks": _sum("resizes_by_local", "resizes_by_remote"),
    "lost": _sum("platform_waste_failure", "platform_waste_moving"),
    **{f"share_{name}": share_of(f"resizes_{name}", "hits") for name in (*SOURCES, "shrinks")},
    **{f"{name}_share": share_of(whole, "platform_total") for name, whole in (
        ("idle", "platform_idle"), ("down", "platform_downtime"), ("lost", "lost"),
    )},
}  # fmt: skip
"""Shares of what failures hit that were helped by one of ``SOURCES``, and shares of node time."""

Runs = RunIndex[ReplacementCase]


def index_of(path: Path) -> Runs:
    """The simulations of a campaign's ``results.parquet``; settings are those with failures."""
    return with_failures(RunIndex(simulations(path, case_of), DERIVED))


def with_failures(runs: Runs) -> Runs:
    """The same index, whose settings are those with failures."""
    runs.settings = [item for item in runs.settings if item.scenario.failure_model]
    return runs


def free(runs: Runs, setting: Setting, case: ReplacementCase, metric: str = "makespan_s") -> BySeed:
    """A metric without failures, and so without replacement."""
    alone = case._replace(replaces=False, steals=False, how="")
    calm = (setting._replace(scenario=item) for item in setting.scenario.failure_free)
    return next(filter(None, (runs.values(item, alone, metric) for item in calm)), {})


def rise(runs: Runs, setting: Setting, case: ReplacementCase) -> BySeed:
    """By how much failures raise the makespan, as a share of that without them."""
    return relative(runs.values(setting, case, "makespan_s"), free(runs, setting, case))
