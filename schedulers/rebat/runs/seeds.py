# SPDX-License-Identifier: Apache-2.0
"""Policies on one scenario with several seeds. For each seed, all have the same failures.

Instead of a number of seeds, a target width of an interval can be set. Seeds are then added until
the interval is narrow enough.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from rebat.core.errors import InputError, PolicyError
from rebat.results.comparison import Runs
from rebat.results.intervals import interval, ratio_of_means, relative_width
from rebat.results.measures.summary import as_json
from rebat.results.metric import Name, flat_metrics
from rebat.runs.case import Case, expand
from rebat.runs.runner import perform_all
from rebat.runs.simulating import simulate_run, units
from rebat.runs.unit import Unit

MOST_SEEDS = 1_000
"""Maximum number of seeds, even if the interval is not narrow enough."""


class Narrow(msgspec.Struct, frozen=True):
    """A target for the relative width of a metric's interval (width divided by the mean).

    If there are several policies, the target applies to the ratio of each other policy to the first
    policy. If there is one policy, it applies to the mean.
    """

    width: float
    metric: Name = ("useful_utilisation", None)


class SeedRuns(msgspec.Struct, frozen=True):
    """The requested runs: a case with one value of each option but the seed.

    Attributes
    ----------
    case : Case
    names : tuple of str
        The names of its policies in the results. Ratios are relative to the first policy.
    kinds : dict of str to type
        Class of each policy that is not defined in a file.
    n_nodes : int
        Number of nodes of the workload's machine.
    workers : int
    narrow : Narrow, optional
    """

    case: Case
    names: Sequence[str]
    kinds: Mapping[str, type]
    n_nodes: int
    workers: int
    narrow: Narrow | None = None


def run_seeds(
    requested: SeedRuns, on_done: Callable[[int, int], None] = lambda done, of: None
) -> Runs[str]:
    """Run all policies with all seeds. ``on_done`` gets the numbers of ended and of all runs."""
    seeds, done = Runs(list(requested.names)), 0
    total = len(requested.case.values["seed"]) * len(requested.names)
    for batch in _batches(requested, seeds):
        runs = list(itertools.product(batch, requested.names))
        total = max(total, done + len(runs))
        on_done(done, total)
        for outcome in perform_all(_units(requested, batch), perform, requested.workers):
            seed, policy = runs[outcome.number]
            if outcome.metrics is None:
                raise PolicyError(f"seed {seed}, policy {policy}: {outcome.error}")
            seeds.add(seed, policy, flat_metrics(outcome.metrics))
            done += 1
            on_done(done, total)
    return seeds


def _batches(requested: SeedRuns, seeds: Runs[str]) -> Iterator[range]:
    """Yield the initial seeds, then batches of 50 % more seeds, until the interval is narrow."""
    first, n = requested.case.values["seed"][0], len(requested.case.values["seed"])
    yield range(first, first + n)
    while requested.narrow and n < MOST_SEEDS and _too_wide(seeds, requested.narrow):
        more = min(max(2, n // 2), MOST_SEEDS - n)
        yield range(first + n, first + n + more)
        n += more


def _too_wide(seeds: Runs[str], narrow: Narrow) -> bool:
    if narrow.metric not in seeds.metrics:
        names = sorted({f"{name}:{group}" if group else name for name, group in seeds.metrics})
        problem = f"unknown metric {':'.join(filter(None, narrow.metric))!r}"
        raise InputError(problem, "--until-metric", ", ".join(names))
    base, *others = seeds.policies
    reference = seeds.of(base, narrow.metric)
    ratios = [ratio_of_means(seeds.of(name, narrow.metric), reference) for name in others]
    widths = map(relative_width, ratios or [interval(list(reference.values()))])
    return any(width is None or width > narrow.width for width in widths)


def _units(requested: SeedRuns, batch: Sequence[int]) -> list[Unit]:
    """Return the units of all policies with each seed."""
    kinds = itertools.cycle(requested.kinds.get(name) for name in requested.names)
    specs = expand(requested.case.changed(seed=batch), lambda source: requested.n_nodes)
    return units(replace(spec, kind=kind) for spec, kind in zip(specs, kinds, strict=False))


def perform(unit: Unit, folder: Path | None) -> dict[str, Any]:
    """Simulate a policy with a seed, in a worker, and return its metrics."""
    return as_json(simulate_run(unit).summary)
