"""What the command line says of a scenario, and the scenario that it asks for."""

from __future__ import annotations

from pathlib import Path

import msgspec

from rebat.campaign.spec import (
    CheckpointModel,
    FailureFile,
    FailureScenario,
    Scenario,
    SilentErrors,
)
from rebat.core.errors import InputError
from rebat.models.checkpoint import Rounding


class ScenarioOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that say what fails and what checkpoints, as they are given; times in seconds."""

    failures: Path | None = None
    mtbf: float | None = None
    downtime: float = 3600.0
    seed: int = 0
    model: str = "authors"
    horizon: float | None = None
    checkpoint: str = "none"
    checkpoint_cost: float = 300.0
    recovery_cost: float = 300.0
    checkpoint_rounding: str = "ceil"
    silent_errors: float | None = None
    silent_error_probability: float | None = None

    def scenario(self, nodes: int | None, window: str = "auto", select: str = "auto") -> Scenario:
        """The scenario that they ask for.

        Raises
        ------
        InputError
            For options that contradict each other.
        """
        return Scenario(
            nodes=nodes,
            failures=self._failures(),
            checkpoint=self._checkpoint(),
            silent_errors=self._silent_errors(),
            window=window,
            select=select,
        )

    def _failures(self) -> FailureScenario | FailureFile | None:
        if self.failures is not None:
            return FailureFile(self.failures)
        if self.mtbf is None:
            return None
        return FailureScenario(self.model, self.mtbf, self.downtime, self.seed, self.horizon)

    def _checkpoint(self) -> CheckpointModel | None:
        if self.checkpoint == "none":
            return None
        if self.mtbf is None:
            raise InputError("the Young/Daly period needs --mtbf", "--checkpoint young-daly")
        rounding: Rounding = "floor" if self.checkpoint_rounding == "floor" else "ceil"
        return CheckpointModel(self.mtbf, self.checkpoint_cost, self.recovery_cost, rounding)

    def _silent_errors(self) -> SilentErrors | None:
        rate, probability = self.silent_errors, self.silent_error_probability
        if rate is not None and probability is not None:
            raise InputError("give one of --silent-errors and --silent-error-probability")
        if rate is None and probability is None:
            return None
        return SilentErrors(rate, probability, self.seed)
