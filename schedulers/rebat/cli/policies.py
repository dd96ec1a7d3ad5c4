# SPDX-License-Identifier: Apache-2.0
"""``rebat policies``: what can be run."""

from __future__ import annotations

import click


@click.command()
@click.argument("name", required=False)
@click.option("--axes", is_flag=True, help="List the axes and their choices instead.")
def policies(name: str | None, axes: bool) -> None:
    """List the schedulers by name, or tell more about one.

    Every name works with --policy of 'rebat run'. A name may change axes:
    baseline:depth=easy,react=stealing. The same axes are options of 'rebat serve --options'.
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
            _list_axes_of(row.axes)


def _list_axes() -> None:
    """Each axis with its choices, the default first, and what it means."""
    import inspect

    from rebat.policies.axes import CHOICES, DEPTHS
    from rebat.policies.point import Axes

    defaults = Axes()
    for axis in Axes.__struct_fields__:
        default = str(getattr(defaults, axis))
        known = list(CHOICES.get(axis, DEPTHS if axis == "depth" else ()))
        others = [choice for choice in known if choice != default]
        click.echo(f"{axis:<14} {', '.join([default, *others])}")
    click.echo()
    click.echo(inspect.getdoc(Axes) or "")
    click.echo(
        "\nAlso in JSON options: mtbf, checkpoint_cost, recovery_cost (durations), cores_per_node."
    )


def _list_axes_of(axes: object) -> None:
    fields = getattr(axes, "__struct_fields__", ())
    click.echo("    " + ", ".join(f"{axis}={getattr(axes, axis)}" for axis in fields))
