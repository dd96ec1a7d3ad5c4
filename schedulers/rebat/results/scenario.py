# SPDX-License-Identifier: Apache-2.0
"""What a number of a campaign is about, workload and policy apart.

Its fields are columns of the results table. Results are only ever put together or compared where
all of them agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rebat.core.units import exact

AUTO = "auto"
USUAL_HORIZONS_S = (None, 5e6)
"""Failures that never stop for the workload: up to where the node-stealing authors draw them."""

FOR_MTBF = ", for an MTBF of "
"""Where the period of checkpoints is not that of the failures' MTBF."""

USUAL_CHECKPOINTS = "Young/Daly (cost 5 min, recovery 5 min, ceil)"
"""Section 5.2 of the node-stealing paper, the period that of the failures' MTBF."""


class ScenarioLabel(NamedTuple):
    """Failures, checkpoints, machine, measures and silent errors of a run.

    None: no failures, no checkpoints, the workload's own number of nodes, no silent errors, no
    operations. Times
    in seconds; ``checkpoint`` and ``silent_errors`` are texts, and so is ``law``: the parameters of
    the failure model other than MTBF and downtime.
    """

    failure_model: str | None = None
    mtbf_s: float | None = None
    downtime_s: float | None = None
    horizon_s: float | None = None
    checkpoint: str | None = None
    nodes: int | None = None
    cores_per_node: int = 1
    window: str = AUTO
    select: str = AUTO
    law: str | None = None
    silent_errors: str | None = None
    operations: str | None = None
    walltime_kills: str | None = "wasted"
    accounting: str | None = "exact"

    @property
    def family(self) -> ScenarioLabel:
        """What scenarios of a sweep over MTBF and downtime share."""
        return self._replace(mtbf_s=None, downtime_s=None)

    @property
    def failure_free(self) -> tuple[ScenarioLabel, ...]:
        """The same machine and measures where nothing fails: with the checkpoints, and without."""
        calm = ScenarioLabel(
            nodes=self.nodes,
            cores_per_node=self.cores_per_node,
            window=self.window,
            select=self.select,
            walltime_kills=self.walltime_kills,
            accounting=self.accounting,
        )
        kept = self.checkpoint
        if kept and kept.endswith(")") and FOR_MTBF not in kept and self.mtbf_s is not None:
            kept = f"{kept[:-1]}{FOR_MTBF}{exact(self.mtbf_s)})"
        return calm._replace(checkpoint=kept), calm

    @property
    def label(self) -> str:
        """For people; what is as usual (Baseline's machine, measures and failure law) is left out.

        >>> ScenarioLabel("authors", 3600.0, 1800.0, 5e6).label
        'MTBF 1 h, downtime 30 min, checkpoints: none'
        """
        return ", ".join(self.parts)

    @property
    def parts(self) -> list[str]:
        """The texts of which the label is made."""
        return [*self._failures(), *self._rest()]

    @property
    def family_label(self) -> str:
        """The same for a whole sweep."""
        return ", ".join(self._rest())

    def _failures(self) -> list[str]:
        if self.failure_model is None:
            return ["no failures"]
        spans = (("MTBF", self.mtbf_s), ("downtime", self.downtime_s))
        return [f"{name} {exact(span)}" for name, span in spans if span is not None]

    def _rest(self) -> list[str]:
        texts = [f"checkpoints: {self.checkpoint or 'none'}"]
        if self.checkpoint == USUAL_CHECKPOINTS:
            texts = ["Young/Daly checkpoints"]
        if self.failure_model not in (None, "authors"):
            texts.append(f"failures {self.failure_model}" + (f":{self.law}" if self.law else ""))
        if self.horizon_s not in USUAL_HORIZONS_S:
            texts.append(f"failures up to {exact(self.horizon_s)}")
        texts += [f"{self.nodes} nodes"] if self.nodes else []
        cores = self.cores_per_node
        texts += [f"{cores} cores a node"] if cores and cores > 1 else []
        texts += [f"silent errors, {self.silent_errors}"] if self.silent_errors else []
        texts += [f"operations {self.operations}"] if self.operations else []
        texts += ["kills at walltimes useful"] if self.walltime_kills == "useful" else []
        texts += ["checkpoints counted as the program"] if self.accounting == "program" else []
        texts += [f"window {self.window}"] if self.window != AUTO else []
        return texts + ([f"jobs {self.select}"] if self.select != AUTO else [])


def scenario_of_row(about: Sequence[Any]) -> ScenarioLabel:
    """A row's scenario; a column of whole numbers with gaps comes as one of floats."""
    scenario = ScenarioLabel(*about)
    return scenario._replace(nodes=None if scenario.nodes is None else int(scenario.nodes))
