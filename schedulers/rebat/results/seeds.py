# SPDX-License-Identifier: Apache-2.0
"""Results of policies with several seeds: values, means, and ratios with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from rebat.core.files import write_json, write_text
from rebat.core.formatting import name_field
from rebat.results.intervals import BySeed, Interval, interval, ratio_of_means
from rebat.results.measures.backlog import are_comparable, of_window
from rebat.results.metric import Name


class Seeds:
    """Values by policy, metric and seed. Ratios are relative to the first policy.

    Parameters
    ----------
    policies : list of str
        The policies, in display order.
    """

    def __init__(self, policies: list[str]) -> None:
        self.policies = policies
        self._values: dict[tuple[str, Name], dict[int, float]] = {}

    def add(self, seed: int, policy: str, values: Iterable[tuple[str, str | None, float]]) -> None:
        """Add the metrics of a run."""
        for name, size_class, value in values:
            self._values.setdefault((policy, (name, size_class)), {})[seed] = value

    def of(self, policy: str, metric: Name) -> BySeed:
        """Return a value per seed, in ascending order of seeds."""
        return dict(sorted(self._values.get((policy, metric), {}).items()))

    def mean(self, policy: str) -> Callable[[str], float | None]:
        """Return a function that maps a metric of the entire run to its mean for the policy."""

        def of(name: str) -> float | None:
            values = self.of(policy, (name, None)).values()
            return fmean(values) if values else None

        return of

    def __iter__(self) -> Iterator[tuple[int, str, str, str | None, float]]:
        """Yield seed, policy, metric, size class and value of each entry."""
        for policy in self.policies:
            for name, size_class in self.metrics:
                for seed, value in self.of(policy, (name, size_class)).items():
                    yield seed, policy, name, size_class, value

    @property
    def seeds(self) -> list[int]:
        """All seeds with values, in order."""
        return sorted(set().union(*self._values.values())) if self._values else []

    @property
    def metrics(self) -> list[Name]:
        """All metrics of any policy, in the order in which they were added."""
        return list(dict.fromkeys(metric for _, metric in self._values))


class MetricRow(msgspec.Struct, frozen=True):
    """A metric of a policy, and its ratio to the first policy (None for the first policy).

    ``comparable`` states whether both policies had comparable work at hand in the window (see
    `measures.backlog`). It is None if the metric is not a share of the window's node time.
    """

    metric: Name
    policy: str
    value: Interval
    ratio: Interval | None
    comparable: bool | None = None


def rows(seeds: Seeds, metrics: Sequence[Name] | None = None) -> Iterator[MetricRow]:
    """Yield means and paired ratios with their intervals."""
    base, *others = seeds.policies
    same = {policy: are_comparable(seeds.mean(policy), seeds.mean(base)) for policy in others}
    for metric in metrics or seeds.metrics:
        reference = seeds.of(base, metric)
        for policy in seeds.policies:
            ours = seeds.of(policy, metric)
            value = interval(list(ours.values()))
            if value is not None:
                ratio = None if policy == base else ratio_of_means(ours, reference)
                comparable = same.get(policy) if of_window(metric[0]) else None
                yield MetricRow(metric, policy, value, ratio, comparable)


def by_name(rows: Iterable[MetricRow]) -> dict[tuple[Name, str], MetricRow]:
    """Return the rows by metric and policy."""
    return {(row.metric, row.policy): row for row in rows}


def write_seeds(folder: Path, seeds: Seeds, provenance: dict[str, Any]) -> None:
    """Write seeds.csv and run.json."""
    write_text(folder / "seeds.csv", seeds_csv(seeds))
    write_json(folder / "run.json", {**provenance, "seeds": seeds.seeds})


def seeds_csv(seeds: Seeds) -> str:
    """Return seeds.csv: a row per seed, policy and metric. Times are in seconds."""
    lines = ["seed,policy,metric,size_class,value"]
    for seed, policy, name, size_class, value in seeds:
        lines.append(f"{seed},{_quoted(policy)},{name},{_quoted(size_class)},{value!r}")
    return "\n".join(lines) + "\n"


COMPARED = (
    "metric",
    "size_class",
    "policy",
    "seeds",
    "mean",
    "low",
    "high",
    "ratio",
    "ratio_low",
    "ratio_high",
    "differs",
    "comparable",
)
"""Columns of comparison.csv, see `compared`."""


def compared(row: MetricRow) -> tuple[Any, ...]:
    """Return the values of a row for the columns `COMPARED`: mean and ratio with 95 % intervals.

    ``differs`` states whether 1 is outside the interval of the ratio. For ``comparable`` see
    `MetricRow`. Missing values are None.
    """
    ratio = row.ratio
    over: tuple[float | bool | None, ...] = (None,) * 4
    if ratio is not None:
        differs = None if ratio.low is None else ratio.excludes(1.0)
        over = (*_ends(ratio), differs)
    return (*row.metric, row.policy, row.value.n, *_ends(row.value), *over, row.comparable)


def intervals_csv(rows: Iterable[MetricRow]) -> str:
    """Return comparison.csv: a row per metric and policy (see `compared`)."""
    lines = [",".join(COMPARED)]
    lines += [",".join(map(_cell, compared(row))) for row in rows]
    return "\n".join(lines) + "\n"


def _ends(estimate: Interval) -> tuple[float | None, ...]:
    return estimate.mean, estimate.low, estimate.high


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
