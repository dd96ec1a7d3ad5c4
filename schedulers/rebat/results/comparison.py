# SPDX-License-Identifier: Apache-2.0
"""Policies on one scenario, compared: a line per metric, with ratios to the first policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from rebat.results.catalogue import CATALOGUE
from rebat.results.measures.backlog import are_comparable, of_window
from rebat.results.measures.summary import RunSummary, as_json
from rebat.results.metric import Metric, Unit, Values, flat_metrics


class MetricLine(msgspec.Struct, frozen=True):
    """One metric of every policy.

    ``of_window``: it is of the window's node time, see `measures.backlog.comparable`.
    """

    metric: str
    unit: Unit
    values: dict[str, float | None]
    of_window: bool = False

    def ratio(self, name: str, base: str) -> float | None:
        """Return the value of a policy over that of another; None if there is none."""
        value, first = self.values[name], self.values[base]
        return value / first if value is not None and first else None


def comparison(summaries: Mapping[str, RunSummary]) -> list[MetricLine]:
    """Return the lines of the catalogue that are not 0 for some policy."""
    runs = {name: _values(summary) for name, summary in summaries.items()}
    classes = list(next(iter(summaries.values())).flows)
    partitions = list(dict.fromkeys(p for s in summaries.values() for p in s.partition_states))
    lines = []
    for row in CATALOGUE:
        if row.only_with and not any(_any(values, row.only_with) for values in runs.values()):
            continue
        for metric, size_class in _instances(row, classes, partitions):
            values = {name: metric.compared(of, size_class) for name, of in runs.items()}
            if any(values.values()):
                title = f"{metric.heading}, jobs {size_class}" if size_class else metric.heading
                lines.append(
                    MetricLine(title, metric.compared_unit, values, of_window(metric.name))
                )
    return lines


def _instances(
    row: Metric, classes: list[str], partitions: list[str]
) -> Iterator[tuple[Metric, str | None]]:
    """Yield a metric for each size class or partition that it is measured on."""
    if row.by_class:
        yield from ((row, size_class) for size_class in classes)
    elif "*" in row.name:
        for partition in partitions:
            named = row.named(row.name.replace("*", partition))
            if named is not None:
                yield named, None
    else:
        yield row, None


def _values(summary: RunSummary) -> Values:
    return {(name, of): value for name, of, value in flat_metrics(as_json(summary))}


def _any(values: Values, names: tuple[str, ...]) -> bool:
    return any(values.get((name, None)) for name in names)


def comparable_with(summary: RunSummary, other: RunSummary) -> bool:
    """Return whether shares of node time of two runs can be compared, see `measures.backlog`."""
    ours, others = _values(summary), _values(other)
    same = are_comparable(
        lambda name: ours.get((name, None)), lambda name: others.get((name, None))
    )
    return same is not False
