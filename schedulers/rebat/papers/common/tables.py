# SPDX-License-Identifier: Apache-2.0
"""Tables of runs: means over seeds, and differences paired by seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from rebat.papers.common.runs_index import Case, Run, RunIndex, difference
from rebat.results.catalogue import metric
from rebat.results.intervals import Interval, Shown, interval, spread

Written = Callable[[Interval | None, Shown], str]
"""Formats an interval as the text of a cell."""


class Column(NamedTuple):
    """A metric as a column of a table.

    ``shown`` formats a value, ``change`` a difference. ``relative`` states whether differences are
    relative.
    """

    heading: str
    metric: str
    shown: Shown
    change: Shown = str
    relative: bool = False


def column(name: str, change: Shown = str, relative: bool = False) -> Column:
    """Return the column of a metric, with heading and unit from the catalogue of metrics."""
    row = metric(name)
    shown = "{:.1f}".format if row.unit == "count" else row.text
    return Column(row.recorded(None), name, shown, change, relative)


def means(
    index: RunIndex[Case],
    runs: Mapping[str, Run[Case]],
    columns: Sequence[Column],
    written: Written = spread,
) -> list[list[str]]:
    """Return a row per run, with its name and the mean over the seeds in each column."""
    return [
        [name, *(written(mean_of(index, run, column.metric), column.shown) for column in columns)]
        for name, run in runs.items()
    ]


def differences(
    index: RunIndex[Case],
    pairs: Iterable[tuple[str, Run[Case], Run[Case]]],
    columns: Sequence[Column],
    written: Written = spread,
) -> list[list[str]]:
    """Return a row per pair of runs, with its name and the first run minus the second.

    Each column has a mean difference. Values are paired by seed.
    """
    return [
        [name, *(written(_changed(index, ours, base, column), column.change) for column in columns)]
        for name, ours, base in pairs
    ]


def _changed(
    index: RunIndex[Case], ours: Run[Case], base: Run[Case], column: Column
) -> Interval | None:
    return change_of(index, ours, base, column.metric, share=column.relative)


def headings(columns: Iterable[Column]) -> list[str]:
    """Return the headings of columns."""
    return [column.heading for column in columns]


def mean_of(index: RunIndex[Case], run: Run[Case], metric: str) -> Interval | None:
    """Return the mean of a metric over the seeds with its interval."""
    return index.interval(*run, metric)


def change_of(
    index: RunIndex[Case], ours: Run[Case], base: Run[Case], metric: str, *, share: bool = False
) -> Interval | None:
    """Return the mean difference of two runs, paired by seed. With ``share``, it is relative."""
    return interval(difference(index, ours, base, metric, share=share))
