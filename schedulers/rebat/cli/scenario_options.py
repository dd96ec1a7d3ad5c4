"""Options of scenarios: what fails, what checkpoints, what is measured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click
import msgspec

from rebat.campaign.spec import (
    CheckpointModel,
    FailureFile,
    FailureScenario,
    Scenario,
    SilentErrors,
)
from rebat.cli.types import DURATION, FiniteRange
from rebat.core.errors import InputError
from rebat.models.checkpoint import Rounding

Command = TypeVar("Command", bound=Callable[..., object])

_PREPARATION = (
    click.option("--checkpoint", type=click.Choice(["none", "young-daly"]), default="none", show_default=True, help="young-daly: every job checkpoints at its Young/Daly period, and lasts longer by that (eqs 1, 2)."),
    click.option("--checkpoint-cost", type=DURATION, default="5min", show_default=True),
    click.option("--recovery-cost", type=DURATION, default="5min", show_default=True),
    click.option("--checkpoint-rounding", type=click.Choice(["ceil", "floor"]), default="ceil", show_default=True, help="How eqs 1 and 2 round the number of checkpoints."),
    click.option("--silent-errors", type=FiniteRange(min=0), help="Draw silent errors at this rate per node and second: jobs then end COMPLETED_FAILED, and policies with silent_errors=retry run them again."),
    click.option("--silent-error-probability", type=FiniteRange(min=0, max=1, max_open=True), help="The same, by the probability that a job of the average area errs (q-bar of RR-9296, section 5.1)."),
)  # fmt: skip


def preparation_options(command: Command) -> Command:
    """Checkpoints and silent errors, as fields of `ScenarioOptions`."""
    for option in reversed(_PREPARATION):
        command = option(command)
    return command


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
