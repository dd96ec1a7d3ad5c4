# SPDX-License-Identifier: Apache-2.0
"""Comparison of policies: metrics of single runs, metrics over seeds, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Generic, TypeVar

import msgspec

from rebat.core.files import write_json, write_text
from rebat.core.formatting import name_field
from rebat.core.numbers import change, spread
from rebat.results.catalogue import CATALOGUE, FIRST_PRINTED, N_PRINTED, VERDICT, metric
from rebat.results.intervals import BySeed, Interval, interval, ratio_of_means
from rebat.results.measures.platform import are_comparable, of_window
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
        comparable between runs (see `are_comparable`).
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
        needed = [of.get((name, None)) for of in runs.values() for name in row.only_with]
        if needed and not any(needed):
            continue
        for instance, size_class in _instances(row, classes, partitions):
            values = {name: instance.compared(of, size_class) for name, of in runs.items()}
            if any(values.values()):
                title, name = instance.printed(size_class), (instance.name, size_class)
                window = of_window(instance.name)
                lines.append(MetricLine(title, instance.compared_unit, values, name, window))
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


def comparable_with(summary: RunSummary, other: RunSummary) -> bool:
    """Return whether shares of node time of two runs can be compared (see `comparable`)."""
    ours, others = _values(summary), _values(other)
    same = are_comparable(
        lambda name: ours.get((name, None)), lambda name: others.get((name, None))
    )
    return same is not False


Case = TypeVar("Case", bound=Hashable)
"""What differs between compared runs, usually the policy."""


class Runs(Generic[Case]):
    """Compared runs: values by policy, metric and seed. Ratios are relative to the first policy.

    Parameters
    ----------
    policies : iterable
        The policies, in display order. Other policies follow in the order in which they are added.
    """

    def __init__(self, policies: Iterable[Case] = ()) -> None:
        self._values: dict[Case, dict[Name, dict[Any, float]]] = {name: {} for name in policies}

    def add(self, seed: Any, policy: Case, values: Iterable[tuple[str, str | None, float]]) -> None:
        """Add the metrics of a run: names, size classes and values. Keep values already present."""
        cells = self._values.setdefault(policy, {})
        for name, size_class, value in values:
            cells.setdefault((name, size_class), {}).setdefault(seed, value)

    def copy(self) -> Runs[Case]:
        """Return a copy that later additions do not change."""
        other: Runs[Case] = Runs()
        other._values = {
            policy: {name: dict(of) for name, of in cells.items()}
            for policy, cells in self._values.items()
        }
        return other

    def take(self, policy: Case, runs: Runs[Any], of: Any) -> None:
        """Add the values of a policy of other runs, under another name."""
        self._values[policy] = runs._values[of]

    def cell(self, policy: Case, metric: Name) -> dict[Any, float]:
        """Return a value per seed, in the order in which they were added."""
        return self._values.get(policy, {}).get(metric, {})

    def of(self, policy: Case, metric: Name) -> BySeed:
        """Return a value per seed, in ascending order of seeds."""
        return dict(sorted(self.cell(policy, metric).items()))

    def mean(self, policy: Case) -> Callable[[str], float | None]:
        """Return a function that maps a metric of the entire run to its mean for the policy."""

        def of(name: str) -> float | None:
            values = self.cell(policy, (name, None)).values()
            return fmean(values) if values else None

        return of

    def __iter__(self) -> Iterator[tuple[Any, Case, str, str | None, float]]:
        """Yield seed, policy, metric, size class and value of each entry."""
        for policy in self.policies:
            for name, size_class in self.metrics:
                for seed, value in self.of(policy, (name, size_class)).items():
                    yield seed, policy, name, size_class, value

    @property
    def policies(self) -> list[Case]:
        """The policies, in display order."""
        return list(self._values)

    @property
    def seeds(self) -> list[Any]:
        """All seeds with values, in order."""
        return sorted(
            {seed for cells in self._values.values() for at in cells.values() for seed in at}
        )

    @property
    def metrics(self) -> list[Name]:
        """All metrics of any policy, in the order in which they were added."""
        return list(dict.fromkeys(metric for cells in self._values.values() for metric in cells))


class MetricRow(msgspec.Struct, frozen=True):
    """A metric of a policy, and its ratio to the first policy (None for the first policy).

    ``comparable`` states whether both policies had comparable work at hand in the window (see
    `comparable`). It is None if the metric is not a share of the window's node time.
    """

    metric: Name
    policy: str
    value: Interval
    ratio: Interval | None
    comparable: bool | None = None


def rows(seeds: Runs[str], metrics: Sequence[Name] | None = None) -> Iterator[MetricRow]:
    """Yield means and paired ratios with their intervals."""
    base, *others = seeds.policies
    same = {policy: are_comparable(seeds.mean(policy), seeds.mean(base)) for policy in others}
    for name in metrics or seeds.metrics:
        reference = seeds.of(base, name)
        for policy in seeds.policies:
            ours = seeds.of(policy, name)
            value = interval(list(ours.values()))
            if value is not None:
                ratio = None if policy == base else ratio_of_means(ours, reference)
                comparable = same.get(policy) if of_window(name[0]) else None
                yield MetricRow(name, policy, value, ratio, comparable)


def by_name(rows: Iterable[MetricRow]) -> dict[tuple[Name, str], MetricRow]:
    """Return the rows by metric and policy."""
    return {(row.metric, row.policy): row for row in rows}


def write_seeds(folder: Path, seeds: Runs[str], provenance: dict[str, Any]) -> None:
    """Write seeds.csv and run.json."""
    write_text(folder / "seeds.csv", seeds_csv(seeds))
    write_json(folder / "run.json", {**provenance, "seeds": seeds.seeds})


def seeds_csv(seeds: Runs[str]) -> str:
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
    lines += [",".join(map(field, compared(row))) for row in rows]
    return "\n".join(lines) + "\n"


def _ends(estimate: Interval) -> tuple[float | None, ...]:
    return estimate.mean, estimate.low, estimate.high


def field(value: Any) -> str:
    """Return a value of `compared` as a field of comparison.csv."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (
        f"{value:.6g}"
        if isinstance(value, float)
        else _quoted(None if value is None else str(value))
    )


def _quoted(text: str | None) -> str:
    return name_field(text or "")


class Winner(msgspec.Struct, frozen=True):
    """The best policy by the mean of a metric, and its lead.

    Attributes
    ----------
    policy, second : str
        The policies with the best and the second best mean.
    lead : Interval
        The improvement of the best over the second best policy, as a share of the latter, paired by
        seed. Positive if the metric is better.
    decided : bool
        Whether the interval of the lead excludes 0, and the metric is comparable.
    """

    policy: str
    second: str
    lead: Interval
    decided: bool


def winner(runs: Runs[str], name: Name) -> Winner | None:
    """Return the winner by a metric, or None if fewer than two policies have values.

    >>> runs = Runs(["baseline", "sfsj"])
    >>> for seed in range(5):
    ...     runs.add(seed, "baseline", [("flow_mean_s", "all", 100.0 + seed)])
    ...     runs.add(seed, "sfsj", [("flow_mean_s", "all", 90.0 + seed)])
    >>> best = winner(runs, ("flow_mean_s", "all"))
    >>> best.policy, round(best.lead.mean, 3), best.decided
    ('sfsj', 0.098, True)
    """
    low = metric(name[0]).better == "low"
    values = {policy: of for policy in runs.policies if (of := runs.of(policy, name))}
    ranked = sorted(values, key=lambda policy: fmean(values[policy].values()), reverse=not low)
    ratio = ratio_of_means(values[ranked[0]], values[ranked[1]]) if ranked[1:] else None
    if ratio is None:
        return None
    lead = ratio.minus(1.0).negative if low else ratio.minus(1.0)
    best, second = ranked[:2]
    same = are_comparable(runs.mean(best), runs.mean(second)) if of_window(name[0]) else None
    return Winner(best, second, lead, lead.excludes(0.0) and same is not False)


MOST_SENTENCES = 3
"""Each policy has a sentence if at most this many policies are compared with the first."""

FEWEST_SEEDS = 5
"""Minimum number of seeds for intervals in the verdict."""

_Rows = Mapping[tuple[Name, str], MetricRow]


def verdict(rows: Sequence[MetricRow], seeds: Runs[str]) -> str:
    """Return the verdict, one sentence per line.

    >>> seeds = Runs(["baseline", "sfsj"])
    >>> seeds.add(0, "baseline", [("flow_mean_s", "all", 100.0)])
    >>> seeds.add(0, "sfsj", [("flow_mean_s", "all", 97.0)])
    >>> from rebat.results.comparison import rows
    >>> verdict(list(rows(seeds)), seeds)
    'sfsj against baseline: mean flow −3.0 % (1 run, no interval)'
    """
    by = by_name(rows)
    base, *others = seeds.policies
    if not others:
        return _alone(by, base, seeds)
    if len(others) > MOST_SENTENCES:
        return _best_of_many(by, seeds)
    return "\n".join(_against(by, policy, base, seeds) for policy in others)


def _alone(by: _Rows, policy: str, seeds: Runs[str]) -> str:
    parts = [
        f"{metric(name[0]).title} {spread(shown_value(row.value), metric(name[0]).form)}"
        for name in VERDICT
        if (row := by.get((name, policy))) is not None
    ]
    return f"{policy}: {', '.join(parts)} ({runs_text(len(seeds.seeds))})"


def _against(by: _Rows, policy: str, base: str, seeds: Runs[str]) -> str:
    rows = [row for name in VERDICT if (row := by.get((name, policy))) and row.ratio]
    if not rows:
        return f"{policy} against {base}: nothing to compare ({runs_text(len(seeds.seeds))})"
    return f"{policy} against {base}: {', '.join(map(_part, rows))} ({runs_text(len(seeds.seeds))})"


def _best_of_many(by: _Rows, seeds: Runs[str]) -> str:
    base, name = seeds.policies[0], VERDICT[0]
    means = {p: by[name, p].value.mean for p in seeds.policies if (name, p) in by}
    best = max(means, key=lambda policy: means[policy])
    title = f"the highest {metric(name[0]).title} of {len(seeds.policies)} policies"
    if best == base:
        value, runs = metric(name[0]).form(means[best]), runs_text(len(seeds.seeds))
        return f"{best} has {title}: {value} ({runs})"
    return f"{best} has {title}.\n{_against(by, best, base, seeds)}"


def _part(row: MetricRow) -> str:
    if row.ratio is None:
        return ""
    title = metric(row.metric[0]).title
    if row.comparable is False:
        text = spread(shown_value(row.ratio.minus(1.0)), change)
        return f"{title} {text} (not comparable: different work)"
    return f"{title} {change_text(row.ratio)}"


def change_text(ratio: Interval) -> str:
    """Return a ratio as a change in percent, with its interval.

    >>> change_text(Interval(0.968, 0.95, 1.01, 9))
    '−3.2 % [−5.0, +1.0] (not significant)'
    """
    effect = shown_value(ratio.minus(1.0))
    if effect.mean == effect.low == effect.high == 0.0:
        return "unchanged"
    unsure = effect.low is not None and not effect.excludes(0.0)
    return spread(effect, change) + (" (not significant)" if unsure else "")


def shown_value(estimate: Interval) -> Interval:
    """Return an estimate without its interval if there are too few seeds for it."""
    return estimate if estimate.n >= FEWEST_SEEDS else Interval(estimate.mean)


def runs_text(n: int) -> str:
    """Return the number of seeds of a verdict as text.

    >>> runs_text(1), runs_text(3), runs_text(30)
    ('1 run, no interval', '3 seeds, too few for an interval', '30 seeds')
    """
    if n == 1:
        return "1 run, no interval"
    return f"{n} seeds" if n >= FEWEST_SEEDS else f"{n} seeds, too few for an interval"
