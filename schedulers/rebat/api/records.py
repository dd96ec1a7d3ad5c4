# SPDX-License-Identifier: Apache-2.0
"""A comparison of policies as plain data, for ``--json``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rebat.api.result import Result
from rebat.results.catalogue import columns as columns_of
from rebat.results.catalogue import metric
from rebat.results.comparison import MetricRow
from rebat.results.metric import UNITS


def comparison_record(result: Result, columns: Sequence[str], out: Path) -> dict[str, Any]:
    """Return a comparison as plain data.

    Parameters
    ----------
    columns : list of str
        Metrics as in `Result.compare`. If empty, all metrics of comparison.csv.
    out : Path
        Folder of the results.

    Returns
    -------
    dict
        ``verdict`` (sentences), ``seeds`` (number of seeds), ``policies``, ``metrics`` (see
        `metric_record`), ``failed`` (reason by policy), ``out``.
    """
    chosen = columns_of(columns, result.seeds.metrics)
    many = len(result.seeds.seeds) > 1
    return {
        "verdict": result.verdict.splitlines(),
        "seeds": len(result.seeds.seeds),
        "policies": result.policies,
        "metrics": [
            metric_record(row, many) for row in result.rows if not chosen or row.metric in chosen
        ],
        "failed": result.failed,
        "out": out,
    }


def metric_record(row: MetricRow, many: bool) -> dict[str, Any]:
    """Return a metric of a policy as plain data.

    Parameters
    ----------
    many : bool
        Whether there are several seeds.

    Returns
    -------
    dict
        ``policy``, ``metric``, ``size_class``, ``unit``, and ``n`` (number of seeds). For one seed:
        ``value`` and ``change``. For several seeds: ``mean``, ``low``, ``high``, ``change``,
        ``change_low`` and ``change_high``. A change is relative to the first policy: 0.1 is 10 %
        more. ``comparable``: see `MetricRow`.
    """
    name, size_class = row.metric
    change = None if row.ratio is None else row.ratio.minus(1.0)
    numbers: dict[str, float | None] = {"value": row.value.mean}
    if many:
        numbers = {"mean": row.value.mean, "low": row.value.low, "high": row.value.high}
    numbers["change"] = None if change is None else change.mean
    if many:
        numbers["change_low"] = None if change is None else change.low
        numbers["change_high"] = None if change is None else change.high
    return {
        "policy": row.policy,
        "metric": name,
        "size_class": size_class,
        "unit": UNITS[metric(name).unit],
        **numbers,
        "n": row.value.n,
        "comparable": row.comparable,
    }
