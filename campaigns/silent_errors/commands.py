# SPDX-License-Identifier: Apache-2.0
"""``rebat bound`` and ``rebat makespan``: lower bounds, guarantees, and makespans of job sets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import click

from rebat.cli.command import command
from rebat.cli.options import AnyPath, File, Json, NewFile, WorkloadFile, print_json
from rebat.console.progress import compiling_notice
from rebat.core.declared import Count, Machine, Seed, extra
from rebat.core.errors import InputError
from rebat.core.formatting import csv_line
from rebat.core.numbers import counted, number, ratio

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rebat.core.jobs import Workload
    from rebat.policies.makespans import MakespanRow


class Instance(NamedTuple):
    """Jobs and failure scenarios, as arrays in the format of ``models.silent_errors``."""

    name: str
    unit: str
    """Unit of ``times``."""
    n_procs: int
    times: NDArray[np.int64]
    sizes: NDArray[np.int64]
    failures: NDArray[np.int64]
    released_together: bool
    too_large: int = 0
    """Number of jobs that are omitted because they are larger than the machine."""
    n_killed: int = 0
    """Number of killed attempts of the run."""


@command()
def bound(
    workload: WorkloadFile,
    *,
    nodes: Annotated[
        Machine | None, "Number of nodes of the machine (default: the workload's)."
    ] = None,
    failures_of: Annotated[
        AnyPath | None,
        "Run from which to read each job's number of silent errors: its jobs.csv or its folder (default: the silent errors in the workload).",
    ] = None,
    as_json: Json = False,
) -> None:
    """Print lower bounds on the makespan of WORKLOAD, and the guarantees of R-LIST and R-SHELF.

    WORKLOAD is any workload that 'rebat run' reads, or a job set of 'rebat makespan'. Jobs larger
    than the machine are omitted, because batch systems reject them. There are two lower bounds
    (equations 5 and 6 of RR-9296). The first bound is the longest total run time of all attempts of
    a job. The second bound is the area of all attempts (nodes x time), divided by the number of
    nodes. No makespan is shorter than the larger of the two bounds. The makespan of R-LIST or
    R-SHELF is at most the printed ratio times this bound (propositions 1 and 2).

    Errors are attempts that end with a silent error. Attempts that a node failure interrupts are
    not errors.

    \b
    Example (how far the makespan of a run may be from the optimum):
      rebat bound jobs.json --failures-of out/r-list-0
    """
    instance = read_instance(workload, nodes, failures_of)
    if instance.too_large:
        click.echo(f"rebat: warning: {_left_out(instance)}", err=True)
    rows = _scenarios(instance)
    if as_json:
        print_json(_record(instance, rows))
        return
    for line in _lines(instance, rows):
        click.echo(line)


def read_instance(path: Path, nodes: int | None, failures_of: Path | None) -> Instance:
    """Read the jobs and scenarios of a job set or workload file."""
    from rebat.policies.makespans import read_job_set
    from rebat.workloads.load import load_workload

    if not _is_job_set(path):
        return _of_workload(load_workload(path), nodes, failures_of)
    if nodes is not None or failures_of is not None:
        raise InputError("is a job set", str(path), "a workload with --nodes or --failures-of")
    jobs = read_job_set(path)
    return Instance(jobs.id, "units", jobs.n_procs, jobs.times, jobs.sizes, jobs.failures, True)


def _is_job_set(path: Path) -> bool:
    import msgspec

    from rebat.core.files import read_text

    if not path.name.removesuffix(".gz").endswith(".json"):
        return False
    try:
        return "P" in msgspec.json.decode(read_text(path), type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return False  # the reader of workloads will report the error


def _of_workload(jobs: Workload, nodes: int | None, failures_of: Path | None) -> Instance:
    """Return the instance of a workload. Times are in us, and no longer than the walltime."""
    import numpy as np

    from rebat.core.jobs import duration_us
    from rebat.models.silent_errors import errors_left

    n_procs = nodes or jobs.n_nodes
    fitting = [job for job in jobs.jobs if job.n_nodes <= n_procs]
    if not fitting:
        raise InputError("no job fits on the machine", jobs.name)
    runs = [duration_us(jobs.profiles, job.profile) for job in fitting]
    ends = [
        job.walltime_us is None or t < job.walltime_us for job, t in zip(fitting, runs, strict=True)
    ]
    n_killed = 0
    if failures_of is None:
        profiles = (jobs.profiles[job.profile] for job in fitting)
        failures = [errors_left(p) if end else 0 for p, end in zip(profiles, ends, strict=True)]
    else:
        counts, n_killed = failed_attempts(failures_of, {job.id for job in jobs.jobs})
        failures = [counts.get(job.id, 0) for job in fitting]
    return Instance(
        name=jobs.name,
        unit="s",
        n_procs=n_procs,
        times=np.minimum(
            runs, [job.walltime_us or t for job, t in zip(fitting, runs, strict=True)]
        ),
        sizes=np.array([job.n_nodes for job in fitting], np.int64),
        failures=np.array([failures], np.int64),
        released_together=len({job.submit_us for job in fitting}) == 1,
        too_large=len(jobs.jobs) - len(fitting),
        n_killed=n_killed,
    )


def failed_attempts(run: Path, jobs: Collection[str]) -> tuple[dict[str, int], int]:
    """Return the number of failed attempts of each job, and the total number of killed attempts.

    The last attempt of a job does not count as failed.
    """
    from rebat.core.attempts import split_attempt
    from rebat.results.files.batsim_files import FAILED, KILLED, SUCCESS, read_jobs

    counts: dict[str, int] = {}
    n_killed = 0
    for record in read_jobs(run).records:
        n_killed += record.state == KILLED
        if record.state in (SUCCESS, FAILED):
            name = record.job_id
            job_id = name if name in jobs else split_attempt(name)[0]
            counts[job_id] = counts.get(job_id, -1) + 1
    return counts, n_killed


class ScenarioBounds(NamedTuple):
    """Bounds of a failure scenario, in the instance's unit of time. An unproved bound is None."""

    scenario: int
    errors: int
    longest_chain: float
    area_per_node: float
    lower_bound: float
    r_list_0_at_most: float | None
    r_list_m_at_most: float | None


def _scenarios(instance: Instance) -> list[ScenarioBounds]:
    from rebat.models.silent_errors import longest_chain, lower_bounds, total_area

    times, sizes, failures, n_procs = (
        instance.times,
        instance.sizes,
        instance.failures,
        instance.n_procs,
    )
    scale = 1e-6 if instance.unit == "s" else 1.0
    columns = zip(
        failures.sum(axis=1).tolist(),
        (longest_chain(times, failures) * scale).tolist(),
        (area * scale / n_procs for area in total_area(times, sizes, failures)),
        (low * scale for low in lower_bounds(times, sizes, failures, n_procs)),
        strict=True,
    )
    return [
        ScenarioBounds(
            scenario,
            *row,
            *(
                row[-1] * ratio if instance.released_together else None
                for ratio in _ratios(n_procs)
            ),
        )
        for scenario, row in enumerate(columns)
    ]


def _ratios(n_procs: int) -> tuple[float, float]:
    """Return the proved ratios of R-LIST-0, and of R-LIST-m with the priority rule LJF."""
    return 2 - 1 / n_procs, 3 - 4 / (n_procs + 1)


def _record(instance: Instance, rows: Sequence[ScenarioBounds]) -> dict[str, Any]:
    greedy, reserving = _ratios(instance.n_procs)
    return {
        "name": instance.name,
        "jobs": len(instance.times),
        "nodes": instance.n_procs,
        "unit": instance.unit,
        "too_large": instance.too_large,
        "killed_attempts": instance.n_killed,
        "released_together": instance.released_together,
        "r_list_0_ratio": greedy,
        "r_list_m_ratio": reserving,
        "scenarios": [row._asdict() for row in rows],
    }


def _lines(instance: Instance, rows: Sequence[ScenarioBounds]) -> list[str]:
    titles = ("scenario", "errors", "(5) t_max(f)", "(6) A(f)/P", "L(f)", "R-LIST-0", "LJF")
    return [
        f"{instance.name}: {counted(len(instance.times), 'job')} on {counted(instance.n_procs, 'node')}; "
        f"times in {instance.unit}",
        *([_left_out(instance)] if instance.too_large else []),
        *(map(_row, [titles, *rows])),
        *_meaning(instance),
        *_guarantees(*_ratios(instance.n_procs), instance.released_together),
    ]


def _meaning(instance: Instance) -> list[str]:
    lines = ["errors: attempts that end with a silent error; node failures do not count."]
    if instance.n_killed:
        lines.append(
            f"  attempts of the run that were killed (not counted as errors): {instance.n_killed}"
        )
    return lines


def _left_out(instance: Instance) -> str:
    total = len(instance.times) + instance.too_large
    return (
        f"left out: {instance.too_large} of {counted(total, 'job')}, because they are larger than "
        f"the {instance.n_procs} nodes"
    )


def _row(cells: tuple[Any, ...]) -> str:
    texts = [
        "-" if cell is None else f"{cell:.6f}" if isinstance(cell, float) else str(cell)
        for cell in cells
    ]
    return "".join(text.rjust(width) for text, width in zip(texts, (8, 10, *[20] * 5), strict=True))


def _guarantees(greedy: float, reserving: float, together: bool) -> list[str]:
    lines = [
        "No schedule ends before L(f), the larger of (5) and (6). Proved for the makespan:",
        f"  R-LIST-0, any rule: at most (2 - 1/P) L(f) = {number.with_digits(6)(greedy)} L(f), for any f "
        "(proposition 2, section 4.2.2)",
        f"  R-LIST-m with m > 0, rule LJF: at most (3 - 4/(P+1)) L(f) = {number.with_digits(6)(reserving)} L(f), "
        "for any f (proposition 1, section 4.2.1)",
        "  R-SHELF-NB, rule LPT: at most 3 times the optimum without errors (NFDH, section 4.3)",
        "  R-SHELF with errors: no constant ratio; Omega(ln P) times the optimum for some f "
        "(proposition 3, section 4.3)",
    ]
    if not together:
        lines.append(
            "The jobs are not submitted at the same time. L(f) is still a lower bound on the time "
            "from the first submission to the last end, but the ratios are not proved."
        )
    return lines


_CHUNK = 4096
"""Number of rows that are written in one step."""

_Ratios = dict[tuple[str, str], tuple[float, int]]
"""For each heuristic and rule: sum and number of the ratios of makespan to lower bound."""


@command()
def makespan(
    files: Annotated[tuple[File, ...], extra(metavar="FILE...")],
    *,
    heuristics: Annotated[
        tuple[str, ...],
        "-H",
        "--heuristic",
        "Heuristic: R-LIST-0, R-LIST-1, R-LIST-<m>, R-LIST-Q, R-SHELF-B or R-SHELF-NB; may be repeated (default: the paper's five).",
    ] = (),
    rules: Annotated[
        tuple[str, ...],
        "-R",
        "--rule",
        "Priority rule: LPT, SPT, HPA, LPA, LA, SA, LJF or RANDOM; may be repeated (default: the paper's six rules without RANDOM).",
    ] = (),
    reservations: Annotated[
        str,
        "How R-LIST reserves nodes. paper: as in Algorithm 1. easy_head: a job that starts immediately does not use up a reservation. stale: reservations are never cancelled.",
    ] = "paper",
    seed: Annotated[Seed, "Seed of the rule RANDOM."] = 0,
    threads: Annotated[Count, "Number of threads."] = 1,
    out: Annotated[
        NewFile | None,
        "-o",
        "--out",
        "Output file, compressed if it ends in .gz (default: standard output).",
    ] = None,
) -> None:
    """Compute makespans of resilient heuristics on job sets, as CSV.

    Each FILE is JSON with "P" (number of processors), "jobs" and "scenarios" (RR-9296, sections 3
    and 4). A job is an object with "p" (processors) and "t" (time). A scenario is an object with
    "f" (the number of failed attempts of each job). The columns of the output are set, scenario,
    heuristic, rule, makespan and lower_bound (equations 5 and 6), in the time unit of the file.
    With -o, the command prints which heuristic and rule have the lowest mean ratio of makespan to
    lower bound.

    \b
    Example:
      rebat makespan sets/*.json --heuristic R-LIST-0 --rule LPT --rule LA -o makespans.csv
    """
    from rebat.core.files import atomic_path, write_text
    from rebat.models.resilient import HEURISTICS
    from rebat.policies.makespans import PAPER_RULES, makespans

    ratios: _Ratios = {}
    computed = makespans(
        files,
        heuristics or HEURISTICS,
        rules or PAPER_RULES,
        reservations=reservations,
        seed=seed,
        threads=threads,
    )
    rows = _with_ratios(computed, ratios)
    with compiling_notice():
        if out is None:
            for text in _csv(rows):
                click.echo(text, nl=False)
        elif out.suffix == ".gz":
            write_text(out, "".join(_csv(rows)))
        else:
            with atomic_path(out) as temporary, temporary.open("w", encoding="utf-8") as file:
                file.writelines(_csv(rows))
    if out is not None:
        if ratios:
            click.echo(_verdict(ratios))
        click.echo(f"makespans in {out}")


def _with_ratios(rows: Iterable[MakespanRow], ratios: _Ratios) -> Iterator[MakespanRow]:
    """Yield the rows, and add the ratio of each row to ``ratios``."""
    for row in rows:
        if row.lower_bound:
            total, count = ratios.get((row.heuristic, row.rule), (0.0, 0))
            ratio = row.makespan / row.lower_bound
            ratios[row.heuristic, row.rule] = total + ratio, count + 1
        yield row


def _verdict(ratios: _Ratios) -> str:
    """Return a sentence on the heuristic and rule with the lowest mean ratio."""
    means = {pair: total / count for pair, (total, count) in ratios.items()}
    heuristic, rule = best = min(means, key=means.__getitem__)
    return (
        f"lowest mean makespan: {heuristic} with {rule}, {ratio(means[best])} times the lower bound "
        f"({ratios[best][1]} scenarios)"
    )


def _csv(rows: Iterable[MakespanRow]) -> Iterator[str]:
    """Yield the table in chunks of lines. The first chunk begins with the header."""
    from rebat.policies.makespans import MakespanRow

    lines = iter(rows)
    part: list[tuple[object, ...]] = [MakespanRow._fields, *islice(lines, _CHUNK)]
    while part:
        yield "".join(map(csv_line, part))
        part = list(islice(lines, _CHUNK))
