# SPDX-License-Identifier: Apache-2.0
"""``rebat policies``: list the policies and their axes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from rebat.cli.completing import complete_policy
from rebat.cli.json_output import json_option, print_json

if TYPE_CHECKING:
    from rebat.policies.presets import Preset
    from rebat.policies.variants import OptionField


@click.command()
@click.argument("name", required=False, shell_complete=complete_policy)
@click.option(
    "--axes", is_flag=True, help="List the axes and their choices instead of the policies."
)
@json_option
def policies(name: str | None, axes: bool, as_json: bool) -> None:
    """List the policies by name, or print the axes of the policy NAME.

    Use a name with 'rebat run --policy'. Append axes to change them, as in
    baseline:depth=easy,react=stealing. 'rebat serve --options' accepts the same axes.

    \b
    Example:
      rebat policies sfsj
    """
    from rebat.policies.presets import PRESETS, preset

    if axes:
        print_json({"kinds": _axes_records()}) if as_json else _list_axes()
        return
    rows = [preset(name)] if name else [*PRESETS.values()]
    if as_json:
        print_json({"policies": [_record(row) for row in rows]})
    else:
        _list(rows, with_axes=name is not None)


def _list(rows: Sequence[Preset], with_axes: bool) -> None:
    """Print the name, summary and source of each policy.

    If ``with_axes`` is set, also print its axes, and whether the compiled loop covers it.
    """
    from rebat.sim.eligible import why_not_policy

    for row in rows:
        alias = _alias(row)
        other = f" (also: {alias})" if alias else ""
        click.echo(f"{row.name}{other}\n    {row.summary}\n    [{row.source}]")
        if with_axes:
            values = row.point.values.items()
            click.echo("    " + ", ".join(f"{option}={value}" for option, value in values))
            reason = why_not_policy(row.point)
            click.echo(f"    compiled loop: {f'no ({reason})' if reason else 'yes'}")


def _alias(row: Preset) -> str | None:
    from rebat.policies.presets import ALIASES

    return {target: alias for alias, target in ALIASES.items()}.get(row.name)


def _record(row: Preset) -> dict[str, Any]:
    from rebat.sim.eligible import why_not_policy

    return {
        "name": row.name,
        "alias": _alias(row),
        "summary": row.summary,
        "source": row.source,
        "axes": row.point.values,
        "not_compiled": why_not_policy(row.point) or None,
    }


def _axes_records() -> list[dict[str, Any]]:
    """Return the axes of each kind of policy as plain data."""
    from rebat.policies.choosing import KINDS
    from rebat.policies.variants import fields

    return [
        {
            "kind": kind.__struct_config__.tag,
            "meaning": " ".join(str(kind.__doc__).split()),
            "axes": [_axis_record(row) for row in fields(kind).values()],
        }
        for kind in KINDS
    ]


def _axis_record(row: OptionField) -> dict[str, Any]:
    choices = row.extra.get("choices")
    return {
        "name": row.name,
        "default": row.default,
        "choices": choices and [*choices],
        "low": row.meta.ge,
        "high": row.meta.le,
        "meaning": row.meta.description,
    }


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
        "JSON options can also contain mtbf, checkpoint_cost, recovery_cost (durations) and\n"
        "cores_per_node."
    )
