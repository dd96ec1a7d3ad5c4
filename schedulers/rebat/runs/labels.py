# SPDX-License-Identifier: Apache-2.0
"""What the results table says of a simulation: which one it was, and its metrics."""

from __future__ import annotations

from typing import Any

from rebat.core.units import exact
from rebat.models.failures.laws import name_of
from rebat.results.scenario import FOR_MTBF, ScenarioLabel
from rebat.runs.spec import PerfectCheckpoints, RunSpec, Scenario

COLUMNS: dict[str, type] = {
    **dict.fromkeys(("workload", "policy", *ScenarioLabel._fields), str),
    **dict.fromkeys(("mtbf_s", "downtime_s", "horizon_s"), float),
    "nodes": int,
    "cores_per_node": int,
    "seed": int,
}
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


def scenario_of(spec: RunSpec) -> ScenarioLabel:
    """What a run's numbers are about, workload and policy apart."""
    asked, failures = spec.scenario, spec.scenario.failures
    return ScenarioLabel(
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


def _law_text(spec: RunSpec) -> str | None:
    """The law's other parameters, files as the campaign names them, and when the run begins."""
    failures = spec.scenario.failures
    if failures is None:
        return None
    text = (failures.law.label() or "").replace(f"{spec.folder}/", "")
    begin = f"begin={failures.begin_s / 3600:.12g}h" if failures.begin_s else ""
    return ",".join(filter(None, (text, begin))) or None


def _seed(asked: Scenario) -> int | None:
    """The seed of whatever is drawn: silent errors have that of the failures, if they are drawn."""
    drawn = asked.silent_errors or asked.failures
    return drawn.seed if drawn else None


def _checkpoint_text(asked: Scenario) -> str | None:
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


def _silent_text(asked: Scenario) -> str | None:
    errors = asked.silent_errors
    if errors is None:
        return None
    if errors.probability is not None:
        return f"probability {errors.probability!r}"
    return f"rate {errors.rate!r}"
