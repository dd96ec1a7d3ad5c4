# SPDX-License-Identifier: Apache-2.0
"""What the command line says of a scenario, and the scenario that it asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from rebat.campaign.spec import (
    CheckpointModel,
    FailureScenario,
    Operations,
    PerfectCheckpoints,
    Scenario,
    SilentErrors,
)
from rebat.core.errors import InputError
from rebat.core.options import MAX_ATTEMPTS
from rebat.metrics.platform import WalltimeKills
from rebat.models.checkpoint import Accounting, Rounding
from rebat.models.failures.correlated import Correlation, correlated
from rebat.models.failures.law import Law
from rebat.models.failures.laws import make_law, parameters
from rebat.models.failures.recorded import Recorded
from rebat.models.operations import read_operations


class FailureOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that say what fails, as they are given; times in seconds.

    ``failures`` (a file), and ``model`` with ``mtbf`` and ``downtime``, are short forms of a
    ``law``.
    """

    law: Law | None = None
    failures: Path | None = None
    mtbf: float | None = None
    downtime: float = 3600.0
    seed: int = 0
    model: str = "authors"
    horizon: float | None = None
    begin: float | None = None
    failure_group: int = 1
    cascade: float = 0.0
    cascade_window: float = 3600.0
    cascade_within: int | None = None

    @property
    def mtbf_s(self) -> float | None:
        """The machine's mean time between failures, where it is told."""
        told: float | None = getattr(self.law, "mtbf_s", self.mtbf)
        return told

    @property
    def correlation(self) -> Correlation:
        """How failures come together, if they do."""
        return Correlation(
            group=self.failure_group,
            cascade=self.cascade,
            cascade_window_s=self.cascade_window,
            cascade_within=self.cascade_within or 0,
        )

    def failure_law(self) -> Law | None:
        """How nodes fail; None: they do not."""
        law = self.single_law()
        return None if law is None else correlated(law, self.correlation)

    def single_law(self) -> Law | None:
        """How they fail one by one."""
        if self.law is not None:
            return self.law
        if self.failures is not None:
            return make_law("trace", {"file": str(self.failures)})
        if self.mtbf is None:
            return None
        values: dict[str, Any] = {"mtbf": self.mtbf}
        if "downtime" in parameters(self.model):
            values["downtime"] = self.downtime
        return make_law(self.model, values)


class ScenarioOptions(FailureOptions, frozen=True, kw_only=True):
    """The options that say what fails and what checkpoints, as they are given."""

    cores_per_node: int = 1
    checkpoint: str = "none"
    checkpoint_cost: float = 300.0
    recovery_cost: float = 300.0
    checkpoint_rounding: Rounding = "floor"
    silent_errors: float | None = None
    silent_error_probability: float | None = None
    operations: Path | None = None
    walltime_kills: WalltimeKills = "wasted"
    max_attempts: int = MAX_ATTEMPTS
    accounting: Accounting = "exact"

    def scenario(self, nodes: int | None, window: str = "auto", select: str = "auto") -> Scenario:
        """The scenario that they ask for.

        Raises
        ------
        InputError
            For options that contradict each other.
        """
        law, begin_s = self.failure_law(), self.begin or 0.0
        of_law = (self.seed, self.horizon, begin_s)
        return Scenario(
            nodes=nodes,
            cores_per_node=self.cores_per_node,
            failures=None if law is None else FailureScenario(law, *of_law),
            checkpoint=self._checkpoint(),
            silent_errors=self._silent_errors(),
            operations=self._operations(),
            window=window,
            select=select,
            walltime_kills=self.walltime_kills,
            max_attempts=self.max_attempts,
            accounting=self.accounting,
        )

    @property
    def uses_record_mtbf(self) -> bool:
        """Whether checkpoint periods are for the MTBF that a failure record has itself."""
        young_daly = self.checkpoint == "young-daly" and self.mtbf_s is None
        return young_daly and isinstance(self.law, Recorded)

    def with_record_mtbf(self, n_nodes: int | None) -> ScenarioOptions:
        """Return the options with the MTBF of the record on a machine of this size, if used."""
        if not (self.uses_record_mtbf and isinstance(self.law, Recorded)):
            return self
        return msgspec.structs.replace(self, mtbf=self.law.mtbf_on(n_nodes))

    def _checkpoint(self) -> CheckpointModel | PerfectCheckpoints | None:
        if self.checkpoint == "none":
            return None
        if self.checkpoint == "perfect":
            return PerfectCheckpoints()
        mtbf_s = self.mtbf_s
        if mtbf_s is None:
            raise InputError("the Young/Daly period needs --mtbf", "--checkpoint young-daly")
        costs = self.checkpoint_cost, self.recovery_cost
        return CheckpointModel(mtbf_s, *costs, self.checkpoint_rounding)

    def _operations(self) -> Operations | None:
        if self.operations is None:
            return None
        return Operations(self.operations.name, tuple(read_operations(self.operations)))

    def _silent_errors(self) -> SilentErrors | None:
        rate, probability = self.silent_errors, self.silent_error_probability
        if rate is not None and probability is not None:
            raise InputError("give one of --silent-errors and --silent-error-probability")
        if rate is None and probability is None:
            return None
        return SilentErrors(rate, probability, self.seed)
