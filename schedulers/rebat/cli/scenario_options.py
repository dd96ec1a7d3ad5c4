"""Options of scenarios: how nodes fail, what checkpoints, what errs silently."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from rebat.campaign.spec import CheckpointModel, FailureScenario, Scenario, SilentErrors
from rebat.cli.types import DURATION, FiniteRange
from rebat.core.errors import InputError
from rebat.models.checkpoint import Rounding
from rebat.models.failures.law import Law
from rebat.models.failures.laws import described, make_law, parameters, parse_law

Command = TypeVar("Command", bound=Callable[..., object])


class LawType(click.ParamType["Law"]):
    """A failure law from 'authors:mtbf=1h,downtime=1h'."""

    name = "law"

    def convert(self, value: Any, param: Any, ctx: Any) -> Law:
        try:
            return parse_law(str(value))
        except InputError as error:
            raise error.at("--law") from None


class LawCommand(click.Command):
    """A command whose help ends with the failure laws."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Failure laws (--law)"):
            for line in described().splitlines():
                formatter.write(f"{'':>{formatter.current_indent}}{line}".rstrip() + "\n")


_LAW = (
    click.option("--law", type=LawType(), help="How nodes fail, as NAME:PARAMETER=VALUE,...; the laws are listed below."),
    click.option("--mtbf", type=DURATION, help="Short for the MTBF of a law: mean time between failures of the whole machine."),
    click.option("--downtime", type=DURATION, default="1h", show_default=True, help="With --mtbf: how long a failed node stays down."),
    click.option("--model", "--failure-model", "model", default="authors", show_default=True, help="With --mtbf: the law's name."),
)  # fmt: skip

_PREPARATION = (
    click.option("--checkpoint", type=click.Choice(["none", "young-daly"]), default="none", show_default=True, help="young-daly: every job checkpoints at its Young/Daly period, and lasts longer by that (eqs 1, 2)."),
    click.option("--checkpoint-cost", type=DURATION, default="5min", show_default=True),
    click.option("--recovery-cost", type=DURATION, default="5min", show_default=True),
    click.option("--checkpoint-rounding", type=click.Choice(["ceil", "floor"]), default="ceil", show_default=True, help="How eqs 1 and 2 round the number of checkpoints."),
    click.option("--silent-errors", type=FiniteRange(min=0), help="Draw silent errors at this rate per node and second: jobs then end COMPLETED_FAILED, and policies with silent_errors=retry run them again."),
    click.option("--silent-error-probability", type=FiniteRange(min=0, max=1, max_open=True), help="The same, by the probability that a job of the average area errs (q-bar of RR-9296, section 5.1)."),
)  # fmt: skip


def law_options(command: Command) -> Command:
    """A failure law and its short form, as fields of `ScenarioOptions`."""
    return _with(_LAW, command)


def preparation_options(command: Command) -> Command:
    """Checkpoints and silent errors, as fields of `ScenarioOptions`."""
    return _with(_PREPARATION, command)


def _with(options: Sequence[Callable[[Command], Command]], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


class ScenarioOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that say what fails and what checkpoints, as they are given; times in seconds.

    ``failures``, and ``model`` with ``mtbf`` and ``downtime``, are short forms of a ``law``.
    """

    law: Law | None = None
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

    @property
    def mtbf_s(self) -> float | None:
        """The machine's mean time between failures, where it is told."""
        told: float | None = getattr(self.law, "mtbf_s", self.mtbf)
        return told

    def failure_law(self) -> Law | None:
        """How nodes fail; None: they do not."""
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

    def scenario(self, nodes: int | None, window: str = "auto", select: str = "auto") -> Scenario:
        """The scenario that they ask for.

        Raises
        ------
        InputError
            For options that contradict each other.
        """
        law = self.failure_law()
        return Scenario(
            nodes=nodes,
            failures=None if law is None else FailureScenario(law, self.seed, self.horizon),
            checkpoint=self._checkpoint(),
            silent_errors=self._silent_errors(),
            window=window,
            select=select,
        )

    def _checkpoint(self) -> CheckpointModel | None:
        if self.checkpoint == "none":
            return None
        mtbf_s = self.mtbf_s
        if mtbf_s is None:
            raise InputError("the Young/Daly period needs --mtbf", "--checkpoint young-daly")
        rounding: Rounding = "floor" if self.checkpoint_rounding == "floor" else "ceil"
        return CheckpointModel(mtbf_s, self.checkpoint_cost, self.recovery_cost, rounding)

    def _silent_errors(self) -> SilentErrors | None:
        rate, probability = self.silent_errors, self.silent_error_probability
        if rate is not None and probability is not None:
            raise InputError("give one of --silent-errors and --silent-error-probability")
        if rate is None and probability is None:
            return None
        return SilentErrors(rate, probability, self.seed)
