# SPDX-License-Identifier: Apache-2.0
"""Errors for options that accept one value but are repeated. click would use the last value."""

from __future__ import annotations

import click

from rebat.core.errors import InputError


class OnceGroup(click.Group):
    """A group whose commands and subcommands reject a repeated option."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, arguments = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:  # completion prints no errors
            reject_repeated(command, arguments, ctx)
        return name, command, arguments


def reject_repeated(command: click.Command, arguments: list[str], parent: click.Context) -> None:
    """Check the arguments of a command for repeated options. click reports all other errors."""
    ctx = click.Context(command, parent=parent, resilient_parsing=True, **command.context_settings)
    _, positional, options = command.make_parser(ctx).parse_args(list(arguments))
    for option in options:
        if isinstance(option, click.Option) and _single(option) and options.count(option) > 1:
            raise InputError(f"is given {options.count(option)} times", _name(option), "once")
    if isinstance(command, click.Group) and positional:
        subcommand = command.get_command(ctx, positional[0])
        if subcommand is not None:
            reject_repeated(subcommand, positional[1:], ctx)


def _single(option: click.Option) -> bool:
    return not (option.multiple or option.count or option.is_eager)


def _name(option: click.Option) -> str:
    return max(option.opts, key=len)
