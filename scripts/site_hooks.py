# SPDX-License-Identifier: Apache-2.0
"""What mkdocs makes of our pages: commands and axes from the code, and needs that are seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import click

NEEDS = re.compile(r"^<!-- needs: (.*?) -->$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs with the text of each page."""
    text = NEEDS.sub(r"*Needs \1:*\n", markdown)
    if "<!-- commands -->" in text:
        text = text.replace("<!-- commands -->", "\n".join(commands()))
    if "<!-- axes -->" in text:
        text = text.replace("<!-- axes -->", axes())
    if "<!-- schedulers -->" in text:
        text = text.replace("<!-- schedulers -->", schedulers())
    if "<!-- metrics -->" in text:
        text = text.replace("<!-- metrics -->", metrics())
    return text


def metrics() -> str:
    """Return the catalogue of metrics as a table."""
    from rebat.results.catalogue import CATALOGUE, FURTHER

    rows = ["| name in files | in tables | better | definition |", "|---|---|---|---|"]
    for row in (*CATALOGUE, *FURTHER):
        name = "" if row.derived else f"`{row.name}`"
        title = row.heading.strip() + (" (by size class)" if row.by_class else "")
        rows.append(f"| {name} | {title} | {row.better} | {row.definition} |")
    return "\n".join(rows) + "\n"


def commands() -> Iterator[str]:
    """Every command with its help, as it prints it."""
    from rebat.cli.main import cli

    root = click.Context(cli, info_name="rebat", max_content_width=100)
    for name in cli.list_commands(root):
        command = cli.get_command(root, name)
        if command is not None:
            yield from _told(command, click.Context(command, root, name), 2)


def _told(command: click.Command, ctx: click.Context, level: int) -> Iterator[str]:
    ctx.max_content_width = 100
    yield f"{'#' * level} {ctx.command_path}\n"
    yield f"```text\n{command.get_help(ctx)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            below = command.get_command(ctx, name)
            if below is not None:
                yield from _told(below, click.Context(below, ctx, name), level + 1)


def axes() -> str:
    """Each axis, its choices with the default first, and what it means."""
    from click.testing import CliRunner

    from rebat.cli.policies import policies

    told = CliRunner().invoke(policies, ["--axes"])
    return f"```text\n{told.output}```\n"


def schedulers() -> str:
    """The presets as a table."""
    from rebat.policies.preset_table import ALIASES, PRESETS

    also = {name: alias for alias, name in ALIASES.items()}
    rows = ["| name | what | source |", "|---|---|---|"]
    for one in PRESETS.values():
        other = f" (`{also[one.name]}`)" if one.name in also else ""
        rows.append(f"| `{one.name}`{other} | {one.summary} | {one.source} |")
    return "\n".join(rows) + "\n"
