# SPDX-License-Identifier: Apache-2.0
"""Slow oracles of one training job: its history, failure by failure."""

from __future__ import annotations

import heapq
import math

import numpy as np
from numpy.random import Generator

from rebat.models.ettr import tier_overhead


def tier_intervals_s(
    mtbf_s: float, shares: tuple[float, ...], writes_s: tuple[float, ...]
) -> list[float]:
    """Return W_i = sqrt(2 w_i / lambda_i), the work between two checkpoints of each tier.

    ``shares`` contains, for each tier, the share of failures that need this tier. If a share is 0,
    the interval of the tier is infinite.
    """
    return [
        math.sqrt(2 * write_s * mtbf_s / share) if share else math.inf
        for share, write_s in zip(shares, writes_s, strict=True)
    ]


def tier_ettr_first_order(
    mtbf_s: float,
    shares: tuple[float, ...],
    writes_s: tuple[float, ...],
    loads_s: tuple[float, ...],
) -> float:
    """Return 1 / (1 + H* + mean load / M), the ETTR at the best intervals (first order)."""
    load_s = sum(share * load for share, load in zip(shares, loads_s, strict=True))
    return 1 / (1 + tier_overhead(mtbf_s, shares, writes_s) + load_s / mtbf_s)


def one_job(job, n_failures: int, rng: Generator) -> tuple[float, float]:
    """Return productive and total time of a job until a number of failures.

    The times to write, detect and load are those of `ettr.TrainingJob`. The time to the next
    failure is drawn; a phase that does not complete before the failure is lost.
    """
    period = job.interval_s + job.write_s
    productive = total = 0.0
    for _ in range(n_failures):
        # the job first loads, then works until it fails
        left = rng.exponential(job.mtbf_s)
        total += left + job.detect_s
        left -= job.load_s
        while left >= period:
            left -= period
            productive += job.interval_s
    return productive, total


def one_job_with_spares(job, nodes: tuple[int, int], rate, repair_s, n_failures, rng, only_job):
    """Return productive and total time of a job on n nodes with s spare nodes.

    Each node fails at the given rate while it is up (``only_job``: while the job runs on it).
    """
    n, everything, t, down = nodes[0], sum(nodes), 0.0, []
    period, productive = job.interval_s + job.write_s, 0.0

    def next_event(n_fail: int, until: float) -> str:
        """Advance to the next failure, repair or end, and return which of these it is."""
        nonlocal t
        fails = t + rng.exponential(1 / (rate * n_fail)) if n_fail else np.inf
        repaired = down[0] if down else np.inf
        t = min(fails, repaired, until)
        if t == until:
            return "end"
        if t == repaired:
            heapq.heappop(down)
            return "repair"
        heapq.heappush(down, t + repair_s)
        return "failure"

    def idle(until: float) -> None:
        while next_event(0 if only_job else everything - len(down), until) != "end":
            pass

    for _ in range(n_failures):
        while everything - len(down) < n:
            next_event(0 if only_job else everything - len(down), np.inf)
        began, hit = t, False
        while not hit:
            up = n if only_job else everything - len(down)
            hit = next_event(up, np.inf) == "failure" and rng.random() < n / up
        productive += max(0, t - began - job.load_s) // period * job.interval_s
        idle(t + job.detect_s)
    return productive, t


def one_job_of_two_tiers(tiers, n_failures: int, rng: Generator, safe: bool):
    """Return productive and total time of a job with two tiers of checkpoints.

    If the light tier does not survive a failure, the job returns to the deep tier. A failure while
    the deep tier is loaded also returns to it.
    """
    light_s = tiers.interval_s + tiers.writes_s[0]
    last_s = light_s + tiers.writes_s[1]
    last = tiers.per_pattern - 1
    productive = total = load = 0.0
    position = 0  # periods done since the last deep checkpoint
    for _ in range(n_failures):
        left = rng.exponential(tiers.mtbf_s)
        total += left + tiers.detect_s + (load if safe else 0)
        left -= 0 if safe else load
        while left >= (last_s if position == last else light_s):
            if position == last:
                productive += tiers.per_pattern * tiers.interval_s
                left, position = left - last_s, 0
            else:
                left, position = left - light_s, position + 1
        loaded_deep = load == tiers.loads_s[1] and left < 0
        light = rng.random() < tiers.light_share and not loaded_deep
        load = tiers.loads_s[0 if light else 1]
        position = position if light else 0
    return productive, total


def ratio_with_error(sample, n_repeats: int) -> tuple[float, float]:
    """Return mean and standard error of productive / total over repeated samples."""
    pairs = [sample(np.random.default_rng(seed)) for seed in range(n_repeats)]
    ratios = np.array([productive / total for productive, total in pairs])
    return float(ratios.mean()), float(ratios.std(ddof=1) / np.sqrt(n_repeats))


def end_of_job(work_us: int, period_us: int, write_us: int, hang_us: int, load_us: int, failures):
    """Return the end of a job that starts at 0 and fails at these times, all in microseconds.

    The work is a multiple of the period. A failure while the job hangs changes nothing.
    """
    failures = iter(sorted(failures))
    strikes = next(failures)
    now = done = 0  # ``done`` is work in checkpoints
    while done < work_us:
        if strikes >= now + period_us + write_us:
            now, done = now + period_us + write_us, done + period_us
            continue
        while True:  # hang, then load, until a load completes without a failure
            until = strikes + hang_us
            while strikes <= until:
                strikes = next(failures)
            if strikes > until + load_us:
                now = until + load_us
                break
    return now


def end_of_tiered_job(work, tiers, failures, back):
    """Return the end of a job with nested tiers of checkpoints, in whole units of time.

    ``tiers`` are (period of work, write, load), lightest first. Each period is a multiple of the
    previous one, and the last tier survives all failures. ``failures`` are (time, lightest tier
    that survives). The nodes are back ``back`` units later, and the job then starts again.
    """
    timeline, complete = [], [set() for _ in tiers]  # use of each unit; ends of checkpoints
    for unit in range(1, work + 1):
        timeline.append("work")
        for number, (period, write, _) in enumerate(tiers):
            if unit % period == 0:
                timeline += [number] * write
                for lighter in complete[: number + 1]:
                    lighter.add(len(timeline))
    now = position = load = 0
    for at, needed in sorted(failures):
        needs = needed
        if at < now:
            continue  # the nodes are down
        worked = at - now - load
        if worked > 0:
            if position + worked >= len(timeline):
                break
            reached = position + worked
        else:  # the load is repeated from the heaviest tier with this progress, or a heavier one
            reached = position
            here = [number for number, ends in enumerate(complete) if position in ends]
            needs = max([needs, *here]) if position else len(tiers) - 1
        position = max([0, *(end for end in complete[needs] if end <= reached)])
        load = tiers[needs][2]
        now = at + back
    return now + load + len(timeline) - position


def one_job_of_levels(levels, interval_s: float, counts, n_failures: int, rng: Generator):
    """Return productive and total time of a job with several tiers, failure by failure.

    ``done`` is the number of light periods since the last deep checkpoint. ``written`` is the
    heaviest tier with a complete checkpoint at this progress. A failure draws a tier, and the job
    returns to the last checkpoint of this tier. After a failure during a load the tier is at least
    the one that was being loaded.
    """
    lengths = np.cumprod([1, *counts])  # light periods between two checkpoints of each tier
    productive = total = 0.0
    done, written, failures = 0, len(counts), 0

    def strikes(length: float) -> bool:
        nonlocal total, failures
        left = rng.exponential(levels.mtbf_s)
        if left >= length:
            total += length
            return False
        total += left + levels.detect_s
        failures += 1
        return True

    def tier_of_failure() -> int:
        return int(rng.choice(len(levels.shares), p=levels.shares))

    def recover(tier: int) -> int:
        while strikes(levels.loads_s[tier]):
            tier = max(tier, tier_of_failure())
        return tier

    while failures < n_failures:
        due = [t for t in range(written + 1, len(lengths)) if done and done % lengths[t] == 0]
        if due:
            length, after = levels.writes_s[due[0]], (done, due[0])
        else:
            length, after = interval_s + levels.writes_s[0], (done + 1, 0)
        if not strikes(length):
            done, written = after
            if done == lengths[-1] and written == len(counts):
                productive, done = productive + interval_s * done, 0
            continue
        tier = recover(tier_of_failure())
        if not done % lengths[tier] and (not done or written >= tier):
            written = max(written, tier)  # the last checkpoint of this tier has this progress
        else:
            done = (
                (done - 1) // lengths[tier] * lengths[tier]
                if done % lengths[tier] == 0
                else (done // lengths[tier] * lengths[tier])
            )
            written = max(t for t in range(len(lengths)) if done % lengths[t] == 0)
    return productive, total
