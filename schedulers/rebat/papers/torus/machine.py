# SPDX-License-Identifier: Apache-2.0
"""A picture for the report on boxes on a torus: the state of the machine at one time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from rebat.core.units import format_duration, to_s
from rebat.figures.torus import torus_instant
from rebat.models.boxes import TorusBlocks
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
"""The picture shows the probability that a block fails within this duration (seconds)."""


def torus_pictures(units: Sequence[Unit]) -> Iterator[Picture]:
    """Yield a picture of the machine at the busiest time of a run of FAPS with failures.

    The first of these runs is simulated again.
    """
    faps = (u for u in units if u.spec.scenario.failures and _division(u) and _foresees(u))
    unit = next(faps, None)
    if unit is None:
        return
    result = simulate_run(unit)
    division = _division(unit)
    assert division is not None
    at_us = busiest(result)
    owner = owners(result.ledger, division, at_us)
    svg = torus_instant(
        division.torus.sizes,
        owner,
        _hazard(unit, result, division, at_us),
        f"probability of a failure within {format_duration(AHEAD_S)}",
    )
    about = f"{unit.spec.policy}, {scenario_of(unit.spec).label}, seed {unit.labels['seed']}"
    title = f"{unit.spec.workload} on {division.torus} after {format_duration(to_s(at_us))}"
    yield Picture("", f"{title} ({about})", svg)


def _division(unit: Unit) -> TorusBlocks | None:
    """Return the blocks of a run's machine.

    Return None if its policy does not place jobs on a torus.
    """
    chosen = scheduler_of(unit.spec)
    if not isinstance(chosen, Preset) or not chosen.on_torus:
        return None
    return chosen.blocks(unit.spec.scenario.nodes or workload_of(unit).n_nodes)


def _foresees(unit: Unit) -> bool:
    chosen = scheduler_of(unit.spec)
    return isinstance(chosen, Preset) and chosen.foresees


def busiest(result: RunResult) -> int:
    """Return the time (us) in the window at which the fewest nodes are free."""
    at, free = free_steps(result.ledger, result.summary.n_nodes)
    first, last = (round(1e6 * time_s) for time_s in result.summary.window_s)
    within = (first <= at) & (at < last)
    return int(at[within][np.argmin(free[within])]) if within.any() else first


def _hazard(unit: Unit, result: RunResult, blocks: TorusBlocks, at_us: int) -> Floats | None:
    """Return the probability that each block fails within `AHEAD_S`.

    Return None without node laws.
    """
    failures, n_nodes = unit.spec.scenario.failures, result.summary.n_nodes
    laws = failures and failures.law.nodes(n_nodes, failures.seed)
    if laws is None:
        return None
    past = history(unit.spec.scenario, n_nodes)
    since = np.zeros(n_nodes) if past is None else -past.uptime_us.astype(float)
    for at, up, nodes in result.ledger.node_events:
        if at <= at_us and up:
            since[list(nodes)] = at
    hazard: Floats = -np.expm1(-blocks.sums(laws.hazard((at_us - since) / 1e6, AHEAD_S)))
    return hazard
