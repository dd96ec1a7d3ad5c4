# SPDX-License-Identifier: Apache-2.0
"""``rebat validate``: is a Batsim output one that can have happened?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rebat.cli.types import DURATION, FILE, MACHINE

if TYPE_CHECKING:
    from rebat.results.validate.findings import Finding


@click.command()
@click.argument("jobs", type=click.Path(path_type=Path))
@click.option("--events", type=FILE, help="Machine events of the run (Batsim's --events): no job may run on a dead node.")  # fmt: skip
@click.option("--workload", type=FILE, help="Workload of the run: every job must have its row.")
@click.option("--nodes", type=MACHINE, help="Nodes of the machine (default: the workload's, if given).")  # fmt: skip
@click.option("--slack", type=DURATION, default=None, help="How long a job may outlive its node or its walltime; for platforms with latency (default: not at all).")  # fmt: skip
@click.option("--resubmits/--gives-up", default=None, help="Whether the scheduler runs again what it kills, so that a job cannot end with a kill (default: if it did so for some job, if --events are given, or if rebat made the run).")  # fmt: skip
@click.option("--by-rebat/--by-other", default=None, help="Whether rebat was the scheduler, so that resubmissions have its names of profiles and its dates (default: if JOBS is in the folder of a run of rebat's, or the profile of a resubmission is named so).")  # fmt: skip
@click.option("--digits", type=click.Choice(["all", "six"]), help="Digits of the numbers of resubmissions: all, or six as the policies authors-* write them (default: by the summary next to JOBS, else by the rows).")  # fmt: skip
@click.option("--show", type=click.IntRange(min=1), default=5, show_default=True, help="Findings to print of each kind.")  # fmt: skip
def validate(
    jobs: Path, events: Path | None, workload: Path | None, nodes: int | None,
    slack: float | None, resubmits: bool | None, by_rebat: bool | None, digits: str | None, show: int,
) -> None:  # fmt: skip
    """Check JOBS, a jobs.csv of Batsim or rebat, or the folder of a run.

    Looks for two jobs on one node, jobs on dead nodes or outside the machine, wrong sizes, jobs
    longer than their walltime, run times, states and requests unlike the workload's, times that
    contradict each other, lost and doubled jobs, killed ones never run again. Exit status 0:
    nothing found, 1: something found, 2: unreadable input.

    To a run with checkpoints or silent errors give the workload that 'rebat workload prepare'
    writes.

    \b
    Example:
      rebat validate out/sfsj --events f0.events --workload november.json.gz
    """
    from rebat.core.units import to_us
    from rebat.models.failures.events import read_events
    from rebat.results.files.batsim_files import read_jobs
    from rebat.results.validate.findings import Reference
    from rebat.results.validate.validate import validate
    from rebat.workloads.load import load_workload

    table = read_jobs(jobs)
    known = load_workload(workload) if workload else None
    reference = Reference(
        n_nodes=nodes or (known.n_nodes if known else None),
        events=read_events(events) if events else (),
        workload=known,
        slack_us=to_us(slack or 0),
        resubmits=resubmits if resubmits is not None else _by_rebat(table.path),
        six_digits=digits == "six" if digits else _six_digits(table.path),
        by_rebat=by_rebat if by_rebat is not None else _by_rebat(table.path),
        ended=_ended(table.path),
    )
    findings = validate(table, reference)
    for line in _lines(findings, show):
        click.echo(line)
    click.echo(f"{table.path}: {len(table.records)} rows, {len(findings)} findings")
    if findings:
        raise SystemExit(1)


def _by_rebat(jobs: Path) -> bool | None:
    """True for a run of rebat's, which leaves no killed job; None where one cannot tell."""
    return (jobs.parent / "rebat_jobs.csv").is_file() or None


def _ended(jobs: Path) -> frozenset[str]:
    """The jobs of a run of rebat's that had no end of their own, and were ended."""
    from rebat.core.attempts import Cause
    from rebat.results.files.rows import Rows

    path = jobs.parent / "rebat_attempts.csv"
    if not path.is_file():
        return frozenset()
    attempts = Rows(path, ("job_id", "cause"))
    causes = zip(attempts.texts("job_id"), attempts.texts("cause"), strict=True)
    return frozenset(job_id for job_id, cause in causes if cause == Cause.HORIZON)


def _six_digits(jobs: Path) -> bool | None:
    """Whether the run's summary names a policy that writes numbers with six digits.

    None where nothing says so.
    """
    import msgspec

    from rebat.core.errors import RebatError
    from rebat.policies.presets import preset

    try:
        summary = msgspec.json.decode((jobs.parent / "summary.json").read_bytes())
        return bool(preset(str(summary["policy"])).session.dialect.digits == "six")
    except (OSError, msgspec.DecodeError, KeyError, TypeError, RebatError):
        return None


def _lines(findings: Sequence[Finding], show: int) -> list[str]:
    from rebat.results.validate.findings import KINDS

    lines = []
    for kind, meaning in KINDS.items():
        own = [finding for finding in findings if finding.kind == kind]
        if own:
            lines.append(f"{meaning}: {len(own)}")
            lines += [f"  {_place(finding)}{finding.text}" for finding in own[:show]]
        if len(own) > show:
            lines.append(f"  ... and {len(own) - show} more")
    return lines


def _place(finding: Finding) -> str:
    return f"line {finding.line}: " if finding.line else ""
