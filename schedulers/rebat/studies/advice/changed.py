# SPDX-License-Identifier: Apache-2.0
"""What would change the answer: today's loss if one assumption is different, each simulated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import numpy as np

from rebat.api.workloads import LoadedWorkload, as_file
from rebat.core.job_table import Jobs
from rebat.core.jobs import Workload, delays_us_of
from rebat.models.failures.law import Law
from rebat.report.runs_index import RunIndex
from rebat.results.intervals import BySeed, Interval, interval, minus
from rebat.runs.unit import RunSpec
from rebat.studies.advice.design import (
    FITTED,
    OTHER_RULES,
    AdvisedSite,
    spec_of,
    with_law,
)
from rebat.studies.losses import MONTH_H
from rebat.workloads.checkpoint_table import NONE, YOUNG_DALY, UsualCosts, with_checkpoints_of
from rebat.workloads.site import checkpoint_rows

MOST_SEEDS = 10
"""Maximum number of seeds of each change."""

HALF, TWICE = 0.5, 2.0
LOADS = (0.9, 1.1)
REPAIR, IDLE, COST, LOAD, WALLTIMES, POLICY = (
    "repair time",
    "idle nodes",
    "checkpoint cost",
    "load",
    "walltimes",
    "policy",
)
"""The assumptions."""

WASTE, TOTAL = "platform_waste_failure", "platform_total"


class Assumption(msgspec.Struct, frozen=True):
    """Today's loss if an assumption is different.

    Attributes
    ----------
    name : str
    change : str
        The different assumption.
    difference : Interval
        Node-hours per month (30 d) that failures destroy, minus those under the usual assumption.
    """

    name: str
    change: str
    difference: Interval


def grid_of(name: str, change: str) -> str:
    """Return the name of the grid of a change."""
    return f"{name}: {change}"


def changed_workloads(site: AdvisedSite, folder: Path) -> dict[str, LoadedWorkload]:
    """Return the workloads with other walltimes and with other costs of checkpoints."""
    today = site.today or site.workload
    made: dict[str, Workload] = {
        grid_of(WALLTIMES, "exact"): _with_walltimes(today, 1.0),
        grid_of(WALLTIMES, "2 x the run time"): _with_walltimes(today, TWICE),
    }
    if site.checkpoints not in (NONE, YOUNG_DALY):
        usual = UsualCosts(site.usual.cost_s, site.usual.recovery_s)
        rows = checkpoint_rows(Path(site.checkpoints), usual)
        for factor in (HALF, TWICE):
            costly = [row._replace(cost_s=row.cost_s * factor) for row in rows]
            made[grid_of(COST, f"x {factor:g}")] = with_checkpoints_of(
                site.given or site.workload, costly, site.n_nodes, site.mtbf_s
            )[0]
    files = {}
    for number, (name, workload) in enumerate(made.items()):
        place = folder / "changed" / str(number)
        place.mkdir(parents=True, exist_ok=True)
        files[name] = as_file(workload, place)
    return files


def _with_walltimes(workload: Workload, factor: float) -> Workload:
    """Return a workload whose walltimes are the run times, times a factor, plus 1 s."""
    jobs = Jobs.of(workload.jobs)
    profiles = [workload.profiles[name] for name in jobs.profile_names]
    run_us = delays_us_of(profiles)[jobs.profile_codes]
    walls_us = np.ceil(run_us * factor).astype(np.int64) + 1_000_000
    changed = jobs.changed(walls_us, jobs.profile_codes, jobs.profile_names)
    return msgspec.structs.replace(workload, jobs=changed)


def changes(site: AdvisedSite, seeds: Iterable[int]) -> Iterator[RunSpec]:
    """Yield today's policy under each changed assumption."""
    law = law_of(site)
    usual = {} if law is None else with_law(site, law)
    for seed in [*seeds][:MOST_SEEDS]:
        for name, changed in laws(site, law).items():
            yield spec_of(site, name, seed, **with_law(site, changed))
        for load in LOADS:
            yield spec_of(site, grid_of(LOAD, f"x {load:g}"), seed, **usual, load=load)
        for name, workload in site.changed.items():
            spec = spec_of(site, name, seed, **usual)
            yield msgspec.structs.replace(spec, source=workload.origin)


def law_of(site: AdvisedSite) -> Law | None:
    """Return the law that is changed: that of the options, or the one fitted to the record."""
    return site.fitted or site.options.single_law()


def laws(site: AdvisedSite, law: Law | None) -> dict[str, Law]:
    """Return the changed laws of failures, by grid.

    If only nodes with jobs fail, each of them fails more often: the number of failures is the same.
    """
    changed: dict[str, Law] = {}
    repair = next((name for name in ("repair_s", "downtime_s") if hasattr(law, name)), "")
    if law is None or not repair or not hasattr(law, "mtbf_s"):
        return changed
    for factor in (HALF, TWICE):
        repairs = {repair: getattr(law, repair) * factor}
        changed[grid_of(REPAIR, f"x {factor:g}")] = msgspec.structs.replace(law, **repairs)
    if 0 < site.used < 1:
        busy = {"mtbf_s": law.mtbf_s * site.used}
        changed[grid_of(IDLE, "do not fail")] = msgspec.structs.replace(law, **busy)
    return changed


def assumptions_of(site: AdvisedSite, runs: RunIndex[str]) -> list[Assumption]:
    """Return the effect of each change, with the largest effects first."""
    usual = _lost(site, runs, FITTED if site.fitted else OTHER_RULES, site.policy)
    rows: list[Assumption] = []
    for setting in runs.settings:
        name, _, change = setting.grid.partition(": ")
        if not change or name not in (REPAIR, IDLE, COST, LOAD, WALLTIMES):
            continue
        rows += _effect(name, change, _lost(site, runs, setting.grid, site.policy), usual)
    grid = FITTED if site.fitted else OTHER_RULES
    effects = [
        effect
        for policy in site.rules[1:]
        for effect in _effect(POLICY, policy, _lost(site, runs, grid, policy), usual)
    ]
    effects.sort(key=lambda row: row.difference.mean)
    rows += list(dict.fromkeys([*effects[:1], *effects[-1:]]))
    return sorted(rows, key=lambda row: -abs(row.difference.mean))


def _effect(name: str, change: str, values: BySeed, usual: BySeed) -> Iterator[Assumption]:
    difference = interval(minus(values, usual))
    if difference is not None:
        yield Assumption(name, change, difference)


def _lost(site: AdvisedSite, runs: RunIndex[str], grid: str, policy: str) -> BySeed:
    """Return the node-hours per month that failures destroy, by seed."""
    setting = next((item for item in runs.settings if item.grid == grid), None)
    if setting is None:
        return {}
    waste = runs.values(setting, policy, WASTE)
    total = runs.values(setting, policy, TOTAL)
    return {seed: waste.get(seed, 0.0) / total[seed] * site.n_nodes * MONTH_H for seed in total}
