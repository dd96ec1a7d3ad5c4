# SPDX-License-Identifier: Apache-2.0
"""``rebat validate``: check a Batsim output for impossible schedules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rebat.cli.json_output import json_option, print_json, reject_with_json
from rebat.cli.types import DURATION, FILE, MACHINE
from rebat.core.formatting import counted

if TYPE_CHECKING:
    from rebat.library.validation import Validation
    from rebat.results.files.batsim_files import JobsFile
    from rebat.results.files.run_folder import RecordSource
    from rebat.results.validate.findings import Finding


@click.command()
@click.argument("jobs", type=click.Path(path_type=Path))
@click.option(
    "--events",
    type=FILE,
    help="Machine events of the run (Batsim's --events), to find jobs on failed nodes.",
)
@click.option(
    "--workload", type=FILE, help="Workload of the run, to find missing and changed jobs."
)
@click.option(
    "--nodes",
    type=MACHINE,
    help="Number of nodes of the machine (default: the workload's, with --workload).",
)
@click.option(
    "--slack",
    type=DURATION,
    default=None,
    help=(
        "Maximum time for which a job may run after its node failed or its walltime ended "
        "(default: 0). Necessary for platforms with network latency. If it is missing, a line "
        "beginning with 'hint' contains the value."
    ),
)
@click.option(
    "--resubmits/--gives-up",
    default=None,
    help=(
        "Whether the scheduler resubmits killed jobs. If it does, a killed job without "
        "resubmission is an error (default: yes if a job was resubmitted, if --events is set, "
        "or if JOBS is a run of rebat)."
    ),
)
@click.option(
    "--by-rebat/--by-other",
    default=None,
    help=(
        "Whether rebat was the scheduler. If it was, the profile names and submission times of "
        "resubmissions are checked (default: yes if JOBS is in the folder of a rebat run, or if "
        "the profile of a resubmission has a name that rebat creates)."
    ),
)
@click.option(
    "--digits",
    type=click.Choice(["all", "six"]),
    help=(
        "Digits of the numbers in resubmitted jobs: all, or six significant digits as "
        "the policies authors-* write them (default: detected from the summary next to JOBS, or from the rows of JOBS)."
    ),
)
@click.option(
    "--show",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Maximum number of findings printed per kind.",
)
@json_option
def validate(
    jobs: Path,
    events: Path | None,
    workload: Path | None,
    nodes: int | None,
    slack: float | None,
    resubmits: bool | None,
    by_rebat: bool | None,
    digits: str | None,
    show: int,
    as_json: bool,
) -> None:
    """Check a run for errors. JOBS is a jobs.csv of Batsim or rebat, or the folder of a run.

    The command reports two jobs on the same node, jobs on failed nodes or outside the machine,
    wrong sizes, jobs longer than their walltime, inconsistent times, missing and duplicate jobs,
    and killed jobs that were not resubmitted. With --workload, it also reports run times, states
    and requests that differ from the workload. Exit status 0: no findings; 1: findings; 2:
    unreadable input.

    For a run with checkpoints or silent errors, pass the workload written by 'rebat workload
    prepare'.

    In a recorded run ('rebat workload import --schedule') jobs may share nodes, run longer than
    their walltime, and change their size. rebat lists these findings, but does not count them as
    errors.

    \b
    Example:
      rebat validate out/sfsj --events f0.events --workload november.json.gz
    """
    from rebat.core.units import to_us
    from rebat.library.node_names import names_in, with_names
    from rebat.library.validation import validate_files
    from rebat.models.failures.events import read_events
    from rebat.results.files.run_folder import node_list_of, read_source
    from rebat.results.validate.findings import Reference
    from rebat.workloads.load import load_workload

    if as_json:
        reject_with_json("show")
    expected = load_workload(workload) if workload else None
    reference = Reference(
        n_nodes=nodes or (expected.n_nodes if expected else None),
        events=read_events(events) if events else (),
        workload=expected,
        slack_us=to_us(slack or 0),
        resubmits=resubmits,
        six_digits=digits == "six" if digits else None,
        by_rebat=by_rebat,
    )
    validation = validate_files(jobs, reference)
    table, findings, hint = validation.table, validation.findings, _hint(validation)
    source = read_source(table.path.parent)
    errors = [finding for finding in findings if finding.kind not in _usual_kinds(source)]
    usual = [finding for finding in findings if finding not in errors]
    if as_json:
        print_json(_record(table, errors, usual, hint))
    else:
        verdict = "not valid" if errors else "valid"
        click.echo(f"{table.path}: {verdict}: {table.size}, {counted(len(errors), 'finding')}")
        if totals := table.totals():
            values = ", ".join(f"{name} {value:.6g}" for name, value in totals.items())
            click.echo(f"totals of schedule.csv without the probes: {values}")
        names = names_in(node_list_of(table.path.parent))
        for line in _lines(errors, show):
            click.echo(with_names(line, names))
        if hint:
            click.echo(f"hint: {hint}")
        if usual:
            click.echo("no errors, because this run is recorded, not simulated:")
            for line in _lines(usual, show):
                click.echo(f"  {with_names(line, names)}")
    if errors:
        raise SystemExit(1)


def _usual_kinds(source: RecordSource) -> frozenset[str]:
    """Return the kinds of findings that are no errors in a run from this source."""
    from rebat.results.validate.findings import OF_MACHINES

    if not source.format:
        return frozenset()
    return OF_MACHINES if source.shared_attempts else OF_MACHINES - {"overlap"}


def _hint(validation: Validation) -> str | None:
    """Return the advice to set ``--slack``, if network latency explains findings."""
    from rebat.results.validate.findings import seconds

    if validation.latency is None:
        return None
    delay, left = seconds(validation.latency.us), counted(len(validation.latency.left), "finding")
    return (
        f"jobs end up to {delay} after the failure of a node or after their walltime, as on a "
        f"platform with network latency. With --slack {delay.replace(' ', '')}: {left}."
    )


def _record(
    table: JobsFile, errors: Sequence[Finding], usual: Sequence[Finding], hint: str | None
) -> dict[str, Any]:
    """Return all findings as plain data. Findings that are no errors are separate."""
    return {
        "jobs": table.path,
        "valid": not errors,
        "rows": len(table.records),
        "probes": table.n_probes,
        "totals_without_probes": table.totals(),
        "findings": _listed(errors),
        "of_recorded_run": _listed(usual),
        "hint": hint,
    }


def _listed(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return findings as plain data, sorted by kind as in the text."""
    from rebat.results.validate.findings import KINDS

    return [
        {"kind": kind, "meaning": meaning, "line": row.line or None, "text": row.text}
        for kind, meaning in KINDS.items()
        for row in findings
        if row.kind == kind
    ]


def _lines(findings: Sequence[Finding], show: int) -> list[str]:
    from rebat.results.validate.findings import KINDS

    lines = []
    for kind, meaning in KINDS.items():
        listed = [finding for finding in findings if finding.kind == kind]
        if listed:
            lines.append(f"{meaning}: {len(listed)}")
            lines += [f"  {_place(finding)}{finding.text}" for finding in listed[:show]]
        if len(listed) > show:
            lines.append(f"  ... and {len(listed) - show} more")
    return lines


def _place(finding: Finding) -> str:
    return f"line {finding.line}: " if finding.line else ""
