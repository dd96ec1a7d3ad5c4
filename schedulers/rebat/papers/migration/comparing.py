# SPDX-License-Identifier: Apache-2.0
"""Runs side by side: means over seeds, differences paired by seed, and printed values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from typing import NamedTuple

from rebat.papers.common.parts import Table, number
from rebat.papers.common.runs_index import mean
from rebat.papers.migration.evidence import Evidence, Run, named
from rebat.papers.replacement.published import ENOUGH_SEEDS
from rebat.papers.replacement.tables import change, hours, share
from rebat.papers.torus.load_tables import points, signed, written
from rebat.results.estimates import Estimate
from rebat.results.intervals import BySeed

Shown = Callable[[float], str]


class Kind(NamedTuple):
    """How a metric is written, whether differences are relative, and how they are written."""

    shown: Shown
    relative: bool
    change: Shown


SHARE = Kind(share, False, points)
SMALL_SHARE = Kind("{:.2%}".format, False, points)
MINUTES = Kind(lambda value: f"{value / 60:.1f}", True, change)
SPAN = Kind(MINUTES.shown, False, lambda value: f"{value / 60:+.1f}")
HOURS = Kind(hours, True, change)
COUNT = Kind(number, False, signed)
NODE_H = Kind(lambda value: f"{value / 3600:,.0f}", True, change)


class Metric(NamedTuple):
    """A column: heading, metric, and of which kind it is."""

    heading: str
    name: str
    kind: Kind


def cell(found: Estimate | None, shown: Shown) -> str:
    """A mean with its interval, which is left out where all seeds agree; in one line."""
    if found is not None and not found.half:
        return shown(found.mean)
    return written(found, shown).replace(" ", "\N{NO-BREAK SPACE}")


def told(found: Estimate | None, shown: Shown, unit: str = "") -> str:
    """The same in a sentence, with what the seeds say of its sign.

    >>> told(Estimate(0.02, 0.03), points, " points").replace("\N{NO-BREAK SPACE}", " ")
    '+2.00 ± 3.00 points (the seeds do not decide)'
    """
    if found is None:
        return "unknown"
    unsure = found.half is not None and found.half > 0 and not found.differs
    return cell(found, shown) + unit + (" (the seeds do not decide)" if unsure else "")


def difference(evidence: Evidence, ours: Run, base: Run, metric: Metric) -> Estimate | None:
    """Relative or not, as is usual for its kind."""
    how = evidence.ratio if metric.kind.relative else evidence.change
    return how(ours, base, metric.name)


def means(
    evidence: Evidence, about: tuple[str, str], runs: Mapping[str, Run], metrics: Sequence[Metric]
) -> Table:
    """A row per run; ``about`` is what of the paper it stands for, and a title."""
    rows = [
        [name, *(cell(evidence.mean(run, one.name), one.kind.shown) for one in metrics)]
        for name, run in runs.items()
    ]
    over = f"means over {evidence.seeds(next(iter(runs.values())))}"
    return Table(_joined(about[0], over), about[1], ["", *(one.heading for one in metrics)], rows)


def differences(
    evidence: Evidence, runs: Mapping[str, Run], pairs: Sequence[tuple[str, str]],
    metrics: Sequence[Metric],
) -> list[list[str]]:  # fmt: skip
    """A row for each pair of names, the first less the second: points of shares, % of times."""
    rows = []
    for ours, base in pairs:
        cells = (
            cell(difference(evidence, runs[ours], runs[base], one), one.kind.change)
            for one in metrics
        )
        rows.append([f"{ours} less {base}", *cells])
    return rows


def compared(
    evidence: Evidence, about: tuple[str, str], runs: Mapping[str, Run], metrics: Sequence[Metric]
) -> Table:
    """The means, and below them the differences from the first run."""
    first, *others = runs
    table = means(evidence, about, runs, metrics)
    rows = differences(evidence, runs, [(other, first) for other in others], metrics)
    return Table(table.paper, table.title, table.columns, [*table.rows, *rows])


def called(base: str, group_base: Run, others: Sequence[Run]) -> dict[str, Run]:
    """Runs by name, the first by one of its own."""
    return {base: group_base, **named(others)}


def _joined(*texts: str) -> str:
    return ", ".join(filter(None, texts))


INSIDE, NEAR, OUTSIDE = "inside", "near", "outside"
"""Where a printed value lies: in the interval of our mean, where 95 % of single seeds lie if they
are normal, or further away. The paper's are of one day."""


def place_of(values: BySeed, printed: float) -> str | None:
    """Where a printed value lies; None: too few seeds to say."""
    found = mean(values)
    if found is None or found.half is None or len(values) < ENOUGH_SEEDS:
        return None
    distance = abs(printed - found.mean)
    if distance <= found.half:
        return INSIDE
    return NEAR if distance <= found.half * sqrt(len(values) + 1) else OUTSIDE


def beside(values: BySeed, printed: float, shown: Shown) -> str:
    """A printed value, and where it lies if that is not outside."""
    place = place_of(values, printed)
    return shown(printed) + (f" ({place})" if place in (INSIDE, NEAR) else "")
