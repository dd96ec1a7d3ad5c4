# SPDX-License-Identifier: Apache-2.0
"""``rebat compare`` and ``rebat diff-policies``: compare runs, or Batsched with its presets."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import click
from msgspec import Meta

from rebat.api.figure_files import FigureWidth, Formats, file_forms
from rebat.cli.command import command, used_options
from rebat.cli.options import AnyPath, Folder, Json, WorkloadFile, print_json
from rebat.console.output import print_result
from rebat.core.declared import extra
from rebat.core.errors import InputError
from rebat.core.numbers import counted, duration, number, ratio
from rebat.core.units import to_s

if TYPE_CHECKING:
    from rebat.figures.canvas import FileForms
    from rebat.results.compare.parting import Ends, JobOutcome, Parting
    from rebat.results.compare.schedules import Comparison, Divergence
    from rebat.results.files.batsim_files import JobRecord
    from rebat.results.measures.timeline import Timeline


class Files(NamedTuple):
    """The folder for the differences, whether to replace it, and the files of the figure."""

    out: Path | None
    force: bool
    figures: FileForms | None


Batsched = Literal["batsched-conservative", "batsched-easy", "batsched-fcfs"]


@command()
def compare(
    a: AnyPath | None = None,
    b: AnyPath | None = None,
    *,
    batsched: Annotated[
        WorkloadFile | None,
        "Compare the batsched-* policies with Batsched on this workload. Do not use A and B with this option.",
    ] = None,
    policies: Annotated[
        tuple[Batsched, ...],
        "-p",
        "--policy",
        "With --batsched: compare this policy only; may be repeated (default: all three).",
    ] = (),
    endpoint: Annotated[
        str | None,
        "With --batsched and one policy: connect to a Batsched that listens at this address, tcp://HOST:PORT. Default: start the program batsched, if it is on the PATH.",
    ] = None,
    tolerance: Annotated[
        Annotated[float, Meta(ge=0)],
        "Times that differ by at most this number of seconds count as equal.",
    ] = 0.0,
    allocations: Annotated[bool, "Also compare the nodes of each job."] = False,
    out: Annotated[
        Folder | None, "Folder in which differences.csv and the figure differences are written."
    ] = None,
    figures: Annotated[
        Formats,
        extra(metavar="FORMATS"),
        "With --out: formats of the figure, a list like pdf,svg of png, svg, pdf and eps.",
    ] = "png",
    figure_width: FigureWidth = None,
    force: Annotated[bool, "Replace an earlier comparison in the folder --out."] = False,
    as_json: Json = False,
) -> None:
    """Compare the runs A and B, job by job. A run is a jobs.csv of Batsim or rebat, or its folder.

    Exit status 0: jobs, states and times are equal; 1: the runs differ; 2: unreadable input.

    If A or B is a folder of 'rebat run --out' with several policies, the command prints the metrics
    of all policies instead, with changes relative to the first policy of A. The exit status is then
    0.

    With --batsched WORKLOAD, run the policies batsched-conservative, batsched-easy and
    batsched-fcfs on the embedded engine and compare their schedules, including nodes, with those
    of Batsched. rebat includes schedules recorded with Batsched 1.4 for mira-like-june-2017 and
    synthetic-small. If the program batsched is on the PATH, rebat also runs this program.

    \b
    Examples (the embedded engine compared with Batsim; a recorded schedule compared with simulated
    policies; the embedded engine compared with Batsched):
      rebat compare results/batsim/out_jobs.csv results/embedded/sfsj --out results/compare
      rebat compare past out/june
      rebat compare --batsched synthetic-small
    """
    files = Files(out, force, file_forms(figures, figure_width))
    for name in ("figures", "figure_width"):
        if out is None and name in used_options():
            raise InputError("has no effect", used_options()[name], "--out as well")
    if batsched is not None:
        if a is not None:
            raise click.UsageError("--batsched WORKLOAD replaces the runs A and B; remove A")
        runs = with_batsched(batsched, policies, endpoint, tolerance)
        same = _batsched(runs, files, as_json)
    elif policies or endpoint:
        raise click.UsageError("--policy and --endpoint need --batsched WORKLOAD")
    elif a is None or b is None:
        raise click.UsageError(
            "the runs A and B are missing (expected two runs, or --batsched WORKLOAD)"
        )
    elif several := _several(a, b):
        same = _summaries(several, allocations, out)
    else:
        same = _two_runs(a, b, tolerance, allocations, files, as_json)
    if not same:
        raise SystemExit(1)


def _several(a: Path, b: Path) -> list[Path]:
    """If A or B has several policies, return the folders of all policies in A and B."""
    from rebat.api.frames import runs_in

    in_a, in_b = runs_in(a), runs_in(b)
    return [*in_a, *in_b] if in_a and in_b and len(in_a) + len(in_b) > 2 else []


def _summaries(folders: list[Path], allocations: bool, out: Path | None) -> bool:
    from rebat.api.frames import compared_summaries

    if allocations or out is not None:
        option = "--allocations" if allocations else "--out"
        expected = "the folders of single policies"
        raise InputError("has no effect on a comparison of several policies", option, expected)
    click.echo(compared_summaries(folders), nl=False)
    return True


def _two_runs(
    a: Path,
    b: Path,
    tolerance: float,
    allocations: bool,
    files: Files,
    as_json: bool,
) -> bool:
    from rebat.results.compare.schedules import compare, comparison_facts
    from rebat.results.files.batsim_files import read_jobs

    in_a, in_b = read_jobs(a), read_jobs(b)
    result = compare(in_a, in_b, tolerance)
    if as_json:
        sides = {
            name: {"path": table.path, "rows": len(table.records), "probes": table.n_probes}
            for name, table in (("a", in_a), ("b", in_b))
        }
        facts = comparison_facts(result, allocations)
        _print_record({**facts, **sides}, {"": result}, files)
        return result.same(allocations)
    click.echo(_verdict(result, allocations))
    click.echo(f"A: {in_a.path}, {in_a.size}")
    click.echo(f"B: {in_b.path}, {in_b.size}")
    for line in _lines(result, allocations):
        click.echo(line)
    _write({"": result}, files)
    return result.same(allocations)


def _batsched(runs: Iterator[Compared], files: Files, as_json: bool) -> bool:
    results, records = {}, []
    for compared in runs:
        policy, source, result = compared
        results[f"{policy}-{source}"] = result
        if as_json:
            records.append(batsched_record(compared))
            continue
        click.echo(verdict(compared))
        if not result.same(allocations=True):
            click.echo("A: Batsched, B: the embedded engine")
            for line in _lines(result, allocations=True):
                click.echo(line)
    same = all(result.same(allocations=True) for result in results.values())
    if as_json:
        _print_record({"same": same, "comparisons": records}, results, files)
    else:
        _write(results, files)
    return same


def _print_record(record: dict[str, Any], results: dict[str, Comparison], files: Files) -> None:
    """Write the comparisons to a folder. Print the record and the path of the folder as JSON."""
    _save(results, files)
    print_json({**record, "out": files.out}, f"the differences are in {files.out}")


def _write(results: dict[str, Comparison], files: Files) -> None:
    """Write the comparisons and print their folder."""
    _save(results, files)
    if files.out is not None:
        click.echo(f"wrote the differences to {files.out}")


def _save(results: dict[str, Comparison], files: Files) -> None:
    """Write each comparison to its own folder in ``files.out``."""
    if files.out is None:
        return
    from rebat.core.files import write_text
    from rebat.core.folders import atomic_folder
    from rebat.figures.compare import PNG, draw_comparison
    from rebat.results.compare.schedules import differences_csv

    with atomic_folder(files.out, files.force) as folder:
        for name, result in results.items():
            write_text(folder / name / "differences.csv", differences_csv(result))
            draw_comparison(result, ("A", "B"), folder / name / "differences", files.figures or PNG)


def _verdict(result: Comparison, allocations: bool) -> str:
    if result.same(allocations):
        return f"The runs are equal: {counted(len(result.keys), 'row')} (jobs and resubmissions)."
    parts = [
        f"{len(result.differing)} of {len(result.keys)} common jobs have different times or states"
    ]
    parts += [f"{result.other_nodes} have different nodes"] * allocations
    alone = len(result.only_a) + len(result.only_b)
    parts += [f"{alone} are in one run only"] * bool(alone)
    return f"The runs differ: {', '.join(parts)}."


def _lines(result: Comparison, allocations: bool) -> list[str]:
    counts = (
        f"{counted(len(result.keys), 'job')} in both runs, {len(result.only_a)} only in A, "
        f"{len(result.only_b)} only in B"
    )
    lines = [counts, *_spread_lines(result)]
    if result.other_states:
        lines.append(f"different final state: {counted(result.other_states, 'job')}")
    if allocations:
        lines.append(f"different nodes: {counted(result.other_nodes, 'job')}")
    if result.first is not None:
        lines += _first_lines(result.first)
    return lines + _metric_lines(result)


def _spread_lines(result: Comparison) -> list[str]:
    from rebat.report.table import Table

    rows = [
        [name, number(row.equal), number(row.differing), duration(row.max_s), duration(row.mean_s)]
        for name, row in result.spreads.items()
    ]
    columns = ["times", "equal", "differ", "largest difference", "mean difference"]
    return Table("", "", columns, rows).text().splitlines()


def _first_lines(first: Divergence) -> list[str]:
    at_s = to_s(first.at_us)
    return [
        f"first difference at {at_s:.6f} s ({duration(at_s)}): job {first.key}",
        f"  in A {_fate(first.a)}; running then: {_running(first.running_a)}",
        f"  in B {_fate(first.b)}; running then: {_running(first.running_b)}",
    ]


def _fate(record: JobRecord | None) -> str:
    if record is None:
        return "it is missing"
    if record.start_us is None or record.end_us is None:
        return "it never starts"
    return f"it runs from {to_s(record.start_us):.6f} to {to_s(record.end_us):.6f}"


def _running(records: Sequence[JobRecord], most: int = 8) -> str:
    nodes = sum(len(record.nodes) for record in records)
    names = ", ".join(record.job_id for record in records[:most])
    more = f" and {len(records) - most} more" if len(records) > most else ""
    return f"{counted(len(records), 'job')} on {counted(nodes, 'node')}" + (
        f" ({names}{more})" if records else ""
    )


def _metric_lines(result: Comparison) -> list[str]:
    from rebat.report.table import Table
    from rebat.results.metric import FORMS

    rows = []
    for line in result.metrics:
        values = [FORMS[line.unit](line.values[name]) or "-" for name in ("A", "B")]
        rows.append([line.metric, *values, ratio(line.ratio("B", "A")) or "-"])
    return Table("", "", ["metric", "A", "B", "B / A"], rows).text().splitlines()


TIMEOUT_S = 600.0
"""Maximum time to wait for a reply of Batsched, in seconds."""

Compared = tuple[str, str, "Comparison"]
"""A result: preset, source of Batsched's schedule (``recorded`` or ``running``), comparison."""


def with_batsched(
    workload: Path, policies: Sequence[str], endpoint: str | None, tolerance_s: float
) -> Iterator[Compared]:
    """Compare each policy with the recorded schedule and with a running Batsched.

    The running Batsched listens at ``endpoint``. If ``endpoint`` is None, the function starts the
    program batsched on the PATH. In a comparison, A is Batsched and B is the embedded engine.
    """
    from rebat.campaign.batsched import (
        VARIANTS,
        embedded,
        installed,
        listening,
        played,
        recorded,
        recorded_of,
    )
    from rebat.console.progress import compiling_notice, simulation_bar
    from rebat.results.compare.schedules import compare
    from rebat.results.files.batsim_files import read_jobs
    from rebat.workloads.load import load_workload

    chosen = list(policies or VARIANTS)
    if endpoint is not None and len(chosen) != 1:
        expected = f"--policy {' or '.join(VARIANTS)}"
        raise InputError("needs exactly one policy", "--endpoint", expected)
    files, program = recorded_of(workload), installed()
    if not files and program is None and endpoint is None:
        raise InputError(
            "has no recorded Batsched schedule, and batsched is not on the PATH",
            str(workload),
            f"{' or '.join(recorded())}, or Batsched 1.4 on the PATH",
        )
    jobs = load_workload(workload)
    with compiling_notice():
        for policy in chosen:
            with simulation_bar(policy, len(jobs.jobs)) as on_progress:
                ours = embedded(jobs, policy, on_progress)
            if policy in files:
                yield policy, "recorded", compare(read_jobs(files[policy]), ours, tolerance_s)
            if endpoint is None and program is None:
                continue
            source = listening(str(program), policy) if endpoint is None else nullcontext(endpoint)
            with source as address, simulation_bar("batsched", len(jobs.jobs)) as on_progress:
                theirs = played(jobs, policy, address, TIMEOUT_S, on_progress)
            yield policy, "running", compare(theirs, ours, tolerance_s)


def batsched_record(compared: Compared) -> dict[str, Any]:
    """Return comparisons as plain data. A is Batsched and B is the embedded engine."""
    from rebat.results.compare.schedules import comparison_facts

    policy, source, result = compared
    return {"policy": policy, "source": source, **comparison_facts(result, allocations=True)}


def verdict(compared: Compared) -> str:
    """Return a line with the preset, the source of Batsched's schedule and the differences."""
    policy, source, result = compared
    n_jobs = len(result.keys)
    if result.same(allocations=True):
        outcome = f"equal, {counted(n_jobs, 'job')} with the same states, times and nodes"
    else:
        alone = len(result.only_a) + len(result.only_b)
        outcome = (
            f"DIFFERENT: {counted(n_jobs, 'job')} in both runs (different times or states: "
            f"{len(result.differing)}, different nodes: {result.other_nodes}), "
            f"{counted(alone, 'job')} in only one run"
        )
    return f"{policy:<22} against {source} Batsched: {outcome}"


@command()
def diff_policies(
    out: AnyPath,
    a: str | None = None,
    b: str | None = None,
    *,
    nodes: Annotated[
        bool,
        "Also report a difference if both policies start a job at the same time on different nodes.",
    ] = False,
    as_json: Json = False,
) -> None:
    """Find the first decision at which the policies A and B differ.

    OUT is a folder of 'rebat run --out'. The default of A and B are the first two policies of the
    folder. Before this decision, both runs are equal. The command prints the decision of each
    policy, the state before it, and how the jobs of the decision ended under each policy.

    \b
    Example:
      rebat run june.json.gz -p baseline -p sfsj --mtbf 1h --downtime 1h --out out/june
      rebat diff-policies out/june baseline sfsj
    """
    from rebat.results.compare.parting import ends, parting
    from rebat.results.files.run_folder import read_timeline, run_folders

    folders = run_folders(out, [name for name in (a, b) if name is not None])
    if len(folders) != 2:
        raise InputError("contains only one policy", str(out), "two policies to compare")
    first, second = map(read_timeline, folders)
    parted = parting(first, second, nodes)
    if as_json:
        print_json(_parting_record(first.name, second.name, parted, ends(first, second)))
    else:
        print_result(
            _parting_text(first, second, parted, ends(first, second), out), "nothing is saved"
        )


def _parting_text(
    first: Timeline, second: Timeline, parted: Parting | None, result: Ends, out: Path
) -> str:
    from rebat.results.compare.parting import SAME, around_us, difference_text

    if parted is None:
        return SAME.format(first.name, second.name)
    names = (first.name, second.name)
    decisions, knowledge, end = difference_text(names, parted, result)
    lines = [
        *decisions,
        "",
        knowledge,
        end,
        "",
        _jobs_table(names, parted),
        f"explore this time: {_command(out, names, parted.at_us, around_us(first, second))}",
    ]
    return "\n".join(lines)


def _jobs_table(names: tuple[str, str], parted: Parting) -> str:
    from rebat.report.table import Table

    columns = ["job", *(f"{time}, {name}" for time in ("first start", "end") for name in names)]
    rows = [
        [job, *map(_time, [x.first_start_us for x in pair] + [x.end_us for x in pair])]
        for job, pair in parted.outcomes.items()
    ]
    title = "The jobs of these decisions, in the end"
    return Table("", title, columns, rows, "times in seconds").text()


def _time(us: int | None) -> str:
    return "-" if us is None else number.with_digits(9)(to_s(us))


def _command(out: Path, names: tuple[str, str], at_us: int, around_us: float) -> str:
    first_s, last_s = (at_us - around_us) / 1e6, (at_us + around_us) / 1e6
    window = f"{max(0, math.floor(first_s))}s:{math.ceil(last_s)}s"
    policies = [word for name in names for word in ("-p", name)]
    return shlex.join(["rebat", "view", str(out), *policies, "--window", window])


def _parting_record(a: str, b: str, parted: Parting | None, result: Ends) -> dict[str, Any]:
    record: dict[str, Any] = {"a": a, "b": b, "same": parted is None}
    if parted is None:
        return record
    return record | {
        "at_s": to_s(parted.at_us),
        "equal_decisions": parted.n_equal,
        "only_a": parted.only[0],
        "only_b": parted.only[1],
        "knew": parted.knew,
        "outcomes": {
            job: {"a": _outcome(first), "b": _outcome(second)}
            for job, (first, second) in parted.outcomes.items()
        },
        "ends_with_b": result,
    }


def _outcome(outcome: JobOutcome) -> dict[str, Any]:
    return {
        "first_start_s": None if outcome.first_start_us is None else to_s(outcome.first_start_us),
        "end_s": None if outcome.end_us is None else to_s(outcome.end_us),
        "attempts": outcome.attempts,
    }
