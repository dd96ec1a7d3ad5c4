# SPDX-License-Identifier: Apache-2.0
"""A comparison of two job tables as plain data, with times in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rebat.core.units import to_s
from rebat.results.compare.schedules import Comparison, Divergence
from rebat.results.comparison import MetricLine
from rebat.results.files.batsim_files import JobRecord
from rebat.results.metric import UNITS


def comparison_facts(result: Comparison, allocations: bool) -> dict[str, Any]:
    """Return a comparison as plain data. If ``allocations`` is set, include the nodes of jobs."""
    return {
        "same": result.same(allocations),
        "tolerance_s": result.tolerance_us / 1e6,
        "jobs": len(result.pairs),
        "only_a": len(result.only_a),
        "only_b": len(result.only_b),
        "differing": len(result.differing),
        "different_states": result.other_states,
        "different_nodes": result.other_nodes,
        "quantities": [
            {
                "quantity": name,
                "equal": spread.equal,
                "differing": spread.differing,
                "max_s": spread.max_s,
                "mean_s": spread.mean_s,
            }
            for name, spread in result.spreads.items()
        ],
        "first_difference": None if result.first is None else _first(result.first),
        "metrics": [_metric(line) for line in result.metrics],
    }


def _first(first: Divergence) -> dict[str, Any]:
    return {
        "at_s": to_s(first.at_us),
        "job": first.key,
        "a": None if first.a is None else _times(first.a),
        "b": None if first.b is None else _times(first.b),
        "running_a": _running(first.running_a),
        "running_b": _running(first.running_b),
    }


def _times(record: JobRecord) -> dict[str, float | None]:
    return {
        "start_s": None if record.start_us is None else to_s(record.start_us),
        "end_s": None if record.end_us is None else to_s(record.end_us),
    }


def _running(records: Sequence[JobRecord]) -> dict[str, Any]:
    nodes = sum(len(record.nodes) for record in records)
    return {"jobs": [record.job_id for record in records], "nodes": nodes}


def _metric(line: MetricLine) -> dict[str, Any]:
    return {
        "metric": line.metric,
        "unit": UNITS[line.unit],
        "a": line.values["A"],
        "b": line.values["B"],
        "ratio": line.ratio("B", "A"),
    }
