# SPDX-License-Identifier: Apache-2.0
"""What the results table says of a simulation: which one it was, and its metrics."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec

from rebat.campaign.spec import PerfectCheckpoints, RunSpec
from rebat.campaign.spec import Scenario as Asked
from rebat.metrics.summary import RunSummary
from rebat.models.failures.laws import name_of
from rebat.results.scenario import FOR_MTBF, Scenario, exact

COLUMNS: dict[str, type] = {
    **dict.fromkeys(("workload", "policy", *Scenario._fields), str),
    **dict.fromkeys(("mtbf_s", "downtime_s", "horizon_s"), float),
    "nodes": int,
    "cores_per_node": int,
    "seed": int,
}
_BY_CLASS = {"flows": "flow", "service_classes": "service"}
"""Metrics by size class -> how their names begin."""
DETAILS: dict[str, type] = {"size_class": str}


def labels(spec: RunSpec) -> dict[str, Any]:
    """The columns that say which run a row of the table is about."""
    named = {"workload": spec.workload, "policy": spec.policy}
    return named | scenario_of(spec)._asdict() | {"seed": _seed(spec.scenario)}


def about(spec: RunSpec) -> str:
    """The same for people."""
    seed = _seed(spec.scenario)
    text = "" if seed is None else f", seed {seed}"
    return f"{spec.workload}, {spec.policy}, {scenario_of(spec).label}{text}"


def scenario_of(spec: RunSpec) -> Scenario:
    """What a run's numbers are about, workload and policy apart."""
    asked, failures = spec.scenario, spec.scenario.failures
    return Scenario(
        failure_model=name_of(failures.law) if failures else None,
        mtbf_s=failures.mtbf_s if failures else None,
        downtime_s=failures.downtime_s if failures else None,
        law=_law_text(spec),
        horizon_s=failures.horizon_s if failures else None,
        checkpoint=_checkpoint_text(asked),
        nodes=asked.nodes,
        cores_per_node=asked.cores_per_node,
        window=asked.window,
        select=asked.select,
        silent_errors=_silent_text(asked),
        operations=asked.operations.file if asked.operations else None,
        walltime_kills=asked.walltime_kills,
        accounting=asked.accounting,
    )


def flat_metrics(metrics: dict[str, Any]) -> Iterator[tuple[str, str | None, float]]:
    """(metric, size class, value) of a summary; metrics of the whole run have no size class.

    >>> list(flat_metrics({"jobs": 3, "flows": {"all": {"max_s": 2.0}}, "window_s": [0, 9]}))
    [('jobs', None, 3.0), ('flow_max_s', 'all', 2.0), ('window_first_s', None, 0.0), \
('window_last_s', None, 9.0)]
    """
    for name, value in metrics.items():
        if name in _BY_CLASS:
            for size_class, of in value.items():
                prefix = _BY_CLASS[name]
                yield from ((f"{prefix}_{n}", size_class, float(v)) for n, v in (of or {}).items())
        elif name == "window_s":
            yield "window_first_s", None, float(value[0])
            yield "window_last_s", None, float(value[1])
        elif isinstance(value, dict):
            for inner, size_class, number in flat_metrics(value):
                yield f"{name}_{inner}", size_class, number
        elif isinstance(value, int | float):
            yield name, None, float(value)


def metric_names(kind: Any = RunSummary, prefix: str = "") -> Iterator[str]:
    """The names that `flat_metrics` yields; those that depend on the run end with ``*``."""
    for field in msgspec.structs.fields(kind):
        bare = _bare(field.type)
        if field.name in _BY_CLASS:
            yield from metric_names(_bare(get_args(bare)[1]), f"{_BY_CLASS[field.name]}_")
        elif field.name == "window_s":
            yield from ("window_first_s", "window_last_s")
        elif get_origin(bare) is dict:
            yield f"{prefix}{field.name}_*"
        elif bare in (int, float):
            yield f"{prefix}{field.name}"
        elif isinstance(bare, type) and issubclass(bare, msgspec.Struct):
            yield from metric_names(bare, f"{prefix}{field.name}_")


def _bare(kind: Any) -> Any:
    """A type without None."""
    if get_origin(kind) not in (Union, UnionType):
        return kind
    (bare,) = (one for one in get_args(kind) if one is not type(None))
    return bare


def _law_text(spec: RunSpec) -> str | None:
    """The law's other parameters, files as the campaign names them, and when the run begins."""
    failures = spec.scenario.failures
    if failures is None:
        return None
    text = (failures.law.label() or "").replace(f"{spec.folder}/", "")
    begin = f"begin={failures.begin_s / 3600:.12g}h" if failures.begin_s else ""
    return ",".join(filter(None, (text, begin))) or None


def _seed(asked: Asked) -> int | None:
    """The seed of whatever is drawn: silent errors have that of the failures, if they are drawn."""
    drawn = asked.silent_errors or asked.failures
    return drawn.seed if drawn else None


def _checkpoint_text(asked: Asked) -> str | None:
    """How jobs checkpoint; the MTBF of the period only where it is not the failures'."""
    model, failures = asked.checkpoint, asked.failures
    if model is None:
        return None
    if isinstance(model, PerfectCheckpoints):
        return "perfect"
    costs = f"cost {exact(model.cost_s)}, recovery {exact(model.recovery_s)}"
    text = f"Young/Daly ({costs}, {model.rounding}"
    follows = failures is not None and failures.mtbf_s == model.mtbf_s
    return text + (")" if follows else f"{FOR_MTBF}{exact(model.mtbf_s)})")


def _silent_text(asked: Asked) -> str | None:
    errors = asked.silent_errors
    if errors is None:
        return None
    if errors.probability is not None:
        return f"probability {errors.probability!r}"
    return f"rate {errors.rate!r}"
