# SPDX-License-Identifier: Apache-2.0
"""The columns of the results table that identify a simulation."""

from __future__ import annotations

from typing import Any

from rebat.core.options import MAX_ATTEMPTS
from rebat.core.units import exact
from rebat.models.failures.laws import name_of
from rebat.results.scenario import FOR_MTBF, ScenarioLabel
from rebat.runs.spec import PerfectCheckpoints, RunSpec, Scenario, TierCheckpoints

COLUMNS: dict[str, type] = {
    **dict.fromkeys(("workload", "policy", *ScenarioLabel._fields), str),
    **dict.fromkeys(("mtbf_s", "downtime_s", "horizon_s"), float),
    "nodes": int,
    "cores_per_node": int,
    "max_attempts": int,
    "seed": int,
}
DETAILS: dict[str, type] = {"size_class": str}


def labels(spec: RunSpec) -> dict[str, Any]:
    """Return the values of the columns that identify a run."""
    named = {"workload": spec.workload, "policy": spec.policy}
    return named | scenario_of(spec)._asdict() | {"seed": _seed(spec.scenario)}


def about(spec: RunSpec) -> str:
    """Return a readable description of the run."""
    seed = _seed(spec.scenario)
    text = "" if seed is None else f", seed {seed}"
    return f"{spec.workload}, {spec.policy}, {scenario_of(spec).label}{text}"


def scenario_of(spec: RunSpec) -> ScenarioLabel:
    """Return the scenario of a run. It contains neither workload nor policy."""
    scenario, failures = spec.scenario, spec.scenario.failures
    return ScenarioLabel(
        failure_model=name_of(failures.law) if failures else None,
        mtbf_s=failures.mtbf_s if failures else None,
        downtime_s=failures.downtime_s if failures else None,
        law=_law_text(spec),
        horizon_s=failures.horizon_s if failures else None,
        checkpoint=_checkpoint_text(scenario),
        nodes=scenario.nodes,
        cores_per_node=scenario.cores_per_node,
        window=scenario.window,
        select=scenario.select,
        silent_errors=_silent_text(scenario),
        operations=scenario.operations.file if scenario.operations else None,
        walltime_kills=scenario.walltime_kills,
        accounting=scenario.accounting,
        max_attempts=most if (most := scenario.max_attempts) != MAX_ATTEMPTS else None,
    )


def _law_text(spec: RunSpec) -> str | None:
    """Return the start time, and the parameters of the law that have no separate column.

    Paths are relative to the folder of the campaign.
    """
    failures = spec.scenario.failures
    if failures is None:
        return None
    text = (failures.law.label() or "").replace(f"{spec.folder}/", "")
    begin = f"begin={failures.begin_s / 3600:.12g}h" if failures.begin_s else ""
    return ",".join(filter(None, (text, begin))) or None


def _seed(scenario: Scenario) -> int | None:
    """Return the common seed of failures and silent errors, or None if the run has neither."""
    drawn = scenario.silent_errors or scenario.failures
    return drawn.seed if drawn else None


def _checkpoint_text(scenario: Scenario) -> str | None:
    """Return the checkpoints as text. Add their MTBF if it differs from that of the failures."""
    model, failures = scenario.checkpoint, scenario.failures
    if model is None:
        return None
    if isinstance(model, PerfectCheckpoints):
        return "perfect"
    if isinstance(model, TierCheckpoints):
        return f"tiers {model.tiers}{FOR_MTBF}{exact(model.mtbf_s)}"
    costs = f"cost {exact(model.cost_s)}, recovery {exact(model.recovery_s)}"
    text = f"Young/Daly ({costs}, {model.rounding}"
    follows = failures is not None and failures.mtbf_s == model.mtbf_s
    return text + (")" if follows else f"{FOR_MTBF}{exact(model.mtbf_s)})")


def _silent_text(scenario: Scenario) -> str | None:
    errors = scenario.silent_errors
    if errors is None:
        return None
    if errors.probability is not None:
        return f"probability {errors.probability!r}"
    return f"rate {errors.rate!r}"
