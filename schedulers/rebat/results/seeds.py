# SPDX-License-Identifier: Apache-2.0
"""What policies gave under many seeds: a tidy table, and means and ratios with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean
from typing import Any

import msgspec

from rebat.core.csv_text import name_field
from rebat.results.intervals import BySeed, Interval, interval, paired_ratio
from rebat.results.measures.backlog import are_comparable, of_window
from rebat.results.metric import Name


class Seeds:
    """Values by policy, metric and seed; ratios are to the first policy.

    Parameters
    ----------
    policies : list of str
        In the order in which they are shown.
    """

    def __init__(self, policies: list[str]) -> None:
        self.policies = policies
        self._values: dict[tuple[str, Name], dict[int, float]] = {}

    def add(self, seed: int, policy: str, values: Iterable[tuple[str, str | None, float]]) -> None:
        """What one run gave."""
        for name, size_class, value in values:
            self._values.setdefault((policy, (name, size_class)), {})[seed] = value

    def of(self, policy: str, metric: Name) -> BySeed:
        """A value per seed, in their order."""
        return dict(sorted(self._values.get((policy, metric), {}).items()))

    def mean(self, policy: str) -> Callable[[str], float | None]:
        """Of a policy: the name of a metric of the whole run -> its mean."""

        def of(name: str) -> float | None:
            values = self.of(policy, (name, None)).values()
            return fmean(values) if values else None

        return of

    def __iter__(self) -> Iterator[tuple[int, str, str, str | None, float]]:
        """Seed, policy, metric, size class and value of each."""
        for policy in self.policies:
            for name, size_class in self.metrics:
                for seed, value in self.of(policy, (name, size_class)).items():
                    yield seed, policy, name, size_class, value

    @property
    def seeds(self) -> list[int]:
        """All seeds that were run, in order."""
        return sorted(set().union(*self._values.values())) if self._values else []

    @property
    def metrics(self) -> list[Name]:
        """Every metric that some policy has, in the order in which they came."""
        return list(dict.fromkeys(metric for _, metric in self._values))


class MetricRow(msgspec.Struct, frozen=True):
    """One metric of one policy, and its ratio to the first policy (None: it is the first).

    ``comparable``: whether both are of windows with the same work at hand, where the metric is of a
    window's node time (see `measures.backlog`).
    """

    metric: Name
    policy: str
    value: Interval
    ratio: Interval | None
    comparable: bool | None = None


def rows(seeds: Seeds, metrics: Sequence[Name] | None = None) -> Iterator[MetricRow]:
    """Means with their intervals, and paired ratios with theirs."""
    base, *others = seeds.policies
    same = {policy: are_comparable(seeds.mean(policy), seeds.mean(base)) for policy in others}
    for metric in metrics or seeds.metrics:
        reference = seeds.of(base, metric)
        for policy in seeds.policies:
            ours = seeds.of(policy, metric)
            value = interval(list(ours.values()))
            if value is not None:
                ratio = None if policy == base else paired_ratio(ours, reference)
                comparable = same.get(policy) if of_window(metric[0]) else None
                yield MetricRow(metric, policy, value, ratio, comparable)


def seeds_csv(seeds: Seeds) -> str:
    """seeds.csv: a row per seed, policy and metric; times in seconds."""
    lines = ["seed,policy,metric,size_class,value"]
    for seed, policy, name, size_class, value in seeds:
        lines.append(f"{seed},{_quoted(policy)},{name},{_quoted(size_class)},{value!r}")
    return "\n".join(lines) + "\n"


COMPARED = (
    "metric", "size_class", "policy", "seeds", "mean", "low", "high", "ratio", "ratio_low",
    "ratio_high", "differs", "comparable",
)  # fmt: skip
"""Columns of comparison.csv, see `compared`."""


def compared(row: MetricRow) -> tuple[Any, ...]:
    """A row by `COMPARED`: mean, ratio, and of several seeds the ends of their 95 % intervals.

    ``differs``: whether 1 is outside of the interval of the ratio. ``comparable``: see
    `MetricRow`. None where there is none.
    """
    ratio = row.ratio
    over: tuple[float | bool | None, ...] = (None,) * 4
    if ratio is not None:
        differs = None if ratio.low is None else ratio.excludes(1.0)
        over = (*_ends(ratio), differs)
    return (*row.metric, row.policy, row.value.n, *_ends(row.value), *over, row.comparable)


def intervals_csv(found: Iterable[MetricRow]) -> str:
    """comparison.csv: a row per metric and policy, see `compared`."""
    lines = [",".join(COMPARED)]
    lines += [",".join(map(_cell, compared(row))) for row in found]
    return "\n".join(lines) + "\n"


def _ends(found: Interval) -> tuple[float | None, ...]:
    return found.mean, found.low, found.high


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (
        f"{value:.6g}"
        if isinstance(value, float)
        else _quoted(None if value is None else str(value))
    )


def _quoted(text: str | None) -> str:
    return name_field(text or "")
