# SPDX-License-Identifier: Apache-2.0
"""The catalogue of all metrics of a run, which tables, figures, reports and documentation use.

To add a metric, add a field to a struct of a summary, declare the metric in the type of the field,
and compute it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from rebat.core.errors import InputError, unknown_name
from rebat.results.measures.platform import AT_HAND
from rebat.results.measures.summary import RunSummary
from rebat.results.metric import Metric, Name, metrics_of, name_text

_ORDER = (
    "rejected", "given_up", "useful_utilisation", "platform", "backlog", "platform_idle_share",
    "fragmentation", "failures_hit", "free_node_at_hit", "steals", "victims", "resizes_by",
    "resizes_requeued", "resizes", "node_states", "partition_states", "migrations", "drains",
    "energy", "turnaround", "service_wait_p50_s", "service", "fairness", "recoveries", "training",
    "spares", "flow",
)  # fmt: skip
"""Beginnings of the names of metrics, in the order of a comparison.

The longest beginning determines the place. Metrics with the same beginning keep the order of the
fields.
"""


def _place(metric: Metric) -> int:
    beginnings = [text for text in _ORDER if metric.name.startswith(text)]
    return _ORDER.index(max(beginnings, key=len)) if beginnings else len(_ORDER)


_ALL: dict[str, Metric] = {}
for _metric in (AT_HAND, *metrics_of(RunSummary)):
    _ALL.setdefault(_metric.name, _metric)  # classes have the same metrics of service as all jobs

CATALOGUE = tuple(sorted((metric for metric in _ALL.values() if metric.listed), key=_place))
"""Metrics in a comparison of single runs."""

FURTHER = tuple(metric for metric in _ALL.values() if not metric.listed)
"""Further metrics in a run's files. Comparisons show only those that ``--columns`` selects."""

RECORDED = tuple(sorted(name for name, metric in _ALL.items() if not metric.derived))
"""Names of all metrics in a run's files."""

NODE_TIME = tuple(m for m in CATALOGUE if m.whole == "node time" and m.unit == "node time")
"""One metric for each use of the window's node time. Their shares add up to 1."""

USUAL: tuple[Name, ...] = (
    ("useful_utilisation", None),
    ("platform_idle_share", None),
    ("failures_hit", None),
    ("steals", None),
    ("flow_max_s", "all"),
    ("flow_mean_s", "all"),
    ("flow_weighted_mean_s", "all"),
)
"""Default metrics of a comparison of several seeds."""

VERDICT: tuple[Name, ...] = (USUAL[0], ("flow_mean_s", "all"), ("flow_max_s", "all"))
"""Metrics in a verdict. They are also the default metrics of a table with one row per policy."""

N_PRINTED = 10
"""Number of rows of a printed comparison, unless all metrics are requested."""

FIRST_PRINTED: tuple[Name, ...] = (
    ("rejected", None),
    ("given_up", None),
    ("drains_refused", None),
    *USUAL,
    ("platform_waste_failure", None),
    ("service_bounded_slowdown_mean", None),
    ("platform_idle", None),
)
"""Metrics that a printed comparison shows first, sorted by importance."""

RATIOS: tuple[Name, ...] = (USUAL[0], *USUAL[-3:])
"""Metrics whose ratios are shown in figures."""


@lru_cache
def metric(name: str) -> Metric:
    """Return the metric of this name. In the catalogue, ``*`` matches any partition or purpose.

    >>> metric("platform_idle").heading, metric("turnaround_gpu_max_s").title
    ('idle, share of node time', 'largest turnaround, partition gpu')
    """
    for row in (*CATALOGUE, *FURTHER):
        if (named := row.named(name)) is not None:
            return named
    raise unknown_name("metric", name, (row.name for row in (*CATALOGUE, *FURTHER)))


def columns(texts: Iterable[str], recorded: Sequence[Name]) -> tuple[Name, ...]:
    """Return the metrics that ``texts`` (the option ``--columns``) selects from ``recorded``.

    A text is a name as in comparison.csv, for example ``flow_max_s:all``.
    """
    names = []
    for text in texts:
        name, _, size_class = text.strip().partition(":")
        of = (name, size_class or None)
        if of not in recorded and (name, "all") in recorded:
            of = (name, "all")
        if of not in recorded:
            error = unknown_name("metric", text.strip(), map(name_text, recorded))
            raise InputError(error.problem, "--columns", "a metric of comparison.csv")
        names.append(of)
    return tuple(names)


def check_metric(metric: Name, option: str) -> None:
    """Check the name of a metric, which is the value of an option."""
    if not any(fnmatchcase(metric[0], name) for name in RECORDED):
        raise InputError(f"unknown metric {metric[0]!r}", option, ", ".join(RECORDED))
