# SPDX-License-Identifier: Apache-2.0
"""The evidence of an advice: rounds of simulations, and their results with intervals.

A round adds seeds. The simulations end if the intervals are narrow or the time is over.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from rebat.api.remarks import Remark, of_waits
from rebat.campaign.opening import Campaign
from rebat.campaign.run import run_campaign
from rebat.campaign.store import TABLE, Owner, Store
from rebat.console.progress import campaign_bar
from rebat.core.errors import PolicyError
from rebat.core.numbers import about_percent
from rebat.report.runs_index import RunIndex, Setting, numbers_of, parsed, simulations
from rebat.results.intervals import (
    FEWEST,
    BySeed,
    Interval,
    interval,
    minus,
    ratio_of_means,
    relative_width,
)
from rebat.runs.simulating import units
from rebat.runs.unit import RunSpec
from rebat.studies.advice.changed import changes
from rebat.studies.advice.design import (
    ASSUMED,
    FACTORS,
    OTHER_RULES,
    PERIODS,
    RULES,
    SPARES,
    TODAY,
    AdvisedSite,
    specs,
    today,
    with_options,
)

FLOW, LARGEST, USEFUL = "flow_mean_s", "flow_max_s", "useful_utilisation"
WASTE, TOTAL = "platform_waste_failure", "platform_total"
OVERHEAD = ("platform_checkpoint", "platform_recovery")


class EffectOfChoice(msgspec.Struct, frozen=True):
    """The effect of a choice: its title, and the change of each metric and size class."""

    title: str
    changes: Mapping[tuple[str, str | None], Interval]

    def significant(self, metric: str, of: str | None = None) -> bool:
        """Return whether the effect is significant: the interval of the ratio excludes 1."""
        change = self.changes.get((metric, of))
        return change is not None and change.excludes(1.0)


def failures_cost(site: AdvisedSite, runs: RunIndex[str]) -> EffectOfChoice:
    """Return the effect of failures on today's policy, compared with a run without failures."""
    failing, calm = settings_of_today(runs)
    classes = runs.size_classes(failing, FLOW)
    changes = {}
    for name, of in [(FLOW, None), (LARGEST, None), *((FLOW, c) for c in classes if c != "all")]:
        without = runs.mean(calm, site.policy, name, of)
        values = runs.values(failing, site.policy, name, of)
        ratio = ratio_of_means(values, dict.fromkeys(values, without or 0.0))
        if ratio is not None:
            n_changed = sum(value != without for value in values.values())
            changes[name, of] = _with_support(ratio, n_changed)
    return EffectOfChoice("with failures", changes)


def cost_in_points(site: AdvisedSite, runs: RunIndex[str]) -> Interval:
    """Return how much failures lower the useful utilisation, as a share of the node time."""
    failing, calm = settings_of_today(runs)
    without = runs.mean(calm, site.policy, USEFUL) or 0.0
    values = runs.values(failing, site.policy, USEFUL)
    cost = interval({seed: without - value for seed, value in values.items()})
    assert cost is not None
    return cost


class SimulatedLosses(msgspec.Struct, frozen=True):
    """Shares of the node time of the machine under today's policy, with intervals over seeds.

    Attributes
    ----------
    without
        Work destroyed by failures if no job writes checkpoints.
    with_all
        Work destroyed by failures if all jobs write Young/Daly checkpoints.
    less
        ``without`` - ``with_all``, paired by seed.
    overhead
        Time to write and to read the checkpoints of all jobs.
    net
        ``less`` - ``overhead``, paired by seed.
    """

    without: Interval
    with_all: Interval
    less: Interval
    overhead: Interval
    net: Interval


def simulated_losses(site: AdvisedSite, runs: RunIndex[str]) -> SimulatedLosses:
    """Return what failures destroy if no job writes checkpoints, and if all jobs do."""
    settings = [item for item in runs.settings if item.grid == ASSUMED]
    no_job = next(item for item in settings if item.scenario.checkpoint is None)
    all_jobs = next(item for item in settings if item.scenario.checkpoint is not None)

    shares = partial(_shares, site, runs)
    without, with_all = shares(no_job, WASTE), shares(all_jobs, WASTE)
    overhead = minus(shares(all_jobs, *OVERHEAD), shares(no_job, *OVERHEAD))
    less = minus(without, with_all)
    estimates = [interval(each) for each in (without, with_all, less, overhead)]
    return SimulatedLosses(*filter(None, [*estimates, interval(minus(less, overhead))]))


class CostsOfToday(msgspec.Struct, frozen=True):
    """Shares of the node time under today's policy and checkpoints, with intervals over seeds.

    Attributes
    ----------
    lost
        Work destroyed by failures.
    net
        Work destroyed and time of checkpoints, minus both if all jobs write Young/Daly checkpoints,
        paired by seed.
    """

    lost: Interval
    net: Interval


def costs_of_today(site: AdvisedSite, runs: RunIndex[str]) -> CostsOfToday:
    """Return what failures and checkpoints cost today, and what other checkpoints would save."""
    failing, _ = settings_of_today(runs)
    all_jobs = next(
        item
        for item in runs.settings
        if item.grid == ASSUMED and item.scenario.checkpoint is not None
    )
    lost = _shares(site, runs, failing, WASTE)
    costs = [_shares(site, runs, item, WASTE, *OVERHEAD) for item in (failing, all_jobs)]
    estimates = [interval(lost), interval(minus(*costs))]
    return CostsOfToday(*filter(None, estimates))


def _shares(site: AdvisedSite, runs: RunIndex[str], setting: Setting, *names: str) -> BySeed:
    """Return the sum of some node times of today's policy as a share of all, by seed."""
    parts = [runs.values(setting, site.policy, name) for name in names]
    totals = runs.values(setting, site.policy, TOTAL)
    return {
        seed: sum(part.get(seed, 0.0) for part in parts) / total for seed, total in totals.items()
    }


def notes_on_waits(site: AdvisedSite, runs: RunIndex[str]) -> list[Remark]:
    """Return a note if the simulated mean wait of today's policy is far from the recorded wait."""
    machine = site.workload.machine or {}
    recorded_s = site.recorded.wait_s if site.recorded else machine.get("mean_wait_s")
    failing, _ = settings_of_today(runs)
    simulated_s = runs.mean(failing, site.policy, "service_wait_mean_s")
    return [*of_waits(recorded_s, {site.policy: simulated_s})]


def settings_of_today(runs: RunIndex[str]) -> tuple[Setting, Setting]:
    """Return the settings of today's policy: with failures, and without failures."""
    settings = [item for item in runs.settings if item.grid == TODAY]
    failing = next(item for item in settings if item.scenario.failure_model)
    return failing, next(item for item in settings if not item.scenario.failure_model)


def rules(site: AdvisedSite, runs: RunIndex[str]) -> list[EffectOfChoice]:
    """Return the effect of each other rule, compared with today's policy on the same failures."""
    setting = setting_of(runs, OTHER_RULES)
    if setting is None:
        return []
    classes = [of for of in runs.size_classes(setting, FLOW) if of != "all"]
    wanted = [(FLOW, None), (LARGEST, None), (USEFUL, None), *((FLOW, of) for of in classes)]
    return [
        EffectOfChoice(title_of(policy), dict(_ratios(runs, setting, policy, site.policy, wanted)))
        for policy in site.rules[1:]
    ]


def title_of(policy: str) -> str:
    """Return the description and the name of a rule."""
    name, options = parsed(policy)
    options.pop("rules", None)
    plain = f"{name}:{','.join(f'{k}={v}' for k, v in options.items())}".rstrip(":")
    return f"{RULES[plain]} ({policy})" if plain in RULES else policy


def spares(site: AdvisedSite, runs: RunIndex[str]) -> list[tuple[int, EffectOfChoice]]:
    """Return the effect of each number of spare nodes, compared with no spare nodes."""
    setting = setting_of(runs, SPARES)
    names = {
        count: with_options(site.policy, react="replacement", spares=count) for count in site.spares
    }
    wanted = [(FLOW, None), (LARGEST, None), (USEFUL, None)]
    return (
        []
        if setting is None or not names
        else [
            (
                count,
                EffectOfChoice(
                    f"{count} spare nodes", dict(_ratios(runs, setting, name, names[0], wanted))
                ),
            )
            for count, name in names.items()
            if count
        ]
    )


def periods(site: AdvisedSite, runs: RunIndex[str]) -> dict[float | None, Interval]:
    """Return the useful utilisation with each checkpoint period, minus that with Young/Daly's.

    Keys are periods as multiples of Young/Daly's period. The key None stands for no checkpoints.
    """
    usual = _by_factor(site, runs).get(1.0)
    if usual is None:
        return {}
    changes = {}
    for factor, by_seed in _by_factor(site, runs).items():
        gains = minus(by_seed, usual)
        change = interval(gains)
        if factor != 1.0 and change is not None:
            changes[factor] = _with_support(change, sum(gain != 0 for gain in gains.values()))
    return changes


def _by_factor(site: AdvisedSite, runs: RunIndex[str]) -> dict[float | None, BySeed]:
    by_factor: dict[float | None, BySeed] = {}
    for setting in (item for item in runs.settings if item.grid == PERIODS):
        by_factor[factor_of(site, setting)] = runs.values(setting, site.policy, USEFUL)
    return {factor: by_factor[factor] for factor in (*FACTORS, None) if factor in by_factor}


def factor_of(site: AdvisedSite, setting: Setting) -> float | None:
    """Return the checkpoint period of a setting as a multiple of Young/Daly's period.

    Return None if the setting has no checkpoints.
    """
    if setting.scenario.checkpoint is None:
        return None
    mtbf_s = numbers_of(setting.scenario).get("checkpoint_mtbf")
    if not isinstance(mtbf_s, float):
        return 1.0
    ratio = (mtbf_s / site.mtbf_s) ** 0.5
    return min(FACTORS, key=lambda factor: abs(factor - ratio))


def period_title(factor: float | None) -> str:
    return "no checkpoints" if factor is None else f"{factor:g} x Young/Daly's period"


def _ratios(
    runs: RunIndex[str],
    setting: Setting,
    ours: str,
    base: str,
    wanted: Sequence[tuple[str, str | None]],
) -> Iterator[tuple[tuple[str, str | None], Interval]]:
    for name, of in wanted:
        mine, theirs = runs.paired(setting, ours, base, name, of)
        ratio = ratio_of_means(mine, theirs)
        if ratio is not None:
            n_changed = sum(mine[seed] != theirs[seed] for seed in mine)
            yield (name, of), _with_support(ratio, n_changed)


def _with_support(change: Interval, n_changed: int) -> Interval:
    """Return the change, without its interval if fewer than `FEWEST` seeds show any change.

    The reason: if most seeds show no change, the interval is too narrow.
    """
    if n_changed >= FEWEST:
        return change
    return Interval(change.mean, n=change.n)


def setting_of(runs: RunIndex[str], grid: str) -> Setting | None:
    return next((item for item in runs.settings if item.grid == grid), None)


ROUND = 5
"""Maximum number of seeds added in a round."""

ENOUGH = 20
"""Narrow intervals end the simulations only after this number of seeds."""

NARROW = 0.04
"""The simulations end if the relative widths of the mean flow's intervals are below this value."""

OWNER = Owner("advise", "rebat advise")


class Evidence(msgspec.Struct, frozen=True):
    """The results of all rounds.

    Attributes
    ----------
    runs
        Index of the results of all runs.
    n_seeds
        Number of seeds.
    n_runs
        Number of simulations.
    seconds_per_seed
        Wall-clock time per seed, measured in this call, or None if earlier calls did all runs.
    spent_s
        Wall-clock time of this call.
    """

    runs: RunIndex[str]
    n_seeds: int
    n_runs: int
    seconds_per_seed: float | None
    spent_s: float


def gather(
    site: AdvisedSite, folder: Path, minutes: float, most_seeds: int, workers: int | None
) -> Evidence:
    """Simulate seed 0, then further seeds while time is left. Earlier results are reused."""
    began, n_seeds, n_new, spent_on = time.monotonic(), 0, 0, 0.0
    while True:
        left_s = 60 * minutes - (time.monotonic() - began)
        step = min(_affordable(n_new, spent_on, left_s), most_seeds - n_seeds) if n_seeds else 1
        if step < 1:
            break
        n_seeds, start = n_seeds + step, time.monotonic()
        n_runs, any_new = _perform(site, range(n_seeds), folder, workers)
        if any_new:
            n_new, spent_on = n_new + step, spent_on + time.monotonic() - start
        runs = RunIndex(list(simulations(folder / TABLE, str)))
        if n_seeds >= ENOUGH and _narrow(site, runs):
            break
    per_seed = spent_on / n_new if n_new else None
    return Evidence(runs, n_seeds, n_runs, per_seed, time.monotonic() - began)


def _affordable(n_new: int, spent_s: float, left_s: float) -> int:
    return ROUND if not n_new else min(ROUND, int(left_s / (spent_s / n_new)))


def _perform(
    site: AdvisedSite, seeds: range, folder: Path, workers: int | None
) -> tuple[int, bool]:
    """Perform the runs whose results are missing.

    Return the total number of runs, and whether the result of any run was missing.

    The first `FEWEST` runs of today's policy keep their files, which contain users and queues.
    """
    with_files, campaign = (
        _campaign(today(site, seeds[:FEWEST])),
        _campaign([*specs(site, seeds), *changes(site, seeds)]),
    )
    before = Store(folder).status(campaign.units)
    run_campaign(with_files, folder, workers=workers, keep_runs=True)
    with campaign_bar() as on_progress:
        status = run_campaign(campaign, folder, workers=workers, on_progress=on_progress)
    if status.failed:
        raise PolicyError(f"{status.failed} of {status.total} runs failed; see {folder}")
    return status.total, bool(before.missing)


def _campaign(runs: Iterable[RunSpec]) -> Campaign:
    return Campaign(OWNER, units(runs))


def _narrow(site: AdvisedSite, runs: RunIndex[str]) -> bool:
    (setting,) = (item for item in runs.settings if item.grid == OTHER_RULES)
    widths = [
        relative_width(ratio_of_means(*runs.paired(setting, policy, site.policy, "flow_mean_s")))
        for policy in site.rules[1:]
    ]
    return all(width is not None and width <= NARROW for width in widths)


LEAST_SHARE = 0.05
"""A sentence names an owner only if the owner has at least this share of the lost work."""

LEAST_RATIO = 1.5
"""A named owner's share of the lost work is at least this many times its share of node time."""


class WorkOwner(msgspec.Struct, frozen=True):
    """A user or a queue, with its shares over all runs.

    Attributes
    ----------
    kind
        ``user`` or ``queue``.
    name
        Name of the user or queue.
    used
        Share of all used node time.
    lost
        Share of all lost node time.
    interruptions
        Mean number of failures of the owner's jobs in a run.
    """

    kind: str
    name: str
    used: float
    lost: float
    interruptions: float

    @property
    def text(self) -> str:
        """A sentence on the owner."""
        return (
            f"{self.kind.capitalize()} {self.name} has {about_percent(self.used)} of the "
            f"node time, but {about_percent(self.lost)} of the lost node time."
        )


def owners_of(site: AdvisedSite, folder: Path, seeds: Sequence[int]) -> list[WorkOwner]:
    """Return users and queues, from the runs of today's policy with failures."""
    folders = [
        Store(folder).run_folder(unit.key)
        for unit in units(today(site, seeds))
        if unit.spec.scenario.failures is not None
    ]
    return [owner for kind in ("user", "queue") for owner in _owners(kind, folders)]


def _owners(kind: str, folders: Sequence[Path]) -> Iterator[WorkOwner]:
    used: dict[str, float] = {}
    lost: dict[str, float] = {}
    failures: dict[str, float] = {}
    for path in (folder / f"rebat_{kind}s.csv" for folder in folders):
        for row in _rows(path):
            name = row[kind]
            used[name] = used.get(name, 0.0) + float(row["node_seconds"])
            lost[name] = lost.get(name, 0.0) + float(row["wasted_node_seconds"])
            failures[name] = failures.get(name, 0.0) + float(row["failures"])
    all_used, all_lost = sum(used.values()), sum(lost.values())
    if all_used and all_lost:
        for name in sorted(used, key=lambda name: -lost[name]):
            shares = used[name] / all_used, lost[name] / all_lost
            yield WorkOwner(kind, name, *shares, failures[name] / len(folders))


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def losers(owners: Sequence[WorkOwner]) -> list[WorkOwner]:
    """Return the user and the queue that lose the most, if this is clearly more than they use."""
    chosen = []
    for kind in ("user", "queue"):
        of_kind = [owner for owner in owners if owner.kind == kind]
        if len(of_kind) > 1:
            worst = max(of_kind, key=lambda owner: owner.lost)
            if worst.lost >= max(LEAST_SHARE, LEAST_RATIO * worst.used):
                chosen.append(worst)
    return chosen
