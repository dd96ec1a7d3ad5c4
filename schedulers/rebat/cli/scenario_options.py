# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have: how nodes fail, and what is added to a workload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rebat.cli.types import DURATION, NODES, FiniteRange
from rebat.core.errors import InputError

if TYPE_CHECKING:
    from rebat.models.failures.law import Law

Command = TypeVar("Command", bound=Callable[..., object])


class LawType(click.ParamType["Law"]):
    """A failure law from 'authors:mtbf=1h,downtime=1h'."""

    name = "law"

    def convert(self, value: Any, param: Any, ctx: Any) -> Law:
        from rebat.models.failures.laws import parse_law

        try:
            return parse_law(str(value))
        except InputError as error:
            raise error.at("--law") from None


class LawCommand(click.Command):
    """A command whose help ends with the failure laws."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from rebat.models.failures.laws import described

        with formatter.section("Failure laws (--law)"):
            for line in described().splitlines():
                formatter.write(f"{'':>{formatter.current_indent}}{line}".rstrip() + "\n")


CORES_PER_NODE = click.option("--cores-per-node", type=NODES, default=1, show_default=True, help="The machine's nodes are cores (processors), of which so many make up a node, and fail and are drained together: node k of 4 is 4k to 4k+3. Failure laws and operations are those of the nodes.")  # fmt: skip

_LAW = (
    click.option("--law", type=LawType(), help="How nodes fail, as NAME:PARAMETER=VALUE,...; the laws are listed below."),
    click.option("--mtbf", type=DURATION, help="Short for the MTBF of a law: mean time between failures of the whole machine."),
    click.option("--downtime", type=DURATION, default="1h", show_default=True, help="With --mtbf: how long a failed node stays down."),
    click.option("--model", "--failure-model", "model", default="authors", show_default=True, help="With --mtbf: the law's name."),
    CORES_PER_NODE,
    click.option("--failure-group", type=NODES, default=1, show_default=True, help="A failure takes down the whole aligned group of so many nodes (512: a midplane); an MTBF is then that of such failures."),
    click.option("--cascade", type=FiniteRange(min=0, max=1, max_open=True), default=0.0, show_default=True, help="The probability that a failure brings another one, and that one another: cascade/(1 - cascade) more on average, beyond the MTBF."),
    click.option("--cascade-window", type=DURATION, default="1h", show_default=True, help="With --cascade: it comes so much later at most."),
    click.option("--cascade-within", type=NODES, default=None, help="With --cascade: it hits a neighbour in the aligned block of so many nodes (default: any node of the machine)."),
)  # fmt: skip

_PREPARATION = (
    click.option("--checkpoint", type=click.Choice(["none", "young-daly", "perfect"]), default="none", show_default=True, help="young-daly: every job checkpoints at its Young/Daly period, and lasts longer by that (eqs 1, 2); perfect: an interrupted job goes on where it was, at no cost."),
    click.option("--checkpoint-cost", type=DURATION, default="5min", show_default=True),
    click.option("--recovery-cost", type=DURATION, default="5min", show_default=True),
    click.option("--checkpoint-rounding", type=click.Choice(["ceil", "floor"]), default="floor", show_default=True, help="How the number of checkpoints of a job is rounded. floor: a job shorter than its period writes none; ceil: a last checkpoint closes every job (eqs 1 and 2 of the node-stealing paper)."),
    click.option("--silent-errors", type=FiniteRange(min=0), help="Draw silent errors at this rate per node and second: jobs then end COMPLETED_FAILED, and policies with silent_errors=retry run them again."),
    click.option("--silent-error-probability", type=FiniteRange(min=0, max=1, max_open=True), help="The same, by the probability that a job of the average area errs (q-bar of RR-9296, section 5.1)."),
)  # fmt: skip


def law_options(command: Command) -> Command:
    """A failure law and its short form, as fields of `campaign.options.ScenarioOptions`."""
    return with_options(_LAW)(command)


def preparation_options(command: Command) -> Command:
    """Checkpoints and silent errors, as fields of `campaign.options.ScenarioOptions`."""
    return with_options(_PREPARATION)(command)


def with_options(options: Sequence[Callable[[Command], Command]]) -> Callable[[Command], Command]:
    """Several options at once, in their order."""

    def decorated(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated
