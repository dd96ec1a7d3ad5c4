# SPDX-License-Identifier: Apache-2.0
"""Slow oracles of one training job: its life, failure by failure, in seconds."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator


def one_job(job, n_failures: int, rng: Generator) -> tuple[float, float]:
    """Return productive and total time of a job until a number of failures.

    The job writes, detects and loads as `ettr.TrainingJob` says. A clock runs to the next failure;
    each phase ends or is cut by it.
    """
    period = job.interval_s + job.write_s
    productive = total = 0.0
    for _ in range(n_failures):
        # from here, the job first loads (after the first failure), then works until it fails
        left = rng.exponential(job.mtbf_s)
        total += left + job.detect_s
        left -= job.load_s
        while left >= period:
            left -= period
            productive += job.interval_s
    return productive, total


def one_job_of_two_tiers(tiers, n_failures: int, rng: Generator, safe: bool):
    """Return productive and total time of a job with two tiers of checkpoints.

    A failure that the light tier does not survive, also during a load, returns to the deep one.
    """
    productive = total = 0.0
    position = failures = 0  # ``position``: periods done since the last deep checkpoint
    load = 0.0
    while failures < n_failures:
        last = position == tiers.per_pattern - 1
        period = tiers.interval_s + tiers.writes_s[0] + (tiers.writes_s[1] if last else 0)
        left = rng.exponential(tiers.mtbf_s)  # memoryless: drawn again for each phase
        if safe:
            total, load = total + load, 0.0
        if left >= load + period:
            total, load = total + load + period, 0.0
            position += 1
            if last:
                productive, position = productive + tiers.per_pattern * tiers.interval_s, 0
            continue
        failures += 1
        loaded_deep = load == tiers.loads_s[1] and left < load
        light = rng.random() < tiers.light_share and not loaded_deep
        total += left + tiers.detect_s
        load = tiers.loads_s[0 if light else 1]
        position = position if light else 0
    return productive, total


def ratio_with_error(sample, n_repeats: int) -> tuple[float, float]:
    """Return mean and standard error of the ratio of repeated samples (productive, total)."""
    pairs = [sample(np.random.default_rng(seed)) for seed in range(n_repeats)]
    ratios = np.array([productive / total for productive, total in pairs])
    return float(ratios.mean()), float(ratios.std(ddof=1) / np.sqrt(n_repeats))


def end_of_job(work_us: int, period_us: int, write_us: int, hang_us: int, load_us: int, failures):
    """Return the end of a job that starts at 0 and fails at these times, all in microseconds.

    A job of whole periods; a failure while it hangs changes nothing.
    """
    failures = iter(sorted(failures))
    strikes = next(failures)
    now = done = 0  # ``done`` is work in checkpoints
    while done < work_us:
        if strikes >= now + period_us + write_us:
            now, done = now + period_us + write_us, done + period_us
            continue
        while True:  # hang, then load, until no failure strikes the load
            until = strikes + hang_us
            while strikes <= until:
                strikes = next(failures)
            if strikes > until + load_us:
                now = until + load_us
                break
    return now
