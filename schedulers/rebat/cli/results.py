# SPDX-License-Identifier: Apache-2.0
"""Commands that read a result: ``validate``, ``explain``, ``export``, ``bundle``, ``reproduce``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from rebat.cli.command import command
from rebat.cli.options import AnyPath, File, Folder, Json, NewFile, print_json, reject_with_json
from rebat.console.output import print_line, print_result, warn
from rebat.core.declared import Count, Machine, Seconds, extra
from rebat.core.errors import InputError
from rebat.core.formatting import printable
from rebat.core.numbers import counted, file_size, number

if TYPE_CHECKING:
    from rebat.api.reproduce import Repetition, Reproduction
    from rebat.api.validation import Validation
    from rebat.results.explain.story import Story
    from rebat.results.files.batsim_files import JobsFile
    from rebat.results.files.run_folder import RecordSource
    from rebat.results.validate.findings import Finding

Inputs = Annotated[
    Folder | None,
    "Folder with the input files under any names. If an input is missing or changed at its recorded path, rebat finds it here by its hash.",
]


@command()
def validate(
    jobs: AnyPath,
    *,
    events: Annotated[
        File | None, "Machine events of the run (Batsim's --events), to find jobs on failed nodes."
    ] = None,
    workload: Annotated[
        File | None, "Workload of the run, to find missing and changed jobs."
    ] = None,
    nodes: Annotated[
        Machine | None, "Number of nodes of the machine (default: the workload's, with --workload)."
    ] = None,
    slack: Annotated[
        Seconds | None,
        "Maximum time for which a job may run after its node failed or its walltime ended (default: 0). Necessary for platforms with network latency. If it is missing, a line beginning with 'hint' contains the value.",
    ] = None,
    resubmits: Annotated[
        bool | None,
        "--resubmits/--gives-up",
        "Whether the scheduler resubmits killed jobs. If it does, a killed job without resubmission is an error (default: yes if a job was resubmitted, if --events is set, or if JOBS is a run of rebat).",
    ] = None,
    by_rebat: Annotated[
        bool | None,
        "--by-rebat/--by-other",
        "Whether rebat was the scheduler. If it was, the profile names and submission times of resubmissions are checked (default: yes if JOBS is in the folder of a rebat run, or if the profile of a resubmission has a name that rebat creates).",
    ] = None,
    max_attempts: Annotated[
        Count | None,
        "Number of attempts after which the scheduler gives up a job (default: as in the summary next to JOBS, otherwise no limit).",
    ] = None,
    digits: Annotated[
        Literal["all", "six"] | None,
        "Digits of the numbers in resubmitted jobs: all, or six significant digits as the policies authors-* write them (default: detected from the summary next to JOBS, or from the rows of JOBS).",
    ] = None,
    show: Annotated[Count, "Maximum number of findings printed per kind."] = 5,
    as_json: Json = False,
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
    from rebat.api.validation import validate_files
    from rebat.api.workloads import with_names
    from rebat.core.units import to_us
    from rebat.models.failures.events import read_events
    from rebat.results.files.run_folder import node_list_of, read_source
    from rebat.results.validate.findings import Reference
    from rebat.workloads.load import load_workload
    from rebat.workloads.machine import names_in

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
        max_attempts=max_attempts,
    )
    validation = validate_files(jobs, reference)
    table, findings, hint = validation.table, validation.findings, _hint(validation)
    source = read_source(table.path.parent)
    errors = [finding for finding in findings if finding.kind not in _usual_kinds(source)]
    usual = [finding for finding in findings if finding not in errors]
    if as_json:
        print_json(_validation_record(table, errors, usual, hint))
    else:
        verdict = "not valid" if errors else "valid"
        click.echo(f"{table.path}: {verdict}: {table.size}, {counted(len(errors), 'finding')}")
        if totals := table.totals():
            values = ", ".join(f"{name} {number(value)}" for name, value in totals.items())
            click.echo(f"totals of schedule.csv without the probes: {values}")
        names = names_in(node_list_of(table.path.parent))
        for line in _finding_lines(errors, show):
            click.echo(with_names(line, names))
        if hint:
            click.echo(f"hint: {hint}")
        if usual:
            click.echo("no errors, because this run is recorded, not simulated:")
            for line in _finding_lines(usual, show):
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


def _validation_record(
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


def _finding_lines(findings: Sequence[Finding], show: int) -> list[str]:
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


@command()
def explain(
    folder: Annotated[AnyPath, extra(metavar="OUT/POLICY")],
    job: str,
    *,
    complete: Annotated[
        bool, "--all", "Print every moment, without grouping similar ones."
    ] = False,
    as_json: Json = False,
) -> None:
    """Explain why JOB started when it did: its planned starts, obstacles and attempts.

    OUT/POLICY is the folder of a policy in a result of 'rebat run --explain'. The command prints
    what the run recorded about the job: its planned start times, the causes that moved its
    reservation, why it could not use free nodes, how each attempt ended, and how much work it lost.

    \b
    Example:
      rebat run mira-like-june-2017 -p easy --mtbf 1h --downtime 1h --explain --out out/june
      rebat explain out/june/easy 1200
    """
    from rebat.results.explain.book import RunBook
    from rebat.results.explain.sentences import lines
    from rebat.results.explain.story import story
    from rebat.results.files.run_folder import run_folders

    folders = run_folders(folder)
    if len(folders) > 1:
        expected = f"the folder of one policy, like {folders[0]}"
        raise InputError("contains several policies", str(folder), expected)
    result = story(RunBook(folders[0]), job, complete)
    if as_json:
        print_json(_story_record(result))
    else:
        print_result("\n".join(lines(result)), "nothing is saved")


def _story_record(result: Story) -> dict[str, Any]:
    """Return a story as plain data. Each moment contains its sentence."""
    import msgspec

    from rebat.results.explain.sentences import sentence, verdict

    moments = [
        {"kind": moment.kind, "at_s": moment.at_s, "attempt": moment.attempt}
        | moment.facts
        | {"sentence": sentence(moment)}
        for moment in result.moments
    ]
    return {**msgspec.structs.asdict(result), "verdict": verdict(result), "moments": moments}


@command()
def export(
    run: AnyPath,
    *,
    form: Annotated[
        str,
        "--perfetto",
        "Write a trace for the Perfetto viewer, https://ui.perfetto.dev.",
        extra(flag_value="perfetto"),
    ],
    tracks: Annotated[
        Count, "Maximum number of tracks for nodes. A track shows 1, 2, 4, 8, ... nodes."
    ] = 256,
    out: Annotated[NewFile, "-o", "--out", "File to write, like run.pftrace (.gz: compressed)."],
) -> None:
    """Write a run in the format of another program. RUN is the folder of one policy.

    The trace has a track per node. If the machine has more nodes than --tracks, it has a track per
    group of consecutive nodes. A slice is an attempt, an outage (down) or a hold (held). The
    arguments of a slice of an attempt are columns of rebat_attempts.csv. All tracks of an attempt
    show the arguments attempt, cause, why and nodes. Its first track also shows all other
    arguments, its recovery and its checkpoints. If a job took nodes from an attempt, an arrow leads
    from this attempt to the job's next attempt. Curves show nodes in use, the queue and free nodes.

    Open the file in the viewer; plain and compressed files work. The viewer runs in the browser and
    does not upload the file. To export a run as an SWF trace, use 'rebat workload export'.

    \b
    Example:
      rebat export --perfetto out/june/sfsj -o sfsj.pftrace.gz
    """
    from rebat.console.progress import counting_bar
    from rebat.core.files import write_bytes
    from rebat.figures.perfetto import nodes_per_track, run_trace
    from rebat.results.files.run_folder import node_list_of, read_timeline, run_folders
    from rebat.workloads.machine import names_in

    folders = run_folders(run)
    if len(folders) > 1:
        problem, expected = "contains several policies", f"one of them, such as {folders[0]}"
        raise InputError(problem, str(run), expected)
    with counting_bar(f"reading {folders[0].name}", 1) as on_rows:
        timeline = read_timeline(folders[0], on_rows)
    names = names_in(node_list_of(folders[0]))
    trace = run_trace(timeline, names if len(names) == timeline.n_nodes else (), tracks)
    write_bytes(out, trace.parts())
    group = nodes_per_track(timeline.n_nodes, tracks)
    per_track = "a node" if group == 1 else f"{group} nodes"
    attempts = int(timeline.ran.sum())
    click.echo(
        f"{out}: {counted(attempts, 'attempt')}, {per_track} per track, {file_size(out.stat().st_size)}, {form}"
    )


@command()
def bundle(
    result: Annotated[Folder, extra(metavar="OUT")],
    *,
    inputs: Inputs = None,
    out: Annotated[NewFile, "-o", "--out", "Zip file to write."],
) -> None:
    """Pack a result and its inputs into one zip file, to send it to a colleague.

    OUT is a folder of 'rebat run --out'. The zip file contains the files of the result, the
    workload, failures, operations, files of failure laws, Python files of policies, and a README.
    It does not contain inputs that are part of rebat, like 'toy'. The command checks the hash of
    each file. If a file has changed since the run, nothing is written.

    'rebat reproduce FILE.zip' runs the result again.

    \b
    Example:
      rebat bundle out/june -o june.zip
    """
    from rebat.api.bundle import bundle as pack

    packed = pack(result, out, inputs)
    names = (
        f", without {', '.join(dict.fromkeys(packed.names))} (part of rebat)"
        if packed.names
        else ""
    )
    print_result(
        f"{out}: {counted(len(packed.results), 'file')} of the result, "
        f"{counted(len(packed.copies), 'input')}{names}, {file_size(out.stat().st_size)}\n"
        f"Run it again with: rebat reproduce {shlex.quote(str(out))}",
        f"the bundle is {out}",
    )


@command()
def reproduce(
    result: Annotated[AnyPath, extra(metavar="OUT")],
    *,
    inputs: Inputs = None,
    out: Annotated[Folder | None, "Keep the new result in this folder."] = None,
    yes: Annotated[
        bool, "Run the Python code of the result's policies without a question. Read it first."
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a result again and compare all its files.

    OUT is a folder of 'rebat run --out', or a zip file of 'rebat bundle'. Its file provenance.json
    contains the command, the versions and the hashes of the inputs. For a folder, relative paths of
    inputs start at the current folder. A zip file contains its inputs. The command first prints the
    versions and inputs that have changed. Then it runs the recorded command, and prints a verdict
    and a row per file.

    If policies of the result are Python files, the command lists these files and asks before it
    runs them. Without a terminal, --yes is necessary.

    A file is equal up to rounding if its texts are equal and its numbers have a relative difference
    of at most 1e-9. Other versions of Python and numpy cause such differences.

    Exit status 0: all files are equal, or equal up to rounding; 1: files differ; 2: an input is
    missing or unreadable, or the Python code was not confirmed.

    \b
    Example:
      rebat reproduce out/june
    """
    from rebat.api.reproduce import repetition

    with repetition(result, inputs) as ready:
        for change in ready.changes:
            warn(change)
        if ready.code:
            _confirm_code(ready, result, yes)
        done = ready.run(out, run_code=True)
    saved = "nothing is saved" if out is None else f"the new result is in {out}"
    if as_json:
        print_json({**done.record, "out": out}, saved)
    else:
        print_result(f"{printable(done.verdict)}\n\n{_files_table(done)}", saved)
    if not done.reproduced:
        raise SystemExit(1)


def _confirm_code(ready: Repetition, result: Path, yes: bool) -> None:
    """List the Python files of a result, and ask whether they may run.

    Raises
    ------
    InputError
        If the user does not agree, or cannot be asked.
    """
    from rebat.api.bundle import INPUTS

    asks = not yes and sys.stdin.isatty() and sys.stderr.isatty()
    print_line("The policies of this result are Python code that is not part of rebat:")
    for row in ready.code:
        print_line(f"  {row.file}: {counted(row.lines, 'line')}, SHA-256 {row.sha256}")
        if asks:
            print_line(f"    read it in {row.path}")
    if yes:
        return
    expected = "--yes, after you have read the code"
    if ready.bundled:
        pattern = shlex.quote(f"{INPUTS}/*.py")
        expected += f", for example with: unzip -p {shlex.quote(str(result))} {pattern}"
    if not asks:
        raise InputError("needs Python code, which was not confirmed", str(result), expected)
    print_line("Such code can do everything that you can do on this computer.")
    if not click.confirm("Run this code?", err=True):
        raise InputError("needs Python code, which you did not allow", str(result), expected)


_FILE_COLUMNS = ["file", "verdict", "line", "field", "before", "now"]


def _files_table(done: Reproduction) -> str:
    from rebat.report.table import Table

    columns, caption = _FILE_COLUMNS[:2], ""
    if done.rounded or not done.reproduced:
        columns = _FILE_COLUMNS
        caption = "line: the first different line, or the line with the largest rounding difference"
    cells = [[getattr(row, name) for name in columns] for row in done.files]
    rows = [["" if cell is None else str(cell) for cell in row] for row in cells]
    return Table("", "Files", columns, rows, caption, words=len(columns)).text()
