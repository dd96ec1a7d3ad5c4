# SPDX-License-Identifier: Apache-2.0
"""Published values in the tables of the node-stealing paper, compared with rebat's intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rebat.report.claims import Judgement, compared
from rebat.results.intervals import BySeed, Interval, interval

from . import published
from .runs import InSemantics

DAY_S = 86400.0

_Numbers = Mapping[str, tuple[Interval | None, float]]


def judgements(on: InSemantics, about: str) -> Iterator[Judgement]:
    """Compare rebat's intervals for a setting with all values in the tables of the paper."""
    groups: list[tuple[str, str, _Numbers]] = [
        ("useful utilisation of each policy", "Tables 4, 7, 8", _utilisation(on)),
        ("time with an idle node under each policy, as published", "Tables 5a, 8", _idle(on)),
        ("steals of each variant", "Tables 5b, 9", _steals(on)),
        ("useful utilisation without failures", "Table 3", _failure_free(on)),
        ("largest flows of the largest and the smallest jobs, in days", "section 9", _flows(on)),
        ("outliers: flows of the smallest jobs / Baseline's", "Table 10", _outliers(on)),
    ]
    for text, paper, numbers in groups:
        if any(ours for ours, _ in numbers.values()):
            yield compared(about, text, paper, numbers)


def _each(
    on: InSemantics,
    metric: str,
    table: Mapping[str, float],
    convert: Callable[[float], float] = float,
) -> _Numbers:
    return {
        policy: (interval(map(convert, on.values(policy, metric).values())), value)
        for policy, value in table.items()
    }


def _utilisation(on: InSemantics) -> _Numbers:
    table = published.printed(published.UTILISATION, on.setting)
    return _each(on, "useful_utilisation", table)


def _idle(on: InSemantics) -> _Numbers:
    table = published.printed(published.IDLE_SHARE, on.setting)
    return _each(on, "platform_idle_share", table, published.idle_as_program)


def _steals(on: InSemantics) -> _Numbers:
    table = published.printed(published.STEALS, on.setting)
    return _each(on, "steals", {policy: steals for policy, (steals, _) in table.items()})


def _failure_free(on: InSemantics) -> _Numbers:
    value = published.FAILURE_FREE_UTILISATION.get(on.setting.workload)
    if value is None or not published.printed_for(on.setting):
        return {}
    calm = (on.setting._replace(scenario=of) for of in on.setting.scenario.failure_free)
    values = (on.runs.values(free, "baseline", "useful_utilisation") for free in calm)
    return {"Baseline": (interval(next(filter(None, values), {})), value)}


def _flows(on: InSemantics) -> _Numbers:
    table = published.printed(published.LARGEST_FLOWS_DAYS, on.setting)
    return {
        f"{policy} {of}": (_days(on.values(policy, "flow_max_s", of)), days)
        for (policy, of), days in table.items()
    }


def _days(values: BySeed) -> Interval | None:
    return interval(value / DAY_S for value in values.values())


def _outliers(on: InSemantics) -> _Numbers:
    """Return the published outliers with rebat's median ratio and its range."""
    table = published.printed(published.OUTLIERS, on.setting)
    return {
        f"{policy} {metric.removesuffix('_s').replace('_', ' ')} {value:g}": (
            interval(on.ratios(metric, "smallest", policy), of_median=True),
            value,
        )
        for (policy, metric), values in table.items()
        for value in values
    }
