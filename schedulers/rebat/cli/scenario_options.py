# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share: failures of nodes, and preparation of a workload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from rebat.cli.completing import complete_law, complete_law_name
from rebat.cli.types import DURATION, EVENTS, FILE, MACHINE, FiniteRange
from rebat.core.declared import Declared
from rebat.core.errors import InputError
from rebat.core.units import exact
from rebat.models.failures.law import Law
from rebat.runs.scenario import OPTIONS, grouped

Command = TypeVar("Command", bound=Callable[..., object])


class LawType(click.ParamType["Law"]):
    """A failure law, like 'authors:mtbf=1h,downtime=1h'."""

    name = "law"

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[Any]:
        """Complete the name of a law, then its parameters."""
        return complete_law(ctx, param, incomplete)

    def convert(self, value: Any, param: Any, ctx: Any) -> Law:
        from rebat.models.failures.laws import parse_law

        try:
            return parse_law(str(value))
        except InputError as error:
            raise error.at("--law") from None


class LawCommand(click.Command):
    """A command whose help lists the failure laws."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from rebat.models.failures.laws import described

        with formatter.section("Failure laws (--law)"):
            for line in described().splitlines():
                formatter.write(f"{'':>{formatter.current_indent}}{line}".rstrip() + "\n")


LAW = grouped("law", "nodes", "correlation")
"""Options of a failure law, including the short form of the most common law."""

PREPARATION = grouped("preparation")
"""Options that add checkpoints and silent errors to a workload."""

RUN = grouped("run")
"""Options of the machine and of what is measured."""


def scenario_options(*names: str, **helps: str) -> Callable[[Command], Command]:
    """Add the options of these fields of `ScenarioOptions` to a command, in this order.

    ``helps`` replaces the help texts of options whose meaning is narrower in this command.
    """
    return with_options([_option(OPTIONS[name], helps.get(name)) for name in names])


def _option(option: Declared, help: str | None) -> Callable[[Command], Command]:
    flags = option.extra.get("flags", (f"--{option.name.replace('_', '-')}",))
    default = option.default
    if option.is_duration and default is not None:
        default = exact(default).replace(" ", "")
    return click.option(
        *flags,
        option.name,
        type=_type(option),
        help=help or option.help,
        default=default,
        show_default=default is not None,
        shell_complete=complete_law_name if option.name == "model" else None,
    )


def _type(option: Declared) -> Any:
    """Return the click type of an option."""
    if option.choices:
        return click.Choice(option.choices)
    low, high = option.limits.get("ge"), option.limits.get("lt")
    least, most = (None if x is None else int(x) for x in (low, option.limits.get("le")))
    types = {
        Law: LawType(),
        Path: EVENTS if option.extra.get("file") == "failure_events" else FILE,
        int: MACHINE if option.extra.get("machine") else click.IntRange(least, most),
        float: DURATION
        if option.is_duration
        else FiniteRange(low, high, max_open=high is not None),
        str: str,
    }
    return types[option.kind]


def with_options(options: Sequence[Callable[[Command], Command]]) -> Callable[[Command], Command]:
    """Add several options to a command, in this order."""

    def decorated(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated
