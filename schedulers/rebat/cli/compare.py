# SPDX-License-Identifier: Apache-2.0
"""``rebat compare``: compare two runs of a workload, or Batsched with its presets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rebat.cli.compare_batsched import Compared, batsched_record, verdict, with_batsched
from rebat.cli.json_output import json_option, print_json
from rebat.cli.types import FOLDER, WORKLOAD, FiniteRange
from rebat.core.errors import InputError
from rebat.core.formatting import counted
from rebat.core.units import format_duration, to_s

if TYPE_CHECKING:
    from rebat.results.compare.schedules import Comparison, Divergence
    from rebat.results.files.batsim_files import JobRecord

RUNS = click.Path(path_type=Path)
BATSCHED = ("batsched-conservative", "batsched-easy", "batsched-fcfs")


@click.command()
@click.argument("a", type=RUNS, required=False)
@click.argument("b", type=RUNS, required=False)
@click.option(
    "--batsched",
    type=WORKLOAD,
    help=(
        "Compare the batsched-* policies with Batsched on this workload. Do not use A and B "
        "with this option."
    ),
)
@click.option(
    "-p",
    "--policy",
    "policies",
    multiple=True,
    type=click.Choice(BATSCHED),
    help="With --batsched: compare this policy only; may be repeated (default: all three).",
)
@click.option(
    "--endpoint",
    help=(
        "With --batsched and one policy: connect to a Batsched that listens at this address, "
        "tcp://HOST:PORT. Default: start the program batsched, if it is on the PATH."
    ),
)
@click.option(
    "--tolerance",
    type=FiniteRange(min=0),
    default=1e-3,
    show_default=True,
    help="Times that differ by at most this number of seconds count as equal.",
)
@click.option("--allocations", is_flag=True, help="Also compare the nodes of each job.")
@click.option(
    "--out", type=FOLDER, help="Folder in which differences.csv and a figure are written."
)
@click.option("--force", is_flag=True, help="Replace an earlier comparison in the folder --out.")
@json_option
def compare(
    a: Path | None,
    b: Path | None,
    batsched: Path | None,
    policies: tuple[str, ...],
    endpoint: str | None,
    tolerance: float,
    allocations: bool,
    out: Path | None,
    force: bool,
    as_json: bool,
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
    if batsched is not None:
        if a is not None:
            raise click.UsageError("--batsched WORKLOAD replaces the runs A and B; remove A")
        runs = with_batsched(batsched, policies, endpoint, tolerance)
        same = _batsched(runs, out, force, as_json)
    elif policies or endpoint:
        raise click.UsageError("--policy and --endpoint need --batsched WORKLOAD")
    elif a is None or b is None:
        raise click.UsageError(
            "the runs A and B are missing (expected two runs, or --batsched WORKLOAD)"
        )
    elif several := _several(a, b):
        same = _summaries(several, allocations, out)
    else:
        same = _two_runs(a, b, tolerance, allocations, out, force, as_json)
    if not same:
        raise SystemExit(1)


def _several(a: Path, b: Path) -> list[Path]:
    """If A or B has several policies, return the folders of all policies in A and B."""
    from rebat.library.summaries import runs_in

    in_a, in_b = runs_in(a), runs_in(b)
    return [*in_a, *in_b] if in_a and in_b and len(in_a) + len(in_b) > 2 else []


def _summaries(folders: list[Path], allocations: bool, out: Path | None) -> bool:
    from rebat.library.summaries import compared_summaries

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
    out: Path | None,
    force: bool,
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
        _print_record({**facts, **sides}, {"": result}, out, force)
        return result.same(allocations)
    click.echo(_verdict(result, allocations))
    click.echo(f"A: {in_a.path}, {in_a.size}")
    click.echo(f"B: {in_b.path}, {in_b.size}")
    for line in _lines(result, allocations):
        click.echo(line)
    _write({"": result}, out, force)
    return result.same(allocations)


def _batsched(runs: Iterator[Compared], out: Path | None, force: bool, as_json: bool) -> bool:
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
        _print_record({"same": same, "comparisons": records}, results, out, force)
    else:
        _write(results, out, force)
    return same


def _print_record(
    record: dict[str, Any], results: dict[str, Comparison], out: Path | None, force: bool
) -> None:
    """Write the comparisons to a folder. Print the record and the path of the folder as JSON."""
    _save(results, out, force)
    print_json({**record, "out": out}, f"the differences are in {out}")


def _write(results: dict[str, Comparison], out: Path | None, force: bool) -> None:
    """Write the comparisons and print their folder."""
    _save(results, out, force)
    if out is not None:
        click.echo(f"wrote the differences to {out}")


def _save(results: dict[str, Comparison], out: Path | None, force: bool) -> None:
    """Write each comparison to its own folder in ``out``."""
    if out is None:
        return
    from rebat.core.files import write_text
    from rebat.core.folders import atomic_folder
    from rebat.figures.compare import draw_comparison
    from rebat.results.compare.schedules import differences_csv

    with atomic_folder(out, force) as folder:
        for name, result in results.items():
            write_text(folder / name / "differences.csv", differences_csv(result))
            draw_comparison(result, ("A", "B"), folder / name / "differences.png")


def _verdict(result: Comparison, allocations: bool) -> str:
    if result.same(allocations):
        return f"The runs are equal: {counted(len(result.pairs), 'job')}."
    parts = [
        f"{len(result.differing)} of {len(result.pairs)} common jobs have different times or states"
    ]
    parts += [f"{result.other_nodes} have different nodes"] * allocations
    alone = len(result.only_a) + len(result.only_b)
    parts += [f"{alone} are in one run only"] * bool(alone)
    return f"The runs differ: {', '.join(parts)}."


def _lines(result: Comparison, allocations: bool) -> list[str]:
    counts = (
        f"{counted(len(result.pairs), 'job')} in both runs, {len(result.only_a)} only in A, "
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
    lines = [f"{'':<10}{'equal':>8}{'differ':>8}{'largest (s)':>16}{'mean (s)':>16}"]
    for name, spread in result.spreads.items():
        counts = f"{name:<10}{spread.equal:>8}{spread.differing:>8}"
        lines.append(f"{counts}{spread.max_s:>16.6f}{spread.mean_s:>16.6f}")
    return lines


def _first_lines(first: Divergence) -> list[str]:
    at_s = to_s(first.at_us)
    return [
        f"first difference at {at_s:.6f} s ({format_duration(at_s)}): job {first.key}",
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
    from rebat.results.metric import written

    lines = [f"{'':<20}{'A':>12}{'B':>12}{'B/A':>10}"]
    for line in result.metrics:
        a, b = (written(line.unit, line.values[name]) for name in ("A", "B"))
        value = line.ratio("B", "A")
        lines.append(
            f"{line.metric:<20}{a:>12}{b:>12}{'-' if value is None else f'{value:.4f}':>10}"
        )
    return lines
