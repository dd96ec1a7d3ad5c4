# SPDX-License-Identifier: Apache-2.0
"""What the report of boxes on a torus needs beside the results: a machine at an instant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from rebat.core.units import format_duration, to_s
from rebat.figures.torus import torus_instant
from rebat.models.units import Units
from rebat.papers.common.machine import owners
from rebat.papers.common.parts import Picture
from rebat.policies.presets import Preset
from rebat.results.measures.platform import free_steps
from rebat.runs.keys import scheduler_of
from rebat.runs.labels import scenario_of
from rebat.runs.simulating import simulate_run, workload_of
from rebat.runs.single import RunResult
from rebat.runs.staging import history
from rebat.runs.unit import Unit

Floats = npt.NDArray[np.float64]

AHEAD_S = 24 * 3600.0
"""The picture shows how likely units fail within so long."""


def torus_pictures(units: Sequence[Unit]) -> Iterator[Picture]:
    """The first run of FAPS under failures, simulated once more: its busiest date."""
    faps = (u for u in units if u.spec.scenario.failures and _division(u) and _foresees(u))
    unit = next(faps, None)
    if unit is None:
        return
    result = simulate_run(unit)
    division = _division(unit)
    assert division is not None
    at_us = busiest(result)
    owner = owners(result.ledger, division, at_us)
    svg = torus_instant(division.torus.sizes, owner, _hazard(unit, result, division, at_us),
                        f"probability to fail within {format_duration(AHEAD_S)}")  # fmt: skip
    about = f"{unit.spec.policy}, {scenario_of(unit.spec).label}, seed {unit.labels['seed']}"
    title = f"{unit.spec.workload} on {division.torus} after {format_duration(to_s(at_us))}"
    yield Picture("", f"{title} ({about})", svg)


def _division(unit: Unit) -> Units | None:
    """The units of a run's machine, if its policy places jobs on a torus."""
    chosen = scheduler_of(unit.spec)
    if not isinstance(chosen, Preset) or not chosen.on_torus:
        return None
    return chosen.units(unit.spec.scenario.nodes or workload_of(unit).n_nodes)


def _foresees(unit: Unit) -> bool:
    chosen = scheduler_of(unit.spec)
    return isinstance(chosen, Preset) and chosen.foresees


def busiest(result: RunResult) -> int:
    """The first date within the window at which the fewest nodes are free, in microseconds."""
    at, free = free_steps(result.ledger, result.summary.n_nodes)
    first, last = (round(1e6 * date) for date in result.summary.window_s)
    within = (first <= at) & (at < last)
    return int(at[within][np.argmin(free[within])]) if within.any() else first


def _hazard(unit: Unit, result: RunResult, units: Units, at_us: int) -> Floats | None:
    """How likely each unit is to fail within a day of a date; None: nothing is known."""
    failures, n_nodes = unit.spec.scenario.failures, result.summary.n_nodes
    laws = failures and failures.law.nodes(n_nodes, failures.seed)
    if laws is None:
        return None
    past = history(unit.spec.scenario, n_nodes)
    since = np.zeros(n_nodes) if past is None else -past.uptime_us.astype(float)
    for at, up, nodes in result.ledger.node_events:
        if at <= at_us and up:
            since[list(nodes)] = at
    hazard: Floats = -np.expm1(-units.sums(laws.hazard((at_us - since) / 1e6, AHEAD_S)))
    return hazard
