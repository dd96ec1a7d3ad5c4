# SPDX-License-Identifier: Apache-2.0
"""``rebat policy``: write a user-defined policy, and check it."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rebat.cli.completing import complete_policy
from rebat.cli.json_output import json_option, print_json
from rebat.cli.types import DURATION, FOLDER
from rebat.core.errors import InputError
from rebat.core.formatting import counted

if TYPE_CHECKING:
    from rebat.library.policy_check.verdict import CheckedRule, PolicyCheck

EVERY_S = 2.0
"""Time between progress lines in seconds."""


@click.group()
def policy() -> None:
    """Write a user-defined policy, and check it."""


@policy.command()
@click.argument("policy", shell_complete=complete_policy)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Number of random cases. For each of them there is also a stream of jobs.",
)
@click.option(
    "--skip",
    multiple=True,
    metavar="CHECK",
    help="Leave out this check, for example starvation. The option can be repeated.",
)
@click.option(
    "--timeout",
    type=DURATION,
    default="30s",
    show_default=True,
    help="Time limit for one run of a case.",
)
@json_option
@click.option(
    "--out",
    type=FOLDER,
    help="Folder for the smallest failing case of each failed check: inputs and a pytest file.",
)
@click.option("--force", is_flag=True, help="Replace an earlier result in the folder --out.")
def check(
    policy: str,
    seeds: int,
    skip: tuple[str, ...],
    timeout: float,
    as_json: bool,
    out: Path | None,
    force: bool,
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
    from rebat.console.output import print_result
    from rebat.console.progress import counting_bar
    from rebat.core.folders import atomic_folder
    from rebat.library.policy_check.files import write_cases
    from rebat.library.policy_check.verdict import check_policy

    if force and out is None:
        raise InputError("has no effect", "--force", "--out FOLDER as well")
    with atomic_folder(out, force) if out else nullcontext() as folder:
        with counting_bar("seeds", seeds, EVERY_S) as progress:
            checked = check_policy(
                policy, seeds=seeds, skip=skip, timeout_s=timeout, on_progress=progress
            )
        if folder:
            write_cases(checked, folder)
    saved = f"the failing cases are in {out}" if out else "nothing is saved"
    if as_json:
        print_json(_record(checked), saved)
    else:
        print_result("\n".join(_lines(checked, out)), saved)
    if not checked.passed:
        raise SystemExit(1)


def _lines(checked: PolicyCheck, out: Path | None) -> list[str]:
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


def _record(checked: PolicyCheck) -> dict[str, Any]:
    from rebat.library.policy_check.cases import case_record

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


@policy.command()
@click.argument("name")
@click.option("--force", is_flag=True, help="Replace existing files.")
def new(name: str, force: bool) -> None:
    """Write a policy, NAME.py, and its test, test_NAME.py, to the working directory.

    The policy is first come, first served with backfilling. Change its method 'plan', then run the
    test, or 'rebat policy check'.

    \b
    Example:
      rebat policy new mine
      rebat run toy -p mine.py:Mine --failures toy --out out/mine
      pytest test_mine.py
    """
    from rebat.library.policy_check.template import class_name, new_policy

    file, test = new_policy(name, Path(), force)
    click.echo(f"{file}:{class_name(name)} and {test} are written")
