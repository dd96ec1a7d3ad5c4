# SPDX-License-Identifier: Apache-2.0
"""``rebat policies``: list the policies and their axes."""

from __future__ import annotations

import textwrap

import click


@click.command()
@click.argument("name", required=False)
@click.option(
    "--axes", is_flag=True, help="List the axes and their choices instead of the policies."
)
def policies(name: str | None, axes: bool) -> None:
    """List the policies by name, or print the axes of the policy NAME.

    Use a name with 'rebat run --policy'. Append axes to change them, as in
    baseline:depth=easy,react=stealing. 'rebat serve --options' takes the same axes.

    \b
    Example:
      rebat policies sfsj
    """
    if axes:
        _list_axes()
        return
    from rebat.policies.presets import ALIASES, PRESETS, preset

    rows = [preset(name)] if name else PRESETS.values()
    aliases = {target: alias for alias, target in ALIASES.items()}
    for row in rows:
        other = f" (also: {aliases[row.name]})" if row.name in aliases else ""
        click.echo(f"{row.name}{other}\n    {row.summary}\n    [{row.source}]")
        if name:
            values = row.point.values.items()
            click.echo("    " + ", ".join(f"{option}={value}" for option, value in values))


def _list_axes() -> None:
    """Print the axes of each kind of policy: default, choices and meaning."""
    from rebat.policies.choosing import KINDS
    from rebat.policies.variants import fields

    for kind in KINDS:
        name = kind.__struct_config__.tag
        text = " ".join(str(kind.__doc__).split())
        click.echo(textwrap.fill(f"{name}: {text}" if name else text, 100))
        for row in fields(kind).values():
            others = [choice for choice in row.extra.get("choices", ()) if choice != row.default]
            click.echo(f"  {row.name:<14} {', '.join([str(row.default), *others])}")
            click.echo(textwrap.indent(textwrap.fill(row.meta.description or "", 90), " " * 17))
        click.echo()
    click.echo(
        "JSON options also include mtbf, checkpoint_cost, recovery_cost (durations), cores_per_node."
    )
