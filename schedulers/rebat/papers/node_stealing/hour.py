# SPDX-License-Identifier: Apache-2.0
"""The machine around a steal, as in Figure 2 of the paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rebat.campaign.labels import scenario_of
from rebat.campaign.simulating import simulate_run
from rebat.campaign.spec import RunSpec
from rebat.campaign.unit import Unit
from rebat.figures.steal_hour import steal_hour
from rebat.papers.common.parts import Picture
from rebat.papers.node_stealing.runs import ALIASES, PROGRAM


def an_hour(units: Sequence[Unit]) -> Iterator[Picture]:
    """The machine around the first steal of the first SFSJ run, simulated once more."""
    stealing = (unit for unit in units if unit.spec.scenario.failures and _steals(unit.spec))
    unit = next(stealing, None)
    if unit is None:
        return
    result = simulate_run(unit)
    within = [t for t in result.ledger.steals if t >= result.summary.window_s[0] * 1e6]
    if within:
        svg = steal_hour(result.ledger, result.summary.n_nodes, within[0])
        about = f"{scenario_of(unit.spec).label}, seed {unit.labels['seed']}"
        title = f"{unit.spec.workload}: an hour around a steal ({about}; point at a rectangle)"
        yield Picture("cf. Figure 2", title, svg)


def _steals(spec: RunSpec) -> bool:
    return ALIASES.get(spec.policy, spec.policy).removeprefix(PROGRAM) == "h111"
