"""The simulations of a campaign, paired by workload: with failures and without, with replacement
and without.

A workload made with several seeds is one here, its values by seed (each the mean over the seeds of
the failures); that of a workload with one seed are by the failures' seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from rebat.reports.partitions.estimates import Estimate, estimate
from rebat.reports.replacement.published import WORDS
from rebat.reports.results import read_results
from rebat.reports.scenario import Scenario

BySeed = Mapping[int, float]
_COLUMNS = ("grid", "workload", "policy", *Scenario._fields, "metric", "size_class", "seed",
            "value")  # fmt: skip
_ANY = -1
"""The seed of what has none: it goes with every other."""

SOURCES = {
    "by_local": "shrinks itself", "by_idle": "idle", "by_remote": "others shrink",
    "by_restart": "moldable jobs start over", "requeued": "waits",
}  # fmt: skip
"""What became of an attempt that a failure hit: the counts of `metrics.resizes`."""


_HOW = ("steps", "spares", "repair", "solver")
"""The axes of the replacement."""

NO_STEP_4 = "steps=local+idle+remote+wait"
"""No moldable job starts over for another."""


class Setting(NamedTuple):
    """Runs that are compared: a grid's workload, whatever its seed, and the failures it met."""

    grid: str
    workload: str
    scenario: Scenario


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
    name, _, text = policy.partition(":")
    axes = dict(axis.partition("=")[::2] for axis in text.split(",") if axis)
    react = axes.pop("react", axes.pop("recovery", "")).split("+")
    how = [f"{axis}={axes.pop(axis)}" for axis in _HOW if axis in axes]
    rest = ", ".join(f"{axis}={value}" if value else axis for axis, value in axes.items())
    steals = "stealing" in react or name in ("sfsj", "h111")
    return Case(name, "replacement" in react, steals, rest, ", ".join(how))


class Evidence:
    """Metrics by setting, policy and seed.

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
        cells: dict[tuple[Setting, Case, str, str], dict[int, list[float]]] = {}
        for row in read_results(path, "simulation", _COLUMNS):
            grid, workload, policy, *about, metric, size_class, seed, value = row
            name, _, drawn = workload.partition("#")
            at = int(drawn) if drawn else _ANY if seed is None else int(seed)
            setting = Setting(grid, name, Scenario(*about))
            cell = cells.setdefault((setting, case_of(policy), metric, size_class or ""), {})
            cell.setdefault(at, []).append(float(value))
        self._cells = {
            key: {seed: fmean(values) for seed, values in cell.items()}
            for key, cell in cells.items()
        }
        found = dict.fromkeys(key[:2] for key in self._cells)
        self.settings = list(dict.fromkeys(s for s, _ in found if s.scenario.failure_model))
        self._cases = {s: [case for other, case in found if other == s] for s in self.settings}

    def cases(self, setting: Setting) -> list[Case]:
        """The policies that met these failures, in the order of the file."""
        return self._cases[setting]

    def main(self, workload: str) -> Setting | None:
        """Where a workload was run first."""
        return next((one for one in self.settings if one.workload == workload), None)

    def find(self, setting: Setting, name: str, replaces: bool = False) -> Case | None:
        """The policy of that name without other axes."""
        wanted = Case(name, replaces, False, "", "")
        return wanted if wanted in self.cases(setting) else None

    def values(self, setting: Setting, case: Case, metric: str, size_class: str = "") -> BySeed:
        """A value per seed."""
        return self._cells.get((setting, case, metric, size_class), {})

    def free(self, setting: Setting, case: Case, metric: str, size_class: str = "") -> BySeed:
        """The same without failures, and so without replacement."""
        calm = setting._replace(scenario=setting.scenario.failure_free)
        alone = case._replace(replaces=False, steals=False, how="")
        return self.values(calm, alone, metric, size_class)

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


def relative(ours: BySeed, base: BySeed) -> BySeed:
    """ours / base - 1, seed by seed; a base without a seed goes with all."""
    pairs = ((seed, value, base.get(seed, base.get(_ANY))) for seed, value in ours.items())
    return {seed: value / other - 1 for seed, value, other in pairs if other}


def minus(ours: BySeed, base: BySeed) -> BySeed:
    """ours - base, seed by seed."""
    return {seed: ours[seed] - base[seed] for seed in sorted(ours.keys() & base.keys())}


def combined(how: Callable[[list[float]], float], *some: BySeed) -> BySeed:
    """The largest of several, say, seed by seed."""
    seeds = set.intersection(*(set(one) for one in some)) if some else set()
    return {seed: how([one[seed] for one in some]) for seed in sorted(seeds)}


def mean(values: BySeed) -> Estimate | None:
    """The mean over seeds, with its interval."""
    return estimate([values[seed] for seed in sorted(values)])
