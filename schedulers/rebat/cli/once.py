# SPDX-License-Identifier: Apache-2.0
"""An option that takes one value is given once: of two values the first would be lost in silence."""

from __future__ import annotations

import click

from rebat.core.errors import InputError


class OnceGroup(click.Group):
    """A group whose commands, and those below them, refuse an option that is given twice."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            refuse_repeated(command, rest, ctx)
        return name, command, rest


def refuse_repeated(command: click.Command, arguments: list[str], parent: click.Context) -> None:
    """Look through the arguments of a command; all else that is wrong is left to click.

    Raises
    ------
    InputError
        For an option that may be given once only, and is given again.
    """
    ctx = click.Context(command, parent=parent, resilient_parsing=True, **command.context_settings)
    _, rest, given = command.make_parser(ctx).parse_args(list(arguments))
    for option in given:
        if isinstance(option, click.Option) and _single(option) and given.count(option) > 1:
            raise InputError(f"is given {given.count(option)} times", _name(option), "once")
    if isinstance(command, click.Group) and rest:
        below = command.get_command(ctx, rest[0])
        if below is not None:
            refuse_repeated(below, rest[1:], ctx)


def _single(option: click.Option) -> bool:
    return not (option.multiple or option.count or option.is_eager)


def _name(option: click.Option) -> str:
    return max(option.opts, key=len)
