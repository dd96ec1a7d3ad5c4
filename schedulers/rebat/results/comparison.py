# SPDX-License-Identifier: Apache-2.0
"""Comparison of policies in one scenario, with a line per metric and ratios to a base policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from rebat.results.catalogue import CATALOGUE, FIRST_PRINTED, N_PRINTED
from rebat.results.measures.backlog import are_comparable, of_window
from rebat.results.measures.summary import RunSummary, as_json
from rebat.results.metric import Metric, Name, Unit, Values, flat_metrics


class MetricLine(msgspec.Struct, frozen=True):
    """One metric of every policy.

    Attributes
    ----------
    metric : str
        The heading, with the size class.
    unit : Unit
    values : dict of str to float or None
        The value of each policy.
    name : Name, optional
        The name in comparison.csv.
    of_window : bool
        Whether the metric is a share of the node time of the window. Such shares are not always
        comparable between runs (see `measures.backlog.are_comparable`).
    """

    metric: str
    unit: Unit
    values: dict[str, float | None]
    name: Name | None = None
    of_window: bool = False

    def ratio(self, name: str, base: str) -> float | None:
        """Return the value of ``name`` / that of ``base``, or None if one is missing or 0."""
        value, first = self.values[name], self.values[base]
        return value / first if value is not None and first else None


def comparison(summaries: Mapping[str, RunSummary]) -> list[MetricLine]:
    """Return a line for each metric of the catalogue. Omit metrics that are 0 for all policies."""
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
                title, name = metric.printed(size_class), (metric.name, size_class)
                window = of_window(metric.name)
                lines.append(MetricLine(title, metric.compared_unit, values, name, window))
    return lines


def main_lines(lines: Sequence[MetricLine]) -> list[MetricLine]:
    """Return the `N_PRINTED` most important lines, in the order of the catalogue."""
    ranks = {name: rank for rank, name in enumerate(FIRST_PRINTED)}

    def rank(line: MetricLine) -> int:
        return ranks.get(line.name, len(ranks)) if line.name else len(ranks)

    whole = [line for line in lines if line.name is None or line.name[1] in (None, "all")]
    main = sorted(whole, key=rank)[:N_PRINTED]
    return [line for line in whole if line in main]


def _instances(
    row: Metric, classes: list[str], partitions: list[str]
) -> Iterator[tuple[Metric, str | None]]:
    """Yield a metric once per size class or, if its name contains ``*``, once per partition."""
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
    """Return whether shares of node time of two runs can be compared (see `measures.backlog`)."""
    ours, others = _values(summary), _values(other)
    same = are_comparable(
        lambda name: ours.get((name, None)), lambda name: others.get((name, None))
    )
    return same is not False
