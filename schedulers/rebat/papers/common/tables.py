# SPDX-License-Identifier: Apache-2.0
"""Runs side by side as tables: means over seeds, and differences paired by seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from rebat.papers.common.runs_index import Case, Run, RunIndex, difference
from rebat.results.intervals import STUDENT, Interval, Shown, interval, spread

Written = Callable[[Interval | None, Shown], str]
"""How an interval becomes the text of a cell."""


class Column(NamedTuple):
    """A metric as a column: its heading, how a value is written, whether differences are
    relative, and how these are written."""

    heading: str
    metric: str
    shown: Shown
    change: Shown = str
    relative: bool = False


def means(
    index: RunIndex[Case], runs: Mapping[str, Run[Case]], columns: Sequence[Column],
    written: Written = spread,
) -> list[list[str]]:  # fmt: skip
    """A row for each run by its name: means over the seeds."""
    return [
        [name, *(written(index.interval(*run, column.metric, method=STUDENT), column.shown)
                 for column in columns)]
        for name, run in runs.items()
    ]  # fmt: skip


def differences(
    index: RunIndex[Case], pairs: Iterable[tuple[str, Run[Case], Run[Case]]],
    columns: Sequence[Column], written: Written = spread,
) -> list[list[str]]:  # fmt: skip
    """A row for each pair by its name: the first run less the second, paired by seed."""
    return [
        [name, *(written(change(index, ours, base, column), column.change) for column in columns)]
        for name, ours, base in pairs
    ]


def change(
    index: RunIndex[Case], ours: Run[Case], base: Run[Case], column: Column
) -> Interval | None:
    """The mean difference of two runs, relative or not as is usual for the column."""
    return interval(difference(index, ours, base, column.metric, share=column.relative), STUDENT)


def headings(columns: Iterable[Column]) -> list[str]:
    """Of a table whose rows begin with a name."""
    return [column.heading for column in columns]
