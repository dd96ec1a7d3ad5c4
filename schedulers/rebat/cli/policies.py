# SPDX-License-Identifier: Apache-2.0
"""``rebat policies`` and ``rebat policy``: list policies, write a user-defined one, and check it."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from rebat.check.check_policy import check_policy
from rebat.cli.command import Values, command, group, options_of
from rebat.cli.options import Folder, ForceFolder, Json, print_json
from rebat.core.declared import extra
from rebat.core.errors import InputError
from rebat.core.numbers import counted

if TYPE_CHECKING:
    from rebat.check.verdict import CheckedRule, PolicyCheck
    from rebat.policies.presets import Preset
    from rebat.policies.variants import OptionField


@command()
def policies(
    name: Annotated[str | None, extra(values="policy")] = None,
    *,
    axes: Annotated[bool, "List the axes and their choices instead of the policies."] = False,
    as_json: Json = False,
) -> None:
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
    from rebat.drive.choose import why_not_compiled

    for row in rows:
        alias = _alias(row)
        other = f" (also: {alias})" if alias else ""
        click.echo(f"{row.name}{other}\n    {row.summary}\n    [{row.source}]")
        if with_axes:
            values = row.point.values.items()
            click.echo("    " + ", ".join(f"{option}={value}" for option, value in values))
            reason = why_not_compiled(row.point)
            click.echo(f"    compiled loop: {f'no ({reason})' if reason else 'yes'}")


def _alias(row: Preset) -> str | None:
    from rebat.policies.presets import ALIASES

    return {target: alias for alias, target in ALIASES.items()}.get(row.name)


def _record(row: Preset) -> dict[str, Any]:
    from rebat.drive.choose import why_not_compiled

    return {
        "name": row.name,
        "alias": _alias(row),
        "summary": row.summary,
        "source": row.source,
        "axes": row.point.values,
        "not_compiled": why_not_compiled(row.point) or None,
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


EVERY_S = 2.0
"""Time between progress lines in seconds."""


@command()
def check(
    policy: Annotated[str, extra(values="policy")],
    *,
    choices: Annotated[Values, options_of(check_policy, "seeds", "skip", "timeout_s")],
    as_json: Json = False,
    out: Annotated[
        Folder | None,
        "Folder for the smallest failing case of each failed check: inputs and a pytest file.",
    ] = None,
    force: ForceFolder = False,
) -> None:
    """Check POLICY with random jobs, failures, drains and latency.

    POLICY is FILE.py:CLASS, or any other name for 'rebat run --policy'. The first line of the
    output is the verdict, followed by a row per check. The cases are the same in every call. The
    policy runs in other processes, with a controlled clock. Exit status 0: all checks passed; 1: a
    check failed or could not be performed; 2: invalid input.

    \b
    Example:
      rebat policy new mine
      rebat policy check mine.py:Mine
    """
    from rebat.check.verdict import write_cases
    from rebat.console.output import print_result
    from rebat.console.progress import counting_bar
    from rebat.core.folders import atomic_folder

    if force and out is None:
        raise InputError("has no effect", "--force", "--out FOLDER as well")
    with atomic_folder(out, force) if out else nullcontext() as folder:
        with counting_bar("seeds", choices["seeds"], EVERY_S) as progress:
            checked = check_policy(policy, **choices, on_progress=progress)
        if folder:
            write_cases(checked, folder)
    saved = f"the failing cases are in {out}" if out else "nothing is saved"
    if as_json:
        print_json(_check_record(checked), saved)
    else:
        print_result("\n".join(_check_lines(checked, out)), saved)
    if not checked.passed:
        raise SystemExit(1)


def _check_lines(checked: PolicyCheck, out: Path | None) -> list[str]:
    """Return the lines of the output: the verdict, and a row for each check."""
    lines = [checked.verdict]
    for row in checked.checks:
        lines.append(f"  {row.state:<10}  {row.name:<10}  {row.meaning} (cases: {row.cases})")
        if row.failing:
            jobs = len(row.failing.case.workload.jobs)
            lines.append(f"{'':14}{row.failing.problem}")
            lines.append(
                f"{'':14}smallest case: seed {row.failing.seed}, {counted(jobs, 'job')}{_where(row, out)}"
            )
    return lines


def _where(row: CheckedRule, out: Path | None) -> str:
    return f", {out / row.name}.json" if out else "; --out FOLDER writes it"


def _check_record(checked: PolicyCheck) -> dict[str, Any]:
    from rebat.check.cases import case_record

    return {
        "policy": checked.policy,
        "passed": checked.passed,
        "verdict": checked.verdict,
        "checks": [
            {
                "name": row.name,
                "meaning": row.meaning,
                "state": row.state,
                "cases": row.cases,
                "problem": row.failing and row.failing.problem,
                "seed": row.failing and row.failing.seed,
                "case": row.failing and case_record(row.failing.case),
            }
            for row in checked.checks
        ],
    }


@command()
def new(
    name: str,
    *,
    force: Annotated[bool, "Replace existing files."] = False,
) -> None:
    """Write a policy, NAME.py, and its test, test_NAME.py, to the working directory.

    The policy is first come, first served with backfilling. Change its method 'plan', then run the
    test, or 'rebat policy check'.

    \b
    Example:
      rebat policy new mine
      rebat run toy -p mine.py:Mine --failures toy --out out/mine
      pytest test_mine.py
    """
    from rebat.check.verdict import class_name, new_policy

    file, test = new_policy(name, Path(), force)
    click.echo(f"{file}:{class_name(name)} and {test} are written")


policy = group("policy", "Write a user-defined policy, and check it.", check, new)
