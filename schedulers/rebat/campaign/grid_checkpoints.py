# SPDX-License-Identifier: Apache-2.0
"""The checkpoint models of a grid: one model for each combination of parameters."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from rebat.campaign.grid_tables import CheckpointIn
from rebat.core.errors import InputError
from rebat.runs.reading import nonempty, seconds
from rebat.runs.spec import (
    CheckpointModel,
    Checkpoints,
    FailureScenario,
    PerfectCheckpoints,
)
from rebat.runs.tiers import tier_checkpoints

_PARAMETERS = {
    "none": (),
    "perfect": (),
    "young-daly": ("cost", "recovery", "rounding", "mtbf"),
    "tiers:auto": ("tiers", "mtbf"),
}
"""Parameters of each kind of checkpoints."""


def checkpoints(
    checkpoint: CheckpointIn | None, scenario: FailureScenario | None, n_nodes: int | None,
    where: str,
) -> Sequence[Checkpoints | None]:  # fmt: skip
    """Return the checkpoint models for all combinations of MTBF, cost and recovery.

    With storage tiers, return all combinations of MTBF and tiers.

    Parameters
    ----------
    scenario : FailureScenario, optional
        Failures. Their MTBF is the default MTBF of the checkpoints.
    n_nodes : int, optional
        Number of nodes in the grid. It is needed for laws with a rate per node.
    where : str
        Place in the file, for errors.
    """
    if checkpoint is None or checkpoint.model == "none":
        return [None]
    _check_parameters(checkpoint, where)
    if checkpoint.model == "perfect":
        return [PerfectCheckpoints()]
    mtbfs = _seconds(_mtbf(checkpoint, scenario, n_nodes, where), f"{where}.mtbf")
    if checkpoint.model == "tiers:auto":
        return list(_in_tiers(checkpoint, scenario, mtbfs, f"{where}.tiers"))
    costs = _seconds(checkpoint.cost, f"{where}.cost")
    recoveries = _seconds(checkpoint.recovery, f"{where}.recovery")
    return [
        CheckpointModel(mtbf_s, cost_s, recovery_s, checkpoint.rounding)
        for mtbf_s, cost_s, recovery_s in itertools.product(mtbfs, costs, recoveries)
    ]


def several(value: Any) -> list[Any]:
    """Return the values of a parameter as a list. A single value becomes a list."""
    return value if isinstance(value, list) else [value]


def _check_parameters(checkpoint: CheckpointIn, where: str) -> None:
    """Raise InputError if a parameter is set, but has no effect."""
    used, default = _PARAMETERS[checkpoint.model], CheckpointIn(model=checkpoint.model)
    for name in CheckpointIn.__struct_fields__:
        if name in ("model", *used) or getattr(checkpoint, name) == getattr(default, name):
            continue
        if not used:
            problem, expected = (
                f"{checkpoint.model} checkpoints have no parameters",
                (f'only model = "{checkpoint.model}"'),
            )
            raise InputError(problem, where, expected)
        problem = f"has no effect on {checkpoint.model} checkpoints"
        raise InputError(problem, f"{where}.{name}", f"only {', '.join(used)}")


def _mtbf(
    checkpoint: CheckpointIn, scenario: FailureScenario | None, n_nodes: int | None, where: str
) -> Any:
    """Return the MTBF of the machine.

    The MTBF is set for the checkpoints or for the failures, or is computed from a law per node.
    """
    if checkpoint.mtbf is not None:
        return checkpoint.mtbf
    mtbf_s = scenario.mtbf_s if scenario else None
    if mtbf_s is None and scenario and n_nodes is not None:
        mtbf_s = scenario.law.mtbf_on(n_nodes)
    if mtbf_s is None:
        expected = "mtbf in checkpoint or failures; or nodes in the grid, and a law with an MTBF"
        raise InputError(f"the {_PERIODS[checkpoint.model]} needs an MTBF", where, expected)
    return mtbf_s


_PERIODS = {"young-daly": "Young/Daly period", "tiers:auto": "interval of tiers"}


def _seconds(values: Any, where: str) -> list[float]:
    listed = [seconds(value, where) for value in several(values)]
    nonempty(listed, where)
    return listed


def _in_tiers(
    checkpoint: CheckpointIn, scenario: FailureScenario | None, mtbfs: Sequence[float], where: str
) -> Iterator[Checkpoints]:
    law, texts = scenario.law if scenario else None, several(checkpoint.tiers)
    nonempty(texts, where)
    for mtbf_s, text in itertools.product(mtbfs, texts):
        try:
            yield tier_checkpoints(text, mtbf_s, law)
        except InputError as error:
            raise error.at(where) from None
