# SPDX-License-Identifier: Apache-2.0
"""Simulations in rounds that add seeds until intervals are narrow or the time is over."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from rebat.campaign.opening import Campaign
from rebat.campaign.run import run_campaign
from rebat.campaign.store import TABLE, Owner, Store
from rebat.console.progress import campaign_bar
from rebat.core.errors import PolicyError
from rebat.library.advice.design import OTHER_RULES, AdvisedSite, specs, today
from rebat.report.runs_index import RunIndex, simulations
from rebat.results.intervals import FEWEST, ratio_of_means, relative_width
from rebat.runs.simulating import units
from rebat.runs.unit import RunSpec

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
    with_files, campaign = _campaign(today(site, seeds[:FEWEST])), _campaign(specs(site, seeds))
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
