# SPDX-License-Identifier: Apache-2.0
"""``rebat boxes`` and ``rebat batch``: boxes of a torus, and jobs that run one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import click
import msgspec
from msgspec import Meta

from rebat.cli.command import command
from rebat.cli.options import File, Folder, ForceFolder, Json, print_json
from rebat.console.output import print_line, print_result
from rebat.console.progress import Pace, compiling_notice
from rebat.core.declared import Count, Seconds, Seed
from rebat.core.errors import InputError, error_at
from rebat.core.numbers import counted, decimal, duration, hours, node_hours, number, share
from rebat.models.failures.law import Law
from rebat.report.table import Table
from rebat.results.comparison import change_text, runs_text
from rebat.results.intervals import interval, ratio_of_means

if TYPE_CHECKING:
    from rebat.models.batch import Batch, BatchResult
    from rebat.models.boxes import BoxList, SafestBox


Lists = Literal["16", "aligned", "all"]
Sigma = Annotated[float, Meta(ge=0, le=3)]


@command()
def boxes(
    *,
    torus: Annotated[
        str,
        "Size of the torus in each dimension, like 8x8x8x8, or the name of a machine: mira, intrepid.",
    ],
    size: Annotated[Count, "Number of nodes that a job requests."],
    which: Annotated[
        Lists | None,
        "--boxes",
        "Boxes to list. all: every box (default). aligned: boxes whose first corner is a multiple of their size in each dimension. 16: the aligned boxes with the smallest surface, such as the 16 boxes of 4x4x4x4 on 8x8x8x8.",
    ] = None,
    aligned: Annotated[bool, "Short form of --boxes aligned."] = False,
    block: Annotated[
        str | None,
        "--block",
        "--unit",
        "Size of a block in each dimension, like 4x4x4x4x2 (default: single nodes). A block is a group of nodes that is allocated as a whole.",
    ] = None,
    law: Annotated[
        File | None,
        "Table with the failure law and the uptime of every node (node,scale_s,shape,uptime_s), as written by 'rebat failures fit'. With this option the command prints the free box with the lowest failure probability.",
    ] = None,
    duration: Annotated[Seconds | None, "With --law: run time of the job."] = None,
    busy: Annotated[str | None, "With --law: busy nodes, like '0-3 5' (default: none)."] = None,
    as_json: Json = False,
) -> None:
    """List the boxes of --size nodes on a torus. Boxes may wrap around.

    Node i of a torus a x b x c has the coordinates i % a, i // a % b, i // a // b, so the first
    coordinate varies fastest. With --law, print the free box that is least likely to fail while the
    job runs. The probability depends on the uptime of each node (FAPS of Vardas et al. 2022).

    \b
    Examples:
      rebat boxes --torus 8x8x8x8 --size 256
      rebat boxes --torus mira --size 3000 --block 4x4x4x4x2 \\
          --law nodes.csv --duration 24h --busy '0-2047 4096'
    """
    from rebat.models.boxes import BoxList
    from rebat.models.topology import parse_extents, parse_torus

    if aligned and which not in (None, "aligned"):
        raise InputError(f"contradicts --boxes {which}", "--aligned", "only one of the two options")
    with error_at("--torus"):
        of_nodes = parse_torus(torus)
    with error_at("--block"):
        block_extents = parse_extents(block) if block is not None else None
    listed = BoxList(of_nodes, size, "aligned" if aligned else which or "all", block_extents)
    best = _best(listed, law, duration, busy)
    if as_json:
        print_json(_boxes_record(listed, best))
        return
    for line in _boxes_lines(listed, best, duration):
        click.echo(line)


def _best(
    listed: BoxList, law: Path | None, duration: float | None, busy: str | None
) -> SafestBox | None:
    """Return the free box with the lowest failure probability. If there is no law, return None."""
    from rebat.core.nodes import NodeSet
    from rebat.models.failures.node_table import read_nodes

    if law is None:
        for name, value in (("--duration", duration), ("--busy", busy)):
            if value is not None:
                raise InputError("has no effect", name, "--law as well")
        return None
    if duration is None:
        raise InputError("is missing", "--duration", "the run time of the job, like 24h")
    with error_at("--busy"):
        taken = NodeSet.parse(busy or "")
    return listed.best(read_nodes(law, listed.blocks.of_nodes.n_nodes), duration, taken)


def _boxes_record(listed: BoxList, best: SafestBox | None) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "torus": listed.blocks.of_nodes.sizes,
        "size": listed.size,
        "box_nodes": listed.box_nodes,
        "waste": listed.waste,
        "shapes": [{"shape": shape, "placements": count} for shape, count in listed.shapes],
        "placements": len(listed.boxes),
    }
    if best is not None:
        facts["best"] = {
            "shape": best.shape,
            "origin": best.origin,
            "nodes": list(best.nodes),
            "failure_probability": best.failure_probability,
        }
    return facts


def _boxes_lines(
    listed: BoxList, best: SafestBox | None, duration_s: float | None
) -> Iterator[str]:
    nodes = listed.blocks.of_nodes
    blocks = f" in blocks of {listed.blocks.size}" if listed.blocks.size > 1 else ""
    yield f"{nodes}: {nodes.n_nodes} nodes{blocks}"
    yield f"{listed.size} nodes: boxes of {listed.box_nodes}, {listed.waste} unused"
    boxes = counted(len(listed.boxes), "box", "boxes")
    yield f"{boxes}, with {len(listed.shapes)} different dimensions:"
    for shape, count in listed.shapes:
        yield f"  {_extents_text(shape):<20} {count:>8,}"
    if best is not None and duration_s is not None:
        yield f"free box with the lowest failure probability within {duration(duration_s)}:"
        yield f"  dimensions           {_extents_text(best.shape)}"
        yield f"  origin               {','.join(map(str, best.origin))}"
        yield f"  failure probability  {number.with_digits(6)(best.failure_probability)}"
        yield f"  nodes                {best.nodes}"


def _extents_text(extents: tuple[int, ...]) -> str:
    return "x".join(map(str, extents))


@command()
def batch(
    *,
    torus: Annotated[
        str,
        "Size of the torus in each dimension, like 8x8x8x8, or the name of a machine: mira, intrepid.",
    ],
    sizes: Annotated[
        tuple[Count, ...],
        "--size",
        "Number of nodes of each job. If the option is repeated, the size of each job is a random one of these numbers.",
    ],
    jobs: Annotated[Count, "Number of jobs in the batch."] = 1000,
    durations: Annotated[
        tuple[Seconds, ...],
        "--duration",
        "Run time of each job; repeat the option to compare durations.",
    ],
    duration_sigma: Annotated[
        Sigma,
        "Draw the run time of each job from a log-normal distribution with mean --duration and this standard deviation of the logarithm (default: all jobs equal).",
    ] = 0.0,
    law: Annotated[
        Law,
        "Failure law of the nodes, like weibull:scale=5800h,shape=8; gamma, lognormal and exponential work too (see 'rebat failures generate --help').",
    ],
    policies: Annotated[
        tuple[Literal["slurm-linear", "rps", "faps", "ceiling"], ...],
        "-p",
        "--policy",
        "Policy that chooses the nodes of a job. slurm-linear: the first nodes. rps: a random box. faps: the box with the lowest failure probability. ceiling: the nodes with the lowest failure probability, anywhere on the torus. Repeat the option to compare policies.",
    ],
    lists: Annotated[
        tuple[Lists, ...],
        "--list",
        "Boxes that rps and faps choose from (see 'rebat boxes --help'); repeat the option to compare lists (default: all).",
    ] = (),
    seeds: Annotated[Count | None, "Number of seeds, starting at 0 (default: 5)."] = None,
    seed: Annotated[Seed | None, "Run only this seed."] = None,
    repair: Annotated[
        Seconds | None,
        "Time for which an aborted job waits for the repair (default: the downtime of the law, or 9 min if the law has no downtime).",
    ] = None,
    repair_sigma: Annotated[
        Sigma,
        "Standard deviation of the logarithm of a repair time. Repairs are then log-normal with mean --repair (default 0: all repairs equal).",
    ] = 0.0,
    begin: Annotated[
        Seconds,
        "Age of the machine when the batch begins (default: a new machine). Earlier failures only set the nodes' uptimes.",
    ] = 0.0,
    trace_end: Annotated[
        Seconds | None,
        "Age of the machine after which no node fails, like the end of a failure trace (default: none).",
    ] = None,
    as_json: Json = False,
    out: Annotated[Folder, "Folder in which batch.csv is written."],
    force: ForceFolder = False,
) -> None:
    """Run a batch of jobs, one job at a time, until all have completed.

    A node failure aborts the job on this node. The job waits for the repair. Then the policy
    chooses nodes again, and the job starts from the beginning (Vardas et al. 2022). With the same
    seed, all policies have the same jobs and failures. batch.csv has one row per policy, list of
    boxes, duration and seed. Its column lost_node_s is the node time of aborted attempts.

    \b
    Example (one bar of Figure 4a of the paper):
      rebat batch --torus 8x8x8x8 --size 256 --duration 48h --law weibull:scale=5800h,shape=8 \\
          -p slurm-linear -p rps -p faps --out out/batch
    """
    from rebat.core.files import write_text
    from rebat.core.folders import atomic_folder
    from rebat.models.batch import OF_BOXES, Batch, with_lists
    from rebat.models.failures.per_node_laws import per_node
    from rebat.models.topology import parse_torus

    if lists and not set(policies) & set(OF_BOXES):
        raise InputError("has no effect", "--list", f"-p {' or -p '.join(OF_BOXES)} as well")
    if seeds is not None and seed is not None:
        raise InputError("contradicts --seeds", "--seed", "only one of the two options")
    with error_at("--torus"):
        machine = parse_torus(torus)
    drawn = per_node(law, "--law")
    if repair is not None:
        drawn = msgspec.structs.replace(drawn, downtime_s=repair)
    cases = [
        BatchCase(policy, which, duration_s)
        for policy, which in with_lists(dict.fromkeys(policies), dict.fromkeys(lists or ("all",)))
        for duration_s in dict.fromkeys(durations)
    ]
    numbers = range(5 if seeds is None else seeds) if seed is None else (seed,)
    todo = [  # all batches of a seed have the same failures
        Batch(
            machine,
            sizes[0],
            jobs,
            case.duration_s,
            drawn,
            *case[:2],
            number,
            begin,
            trace_end,
            tuple(dict.fromkeys(sizes[1:])),
            duration_sigma,
            repair_sigma,
        )
        for number in numbers
        for case in cases
    ]
    with atomic_folder(out, force) as folder, compiling_notice():
        results = _run_batches(todo)
        write_text(folder / "batch.csv", batch_csv(cases, results))
    _print_batch(cases, results, out, as_json)


def _print_batch(cases: Sequence[BatchCase], results: Results, out: Path, as_json: bool) -> None:
    saved, rows, lines = f"the results are in {out}", means(cases, results), verdict(cases, results)
    if as_json:
        print_json({"verdict": lines, "cases": rows, "out": out}, saved)
    else:
        text = "".join(f"{line}\n" for line in lines) + means_text(rows)
        print_result(f"{text}results in {out}", saved)


def _run_batches(todo: Sequence[Batch]) -> Results:
    from rebat.models.batch import run_batch

    results = {}
    with _batch_progress(len(todo)) as reporter:
        for number, batch in enumerate(todo):
            policy = f"{batch.policy} {batch.which}".strip()
            label = f"{policy}, {duration(batch.duration_s)}, seed {batch.seed}"
            results[batch] = run_batch(batch, reporter(number, label, batch.n_jobs))
    return results


Reporter = Callable[[int, str, int], Callable[[int, float], None]]
"""Function of the number of completed batches, the current batch and its number of jobs.

It returns a progress callback.
"""


@contextmanager
def _batch_progress(total: int) -> Iterator[Reporter]:
    """Show a progress bar on a terminal. Otherwise, print a line after 2 s and then every 10 s."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("batches, {task.description}"))
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task, pace = bar.add_task("", total=total), Pace()

        def reporter(done: int, label: str, jobs: int) -> Callable[[int, float], None]:
            def on_progress(ended: int, at_s: float) -> None:
                if bar.disable:
                    if pace.due():
                        time_text = duration(at_s)
                        print_line(
                            f"rebat: {done} of {total} batches; {label}: {ended} of {jobs} jobs "
                            f"completed, simulated {time_text}"
                        )
                elif ended % 50 == 0:
                    bar.update(task, completed=done, description=f"{label}: {ended} of {jobs} jobs")

            return on_progress

        yield reporter


COLUMNS = ("policy", "list", "duration_s", "seed", "completion_s", "aborts", "lost_node_s")
"""Columns of batch.csv."""

Results = Mapping["Batch", "BatchResult"]


class BatchCase(NamedTuple):
    """A combination of a policy, a list of boxes and a job duration, for all seeds."""

    policy: str
    which: str
    duration_s: float


class BatchMeans(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table: means of a case over its seeds.

    Attributes
    ----------
    duration_s, policy, list
        The case. If the policy does not choose from a list of boxes, ``list`` is None.
    n
        Number of seeds.
    completion_s, completion_low_s, completion_high_s
        Mean completion time with its interval.
    aborts
        Mean number of aborted attempts.
    lost_node_s
        Mean, in node-seconds, of the node time of aborted attempts.
    less_than_linear, less_than_rps
        Relative saving of mean completion time compared with slurm-linear, and compared with rps on
        the same list. Only faps and ceiling have these values. For other policies, or if the
        compared policy did not run, they are None.
    change, change_low, change_high
        Relative change of the completion time compared with the first policy, and its interval.
        Runs with the same seed are compared. None for the first policy.
    """

    duration_s: float
    policy: str
    list: str | None
    n: int
    completion_s: float
    completion_low_s: float | None
    completion_high_s: float | None
    aborts: float
    lost_node_s: float
    less_than_linear: float | None
    less_than_rps: float | None
    change: float | None
    change_low: float | None
    change_high: float | None


def batch_csv(cases: Sequence[BatchCase], results: Results) -> str:
    """Return batch.csv: a row per case and seed, with the columns `COLUMNS`."""
    rows = {
        (BatchCase(batch.policy, batch.which, batch.duration_s), batch.seed): result
        for batch, result in results.items()
    }
    lines = [",".join(COLUMNS)]
    for case in cases:
        for (other, seed), result in rows.items():
            if other == case:
                cells = (
                    *case[:2],
                    repr(case.duration_s),
                    seed,
                    repr(result.completion_s),
                    result.aborts,
                    repr(result.lost_node_s),
                )
                lines.append(",".join(map(str, cells)))
    return "\n".join(lines) + "\n"


def verdict(cases: Sequence[BatchCase], results: Results) -> list[str]:
    """Return sentences that compare completion times with those of the first policy."""
    lines = []
    for base in (case for case in cases if case[:2] == cases[0][:2]):
        expected = _by_seed(results, base)
        if len(cases) == len({case.duration_s for case in cases}):
            mean = duration(fmean(expected.values()))
            jobs = f"jobs of {duration(base.duration_s)}, {len(expected)} seeds"
            lines.append(f"{_label(base)}: mean completion time {mean} ({jobs})")
        for case in (c for c in cases if c.duration_s == base.duration_s and c != base):
            ratio = ratio_of_means(_by_seed(results, case), expected)
            if ratio is not None:
                lines.append(
                    f"{_label(case)} against {_label(base)}: completion time {change_text(ratio)} "
                    f"(jobs of {duration(case.duration_s)}, {runs_text(ratio.n)})"
                )
    return lines


def means(cases: Sequence[BatchCase], results: Results) -> list[BatchMeans]:
    """Return the means of each case, sorted by duration."""
    return [_means(case, cases, results) for case in sorted(cases, key=lambda c: c.duration_s)]


def _means(case: BatchCase, cases: Sequence[BatchCase], results: Results) -> BatchMeans:
    completion = _by_seed(results, case)
    estimate = interval(completion)
    assert estimate is not None  # each case has at least one seed
    base = BatchCase(*cases[0][:2], case.duration_s)
    ratio = None if case == base else ratio_of_means(completion, _by_seed(results, base))
    change = None if ratio is None else ratio.minus(1.0)
    return BatchMeans(
        duration_s=case.duration_s,
        policy=case.policy,
        list=case.which or None,
        n=estimate.n,
        completion_s=estimate.mean,
        completion_low_s=estimate.low,
        completion_high_s=estimate.high,
        aborts=fmean(_by_seed(results, case, "aborts").values()),
        lost_node_s=fmean(_by_seed(results, case, "lost_node_s").values()),
        less_than_linear=_gain(case, BatchCase("slurm-linear", "", case.duration_s), results),
        less_than_rps=_gain(case, BatchCase("rps", case.which, case.duration_s), results),
        change=None if change is None else change.mean,
        change_low=None if change is None else change.low,
        change_high=None if change is None else change.high,
    )


def _gain(case: BatchCase, base: BatchCase, results: Results) -> float | None:
    """Return the relative saving of mean completion time, or None if a case is missing."""
    expected = _by_seed(results, base)
    if case.policy not in ("faps", "ceiling") or not expected:
        return None
    return 1 - fmean(_by_seed(results, case).values()) / fmean(expected.values())


def means_text(rows: Sequence[BatchMeans]) -> str:
    """Return the table of the means, in hours."""
    titles = [
        "duration",
        "policy",
        "list",
        "mean h",
        "aborts",
        "node-hours lost",
        "saved vs linear",
        "saved vs rps",
    ]
    return Table("", "", titles, [*map(_means_cells, rows)], "means over the seeds", words=3).text()


def _means_cells(row: BatchMeans) -> list[str]:
    gains = (share(v) or "-" for v in (row.less_than_linear, row.less_than_rps))
    numbers = (
        hours(row.completion_s),
        decimal(row.aborts),
        node_hours.bare(row.lost_node_s),
    )
    return [duration(row.duration_s), row.policy, row.list or "-", *numbers, *gains]


def _label(case: BatchCase) -> str:
    return f"{case.policy} ({case.which})" if case.which else case.policy


def _by_seed(results: Results, case: BatchCase, metric: str = "completion_s") -> dict[int, float]:
    return {
        batch.seed: getattr(result, metric)
        for batch, result in results.items()
        if BatchCase(batch.policy, batch.which, batch.duration_s) == case
    }
