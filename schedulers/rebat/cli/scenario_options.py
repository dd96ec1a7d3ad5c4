"""Options that several commands have: what is added to a workload before it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from rebat.cli.types import DURATION, FiniteRange

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
    """Checkpoints and silent errors, as fields of `campaign.options.ScenarioOptions`."""
    for option in reversed(_PREPARATION):
        command = option(command)
    return command
