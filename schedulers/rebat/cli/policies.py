"""``rebat policies``: what can be run."""

from __future__ import annotations

import click


@click.command()
@click.argument("name", required=False)
def policies(name: str | None) -> None:
    """List the schedulers by name, or tell more about one.

    Every name works with --policy of 'rebat run'.
    """
    from rebat.policies.presets import ALIASES, PRESETS, preset

    rows = [preset(name)] if name else PRESETS.values()
    aliases = {target: alias for alias, target in ALIASES.items()}
    for row in rows:
        other = f" (also: {aliases[row.name]})" if row.name in aliases else ""
        click.echo(f"{row.name}{other}\n    {row.summary}\n    [{row.source}]")
