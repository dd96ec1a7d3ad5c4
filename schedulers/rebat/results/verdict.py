# SPDX-License-Identifier: Apache-2.0
"""The verdict of a comparison, with one sentence per policy. Every output begins with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rebat.results.catalogue import VERDICT, metric
from rebat.results.intervals import Interval, spread
from rebat.results.metric import Name
from rebat.results.seeds import MetricRow, Seeds, by_name

MOST_SENTENCES = 3
"""Each policy has a sentence if at most this many policies are compared with the first."""

FEWEST_SEEDS = 5
"""Minimum number of seeds for intervals in the verdict."""

_Rows = Mapping[tuple[Name, str], MetricRow]


def verdict(rows: Sequence[MetricRow], seeds: Seeds) -> str:
    """Return the verdict, one sentence per line.

    >>> seeds = Seeds(["baseline", "sfsj"])
    >>> seeds.add(0, "baseline", [("flow_mean_s", "all", 100.0)])
    >>> seeds.add(0, "sfsj", [("flow_mean_s", "all", 97.0)])
    >>> from rebat.results.seeds import rows
    >>> verdict(list(rows(seeds)), seeds)
    'sfsj against baseline: mean flow -3.0 % (1 run, no interval)'
    """
    by = by_name(rows)
    base, *others = seeds.policies
    if not others:
        return _alone(by, base, seeds)
    if len(others) > MOST_SENTENCES:
        return _best_of_many(by, seeds)
    return "\n".join(_against(by, policy, base, seeds) for policy in others)


def _alone(by: _Rows, policy: str, seeds: Seeds) -> str:
    parts = [
        f"{metric(name[0]).title} {spread(_shown(row.value), metric(name[0]).text)}"
        for name in VERDICT
        if (row := by.get((name, policy))) is not None
    ]
    return f"{policy}: {', '.join(parts)} ({runs_text(len(seeds.seeds))})"


def _against(by: _Rows, policy: str, base: str, seeds: Seeds) -> str:
    rows = [row for name in VERDICT if (row := by.get((name, policy))) and row.ratio]
    if not rows:
        return f"{policy} against {base}: nothing to compare ({runs_text(len(seeds.seeds))})"
    return f"{policy} against {base}: {', '.join(map(_part, rows))} ({runs_text(len(seeds.seeds))})"


def _best_of_many(by: _Rows, seeds: Seeds) -> str:
    base, name = seeds.policies[0], VERDICT[0]
    means = {p: by[name, p].value.mean for p in seeds.policies if (name, p) in by}
    best = max(means, key=lambda policy: means[policy])
    title = f"the highest {metric(name[0]).title} of {len(seeds.policies)} policies"
    if best == base:
        value, runs = metric(name[0]).text(means[best]), runs_text(len(seeds.seeds))
        return f"{best} has {title}: {value} ({runs})"
    return f"{best} has {title}.\n{_against(by, best, base, seeds)}"


def _part(row: MetricRow) -> str:
    if row.ratio is None:
        return ""
    title = metric(row.metric[0]).title
    if row.comparable is False:
        change = spread(_shown(row.ratio.minus(1.0)), _percent)
        return f"{title} {change} (not comparable: different work)"
    return f"{title} {change_text(row.ratio)}"


def change_text(ratio: Interval) -> str:
    """Return a ratio as a change in percent, with its interval.

    >>> change_text(Interval(0.968, 0.95, 1.01, 9))
    '-3.2 % [-5.0, +1.0] (not significant)'
    """
    change = _shown(ratio.minus(1.0))
    if change.mean == change.low == change.high == 0.0:
        return "unchanged"
    unsure = change.low is not None and not change.excludes(0.0)
    return spread(change, _percent) + (" (not significant)" if unsure else "")


def _percent(value: float) -> str:
    return f"{value * 100:+z.1f} %"


def _shown(estimate: Interval) -> Interval:
    return estimate if estimate.n >= FEWEST_SEEDS else Interval(estimate.mean)


def runs_text(n: int) -> str:
    """Return the number of seeds of a verdict as text.

    >>> runs_text(1), runs_text(3), runs_text(30)
    ('1 run, no interval', '3 seeds, too few for an interval', '30 seeds')
    """
    if n == 1:
        return "1 run, no interval"
    return f"{n} seeds" if n >= FEWEST_SEEDS else f"{n} seeds, too few for an interval"
