# SPDX-License-Identifier: Apache-2.0
"""The simulations of a campaign, paired by workload: with failures and without, with replacement
and without."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from rebat.papers.common.runs_index import Seeded, Setting, parsed, relative
from rebat.papers.replacement.published import WORDS
from rebat.results.intervals import BySeed

SOURCES = {
    "by_local": "shrinks itself", "by_idle": "idle", "by_remote": "others shrink",
    "by_restart": "moldable jobs start over", "requeued": "waits",
}  # fmt: skip
"""What became of an attempt that a failure hit: the counts of `metrics.resizes`."""

_HOW = ("steps", "spares", "repair", "solver")
"""The axes of the replacement."""

NO_STEP_4 = "steps=local+idle+remote+wait"
"""No moldable job starts over for another."""


class Case(NamedTuple):
    """A policy: its name, whether it replaces and whether it steals, its other axes, and those of
    the replacement."""

    name: str
    replaces: bool
    steals: bool
    rest: str
    how: str

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


def case_of(policy: str) -> Case:
    """A policy as a campaign writes it."""
    name, axes = parsed(policy)
    react = axes.pop("react", axes.pop("recovery", "")).split("+")
    how = [f"{axis}={axes.pop(axis)}" for axis in _HOW if axis in axes]
    rest = ", ".join(f"{axis}={value}" if value else axis for axis, value in axes.items())
    steals = "stealing" in react or name in ("sfsj", "h111")
    return Case(name, "replacement" in react, steals, rest, ", ".join(how))


class Evidence(Seeded[Case]):
    """Metrics by setting, policy and seed; settings are those with failures.

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
        self.settings = [one for one in self.settings if one.scenario.failure_model]

    def find(self, setting: Setting, name: str, replaces: bool = False) -> Case | None:
        """The policy of that name without other axes."""
        wanted = Case(name, replaces, False, "", "")
        return wanted if wanted in self.cases(setting) else None

    def free(self, setting: Setting, case: Case, metric: str, size_class: str = "") -> BySeed:
        """The same without failures, and so without replacement."""
        alone = case._replace(replaces=False, steals=False, how="")
        calm = (setting._replace(scenario=one) for one in setting.scenario.failure_free)
        found = (self.values(one, alone, metric, size_class) for one in calm)
        return next(filter(None, found), {})

    def rise(self, setting: Setting, case: Case, metric: str = "makespan_s") -> BySeed:
        """By how much failures raise a metric, as a share of the value without them."""
        return relative(self.values(setting, case, metric), self.free(setting, case, metric))

    def shares(self, setting: Setting, case: Case, *names: str) -> BySeed:
        """Those of what a failure hit that were helped by these of ``SOURCES``."""
        counts = {name: self.values(setting, case, f"resizes_{name}") for name in SOURCES}
        found = {}
        for seed in counts["requeued"]:
            hits = sum(count[seed] for count in counts.values())
            if hits:
                found[seed] = sum(counts[name][seed] for name in names) / hits
        return found
