# SPDX-License-Identifier: Apache-2.0
"""The command line as the user wrote it. It is recorded with a result."""

from __future__ import annotations

from typing import Any

import click

from rebat.cli.scenario_options import LawCommand

_GIVEN = "rebat.given"

WITHOUT_EFFECT = {"out", "force", "as_json", "columns", "all_metrics", "workers"}
"""Parameters that affect neither the files of a result nor their content."""


class RecordedCommand(LawCommand):
    """A command that keeps its arguments as the user wrote them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_GIVEN] = list(args)
        return super().parse_args(ctx, args)


def given_options() -> dict[str, list[Any]]:
    """Return the values on the command line as texts, by long option or name of an argument.

    A flag has an empty list of texts. Parameters in `WITHOUT_EFFECT` are omitted.
    """
    ctx = click.get_current_context()
    blank = click.Context(ctx.command, parent=ctx.parent, resilient_parsing=True)
    values, _, _ = ctx.command.make_parser(blank).parse_args(list(ctx.meta[_GIVEN]))
    given: dict[str, list[Any]] = {}
    for option in ctx.command.params:
        if option.name in WITHOUT_EFFECT or option.name not in values:
            continue
        value = values[option.name]
        if isinstance(option, click.Option):
            name = max(option.opts, key=len)
            texts = value if option.multiple else [value]
            given[name] = [] if option.is_flag else list(texts)
        else:
            given[str(option.name).upper()] = [value]
    return given


def arguments_of(command: str, given: dict[str, list[Any]]) -> list[str]:
    """Return a command as a list of arguments. ``given`` is the result of `given_options`."""
    arguments = [command]
    for name, texts in given.items():
        if not name.startswith("-"):
            arguments += texts
        elif not texts:
            arguments.append(name)
        else:
            arguments += [word for text in texts for word in (name, text)]
    return arguments
