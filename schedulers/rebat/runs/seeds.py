# SPDX-License-Identifier: Apache-2.0
"""Policies on one scenario under many seeds, each seeing the same failures per seed.

How narrow an interval is to be may say how many seeds there are: more are run until it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec

from rebat.core.errors import InputError, PolicyError, RebatError, one_line
from rebat.executors.resources import Resources
from rebat.executors.table import EXECUTORS
from rebat.results.intervals import interval, paired_ratio, relative_width
from rebat.results.measures.summary import RunSummary, as_json
from rebat.results.metric import Name, flat_metrics, metric_names
from rebat.results.seeds import Seeds
from rebat.runs.simulating import simulate_run, units
from rebat.runs.spec import RunSpec, Scenario, Source
from rebat.runs.unit import Unit

MOST_SEEDS = 1_000
"""Where an interval does not get narrow enough, there are no more than these."""


class Narrow(msgspec.Struct, frozen=True):
    """Add seeds until the interval of a metric is no wider than a share of its mean: that of each
    policy's ratio to the first one, or of the one policy's value."""

    width: float
    metric: Name = ("useful_utilisation", None)


class Asked(msgspec.Struct, frozen=True):
    """What is run: policies on a workload, under the scenario of each seed.

    ``policies`` are by what results call them, the first one the one that ratios are to.
    """

    source: Source
    policies: Mapping[str, str]
    scenario_of: Callable[[int], Scenario]
    first_seed: int
    n_seeds: int
    workers: int
    narrow: Narrow | None = None


class Done(msgspec.Struct, frozen=True):
    """One run that ended: its metrics, or why there are none."""

    seed: int
    policy: str
    values: list[tuple[str, str | None, float]] = []
    error: str = ""


class _Task(msgspec.Struct, frozen=True):
    seed: int
    policy: str
    unit: Unit


def run_seeds(asked: Asked, on_done: Callable[[int, int], None] = lambda done, of: None) -> Seeds:
    """Run every policy under every seed; ``on_done`` is told how many of how many runs are done.

    Raises
    ------
    InputError, PolicyError
        When a run fails, with its seed and policy: intervals over some of the seeds would mislead.
    """
    seeds, done = Seeds(list(asked.policies)), 0
    total = asked.n_seeds * len(asked.policies)
    for batch in _batches(asked, seeds):
        tasks = list(_tasks(asked, batch))
        total = max(total, done + len(tasks))
        on_done(done, total)
        for one in _perform_all(tasks, asked.workers):
            if one.error:
                raise PolicyError(f"seed {one.seed}, policy {one.policy}: {one.error}")
            seeds.add(one.seed, one.policy, one.values)
            done += 1
            on_done(done, total)
    return seeds


def _batches(asked: Asked, seeds: Seeds) -> Iterator[range]:
    """The seeds that were asked for, then half as many again until it is narrow enough."""
    first, n = asked.first_seed, asked.n_seeds
    yield range(first, first + n)
    while asked.narrow and n < MOST_SEEDS and _too_wide(seeds, asked.narrow):
        more = min(max(2, n // 2), MOST_SEEDS - n)
        yield range(first + n, first + n + more)
        n += more


def _too_wide(seeds: Seeds, narrow: Narrow) -> bool:
    if narrow.metric not in seeds.metrics:
        names = sorted({f"{name}:{group}" if group else name for name, group in seeds.metrics})
        what = f"unknown metric {':'.join(filter(None, narrow.metric))!r}"
        raise InputError(what, "--until-metric", ", ".join(names))
    base, *others = seeds.policies
    reference = seeds.of(base, narrow.metric)
    found = [paired_ratio(seeds.of(name, narrow.metric), reference) for name in others]
    widths = map(relative_width, found or [interval(list(reference.values()))])
    return any(width is None or width > narrow.width for width in widths)


def _tasks(asked: Asked, batch: range) -> Iterator[_Task]:
    runs = list(itertools.product(batch, asked.policies))
    specs = [
        RunSpec(
            grid="run", workload="workload", policy=asked.policies[policy], source=asked.source,
            scenario=asked.scenario_of(seed),
        )
        for seed, policy in runs
    ]  # fmt: skip
    for (seed, policy), unit in zip(runs, units(specs), strict=True):
        yield _Task(seed, policy, unit)


def _perform_all(tasks: Sequence[_Task], workers: int) -> Iterator[Done]:
    chosen = EXECUTORS["processes" if workers > 1 else "inline"]
    yield from chosen(tasks, perform, _lost, Resources(workers=workers))


def perform(task: _Task) -> Done:
    """Simulate one policy under one seed; runs in a worker."""
    try:
        summary = as_json(simulate_run(task.unit).summary)
    except InputError:
        raise
    except RebatError as error:
        return Done(task.seed, task.policy, error=one_line(error))
    return Done(task.seed, task.policy, list(flat_metrics(summary)))


def _lost(task: _Task, reason: str) -> Done:
    return Done(task.seed, task.policy, error=reason)


def check_metric(metric: Name) -> None:
    """Refuse a metric that no run has, before anything runs.

    Raises
    ------
    InputError
        With the names that there are.
    """
    names = sorted(metric_names(RunSummary))
    if not any(fnmatchcase(metric[0], name) for name in names):
        raise InputError(f"unknown metric {metric[0]!r}", "--until-metric", ", ".join(names))
